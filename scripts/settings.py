#!/usr/bin/env python3
"""docs/configuration.md from the tables in the sources.

settings.py           write the page
settings.py --check   say whether the page is what would be written

The proxy's settings come from the table in proxy/config.c, PostgreSQL's from
extension/guc.c, the metrics from where they are made: none is described twice.
"""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
PAGE = os.path.join(ROOT, "docs", "configuration.md")

HEAD = """# Settings

Written by scripts/settings.py from the tables in the sources; change it there.

## wiggle-proxy

From the environment or as a flag (`WIGGLE_PORT` is `--port`); the flag wins. Passwords are read
from the environment only. A value out of range stops the start and is named.

| variable | default | range | |
| --- | --- | --- | --- |
"""

MIDDLE = """
## PostgreSQL

| setting | default | |
| --- | --- | --- |
"""


WATCHING = """
## The second port

HTTP on `WIGGLE_DASHBOARD_PORT`, for probes and Prometheus; HTTPS with `WIGGLE_TLS_KEYSTORE`. The pages need no
credential, calls in JSON need the same as by gRPC.

| page | |
| --- | --- |
| `/healthz` | 200 while the process runs: restart it when this does not answer |
| `/readyz` | 200 while the port for clients is open, home is connected and one shard at least that takes instances; else 503, and 503 from the first signal to end. `missing` in the body says what is missing, `parts` how each shard is. A proxy that is not ready still serves the shards it has. gRPC's health agrees with it |
| `/metrics` | the metrics below, in Prometheus' text format |
| `/api/cluster` | this process and its parts as JSON; `wiggle cluster` lists the proxies |

Metrics of lanes and wake-ups have the label `shard`, those of lanes `lane` too; those of calls `method` or `code`. Histograms
are in seconds.

| metric | kind | |
| --- | --- | --- |
"""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def arguments(text):
    """The arguments of a macro or call whose opening bracket stands before text."""
    out, depth, current, quoted, i = [], 0, "", False, 0
    while i < len(text):
        c = text[i]
        if quoted:
            current += c
            if c == "\\":
                i += 1
                current += text[i]
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
            current += c
        elif c == "," and depth == 0:
            out.append(current.strip())
            current = ""
        elif c == ")" and depth == 0:
            return out + [current.strip()]
        else:
            depth += (c in "({") - (c in ")}")
            current += c
        i += 1
    raise ValueError("unbalanced: %r" % text[:80])


def string(argument):
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', argument)).replace('\\"', '"')


def number(argument):
    value = re.sub(r"MIB\(([^()]*)\)", r"((\1) * 1048576)", argument).replace("INT64_C", "")
    return int(eval(value, {"__builtins__": {}}))   # arithmetic of our own source


def minutes(value):
    """As PostgreSQL would take it."""
    days, rest = divmod(value, 24 * 60)
    return "%dd" % days if rest == 0 else "%dmin" % value


def pretty(value, unit):
    if unit == "bytes" and value >= 1048576 and value % 1048576 == 0:
        return "%d MiB" % (value // 1048576)
    return "%d%s" % (value, "" if unit in ("", "bytes") else unit if unit.startswith("/") else " " + unit)


def proxy_rows():
    source = read("proxy/config.c")
    choices = dict(re.findall(r"static const char \*const (\w+)\[\] = \{([^}]*)\}", source))
    table = source[source.index("static const struct setting settings[]"):]
    table = table[:table.index("\n};")]
    for m in re.finditer(r"^\t(TEXT|NUMBER|CHOICE)\(", table, re.M):
        args = arguments(table[m.end():])
        name = "WIGGLE_" + string(args[0]).upper().replace("-", "_")
        if m.group(1) == "TEXT":
            text = next(string(a) for a in args if a.startswith(".help"))
            yield name, string(args[2]), "", text
        elif m.group(1) == "CHOICE":
            words = [w for w in re.findall(r'"(\w+)"', choices[args[3]])]
            default = next(w for w in words if args[2].endswith(w.upper()))
            yield name, default, ", ".join(words), string(args[4])
        else:
            unit = string(args[5])
            yield (name, pretty(number(args[2]), unit),
                   "%s to %s" % (pretty(number(args[3]), unit), pretty(number(args[4]), unit)), string(args[6]))


def server_rows():
    source = read("extension/guc.c")
    defaults = dict(re.findall(r"^(?:int|bool|char \*)\s*(\w+) = ([^;]+);", source, re.M))
    for m in re.finditer(r"DefineCustom(\w+)Variable\(", source):
        args = arguments(source[m.end():])
        more = string(args[2]) if args[2] != "NULL" else ""
        variable = args[3].lstrip("&")
        default = {"true": "on", "false": "off"}.get(defaults[variable], defaults[variable])
        if any("GUC_UNIT_MS" in a for a in args):
            default += " ms"
        elif any("GUC_UNIT_MIN" in a for a in args):
            default = minutes(number(default))
        when = next((a for a in args if a.startswith("PGC_")), "")
        note = {"PGC_POSTMASTER": " Needs a restart.", "PGC_SIGHUP": " Needs a reload."}.get(when, "")
        yield string(args[0]), default, (string(args[1]) + " " + more).strip() + note


def metric_rows():
    """Each name once: label sets are told apart at run time."""
    rows = {}
    for path in sorted(os.listdir(os.path.join(ROOT, "proxy"))):
        if not path.endswith(".c") or path == "metrics.c":
            continue
        source = read("proxy/" + path)
        for m in re.finditer(r"\bmetric_(counter|gauge|histogram)\(", source):
            name, _, text = arguments(source[m.end():])
            rows[string(name)] = (m.group(1), string(text))
    return [(name, *rows[name]) for name in sorted(rows)]


def page():
    rows = "".join("| `%s` | %s | %s | %s |\n" % (n, d, r, t.replace("|", "\\|")) for n, d, r, t in proxy_rows())
    server = "".join("| `%s` | %s | %s |\n" % row for row in sorted(server_rows()))
    metrics = "".join("| `%s` | %s | %s |\n" % row for row in metric_rows())
    return HEAD + rows + MIDDLE + server + WATCHING + metrics


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if not os.path.exists(PAGE) or read("docs/configuration.md") != text:
            print("docs/configuration.md:1: not what the sources say; run scripts/settings.py")
            sys.exit(1)
        return
    os.makedirs(os.path.dirname(PAGE), exist_ok=True)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
