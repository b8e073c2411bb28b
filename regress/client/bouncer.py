"""PgBouncer in front of a shard, where the Debian package is installed."""
import os
import shutil
import subprocess
import unittest

import world
from harness import free_port, wait_for
from wigclient import fresh_name

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
with_pgbouncer = unittest.skipUnless(PROGRAM, "pgbouncer is not installed (scripts/deps check)")


class Bouncer:
    """Serves the shard's database under another name and port, in a pool_mode, until it is stopped.

    Without `takes_options` it is as its package has it: a session that brings settings is refused.
    """

    def __init__(self, shard, mode="session", name="alias", takes_options=True):
        folder = os.path.join(world.AREA, fresh_name("pgbouncer"))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        self.port, self.name, self.password = free_port(), name, shard.password
        self.log_path = os.path.join(folder, "pgbouncer.log")
        users, ini = os.path.join(folder, "users"), os.path.join(folder, "pgbouncer.ini")
        with open(users, "w", encoding="utf-8") as f:
            f.write('"wiggle" "%s"\n' % shard.password)
        settings = {"listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "pool_mode": mode,
                    "auth_type": "scram-sha-256", "auth_file": users, "logfile": self.log_path}
        if takes_options:
            settings["ignore_startup_parameters"] = "options"
        with open(ini, "w", encoding="utf-8") as f:
            f.write("[databases]\n%s = host=127.0.0.1 port=%d dbname=wiggle\n[pgbouncer]\n" % (name, shard.port))
            f.writelines("%s = %s\n" % setting for setting in settings.items())
        self.process = subprocess.Popen([PROGRAM, "-q", ini], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for(self.listens, 60, "PgBouncer")

    def listens(self):
        if self.process.poll() is not None:
            raise RuntimeError("PgBouncer ended: " + self.log())
        return "listening on" in self.log()

    def log(self):
        if not os.path.exists(self.log_path):
            return ""
        with open(self.log_path, encoding="utf-8") as f:
            return f.read()

    @property
    def place(self):
        return "127.0.0.1:%d/%s" % (self.port, self.name)

    @property
    def url(self):
        return "postgresql://" + self.place

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
