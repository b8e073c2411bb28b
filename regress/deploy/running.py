"""HAProxy and Prometheus against proxies that run."""
import os
import re
import shutil
import socket
import subprocess
import unittest

import grpc
import yaml

from common import AREA, TREE, read, run, tool, with_tls

from certs import Authority
from harness import Cluster, Proxy, free_port, topology, wait_for


class Running(unittest.TestCase):
    """A database, an authority, and a proxy without TLS and one with it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.join(AREA, cls.__name__.lower())
        os.makedirs(cls.folder)
        cls.cluster = Cluster(os.path.join(cls.folder, "shard"), "fsync = off").start()
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.psql("create database wiggle", "postgres")
        cls.authority = Authority(os.path.join(cls.folder, "ca"), "Deploy")
        server = cls.authority.issue("server")
        cls.plain = cls.proxy("plain")
        cls.tls = cls.proxy("tls", WIGGLE_TLS_KEYSTORE=server.chain, WIGGLE_TLS_KEY=server.key)

    @classmethod
    def proxy(cls, name, **settings):
        proxy = Proxy(cls.folder, topology(cls.cluster), name, WIGGLE_NODE_NAME="node-" + name, **settings).start()
        cls.addClassCleanup(proxy.stop)
        return proxy


class Balancer(Running):
    """deploy/haproxy.cfg, at the addresses that there are here."""

    def balancer(self, name, proxy, change=str):
        """Its port, and what it says of its servers: the proxy, and one that is not there."""
        text, port = change(read("deploy", "haproxy.cfg")), free_port()
        for old, new in ((r"bind :8080", "bind 127.0.0.1:%d" % port),
                         (r" resolvers docker init-addr libc,none", ""),
                         (r"server proxy1 proxy1:8080", "server proxy1 127.0.0.1:%d port %d" % (proxy.port, proxy.second_port)),
                         (r"server proxy2 proxy2:8080", "server proxy2 127.0.0.1:1 port 1")):
            self.assertRegex(text, old)
            text = re.sub(old, new, text)
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        # a socket's path must be short
        path = os.path.relpath(os.path.join(folder, "s"), folder)
        with open(os.path.join(folder, "cfg"), "w", encoding="utf-8") as f:
            f.write("global\n\tstats socket unix@%s\n\n%s" % (path, text))
        process = subprocess.Popen([tool(self, "haproxy"), "-db", "-f", "cfg"], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def servers():
            """{server: (status, the check's result)}; a check that runs stands behind its last result."""
            before = os.getcwd()
            try:
                os.chdir(folder)
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(60)
                    s.connect(path)
                    s.sendall(b"show stat\n")
                    lines = s.makefile().read().splitlines()
            except OSError:
                return {}
            finally:
                os.chdir(before)
            head = lines[0].removeprefix("# ").split(",")
            rows = [dict(zip(head, line.split(","))) for line in lines[1:] if line]
            return {row["svname"]: (row["status"].split()[0], row["check_status"].removeprefix("* ")) for row in rows}
        return port, servers

    def test_its_syntax(self):
        haproxy = tool(self, "haproxy")
        for name, change in (("plain", str), ("tls", with_tls)):
            path = os.path.join(self.folder, name + ".cfg")
            with open(path, "w", encoding="utf-8") as f:
                f.write(change(read("deploy", "haproxy.cfg")))
            run(haproxy, "-c", "-f", path)

    def checked(self, name, proxy, change, *options):
        port, servers = self.balancer(name, proxy, change)
        wait_for(lambda: servers().get("proxy1") == ("UP", "L7OK") and servers()["proxy2"] == ("DOWN", "L4CON"), 60,
                 "what the checks find: %s" % servers())
        self.assertIn(proxy.settings["WIGGLE_NODE_NAME"], run("wiggle", "cluster", "--server", "127.0.0.1:%d" % port, *options))

    def test_its_checks_find_who_is_ready(self):
        self.checked("balancer", self.plain, str)

    def test_its_checks_find_who_is_ready_by_tls(self):
        self.checked("balancer-tls", self.tls, with_tls, "--tls-truststore", self.authority.root)


class Probes(Running):
    """What docs/deploying.md says of each, while there is no database."""

    def opens(self, port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def health(self, proxy):
        with grpc.insecure_channel(proxy.address) as channel:
            return channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=60, wait_for_ready=True)

    def test_a_proxy_that_starts_before_its_databases(self):
        document = topology(self.cluster)
        document["shards"][0]["primary"]["url"] = "jdbc:postgresql://127.0.0.1:1/wiggle"
        proxy = Proxy(self.folder, document, "early").start(wait=False)
        self.addCleanup(proxy.stop)
        wait_for(lambda: proxy.http("/healthz"), 60, "the second port")
        self.assertEqual((proxy.http("/healthz")[0], proxy.http("/readyz")[0]), (200, 503))
        self.assertEqual((self.opens(proxy.port), self.opens(proxy.second_port)), (False, True))

    def test_one_whose_databases_go_away(self):
        cluster = Cluster(os.path.join(self.folder, "gone"), "fsync = off").start()
        self.addCleanup(cluster.stop)
        cluster.psql("create database wiggle", "postgres")
        proxy = Proxy(self.folder, topology(cluster), "late").start()
        self.addCleanup(proxy.stop)
        self.assertEqual(self.health(proxy), b"\x08\x01", "SERVING")
        cluster.stop()
        wait_for(lambda: proxy.http("/readyz")[0] == 503, 60, "a proxy that is not ready")
        self.assertEqual(self.health(proxy), b"\x08\x02", "NOT_SERVING")
        self.assertEqual(proxy.http("/healthz")[0], 200)
        self.assertEqual((self.opens(proxy.port), self.opens(proxy.second_port)), (True, True))

    def test_one_that_looks_at_a_tls_port_is_no_failure(self):
        before, probes = self.tls.metric("wiggle_proxy_connections_total"), 3
        for _ in range(probes):
            self.assertTrue(self.opens(self.tls.port))
        wait_for(lambda: self.tls.metric("wiggle_proxy_connections_total") >= before + probes and
                 self.tls.metric("wiggle_proxy_connections") == 0, 60, "the end of all")
        self.assertEqual(self.tls.metric("wiggle_proxy_tls_failures_total"), 0)
        self.assertNotIn(" WARN ", self.tls.log())


class Exposition(Running):
    def test_prometheus_takes_every_name_and_unit(self):
        promtool = tool(self, "promtool")
        for proxy in (self.plain, self.tls):
            done = subprocess.run([promtool, "check", "metrics"], input=proxy.http("/metrics")[1], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))


class Rules(unittest.TestCase):
    def test_they_fire_when_they_should(self):
        promtool = tool(self, "promtool")
        folder = os.path.join(AREA, "rules")
        os.makedirs(folder)
        for path in ("deploy/prometheus/wiggle-rules.yml", "regress/deploy/rules.test.yml"):
            shutil.copy(os.path.join(TREE, path), folder)
        run(promtool, "check", "rules", "wiggle-rules.yml", cwd=folder)
        run(promtool, "test", "rules", "rules.test.yml", cwd=folder)

    def test_what_is_scraped(self):
        promtool = tool(self, "promtool")
        for name, change in (("plain", str), ("tls", with_tls)):
            folder = os.path.join(AREA, "scrape-" + name)
            os.makedirs(folder)
            shutil.copy(os.path.join(TREE, "deploy", "prometheus", "wiggle-rules.yml"), folder)
            with open(os.path.join(folder, "ca.crt"), "w", encoding="ascii"):
                pass
            document = yaml.safe_load(change(read("deploy", "prometheus", "prometheus.yml")))
            for job in document["scrape_configs"]:
                self.assertEqual(job.get("scheme"), "https" if change is with_tls else None, job["job_name"])
                # Debian's Prometheus is built without Kubernetes
                self.assertEqual([c["role"] for c in job.pop("kubernetes_sd_configs", [])], ["pod"] * ("static_configs" not in job))
            with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as f:
                yaml.safe_dump(document, f)
            run(promtool, "check", "config", "prometheus.yml", cwd=folder)
