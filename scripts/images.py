#!/usr/bin/env python3
"""The images' build steps without a container engine: as root, in chroots that mmdebstrap makes.

images [FOLDER]: carries the Dockerfiles of deploy/ out on a Debian 12, whose own PostgreSQL stands in for
the base image of that, then starts the proxy's image, as its user and on a read-only filesystem, over a
database in the other one. Takes minutes and a gigabyte below FOLDER (/var/tmp). Ends with
"images: N passed, N failed".
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from harness import free_port, wait_for  # noqa: E402

POSTGRES = "15"
BASES = {"debian:12": (), "debian:12-slim": (), "postgres:%s-bookworm" % POSTGRES: ("postgresql-" + POSTGRES,)}
PGBIN = "/usr/lib/postgresql/%s/bin" % POSTGRES


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    if done.returncode != 0:
        raise RuntimeError("%s ended with %d:\n%s" % (" ".join(argv[-3:]), done.returncode, done.stdout[-3000:]))


def within(root, *argv, user="0:0", readonly=False):
    """The command line that runs this in a root of its own."""
    setup = "mount --bind {0} {0}; mount -t proc proc {0}/proc; ".format(shlex.quote(root))
    if readonly:
        setup += "mount -o remount,bind,ro %s; " % shlex.quote(root)
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", setup + 'exec "$@"', "sh",
            "chroot", "--userspec=" + user, root, "/usr/bin/env", "-i", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *argv]


class Builder:
    def __init__(self, area):
        self.area, self.base = area, os.path.join(area, "base")
        run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--skip=cleanup/apt/lists", "bookworm", self.base)
        shutil.copy("/etc/resolv.conf", os.path.join(self.base, "etc", "resolv.conf"))
        with open(os.path.join(self.base, "etc", "apt", "sources.list"), encoding="utf-8") as f:
            print("base: Debian 12,", " ".join(f.read().split()))

    def copy_base(self, image, root):
        run("cp", "-a", self.base, root)
        packages = BASES[image]
        if packages:
            os.makedirs(os.path.join(root, "etc", "postgresql-common"), exist_ok=True)
            with open(os.path.join(root, "etc", "postgresql-common", "createcluster.conf"), "w", encoding="utf-8") as f:
                f.write("create_main_cluster = false\n")
            run(*within(root, "apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages))

    def context(self, target):
        """What the engine would be sent."""
        with open(os.path.join(ROOT, ".dockerignore"), encoding="utf-8") as f:
            patterns = ["--exclude=./" + line for line in f.read().split()]
        os.makedirs(target, exist_ok=True)
        run("sh", "-ec", 'tar -C "$1" -cf - "$3" $4 . | tar -C "$2" --no-same-owner -xf -'.replace('"$3" $4', " ".join(map(shlex.quote, patterns))),
            "sh", ROOT, target)

    def build(self, name, **given):
        """The root of the last stage, and its user and command."""
        with open(os.path.join(ROOT, "deploy", name + ".Dockerfile"), encoding="utf-8") as f:
            text = re.sub(r"\\\n", " ", "".join(line for line in f if not line.startswith("#")))
        outer, stages, image = {}, {}, {}
        for line in filter(str.strip, text.splitlines()):
            word, rest = line.split(None, 1)
            scope = outer if word == "FROM" else image.get("arguments", outer)
            rest = re.sub(r"\$\{(\w+)\}", lambda m, scope=scope: scope[m.group(1)], rest) if word in ("ARG", "FROM", "USER") else rest
            if word == "ARG":
                key, _, default = rest.partition("=")
                scope[key] = given.get(key, default or outer.get(key, ""))
            elif word == "FROM":
                base, _, alias = rest.partition(" AS ")
                root = os.path.join(self.area, "%s-%d" % (name, len(stages)))
                self.copy_base(base, root)
                image = stages[alias or "last"] = {"root": root, "arguments": {}, "user": "root"}
            elif word == "RUN":
                run(*within(image["root"], *["%s=%s" % pair for pair in scope.items()], "sh", "-ec", rest))
            elif word == "COPY":
                source, target = rest.split()[-2:]
                other = re.match(r"--from=(\w+) ", rest)
                if other:
                    run("cp", "-a", stages[other.group(1)]["root"] + source + ".", image["root"] + target)
                else:
                    self.context(image["root"] + target)
            elif word == "USER":
                image["user"] = rest
            elif word == "CMD":
                image["command"] = json.loads(rest)
            elif word not in ("EXPOSE", "STOPSIGNAL"):
                raise ValueError("%s.Dockerfile: %s is not known here" % (name, word))
        print("%s: built" % name, flush=True)
        return image


class Running:
    def __init__(self, argv, log):
        with open(log, "wb") as f:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, start_new_session=True)

    def stop(self):
        """The child of unshare is the first process of its namespace: it ends with its parent."""
        if self.process.poll() is None:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as f:
                for child in f.read().split():
                    os.kill(int(child), signal.SIGTERM)
            self.process.wait(60)
        return self.process.returncode


def works(area, database, proxy):
    """A workflow is registered through the proxy's image in the database of the other one."""
    port, second, shard = free_port(), free_port(), free_port()
    root = database["root"]
    run(*within(root, "sh", "-ec", "install -d -o postgres /shard; echo secret > /pw; chmod 644 /pw; "
                "setpriv --reuid postgres --regid postgres --clear-groups %s/initdb -D /shard/data -U wiggle -A scram-sha-256 --pwfile=/pw"
                % PGBIN))
    command = database["command"]
    assert command[0] == "postgres", command
    started = [Running(within(root, "setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", PGBIN + "/postgres",
                              *command[1:], "-D", "/shard/data", "-p", str(shard), "-k", "/shard", "-c", "listen_addresses=127.0.0.1"),
                       os.path.join(area, "postgres.log"))]
    settings = {"WIGGLE_JDBC_URL": "postgresql://127.0.0.1:%d/postgres" % shard, "WIGGLE_JDBC_USER": "wiggle",
                "WIGGLE_JDBC_PASSWORD": "secret", "WIGGLE_PORT": port, "WIGGLE_DASHBOARD_PORT": second}
    log = os.path.join(area, "proxy.log")
    started.append(Running(within(proxy["root"], *["%s=%s" % pair for pair in settings.items()], *proxy["command"],
                                  user=proxy["user"], readonly=True), log))

    def registered():
        return subprocess.run(within(proxy["root"], "wiggle", "--server", "127.0.0.1:%d" % port, "register", "/order.yaml",
                                     user=proxy["user"], readonly=True), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
    try:
        wait_for(lambda: started[1].process.poll() is not None or registered(), 120, "a registration through the images")
        assert started[1].process.poll() is None, "the proxy ended"
    except Exception:
        for name in ("postgres.log", "proxy.log"):
            with open(os.path.join(area, name), encoding="utf-8", errors="replace") as f:
                print(f.read()[-3000:])
        raise
    finally:
        statuses = [running.stop() for running in reversed(started)]
    assert statuses[0] == 0, "the proxy ended with %s" % statuses[0]


def packages(builder):
    """The packages of "make deb": no error by lintian; installed and taken away again by apt."""
    root = os.path.join(builder.area, "packages")
    run("cp", "-a", builder.base, root)
    shutil.copytree(os.path.join(ROOT, "build", "deb"), os.path.join(root, "deb"))
    run(*within(root, "sh", "-ec", "apt-get install -qq -y --no-install-recommends lintian; lintian --allow-root --fail-on error /deb/*.deb"))
    run(*within(root, "sh", "-ec", "apt-get install -qq -y --no-install-recommends /deb/*.deb; wiggle-proxy --version; wiggle --version; "
                "test -f /usr/lib/postgresql/%s/lib/wiggle.so; test -f /lib/systemd/system/wiggle-proxy.service; "
                "apt-get purge -qq -y wiggle-proxy wiggle-cli; test ! -e /etc/wiggle" % POSTGRES))


def main():
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        sys.exit("images: needs root and mmdebstrap (apt-get install mmdebstrap)")
    area = tempfile.mkdtemp(prefix="wiggle-images.", dir=sys.argv[1] if len(sys.argv) > 1 else "/var/tmp")
    os.chmod(area, 0o755)
    passed = failed = 0
    built = {}
    try:
        builder = Builder(area)

        def both():
            built["postgres"] = builder.build("postgres", PG=POSTGRES)
            built["proxy"] = builder.build("proxy")
            shutil.copy(os.path.join(ROOT, "examples", "order.yaml"), os.path.join(built["proxy"]["root"], "order.yaml"))
        for name, check in (("the Dockerfiles' steps", both),
                            ("the images at work", lambda: works(area, built["postgres"], built["proxy"])),
                            ("the packages, by apt", lambda: packages(builder))):
            try:
                check()
                passed += 1
                print("%s ... ok" % name, flush=True)
            except Exception as problem:    # the next one may tell more
                failed += 1
                print("%s ... FAILED: %s" % (name, problem), flush=True)
    finally:
        shutil.rmtree(area)
    print("images: %d passed, %d failed" % (passed, failed))
    sys.exit(0 if failed == 0 else 1)


if __name__ == "__main__":
    main()
