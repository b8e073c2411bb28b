#!/usr/bin/env python3
"""Checks of the source tree that no ready-made tool makes.

style    layout of C files: what clang-format cannot express (aligned
         declarations in the manner of PostgreSQL) but a reader notices
layers   includes against layers.conf, and no cycle among headers
names    banned functions, unfinished work, machine paths
entry    PG_FUNCTION_INFO_V1 in api_*.c only, the clock read in clock.c only
listed   every test file is listed in the Makefile, every object in its list
symbols  what wiggle.so exports carries a prefix

Prints "file:line: message" for each finding; exit status 1 when there is one.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FINDINGS = []

FILE_LINES = 800
FUNCTION_LINES = 120
LINE_COLUMNS = 120


def found(path, line, message):
    FINDINGS.append("%s:%d: %s" % (path, line, message))


def tracked(*patterns):
    """Files git knows or would add, so that a new file is seen before its commit."""
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "--", *patterns],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    return [p for p in sorted(set(out.splitlines())) if os.path.exists(os.path.join(ROOT, p))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def c_files():
    return tracked("*.c", "*.h")


def in_tests(path):
    """Unit tests hold long literals and build texts on buffers they know; the sanitizers watch them."""
    return path.startswith("regress/")


def without_comments_and_strings(text):
    """The same text, same lines and columns, with those blanked out."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


# ---------------------------------------------------------------- style

def columns(line):
    return len(line.expandtabs(4))


def style(path):
    text = read(path)
    if "\r" in text:
        found(path, 1, "carriage return; lines end with a newline alone")
    if text and not text.endswith("\n"):
        found(path, text.count("\n") + 1, "no newline at the end of the file")
    lines = text.split("\n")
    if len(lines) - 1 > FILE_LINES:
        found(path, FILE_LINES, "more than %d lines; a second concern wants out" % FILE_LINES)
    code = without_comments_and_strings(text).split("\n")
    for n, (line, bare) in enumerate(zip(lines, code), 1):
        if line != line.rstrip():
            found(path, n, "trailing white space")
        # A message stays in one piece, so that it can be found as it reads.
        if columns(line) > LINE_COLUMNS and not in_tests(path) and not re.search(r'"[^"]{60,}"', line):
            found(path, n, "longer than %d columns" % LINE_COLUMNS)
        if re.match(r"\t* {4,}\S", line) and not line.lstrip().startswith("*"):
            found(path, n, "indent with tabs (width 4)")
        if re.search(r"(^|\s)//", re.sub(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', '""', line)) and bare.strip() != line.strip():
            found(path, n, "// comment; use /* */")
        if re.search(r"\b(if|for|while|switch)\(", bare):
            found(path, n, "space missing before '('")
        if re.search(r"\)\s*\{\s*$", bare) and not re.search(r"=|\(\w[\w ]*(\[\])?\)\s*\{\s*$", bare):
            found(path, n, "opening brace on a line of its own")
        if re.search(r"\}\s*else\b|\belse\s*\{", bare):
            found(path, n, "braces around else on lines of their own")
        if re.search(r"\b(char|void|int|struct \w+)\* \w", bare):
            found(path, n, "the star belongs to the name: 'char *x'")
    functions(path, code)
    if path.endswith(".h"):
        guard(path, text)
    includes_in_groups(path, lines)


def functions(path, code):
    """A definition's body is from '{' to '}' in column 0; its name stands in column 0 too."""
    start = None
    for n, line in enumerate(code, 1):
        if line.startswith("{"):
            start = n
            head = n - 1
            while head > 1 and not re.match(r"[A-Za-z_]", code[head - 1]):
                head -= 1
            first = code[head - 1]
            name = re.match(r"(?:[\w\s]*?[\s*]+)?(\w+)\s?\(", first)
            if name and not re.match(r"\w+\s?\(", first) and not first.startswith(("struct", "enum", "union", "typedef")):
                found(path, head, "return type of %s() on a line of its own" % name.group(1))
        elif line.startswith("}") and start is not None:
            if n - start - 1 > FUNCTION_LINES:
                found(path, start, "function of %d lines; %d are the limit" % (n - start - 1, FUNCTION_LINES))
            start = None


def guard(path, text):
    m = re.search(r"#ifndef (\w+)\n#define (\w+)\n", text)
    if not m or m.group(1) != m.group(2):
        found(path, 1, "no include guard")


SYSTEM = re.compile(r"<((sys|netinet|arpa|linux|net)/)?\w+\.h>$")
LIBRARY = re.compile(r"<(libpq-fe|uv|zlib|yaml|jansson|microhttpd|cmocka)\.h>")


def includes_in_groups(path, lines):
    """Runs of #include lines are sorted; the own header may lead its group."""
    run = []
    for n, line in enumerate(lines + [""], 1):
        m = re.match(r'#include ([<"][^>"]+[>"])', line)
        if m:
            run.append((n, m.group(1)))
            continue
        names = [name for _, name in run]
        if names[:1] in (['"postgres.h"'], ['"postgres_fe.h"'], ['"c.h"']):
            names = names[1:]
        if names[:1] and names[0].startswith("<"):
            # The C library's headers, then other libraries', each sorted.
            order = sorted(names, key=lambda h: (bool(LIBRARY.match(h)) or not SYSTEM.match(h), h.lower()))
            if names in (order, sorted(names)):
                names = []
        if names != sorted(names, key=str.lower) and names != sorted(names):
            found(path, run[0][0], "includes are not sorted: %s" % " ".join(names))
        run = []


# --------------------------------------------------------------- layers

def read_layers():
    layer, uses, only = {}, {}, {}
    rank = {}
    for n, line in enumerate(read("regress/lint/layers.conf").splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        head, _, rest = line.partition(":")
        words = head.split()
        if words[0] == "only":
            only[words[1]] = rest.split()
        elif words[1] == "uses":
            uses[words[0]] = rest.split()
        else:
            tree = words[0]
            rank[tree] = rank.get(tree, -1) + 1
            for name in rest.split():
                if (tree, name) in layer:
                    found("regress/lint/layers.conf", n, "%s/%s is listed twice" % (tree, name))
                layer[tree, name] = (rank[tree], words[1])
    return layer, uses, only


def layers():
    layer, uses, only = read_layers()
    trees = set(uses)
    graph = {}
    seen = set()
    for path in c_files():
        parts = path.split("/")
        if len(parts) != 2 or parts[0] not in trees:
            continue
        tree, name = parts[0], os.path.splitext(parts[1])[0]
        # "wiggle.c" in the list is that file alone, "wiggle" also its header.
        if (tree, parts[1]) in layer:
            name = parts[1]
        seen.add((tree, name))
        if (tree, name) not in layer:
            found(path, 1, "not in regress/lint/layers.conf: give it a layer")
            continue
        for n, line in enumerate(read(path).split("\n"), 1):
            m = re.match(r'#include ([<"])([^>"]+)[>"]', line)
            if not m:
                continue
            header = m.group(2)
            for owner, owned in only.items():
                for pattern in owned:
                    if re.fullmatch(pattern.replace("*", ".*"), header) and owner.split("/")[0] == tree \
                            and name not in owner.split("/")[1].split(","):
                        found(path, n, "%s is for %s alone" % (header, owner))
            if m.group(1) == "<":
                continue
            target = included(tree, header, uses[tree])
            if target is None:
                if tree == "core" and not os.path.exists(os.path.join(ROOT, "core", header)):
                    found(path, n, "core/ includes only core/ and the C library's headers: %s" % header)
                continue
            if target[0] == tree:
                graph.setdefault((tree, parts[1]), set()).add((tree, os.path.basename(header)))
                mine, theirs = layer[tree, name], layer.get(target)
                if theirs is None:
                    found(path, n, "%s has no layer" % header)
                elif theirs[0] > mine[0]:
                    found(path, n, "%s (%s) includes %s of the higher layer %s" % (name, mine[1], header, theirs[1]))
    for tree, name in sorted(k for k in set(layer) - seen):
        found("regress/lint/layers.conf", 1, "%s/%s does not exist" % (tree, name))
    cycles(graph)


def included(tree, header, allowed):
    """(tree, name) of one of our headers, None for anyone else's."""
    base = os.path.splitext(os.path.basename(header))[0]
    folder = os.path.dirname(header)
    for candidate in [folder] if folder else [tree, *allowed]:
        if os.path.exists(os.path.join(ROOT, candidate, base + ".h")) and candidate in (tree, *allowed):
            return candidate, base
    return None


def cycles(graph):
    state = {}

    def visit(node, trail):
        if state.get(node) == "done":
            return
        if node in trail:
            loop = [n[1] for n in trail[trail.index(node):]] + [node[1]]
            found("%s/%s" % node, 1, "include cycle: " + " -> ".join(loop))
            return
        for target in sorted(graph.get(node, ())):
            visit(target, trail + [node])
        state[node] = "done"

    for node in sorted(graph):
        visit(node, [])


# ---------------------------------------------------------------- names

BANNED = {
    "strcpy": "snprintf or memcpy with a checked length", "strcat": "snprintf", "sprintf": "snprintf",
    "vsprintf": "vsnprintf", "gets": "fgets", "strtok": "strchr or strspn", "atoi": "strtol, checked",
    "atol": "strtol, checked", "atof": "strtod, checked", "system": "posix_spawn", "popen": "posix_spawn",
    "strncpy": "memcpy or strlcpy", "alloca": "a buffer of known size", "tmpnam": "mkstemp", "mktemp": "mkstemp",
    "rand": "getrandom or pg_prng", "usleep": "a latch or a timer",
}
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"(?<![\w.~$}])/(work|home/\w|root|Users)/|\bsub-?a" r"gents?\b", re.I)


def names():
    call = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
    for path in c_files():
        if in_tests(path):
            continue
        code = without_comments_and_strings(read(path))
        for n, line in enumerate(code.split("\n"), 1):
            for m in call.finditer(line):
                found(path, n, "%s() is banned; use %s" % (m.group(1), BANNED[m.group(1)]))
    for path in tracked():
        if path.endswith((".png", ".ico", ".woff2")):
            continue
        for n, line in enumerate(read(path).split("\n"), 1):
            if UNFINISHED.search(line):
                found(path, n, "unfinished by its own words")
            if MACHINE.search(line):
                found(path, n, "names a place that only one machine has")


# ---------------------------------------------------------------- entry

def entry():
    for path in c_files():
        if not path.startswith("extension/"):
            continue
        code = without_comments_and_strings(read(path))
        for n, line in enumerate(code.split("\n"), 1):
            if "PG_FUNCTION_INFO_V1" in line and not os.path.basename(path).startswith("api_"):
                found(path, n, "SQL entry points live in api_*.c only")
            if re.search(r"\bGetCurrent(Integer)?Timestamp\s*\(|\bGetCurrentTransactionStartTimestamp\s*\(", line) \
                    and os.path.basename(path) != "clock.c":
                found(path, n, "the time is read in clock.c only")


# --------------------------------------------------------------- listed

def make_list(name):
    return subprocess.run(["make", "-s", "-C", ROOT, "list-" + name],
                          stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def listed():
    for folder, ext, name in (("sql", ".sql", "regress"), ("regress/isolation/specs", ".spec", "isolation")):
        files = [os.path.basename(p)[:-len(ext)] for p in tracked(folder + "/*" + ext)]
        wanted = make_list(name)
        expected = ("expected/%s.out" if name == "regress" else "regress/isolation/expected/%s.out")
        for test in sorted(set(files) - set(wanted)):
            found("%s/%s%s" % (folder, test, ext), 1, "not listed in the Makefile")
        for test in sorted(set(wanted) - set(files)):
            found("Makefile", 1, "lists a test that does not exist: %s" % test)
        for test in wanted:
            if not os.path.exists(os.path.join(ROOT, expected % test)):
                found("%s/%s%s" % (folder, test, ext), 1, "has no %s" % (expected % test))
        for doubled in sorted({t for t in wanted if wanted.count(t) > 1}):
            found("Makefile", 1, "lists %s twice" % doubled)
    sources = tracked("extension/*.c")
    built = make_list("sources")
    for path in sorted(set(sources) - set(built)):
        found(path, 1, "not listed in the Makefile's EXT_SRCS")
    page = read("docs/sql.md")
    for script in tracked("extension/wiggle--*.sql"):
        for n, line in enumerate(read(script).split("\n"), 1):
            made = re.match(r"create (?:or replace )?function (\w+)\(", line)
            if made and "`%s(" % made.group(1) not in page:
                found(script, n, "docs/sql.md does not name %s()" % made.group(1))
    page, example = read("docs/shards.md"), read("examples/topology-full.json")
    for path in tracked("core/topology*.c"):
        text = read(path)
        lists = re.findall(r"(?:_keys\[\] =|define SHARED_KEYS)\s*(.*?)(?:;|\n\n)", text, re.S)
        for key in sorted(set(re.findall(r'"(\w+)"', " ".join(lists)))):
            if "\n| `%s` |" % key not in page:
                found(path, 1, "docs/shards.md has no row for the key %s" % key)
            if '"%s":' % key not in example:
                found(path, 1, "examples/topology-full.json does not use the key %s" % key)


# -------------------------------------------------------------- symbols

def symbols():
    library = os.path.join(ROOT, "wiggle.so")
    if not os.path.exists(library):
        found("wiggle.so", 1, "not built; run make first")
        return
    out = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in out.splitlines():
        name = line.split()[-1]
        if not re.match(r"(wig_|wiggle_|_PG_|pg_finfo_(?:wig_|wiggle_)|Pg_magic_func$)", name):
            found("wiggle.so", 1, "exports %s; exported names start with wig_ or wiggle_" % name)

    # What is loaded into a server must not meet its names, or another extension's.
    objects = [os.path.join(ROOT, "build/obj/pg", p[:-2] + ".o") for p in tracked("core/*.c")]
    for obj in filter(os.path.exists, objects):
        out = subprocess.run(["nm", "-g", "--defined-only", obj], stdout=subprocess.PIPE, check=True, text=True).stdout
        for line in out.splitlines():
            if not line.split()[-1].startswith("wig_"):
                found("core/" + os.path.basename(obj)[:-2] + ".c", 1, "%s does not start with wig_" % line.split()[-1])


CHECKS = {
    "style": lambda: [style(p) for p in c_files()],
    "layers": layers, "names": names, "entry": entry, "listed": listed, "symbols": symbols,
}


def main(argv):
    for name in argv or CHECKS:
        if name not in CHECKS:
            sys.exit("unknown check '%s'; use %s" % (name, ", ".join(CHECKS)))
        CHECKS[name]()
    for line in FINDINGS:
        print(line)
    sys.exit(1 if FINDINGS else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
