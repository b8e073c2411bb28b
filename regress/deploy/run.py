#!/usr/bin/env python3
"""What is deployed: packages, units, manifests, Dockerfiles, the compose file.

run.py AREA. The packages of scripts/deb are unpacked over a copy of the private installation
and run from there; the rest is read, and held against what the programs say of themselves.
Ends with "deploy: N passed, N failed".
"""
import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import yaml

from common import AREA, TREE, manifests, one, read, run, with_tls
from running import Balancer, Exposition, Probes, Rules  # noqa: F401

from harness import Cluster, Proxy, topology  # noqa: E402


def dead_links(folder, within):
    """Relative links of the pages in a folder to what is not there, or not below within, and to headings that are not."""
    def text(path):
        with open(path, encoding="utf-8") as f:
            return re.sub(r"^```.*?^```", "", f.read(), flags=re.M | re.S)

    def anchors(path):
        return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text(path), re.M)}
    dead, pages = [], sorted(glob.glob(os.path.join(folder, "*.md")))
    assert pages, folder
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(folder, path)) if path else page
            if (os.path.relpath(target, within).startswith("..") or not os.path.exists(target)
                    or anchor and anchor not in anchors(target)):
                dead.append("%s: %s" % (os.path.basename(page), link))
    return dead


def tests_of(path):
    """The (class, name) of each test in a file; the class is "" in C."""
    with open(path, encoding="utf-8") as f:
        source = f.read()
    if path.endswith(".c"):
        return {("", name) for name in re.findall(r"^(test_\w+|\w+)\(void \*\*state\)", source, re.M)}
    return {(c.name, f.name) for c in ast.parse(source).body if isinstance(c, ast.ClassDef)
            for f in c.body if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")}


def misnamed(line, there, short):
    """Tests and modules of a line of the mapping that there are not. A module counts for the tests behind it."""
    wrong, module = [], None
    stems = {os.path.basename(path): path for path in there}
    for path, letter, bare, quoted in re.findall(
            r"`((?:[\w/]+/)?\w+\.(?:py|c))`|\b([A-Z])\b(?=[,:;]| \()|(?<![`\w.])(test_\w+)(?![`\w.])|`((?:\w+\.)?test_\w+)`", line):
        name = path.removeprefix("regress/") or short.get(letter) or (bare and bare + ".py")
        if name:
            module = name if name in there else stems.get(os.path.basename(name))
            if module is None and (bare or os.path.basename(name).startswith("test_")):
                wrong.append("no module " + name)
        elif quoted:
            group, _, test = quoted.rpartition(".")
            where = [module] if module else list(there)
            found = [(of, each) for of in where for each in there[of] if each[1] == test and group in ("", each[0])]
            if not found or (not module and len({of for of, _ in found}) > 1):
                wrong.append("%s in %s: %d" % (quoted, module or "any module", len(found)))
    return wrong


VERSION = run("wiggle-proxy", "--version").split()[1]
HELP = run("wiggle-proxy", "--help")


def setting(name):
    """The default of one of the proxy's settings."""
    return int(re.search(r"%s\n.*\n      default (\d+)" % name, HELP).group(1))


GRACE = setting("WIGGLE_DRAIN_GRACE_MILLIS") / 1000
PORTS = {setting("WIGGLE_PORT"): "grpc", setting("WIGGLE_DASHBOARD_PORT"): "http"}
PACKAGES = {field.rsplit("/", 1)[1].split("_")[0]: field for field in glob.glob(os.path.join(TREE, "build", "deb", "*.deb"))}
SERVER = next((name for name in PACKAGES if name.startswith("postgresql-")), None)


class Packages(unittest.TestCase):
    """Unpacked, in place of what the staged installation has of ours."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = os.path.join(AREA, "prefix")
        shutil.copytree(os.environ["WIGGLE_PREFIX"], cls.prefix, symlinks=True)
        for pattern in ("bin/wiggle*", "**/wiggle.so", "**/wiggle.control", "**/wiggle--*"):
            for path in glob.glob(os.path.join(cls.prefix, pattern), recursive=True):
                os.unlink(path)
        for path in PACKAGES.values():
            run("dpkg", "-x", path, cls.prefix)
        inside = os.path.relpath(os.environ["WIGGLE_PGBIN"], os.environ["WIGGLE_PREFIX"])
        os.environ["WIGGLE_PREFIX"], os.environ["WIGGLE_PGBIN"] = cls.prefix, os.path.join(cls.prefix, inside)
        os.environ["PATH"] = ":".join([os.path.join(cls.prefix, "usr", "bin"), os.environ["WIGGLE_PGBIN"], "/usr/bin", "/bin"])

    def field(self, package, name):
        return run("dpkg-deb", "-f", PACKAGES[package], name).strip()

    def test_there_are_three_of_one_version(self):
        self.assertEqual(sorted(re.sub(r"\d+", "NN", name) for name in PACKAGES), ["postgresql-NN-wiggle", "wiggle-cli", "wiggle-proxy"])
        for name in PACKAGES:
            self.assertEqual(self.field(name, "Version"), VERSION, name)
            self.assertEqual(self.field(name, "Package"), name)
        version = re.search(r"\d+\.\d+", run("pg_config", "--version")).group()
        self.assertIn("postgresql-%s (>= %s)," % (version.split(".")[0], version), self.field(SERVER, "Depends"))
        self.assertEqual(self.field("wiggle-cli", "Conflicts"), "wiggle")

    def test_their_files(self):
        for name, path in PACKAGES.items():
            for line in run("dpkg-deb", "-c", path).splitlines():
                mode, owner, _, _, _, file = line.split()[:6]
                self.assertEqual(owner, "root/root", line)
                self.assertEqual(mode[5] + mode[8], "--", "somebody else may write it: " + line)
                self.assertRegex(file, r"^\./($|usr/|usr/(bin|lib|share)/|lib/|lib/systemd/|etc/|etc/wiggle/)", name)
            self.assertIn("./usr/share/doc/%s/copyright" % name, run("dpkg-deb", "-c", path))
        self.assertEqual(run("dpkg-deb", "--ctrl-tarfile", PACKAGES["wiggle-proxy"], errors="replace").count("/etc/wiggle/proxy.env\n"), 1)
        self.assertIn("-rw------- root/root", next(line for line in run("dpkg-deb", "-c", PACKAGES["wiggle-proxy"]).splitlines()
                                                   if "proxy.env" in line))

    def test_what_they_need_is_a_package_of_this_system(self):
        for name in PACKAGES:
            for package in re.findall(r"(?:^|, )([a-z0-9.+-]+)", self.field(name, "Depends")):
                self.assertIn("installed", run("dpkg-query", "-W", "-f", "${Status}", package), "%s needs %s" % (name, package))

    def test_what_their_pages_refer_to_is_beside_them(self):
        for name in PACKAGES:
            folder = os.path.join(self.prefix, "usr", "share", "doc", name)
            self.assertEqual(dead_links(folder, folder), [], name)
            for file in ("deploying.md", "sql.md", "wiggle.proto", "examples/order.yaml", "examples/deploy/kubernetes/profile-a.yaml"):
                self.assertTrue(os.path.exists(os.path.join(folder, file)), "%s has no %s" % (name, file))

    def update_as_the_job_does(self, cluster):
        """deploy/kubernetes/update.yaml, on a database without the extension."""
        container = one(manifests("update"), "Job", "wiggle-update")["spec"]["template"]["spec"]["containers"][0]
        env = {k: v for k, v in os.environ.items() if not k.startswith("WIGGLE_")}
        env.update((e["name"], e["value"]) for e in container["env"] if "value" in e)
        env["WIGGLE_STORAGE_TOPOLOGY"] = json.dumps(topology(cluster))
        self.assertIn("1 shard is set up", run("wiggle-proxy", env=env))
        self.assertEqual(cluster.psql("select extversion from pg_extension where extname = 'wiggle'"), VERSION)

    def test_they_work_together(self):
        cluster = Cluster(os.path.join(AREA, "shard"), "fsync = off").start()
        self.addCleanup(cluster.stop)
        cluster.psql("create database wiggle", "postgres")
        self.update_as_the_job_does(cluster)
        proxy = Proxy(AREA, topology(cluster), WIGGLE_SCHEMA_MODE="verify").start()
        self.addCleanup(proxy.stop)
        self.assertEqual(os.readlink("/proc/%d/exe" % proxy.process.pid), os.path.join(self.prefix, "usr", "bin", "wiggle-proxy"))
        self.assertIn(VERSION, cluster.psql("select wiggle.version()"))
        wiggle = ("wiggle", "--server", proxy.address)
        examples = os.path.join(self.prefix, "usr", "share", "doc", "wiggle-cli", "examples")
        run(*wiggle, "register", os.path.join(examples, "order.yaml"))
        of_pods = os.path.join(AREA, "worker.yaml")
        with open(of_pods, "w", encoding="utf-8") as f:
            f.write(one(manifests("worker"), "ConfigMap", "wiggle-worker")["data"]["worker.yaml"])
        for file in (os.path.join(examples, "worker.yaml"), of_pods):
            worker = subprocess.Popen([*wiggle, "work", "-f", file], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                run(*wiggle, "start", "order", "--context", read("examples", "orders.jsonl").splitlines()[0], "--wait",
                    "--timeout", "60s")
            finally:
                worker.terminate()
                self.assertEqual(worker.wait(), 0, file)


class Units(unittest.TestCase):
    def unit(self, name):
        """Its settings, each a list."""
        found = {}
        for key, value in re.findall(r"^([A-Za-z]+)=(.*)$", read("deploy", "systemd", name), re.M):
            found.setdefault(key, []).append(value)
        return found

    def test_systemd_accepts_them(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd is not installed here")
        folder = os.path.join(AREA, "units")
        os.makedirs(folder)
        for name in ("wiggle-proxy.service", "wiggle-proxy@.service", "wiggle-worker@.service"):
            # the programs are where the packages put them, which is not here
            text = read("deploy", "systemd", name).replace("/usr/bin/wiggle", shutil.which("wiggle"))
            path = os.path.join(folder, name.replace("@.", "@a."))
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path)
            self.assertNotIn(os.path.basename(path), said)
        run("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=25",
            os.path.join(folder, "wiggle-proxy.service"))

    def test_a_drain_has_its_time(self):
        for name, least in (("wiggle-proxy.service", GRACE), ("wiggle-worker@.service", 60)):
            stop = self.unit(name)["TimeoutStopSec"][0]
            seconds = int(re.match(r"\d+", stop).group()) * (60 if stop.endswith("min") else 1)
            self.assertGreater(seconds, least, name)

    def test_they_run_what_the_packages_hold(self):
        for name, package in (("wiggle-proxy.service", "wiggle-proxy"), ("wiggle-proxy@.service", "wiggle-proxy"),
                              ("wiggle-worker@.service", "wiggle-cli")):
            unit, files = self.unit(name), run("dpkg-deb", "-c", PACKAGES[package])
            self.assertIn("." + unit["ExecStart"][0].split()[0] + "\n", files)
            self.assertIn("/lib/systemd/system/" + name + "\n", files)
            self.assertIn("." + unit["Documentation"][0].removeprefix("file://") + "\n", files)
        self.assertIn("./etc/wiggle/proxy.env\n", run("dpkg-deb", "-c", PACKAGES["wiggle-proxy"]))
        self.assertEqual(self.unit("wiggle-proxy.service")["EnvironmentFile"], ["/etc/wiggle/proxy.env"])

    def test_one_more_proxy_differs_in_its_name_and_settings_alone(self):
        one, more = self.unit("wiggle-proxy.service"), self.unit("wiggle-proxy@.service")
        self.assertEqual(more.pop("Environment"), ["WIGGLE_NODE_NAME=%H-%i"])
        self.assertEqual(more.pop("EnvironmentFile"), one.pop("EnvironmentFile") + ["/etc/wiggle/proxy-%i.env"])
        self.assertEqual(more.pop("Description"), [one.pop("Description")[0] + " (%i)"])
        self.assertEqual(more, one)

    def test_what_cannot_start_is_not_started_again_and_again(self):
        for name, argv in (("wiggle-proxy.service", ("wiggle-proxy", "--port", "none")),
                           ("wiggle-worker@.service", ("wiggle", "work", "-f", os.path.join(AREA, "missing.yaml")))):
            run(*argv, status=int(self.unit(name)["RestartPreventExitStatus"][0]))

    def test_the_environment_file_is_one(self):
        """Without its marks of a comment every line is a setting that the proxy takes."""
        lines = re.findall(r"^#?(WIGGLE_\w+=.*)$", read("deploy", "systemd", "proxy.env"), re.M)
        self.assertGreater(len(lines), 4)
        self.assertEqual([line for line in read("deploy", "systemd", "proxy.env").splitlines()
                          if line and not line.startswith("#")], [])


class Alerts(unittest.TestCase):
    """Of deploy/prometheus, and the dashboard; the client suite holds their metrics against running proxies."""

    @classmethod
    def setUpClass(cls):
        cls.rules = [rule for group in yaml.safe_load(read("deploy", "prometheus", "wiggle-rules.yml"))["groups"] for rule in group["rules"]]
        cls.panels = json.loads(read("deploy", "grafana", "wiggle.json"))["panels"]
        cls.targets = [target for panel in cls.panels for target in panel.get("targets", ())]
        cls.expressions = [rule["expr"] for rule in cls.rules] + [target["expr"] for target in cls.targets]
        cls.labels = {name: set(re.findall(r"\w+", labels)) for name, labels in re.findall(
            r"^\| `(wiggle_\w+)` \| \w+ \| ([^|]*) \|", read("docs", "configuration.md"), re.M)}

    def test_their_metrics_are_documented_and_of_the_kind_that_is_asked_for(self):
        kinds = dict(re.findall(r"^\| `(wiggle_\w+)` \| (\w+) \|", read("docs", "configuration.md"), re.M))
        self.assertGreater(len(kinds), 40)
        for expression in self.expressions:
            used = re.findall(r"((?:rate|increase)\()?\b(wiggle_[a-z_]+?)(?:_(?:bucket|sum|count))?\b(?!_)", expression)
            self.assertTrue(used, expression)
            for grows, name in used:
                self.assertEqual(kinds.get(name) in ("counter", "histogram") if grows else kinds.get(name) == "gauge", True,
                                 "%s is %s: %s" % (name, kinds.get(name), expression))

    def test_their_labels_are_the_metrics(self):
        """The client suite holds those of the page against running proxies; a scrape adds job and instance."""
        self.assertGreater(len(self.labels), 40)
        asked = [(rule["expr"], " ".join(rule["annotations"].values())) for rule in self.rules]
        asked += [(target["expr"], target["legendFormat"]) for target in self.targets]
        for expression, told in asked:
            there = {"job", "instance"}.union(*(self.labels.get(name, set()) for name in re.findall(r"\bwiggle_[a-z_]+", expression)))
            if "_bucket" in expression:
                there |= {"le"}.union(*(self.labels[name] for name in re.findall(r"(wiggle_\w+)_bucket", expression)))
            for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
                self.assertLessEqual(set(re.findall(r"\w+", group)), there, expression)
            self.assertLessEqual(set(re.findall(r"\{\{ ?(?:\$labels\.)?([a-z]+) ?\}\}", told)), there, told)
            for name, matchers in re.findall(r"\b(wiggle_[a-z_]+?)(?:_bucket)?\{([^}]*)\}", expression):
                self.assertLessEqual(set(re.findall(r"(\w+) ?[=!]~?", matchers)), self.labels[name] | {"job", "instance"}, expression)

    def test_the_dashboard_shows_every_metric_in_panels_of_their_own_place(self):
        shown = {name for target in self.targets for name in re.findall(r"\b(wiggle_\w+?)(?:_bucket)?\{", target["expr"])}
        self.assertEqual(shown, set(self.labels))
        self.assertEqual(len({panel["id"] for panel in self.panels}), len(self.panels))
        taken = set()
        for panel in self.panels:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            taken |= cells
            self.assertEqual(len({t["refId"] for t in panel.get("targets", ())}), len(panel.get("targets", ())), panel["title"])

    def test_they_say_what_they_are_about(self):
        for rule in self.rules:
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"), rule["alert"])
            said = " ".join(rule["annotations"].values())
            self.assertTrue(rule["annotations"]["summary"])
            by = re.search(r"\bby \(([^)]*)\)", rule["expr"])
            told = set(re.findall(r"\$labels\.(\w+)", said))
            self.assertLessEqual(told, set(by[1].split(", ")) if by else {"job", "instance", "shard"}, rule["alert"])

    def test_the_page_says_what_to_do_about_each(self):
        names = [rule["alert"] for rule in self.rules]
        rows = re.findall(r"^\| (`Wiggle\w+`(?:, `Wiggle\w+`)*) \| \S", read("docs", "availability.md"), re.M)
        self.assertEqual(re.findall(r"`(\w+)`", " ".join(rows)), names)


class Names(unittest.TestCase):
    def test_every_variable_exists(self):
        known = set(re.findall(r"WIGGLE_[A-Z0-9_]+", HELP + run("wiggle", "--help") + run("wiggle", "work", "--help")))
        files = ["docker-compose.yml", "docs/deploying.md"] + [os.path.relpath(path, TREE) for path in glob.glob(
            os.path.join(TREE, "deploy", "**", "*"), recursive=True) if os.path.isfile(path)]
        # Wiggle's own images have this one; ours names it where it says that there is no console.
        known.add("WIGGLE_ROLE")
        for file in files:
            for name in re.findall(r"WIGGLE_[A-Z0-9_]+", read(file)):
                self.assertIn(name, known, "%s names a setting that neither the proxy nor the command has" % file)

    def test_every_image_has_one_name(self):
        wanted = "pg-wiggle-proxy:" + VERSION
        for file in ("docker-compose.yml", "deploy/proxy.Dockerfile", "docs/deploying.md",
                     *("deploy/kubernetes/%s.yaml" % name for name in ("profile-a", "profile-b", "worker", "update"))):
            found = set(re.findall(r"pg-wiggle-proxy:\S+", read(file)))
            self.assertEqual(found, {wanted}, file)


class Dockerfiles(unittest.TestCase):
    def last_stage(self, name):
        return re.split(r"^FROM ", read("deploy", name), flags=re.M)[-1]

    def installed(self, name):
        return set(re.search(r"--no-install-recommends ((?:.|\\\n)*?)\n\t&&", self.last_stage(name)).group(1).replace("\\", " ").split())

    def linked(self, *packages):
        return {need for package in packages for need in re.findall(
            r"(?:^|, )((?:lib|zlib)[a-z0-9.+-]+)", run("dpkg-deb", "-f", PACKAGES[package], "Depends"))} - {"libc6"}

    def test_the_libraries_are_those_that_the_programs_need(self):
        self.assertEqual(self.installed("proxy.Dockerfile") - {"ca-certificates"}, self.linked("wiggle-proxy", "wiggle-cli"))
        self.assertEqual(self.installed("postgres.Dockerfile"), self.linked(SERVER))

    def test_the_proxy_is_nobody(self):
        self.assertRegex(self.last_stage("proxy.Dockerfile"), r"\nUSER 65534:65534\n(.*\n)*CMD \[\"wiggle-proxy\"\]")
        self.assertIn("\nEXPOSE %d %d\n" % tuple(PORTS), self.last_stage("proxy.Dockerfile"))


class Manifests(unittest.TestCase):
    """By our own rules; "make interop" holds them against Kubernetes' schemas as well."""

    change, scheme, protocol = str, {}, "kubernetes.io/h2c"

    @classmethod
    def setUpClass(cls):
        cls.files = {name: manifests(name, cls.change) for name in ("profile-a", "profile-b", "worker", "update", "network")}
        cls.profiles = {"a": cls.files["profile-a"], "b": cls.files["profile-b"]}

    def one(self, profile, kind, name="wiggle"):
        return one(self.profiles[profile], kind, name)

    def workloads(self):
        """All that has pods: the file, and these."""
        for file, documents in self.files.items():
            for pods in (d["spec"]["template"] for d in documents if d["kind"] in ("Deployment", "Job")):
                yield file, pods["metadata"]["labels"], pods["spec"], pods["spec"]["containers"][0]

    def pods(self):
        for profile in self.profiles:
            deployment = self.one(profile, "Deployment")
            yield profile, deployment, deployment["spec"]["template"]["spec"], deployment["spec"]["template"]["spec"]["containers"][0]

    def test_ports_and_probes_agree_with_the_proxy(self):
        for profile, _, pod, container in self.pods():
            ports = {p["containerPort"]: p["name"] for p in container["ports"]}
            self.assertEqual(ports, PORTS, profile)
            probes = {"readinessProbe": "/readyz", "livenessProbe": "/healthz"}
            for probe, path in probes.items():
                self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "http", **self.scheme}, profile)
            for service in (d for d in self.profiles[profile] if d["kind"] == "Service"):
                for port in service["spec"]["ports"]:
                    self.assertEqual((PORTS[port["port"]], port["targetPort"]), (port["name"], port["name"]), profile)
                    self.assertEqual(port.get("appProtocol"), self.protocol if port["name"] == "grpc" else None)
            sleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
            self.assertGreater(pod["terminationGracePeriodSeconds"], sleep + GRACE, profile)

    def test_labels_select_the_pods(self):
        for profile, deployment, _, _ in self.pods():
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            selectors = [deployment["spec"]["selector"]["matchLabels"]]
            selectors += [d["spec"]["selector"] for d in self.profiles[profile] if d["kind"] == "Service"]
            selectors += [d["spec"]["selector"]["matchLabels"] for d in self.profiles[profile] if d["kind"] == "PodDisruptionBudget"]
            for selector in selectors:
                self.assertEqual(selector, labels, profile)

    def test_how_many(self):
        a, b = self.one("a", "Deployment")["spec"], self.one("b", "Deployment")["spec"]
        self.assertEqual((a["replicas"], a["strategy"]), (1, {"type": "Recreate"}))
        self.assertGreater(b["replicas"], self.one("b", "PodDisruptionBudget")["spec"]["minAvailable"])
        self.assertLess(b["strategy"]["rollingUpdate"]["maxUnavailable"], b["replicas"])

    def test_pods_are_locked_up(self):
        self.assertEqual([file for file, *_ in self.workloads()], ["profile-a", "profile-b", "worker", "update"])
        for file, _, pod, container in self.workloads():
            self.assertEqual(pod["automountServiceAccountToken"], False, file)
            # variables of the Service "wiggle" are none of the proxy's settings
            self.assertEqual(pod["enableServiceLinks"], False, file)
            self.assertEqual((pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]), (True, 65534))
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                            "capabilities": {"drop": ["ALL"]}})
            self.assertIn("memory", container["resources"]["limits"])

    def test_what_is_mounted_and_referred_to_is_there(self):
        page = read("docs", "deploying.md")
        for file, _, pod, container in self.workloads():
            volumes = {v["name"]: v for v in pod["volumes"]}
            self.assertEqual(set(volumes), {m["name"] for m in container["volumeMounts"]}, file)
            secrets = [v["secret"]["secretName"] for v in volumes.values() if "secret" in v]
            secrets += [e["valueFrom"]["secretKeyRef"]["name"] for e in container["env"] if "secretKeyRef" in e.get("valueFrom", {})]
            for secret in secrets:
                self.assertIn("create secret generic %s " % secret, page, "how to make the Secret")
            for volume in volumes.values():
                if "configMap" in volume:
                    one(self.files["profile-b" if file == "update" else file], "ConfigMap", volume["configMap"]["name"])
            paths = re.findall(r"/etc/wiggle/[a-z./]+", json.dumps([self.files[file]]))
            mounts = tuple(m["mountPath"] for m in container["volumeMounts"])
            self.assertEqual([p for p in paths if not p.startswith(mounts)], [], "paths outside the mounts")

    def document_is_valid(self, text, variables):
        env = {**os.environ, **{name: "x" for name in variables}}
        self.assertEqual(set(re.findall(r"\$\{(\w+)\}", text)), set(variables))
        run("wiggle", "topology", "check", text, env=env)

    def test_the_topology_is_valid(self):
        container = next(c for profile, _, _, c in self.pods() if profile == "b")
        secret = [e["name"] for e in container["env"] if "secretKeyRef" in e.get("valueFrom", {})]
        self.document_is_valid(self.one("b", "ConfigMap", "wiggle-topology")["data"]["topology.json"], secret)
        named = next(e["value"] for e in container["env"] if e["name"] == "WIGGLE_STORAGE_TOPOLOGY")
        self.assertEqual(named, "/etc/wiggle/topology/topology.json")

    def test_the_seed_s_settings_are_here_under_their_names(self):
        for profile, _, _, container in self.pods():
            names = {e["name"] for e in container["env"]}
            self.assertLessEqual({"WIGGLE_NODE_NAME", "WIGGLE_JDBC_USER", "WIGGLE_JDBC_PASSWORD"}, names, profile)
            self.assertEqual(len(names & {"WIGGLE_JDBC_URL", "WIGGLE_STORAGE_TOPOLOGY"}), 1, profile)


    def test_the_workers_file_and_time(self):
        pod = one(self.files["worker"], "Deployment", "wiggle-worker")["spec"]["template"]["spec"]
        container = pod["containers"][0]
        self.assertEqual(container["command"], ["wiggle", "work", "-f", container["volumeMounts"][0]["mountPath"] + "/worker.yaml"])
        port = next(p["port"] for p in self.one("a", "Service")["spec"]["ports"] if p["name"] == "grpc")
        self.assertIn({"name": "WIGGLE_URL", "value": "wiggle:%d" % port}, container["env"])
        minutes = re.search(r"^timeout: (\d+)m$", one(self.files["worker"], "ConfigMap", "wiggle-worker")["data"]["worker.yaml"], re.M)
        self.assertGreater(pod["terminationGracePeriodSeconds"], 60 * int(minutes[1]))

    def test_the_job_s_topology_is_the_proxies_(self):
        pods = {file: pod for file, _, pod, _ in self.workloads()}
        job, proxy = pods["update"], pods["profile-b"]
        container = proxy["containers"][0]
        self.assertEqual(job["volumes"], [v for v in proxy["volumes"] if v["name"] != "tls"])
        self.assertEqual(job["containers"][0]["volumeMounts"], [m for m in container["volumeMounts"] if m["name"] != "tls"])
        self.assertLessEqual({e["name"] for e in container["env"]} - {"WIGGLE_NODE_NAME", "WIGGLE_TLS_KEYSTORE", "WIGGLE_TLS_KEY"},
                             {e["name"] for e in job["containers"][0]["env"]})

    def reaches(self, source, target, port, namespace=None):
        """Whether the policies of both ends let pods with these labels, of that other namespace, reach the port."""
        def fits(selector, labels):
            return (all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())
                    and all(labels.get(e["key"]) in e["values"] for e in selector.get("matchExpressions", ())))

        def lets(rules, end, labels, elsewhere):
            return any(fits(peer.get("podSelector", {}), labels) and fits(peer.get("namespaceSelector", {}), elsewhere)
                       and ("namespaceSelector" in peer) == bool(elsewhere) and "ipBlock" not in peer
                       for rule in rules for peer in rule[end] if port in [p["port"] for p in rule.get("ports", [{"port": port}])])
        elsewhere = {"kubernetes.io/metadata.name": namespace} if namespace else {}
        specs = [policy["spec"] for policy in self.files["network"]]
        return (all(lets(s.get("ingress", ()), "from", source, elsewhere) for s in specs if fits(s["podSelector"], target))
                and all(lets(s["egress"], "to", target, {}) for s in specs
                        if not namespace and "Egress" in s["policyTypes"] and fits(s["podSelector"], source)))

    def test_names_are_found_with_a_cache_on_each_node_too(self):
        rule = next(rule for rule in one(self.files["network"], "NetworkPolicy", "wiggle")["spec"]["egress"]
                    if {"protocol": "UDP", "port": 53} in rule["ports"])
        self.assertIn({"ipBlock": {"cidr": "169.254.20.10/32"}}, rule["to"])
        self.assertIn({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}, rule["to"])

    def test_who_reaches_whom(self):
        labels = {file: of for file, of, _, _ in self.workloads()}
        proxies, stranger = [labels["profile-a"], labels["profile-b"]], {"app": "shop"}
        databases = [{"cnpg.io/cluster": name} for profile in self.profiles.values()
                     for name in re.findall(r"jdbc:postgresql://([a-z0-9-]+)-rw:5432/", json.dumps(profile))]
        self.assertEqual(len(databases), 3)
        for proxy in proxies:
            self.assertEqual([self.reaches(of, proxy, 8080) for of in (labels["worker"], {"wiggle-client": "true"}, stranger)],
                             [True, True, False])
            self.assertEqual([self.reaches(of, proxy, 8090) for of in (labels["worker"], stranger)], [False, False])
            self.assertEqual([self.reaches({}, proxy, port, "monitoring") for port in PORTS], [False, True])
            self.assertFalse(self.reaches({}, proxy, 8080, "default"))
            self.assertFalse(self.reaches(proxy, stranger, 5432))
        for database in databases:
            for source, lets in ((proxies[0], True), (labels["update"], True), ({"wiggle-sql": "true"}, True), (database, True),
                                 (labels["worker"], False), (stranger, False), ({"wiggle-client": "true"}, False)):
                self.assertEqual(self.reaches(source, database, 5432), lets, source)
            self.assertTrue(self.reaches({"app.kubernetes.io/name": "cloudnative-pg"}, database, 8000, "cnpg-system"))
            self.assertFalse(self.reaches({}, database, 5432, "monitoring"))
        self.assertFalse(any(self.reaches(of, labels["worker"], 8080) for of in (*labels.values(), stranger)))


class ManifestsWithTls(Manifests):
    """The same with the lines that TLS needs."""

    change, scheme, protocol = staticmethod(with_tls), {"scheme": "HTTPS"}, "https"

    def test_servers_have_a_key_and_workers_the_authority_alone(self):
        for file, _, pod, container in self.workloads():
            env = {e["name"]: e.get("value") for e in container["env"]}
            mounted = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
            secret = next((v["secret"] for v in pod["volumes"] if v["name"] == mounted.get("/etc/wiggle/tls")), None)
            if file.startswith("profile"):
                self.assertEqual((env["WIGGLE_TLS_KEYSTORE"], env["WIGGLE_TLS_KEY"], secret["secretName"], secret["defaultMode"]),
                                 ("/etc/wiggle/tls/tls.crt", "/etc/wiggle/tls/tls.key", "wiggle-tls", 0o440))
            elif file == "worker":
                self.assertEqual(env["WIGGLE_TLS_TRUSTSTORE"], "/etc/wiggle/tls/ca.crt")
                self.assertEqual([item["key"] for item in secret["items"]], ["ca.crt"])

    def test_what_scrapes_the_pods(self):
        for change, scheme in ((str, None), (with_tls, "https")):
            monitor = one(manifests("podmonitor", change), "PodMonitor", "wiggle")["spec"]
            for _, deployment, _, container in self.pods():
                self.assertEqual(monitor["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"])
                endpoint = monitor["podMetricsEndpoints"][0]
                self.assertIn(endpoint["port"], [p["name"] for p in container["ports"]])
                self.assertEqual((endpoint["path"], endpoint.get("scheme")), ("/metrics", scheme))

    def test_the_page_makes_them(self):
        self.assertIn("sed -e 's/^#tls //' -e '/ #plain$/d' deploy/kubernetes/profile-b.yaml | kubectl apply -f -",
                      read("docs", "deploying.md"))
        for file in glob.glob(os.path.join(TREE, "deploy", "**", "*"), recursive=True):
            text = read(file) if os.path.isfile(file) else ""
            self.assertEqual([line for line in text.splitlines() if "#tls" in line and not line.startswith("#tls ")
                              and not line.startswith("# ")], [], file)


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = yaml.safe_load(read("docker-compose.yml"))
        cls.services = cls.file["services"]

    def test_services_and_what_they_refer_to(self):
        self.assertEqual(set(self.services), {"shard0", "shard1", "proxy1", "proxy2", "wiggle", "worker"})
        for name, service in self.services.items():
            for other in service.get("depends_on", ()):
                self.assertIn(other, self.services, name)
            if "build" in service:
                self.assertTrue(os.path.exists(os.path.join(TREE, service["build"]["dockerfile"])), name)
            for volume in service.get("volumes", ()):
                source = volume.split(":")[0]
                self.assertTrue(source in self.file["volumes"] or os.path.exists(os.path.join(TREE, source)), volume)

    def test_the_proxies(self):
        for name in ("proxy1", "proxy2"):
            service = self.services[name]
            self.assertEqual((service["read_only"], service["cap_drop"]), (True, ["ALL"]))
            self.assertGreater(int(service["stop_grace_period"].rstrip("s")), GRACE)
            text = service["environment"]["WIGGLE_STORAGE_TOPOLOGY"].replace("$${", "${")
            Manifests.document_is_valid(self, text, ["WIGGLE_JDBC_USER", "WIGGLE_JDBC_PASSWORD"])
            for shard in json.loads(text)["shards"]:
                host, port, database = re.match(r"jdbc:postgresql://(\w+):(\d+)/(\w+)", shard["primary"]["url"]).groups()
                self.assertEqual((port, database), ("5432", self.services[host]["environment"]["POSTGRES_DB"]))

    def test_the_balancer(self):
        config = read("deploy", "haproxy.cfg")
        self.assertEqual(re.findall(r"server \w+ (\w+):(\d+)", config), [("proxy1", "8080"), ("proxy2", "8080")])
        self.assertIn("httpchk GET /readyz", config)
        self.assertIn("check port 8090", config)

    def test_the_engine_reads_it(self):
        if shutil.which("docker") is None or subprocess.run(
                ["docker", "compose", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("docker compose is not installed here")
        run("docker", "compose", "-f", os.path.join(TREE, "docker-compose.yml"), "config", "--quiet")


class Page(unittest.TestCase):
    def test_no_liveness_probe_depends_on_databases(self):
        """The port for clients opens when there is one, and gRPC's health is /readyz."""
        rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \|", read("docs", "deploying.md").split("### Probes")[1].split("###")[0], re.M)
        asked = [asks for probe, asks in rows if re.match("liveness|either", probe)]
        self.assertEqual(len(asked), 2)
        self.assertEqual([asks for asks in asked if "8090" not in asks or "readyz" in asks], [])

    def test_what_the_pages_refer_to_is_there(self):
        self.assertEqual(dead_links(os.path.join(TREE, "docs"), TREE), [])

    def test_every_test_that_the_mapping_names_exists(self):
        """docs/seeds*.md: modules, `test_name` or `Class.test_name` of the module named before it in the line, and files by their path."""
        there = {}
        for path in glob.glob(os.path.join(TREE, "regress", "*", "*.*")):
            if path.endswith((".py", ".c")):
                there[os.path.relpath(path, os.path.join(TREE, "regress"))] = tests_of(path)
        pages = glob.glob(os.path.join(TREE, "docs", "seeds*.md"))
        self.assertTrue(pages)
        for page in pages:
            with open(page, encoding="utf-8") as f:
                text = f.read()
            wrong = [name for name in re.findall(r"`[^`\n]*test_\w*…[^`\n]*`", text)]
            short = dict(re.findall(r"\b([A-Z]) is `(test_\w+\.py)`", text))
            for line in text.splitlines():
                wrong += misnamed(line, there, short)
            self.assertEqual(wrong, [], os.path.basename(page))
            for path in re.findall(r"`((?:regress|sql|deploy|scripts|docs|examples|bench)/[\w./@-]+)`", text):
                self.assertTrue(os.path.exists(os.path.join(TREE, path)), "%s names %s" % (os.path.basename(page), path))


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for test, reason in result.skipped:
        print("skipped: %s: %s" % (test.id(), reason))
    failed = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    if not result.wasSuccessful():
        failed = max(failed, 1)
    print("deploy: %d passed, %d failed" % (max(result.testsRun - failed - len(result.skipped), 0), failed))
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)


if __name__ == "__main__":
    main()
