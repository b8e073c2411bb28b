#!/usr/bin/env python3
"""docs/configuration.md, and README's table of settings, from the tables in the sources.

settings.py           write them
settings.py --check   say whether they are what would be written

The proxy's settings come from the tables in proxy/setting.c, PostgreSQL's from
extension/guc.c, the metrics from where they are made: none is described twice.
"""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
PAGE = os.path.join(ROOT, "docs", "configuration.md")
BEGIN, END = "<!-- scripts/settings.py writes this table -->\n", "<!-- until here -->\n"

HEAD = """# Settings

Written by scripts/settings.py from the tables in the sources; change it there.

## wiggle-proxy

From the environment or as a flag (`WIGGLE_PORT` is `--port`); the flag wins. Passwords are read
from the environment only. A value out of range stops the start and is named. A plain number is in the unit
that the variable's name says; times may be written as `500ms`, `30s`, `5min`, `12h` or `7d`, sizes as `64kB`, `16MB` or `1GB`,
and another unit is refused. `wiggle config` shows each setting, its value and where it came from; `wiggle config --check` refuses what
the start would refuse.

| variable | default | range | |
| --- | --- | --- | --- |
"""

FOREIGN = """
Those that say which setting of PostgreSQL they are belong to the engine in each database. Given, they are set there with `alter database`
when the proxy sets the shard up; left out, the database keeps what it has. The role may do that when it is a superuser, or owns the database and
has `grant set on parameter wiggle.retention to …`; where it may not, the shard serves as it is and the log has the statements for an
administrator. With `WIGGLE_SCHEMA_MODE=verify` nothing is changed and the log has them too. Of several databases of one
server each has its own. Sessions that are open keep the former value until they end.

### Variables of Wiggle's own server

A manifest of Wiggle's server starts this proxy as it is. What has no meaning here is accepted, and a line of the log says
why; what asks for something that would be missing stops the start. Any other name that begins with `WIGGLE_` is warned of, with the
setting that was probably meant.

| variable | | |
| --- | --- | --- |
"""

MIDDLE = """
## PostgreSQL

In `postgresql.conf`, with a reload, or for one database with `alter database … set`, which the clock worker obeys within a second or
two and sessions from their start on. What needs a restart says so.

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
| `/api/cluster` | this process and its parts, the proxies and [who takes what](partitioning.md) as JSON; `wiggle cluster` lists the proxies |

Histograms are in seconds, and have `le` beside their labels. `wiggle_shard_…` is what each shard tells when it is asked, every `WIGGLE_QUEUE_LAG_CHECK_INTERVAL_MILLIS`: one bounded
question; a scrape waits for no database, and a shard that has not answered lately is shown by `wiggle_shard_up` alone. Every
proxy shows all shards: take the maximum over them, not the sum. [deploy/grafana/wiggle.json](../deploy/grafana/wiggle.json) is a
dashboard of them, [deploy/prometheus/wiggle-rules.yml](../deploy/prometheus/wiggle-rules.yml) has alerts.

When the oldest ready task of a queue waits for longer than `WIGGLE_QUEUE_LAG_WARN_MILLIS`, the proxy that leads says so in its log,
once, with whether a worker polls the queue, and once that it is over.

| metric | kind | labels | |
| --- | --- | --- | --- |
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
    source = read("proxy/setting.c")
    choices = dict(re.findall(r"static const char \*const (\w+)\[\] = \{([^}]*)\}", source))
    table = source[source.index("const struct setting settings[]"):]
    table = table[:table.index("\n};")]
    for m in re.finditer(r"^\t(TEXT|NUMBER|RATIO|CHOICE)\(", table, re.M):
        args = arguments(table[m.end():])
        name = "WIGGLE_" + string(args[0]).upper().replace("-", "_")
        common = any(a.startswith(".common") for a in args)
        guc = next((" (`%s`)" % string(a) for a in args if a.startswith(".guc")), "")
        if m.group(1) == "TEXT":
            text = next(string(a) for a in args if a.startswith(".help"))
            yield name, string(args[2]), "", text, common
        elif m.group(1) == "RATIO":
            yield name, "%g" % (number(args[2]) / 1000), "%g to 1" % (number(args[3]) / 1000), string(args[4]), common
        elif m.group(1) == "CHOICE":
            words = [w for w in re.findall(r'"(\w+)"', choices[args[3]])]
            default = words[int(args[2])] if args[2].isdigit() else next(w for w in words if args[2].endswith(w.upper()))
            yield name, default, ", ".join(words), string(args[4]) + guc, common
        else:
            unit = string(args[5])
            yield (name, pretty(number(args[2]), unit),
                   "%s to %s" % (pretty(number(args[3]), unit), pretty(number(args[4]), unit)), string(args[6]) + guc,
                   common)


def foreign_rows():
    source = read("proxy/setting.c")
    reasons = {name: string(text) for name, text in re.findall(r"^#define (\w+)\s+((?:\"(?:[^\"\\]|\\.)*\"\s*\\?\s*)+)$", source, re.M)}
    table = source[source.index("const struct foreign foreigns[]"):]
    table = table[:table.index("\n};")]
    for m in re.finditer(r"^\t(IGNORED|REFUSED|\{)\(?", table, re.M):
        if m.group(1) == "{":
            fields = dict(re.findall(r"\.(\w+) = (\"[^\"]*\"|\w+)", table[m.end():table.index("}", m.end())]))
            name, why = fields["name"].strip('"'), fields["why"]
            kind = "only `%s`" % fields["accepts"].strip('"').replace("|", "`, `")
        else:
            name, why = arguments(table[m.end():])
            name, kind = string(name), {"IGNORED": "no effect", "REFUSED": "refused"}[m.group(1)]
        yield name, kind, reasons[why] if why in reasons else string(why) if why.startswith('"') else why.strip('"')


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
        note = {"PGC_POSTMASTER": " Needs a restart."}.get(when, "")
        yield string(args[0]), default, (string(args[1]) + " " + more).strip() + note


def labels_of(given, before):
    """The names of the labels that are a metric's second argument: the text itself, or what was last printed into that variable."""
    if given == "NULL":
        return []
    if not given.startswith('"'):
        given = re.findall(r"\bsnprintf\(%s, [^\n]*" % given, before)[-1]
    return re.findall(r'(\w+)=\\"', given)


def metric_rows():
    """Each name once: label sets are told apart at run time."""
    rows = {}
    for path in sorted(os.listdir(os.path.join(ROOT, "proxy"))):
        if not path.endswith(".c") or path == "metrics.c":
            continue
        source = read("proxy/" + path)
        for m in re.finditer(r"\bmetric_(counter|gauge|histogram)(?:_millis)?\(", source):
            name, labels, text = arguments(source[m.end():])
            rows[string(name)] = (m.group(1), labels_of(labels, source[:m.start()]), string(text))
        for m in re.finditer(r"\bFAMILY\((?=\")", source):
            _, kind, name, label, text = arguments(source[m.end():])
            rows[string(name)] = (kind.removeprefix("METRIC_").lower(), ["shard"] + [string(label)] * (label != "NULL"), string(text))
    return [(name, rows[name][0], ", ".join("`%s`" % label for label in rows[name][1]), rows[name][2]) for name in sorted(rows)]


def most_used():
    rows = [(n, d, t) for n, d, _, t, common in proxy_rows() if common]
    return "| variable | default | |\n| --- | --- | --- |\n" + "".join(
        "| `%s` | %s | %s |\n" % (n, d, t.replace("|", "\\|")) for n, d, t in rows)


def readme():
    text = read("README.md")
    head, rest = text.split(BEGIN)
    return head + BEGIN + most_used() + END + rest.split(END)[1]


def page():
    rows = "".join("| `%s` | %s | %s | %s |\n" % (n, d, r, t.replace("|", "\\|")) for n, d, r, t, _ in proxy_rows())
    foreign = "".join("| `%s` | %s | %s |\n" % row for row in foreign_rows())
    server = "".join("| `%s` | %s | %s |\n" % row for row in sorted(server_rows()))
    metrics = "".join("| `%s` | %s | %s | %s |\n" % row for row in metric_rows())
    return HEAD + rows + FOREIGN + foreign + MIDDLE + server + WATCHING + metrics


def main():
    texts = {"docs/configuration.md": page(), "README.md": readme()}
    if sys.argv[1:] == ["--check"]:
        stale = [name for name, text in texts.items() if not os.path.exists(os.path.join(ROOT, name)) or read(name) != text]
        for name in stale:
            print("%s:1: not what the sources say; run scripts/settings.py" % name)
        sys.exit(1 if stale else 0)
    os.makedirs(os.path.dirname(PAGE), exist_ok=True)
    for name, text in texts.items():
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
