"""Who may do what: keys, certificates and roles, against every call there is."""
import contextlib
import copy
import json
import os
import subprocess

import grpc
from google.protobuf import json_format, struct_pb2

import pg_wiggle_auth_pb2 as auth_pb
import reflection_pb2
import wiggle_pb2 as pb
import world
from certs import Authority
from harness import Proxy, topology, wait_for
from test_cli import wiggle
from test_topology_reload import written
from wigclient import REQUESTS, SERVICE, Client, ClientTest, flow, fresh_name, run_of, step_result

AUTH = "pg_wiggle.v1.AuthService"
SHARDS = "pg_wiggle.v1.ShardService"

# What each call needs, as Wiggle's chapter on the API has it; None: nothing.
NEEDS = {
    "HealthCheck": None, "GetCluster": "read", "ListWorkflows": "read", "GetBacklogCoverage": "read",
    "ListSchedules": "read", "GetWorkflow": "read:{wf}", "GetStepStats": "read:{wf}", "ListInstances": "read:{wf}",
    "GetInstance": "read:{wf}", "SearchInstances": "read:*", "RegisterWorkflow": "workflow.register:{wf}",
    "StartInstance": "instance.start:{wf}", "CancelInstance": "instance.cancel:{wf}",
    "SignalInstance": "instance.signal:{wf}", "CreateSchedule": "schedule.write:{wf}",
    "DeleteSchedule": "schedule.write:{wf}", "PollTasks": "task.poll:{wf}", "ReportSteps": "task.poll:*",
    "FailTask": "task.poll:*", "HeartbeatTask": "task.poll:*", "CompleteTask": "task.poll:*", "AdvanceRun": "task.poll:*",
    "AdvanceMany": "task.poll:*", "PollEvents": "event.read", "AckEvents": "event.read", "ForgetConsumer": "event.read",
}
MANAGED = ("CreateKey", "AddCertificate", "ListCredentials", "GrantRole", "RevokeCredential", "PutRole", "ListRoles",
           "DropRole")


class Keyed(Client):
    """A client that presents a key, or, with credentials of gRPC's, a certificate."""

    def __init__(self, proxy, key=None, **more):
        super().__init__(proxy.address, **more)
        self.metadata = [] if key is None else [("authorization", "Bearer " + key)]

    def call(self, rpc, timeout=60, **fields):
        request, method = self.method(rpc)
        return method(request(**fields), timeout=timeout, metadata=self.metadata)

    def raw(self, path, request=b""):
        return self.channel.unary_unary(path)(request, timeout=60, metadata=self.metadata)

    def manage(self, rpc, **fields):
        request, reply = getattr(auth_pb, rpc + "Request"), getattr(auth_pb, rpc + "Response")
        return self.channel.unary_unary("/%s/%s" % (AUTH, rpc), request_serializer=request.SerializeToString,
                                        response_deserializer=reply.FromString)(
            request(**fields), timeout=60, metadata=self.metadata)


class AuthTest(ClientTest):
    """The lone shard has the credentials; each test has roles and keys of its own."""

    server = "single"
    mode = "enforce"
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.proxy = Proxy(world.AREA, topology(world.lone), name="auth-" + cls.__name__.lower(),
                          WIGGLE_GRPC_AUTH=cls.mode, **cls.settings).start()
        cls.addClassCleanup(cls.proxy.stop)

    def role(self, *permissions):
        name = fresh_name("role")
        world.lone.psql("select wiggle.auth_put_role(:'name', string_to_array(:'permissions', '|'))", name=name,
                        permissions="|".join(permissions))
        return name

    def key(self, *permissions, role=None, expires="null"):
        """A new key, and its credential's id."""
        name = fresh_name("key")
        return world.lone.psql("select wiggle.auth_create_key(:'name', :'role', %s)" % expires, name=name,
                               role=role or self.role(*permissions)), name

    def open(self, key=None, **more):
        client = Keyed(self.proxy, key, **more)
        self.addCleanup(client.close)
        return client

    def can(self, *permissions):
        return self.open(self.key(*permissions)[0])

    def code(self, call, *args, **fields):
        try:
            call(*args, **fields)
        except grpc.RpcError as refusal:
            return refusal.code().name
        return "OK"


class EveryCall(AuthTest):
    def setUp(self):
        super().setUp()
        self.wf = self.define("a")
        self.instance = self.client.start(self.wf)
        self.schedule = self.client.call("CreateSchedule", workflow=self.wf, every_millis=3600000)
        self.addCleanup(self.client.call, "DeleteSchedule", id=self.schedule.id)

    def request(self, rpc):
        """Fields that make the call one about self.wf."""
        fields = REQUESTS[rpc][0].DESCRIPTOR.fields_by_name
        values = {"workflow": self.wf, "name": self.wf, "instance_id": self.instance, "queues": [self.wf]}
        chosen = {k: v for k, v in values.items() if k in fields}
        if rpc == "DeleteSchedule":
            chosen["id"] = self.schedule.id
        if rpc == "RegisterWorkflow":
            chosen = {"definition": json_format.ParseDict(flow(self.wf, "a"), struct_pb2.Struct())}
        return chosen

    def test_every_call_of_the_protocol_has_its_permission(self):
        methods = [m.name for m in pb.DESCRIPTOR.services_by_name["WiggleControlPlane"].methods]
        self.assertEqual(sorted(methods), sorted(NEEDS), "each call of the protocol needs a line here")
        self.assertEqual([m.name for m in auth_pb.DESCRIPTOR.services_by_name["AuthService"].methods], list(MANAGED))
        nobody, stranger = self.open(), self.open("wgk_" + "x" * 43)
        useless = self.can("trigger.write")
        for rpc, need in NEEDS.items():
            with self.subTest(rpc=rpc):
                fields = self.request(rpc)
                if need is None:
                    self.assertEqual(nobody.call(rpc, **fields).status, "UP")
                    continue
                self.assertEqual(self.code(nobody.call, rpc, **fields), "UNAUTHENTICATED")
                self.assertEqual(self.code(stranger.call, rpc, **fields), "UNAUTHENTICATED")
                action, _, scope = need.partition(":")
                self.refused(grpc.StatusCode.PERMISSION_DENIED, "*has not the permission '%s'*" % action,
                             useless.call, rpc, **fields)
                if scope == "{wf}":
                    other = self.can(action + ":another")
                    self.refused(grpc.StatusCode.PERMISSION_DENIED, "*has not the permission '%s:%s'*" % (action, self.wf),
                                 other.call, rpc, **fields)
                allowed = self.can(need.format(wf=self.wf).replace(":*", ":anything"))
                self.assertNotIn(self.code(allowed.call, rpc, **fields), ("UNAUTHENTICATED", "PERMISSION_DENIED"))
        for rpc, need in (("ListShards", "read"), ("RetireShard", "shard.manage")):
            with self.subTest(rpc=rpc):
                raw = "/%s/%s" % (SHARDS, rpc)
                self.assertEqual(self.code(nobody.raw, raw), "UNAUTHENTICATED")
                self.refused(grpc.StatusCode.PERMISSION_DENIED, "*'%s'*" % need, useless.raw, raw)
                self.assertNotIn(self.code(self.can(need).raw, raw), ("UNAUTHENTICATED", "PERMISSION_DENIED"))
        for rpc in MANAGED:
            with self.subTest(rpc=rpc):
                self.assertEqual(self.code(nobody.manage, rpc), "UNAUTHENTICATED")
                self.refused(grpc.StatusCode.PERMISSION_DENIED, "*'user.manage'*", useless.manage, rpc)
                self.assertNotIn(self.code(self.can("user.manage").manage, rpc), ("UNAUTHENTICATED", "PERMISSION_DENIED"))

    def test_every_service_is_looked_at_here(self):
        # reflection is open, so that a tool finds out what it needs a key for
        ask = reflection_pb2.ServerReflectionRequest
        answer = next(self.open().channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", request_serializer=ask.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)(
                iter([ask(list_services="*")]), timeout=60))
        self.assertEqual({s.name for s in answer.list_services_response.service},
                         {SERVICE, AUTH, SHARDS, "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                          "grpc.reflection.v1alpha.ServerReflection"})

    def test_what_is_open(self):
        nobody = self.open()
        check = nobody.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=60), b"\x08\x01")
        self.assertEqual(self.proxy.http("/readyz")[0], 200)

    def test_scopes(self):
        prefix = self.can("instance.start:%s.*" % self.wf, "read:" + self.wf)
        self.assertEqual(self.code(prefix.call, "StartInstance", workflow=self.wf), "PERMISSION_DENIED")
        self.assertEqual(self.code(prefix.call, "StartInstance", workflow=self.wf + ".x"), "NOT_FOUND")
        self.assertEqual(self.code(prefix.call, "GetInstance", instance_id="wfi_0123456789abcdefghjkmn"), "NOT_FOUND")
        for fields in ({}, {"workflow": self.wf, "correlation_id": "x"}, {"workflow": self.wf, "correlation_id": ""}):
            with self.subTest(fields=fields):
                self.assertEqual(self.code(prefix.call, "ListInstances", **fields), "PERMISSION_DENIED")
        worker = self.can("task.poll:" + self.wf)
        self.assertEqual(len(worker.poll(self.wf)), 1)
        for queues in ([], [self.wf, "another"]):
            self.assertEqual(self.code(worker.call, "PollTasks", worker_id="w", queues=queues), "PERMISSION_DENIED")
        self.assertEqual(self.code(self.can("*").call, "PollTasks", worker_id="w", queues=[]), "OK")

    def test_who_reads_an_instance_cannot_settle_its_tasks(self):
        """What a lease is held with is shown to its worker alone."""
        workflow = self.define("a")
        instance = self.client.start(workflow)
        task = self.client.poll_one(workflow, worker="theirs")
        reader = self.can("read:" + workflow, "task.poll:another-queue")
        seen = reader.call("GetInstance", instance_id=instance).tokens[0]
        self.assertEqual((seen.id, seen.lease_owner), (task.task_id, "theirs"))
        run = run_of(task, step_result(task.node_id, {"by": "a stranger"}), owner=seen.lease_owner)
        outcome = reader.call("ReportSteps", runs=[run]).results[0]
        self.assertEqual(outcome.error_status, 409, outcome)
        self.assertEqual(self.client.report(task, {"by": "its worker"}).applied.instance_status, "COMPLETED")

    def test_a_definition_is_what_it_is_called_not_what_it_says_beside(self):
        client = self.can("workflow.register:" + self.wf)
        for definition in ({**flow(fresh_name(), "a"), "workflow": self.wf},
                           {"workflow": fresh_name(), "name": self.wf, "version": 1, "steps": [{"task": "a"}]}, {}):
            with self.subTest(definition=definition):
                self.assertEqual(self.code(client.call, "RegisterWorkflow",
                                           definition=json_format.ParseDict(definition, struct_pb2.Struct())),
                                 "PERMISSION_DENIED")

    def test_malformed_headers(self):
        for header in ("Basic eDp5", "Bearer", "wgk_x"):
            with self.subTest(header=header):
                client = self.open()
                client.metadata = [("authorization", header)]
                self.refused(grpc.StatusCode.UNAUTHENTICATED, "*authorization field*", client.call, "ListWorkflows")

    def test_json_on_the_second_port(self):
        def post(*more):
            done = subprocess.run(["curl", "-sS", "-w", "%{http_code}", "-H", "content-type: application/json", "-d", "{}",
                                   *more, "http://127.0.0.1:%d/%s/ListWorkflows" % (self.proxy.second_port, SERVICE)],
                                  stdout=subprocess.PIPE, text=True, timeout=60, check=True)
            return done.stdout[-3:]
        self.assertEqual(post(), "401")
        self.assertEqual(post("-H", "authorization: Bearer " + self.key("event.read")[0]), "403")
        self.assertEqual(post("-H", "authorization: bearer " + self.key("read")[0]), "200")


class Changes(AuthTest):
    """Seen by the look at the end of the audit: what was read is kept for longer than these tests wait."""

    settings = {"WIGGLE_AUTH_CACHE_MILLIS": 300000}

    def becomes(self, code, client, rpc="ListWorkflows"):
        wait_for(lambda: self.code(client.call, rpc) == code, what=code)

    def test_a_revoked_key_is_refused_from_the_next_look_on(self):
        key, name = self.key("read")
        client = self.open(key)
        client.call("ListWorkflows")
        world.lone.psql("select wiggle.auth_revoke(:'name')", name=name)
        self.becomes("UNAUTHENTICATED", client)
        self.refused(grpc.StatusCode.UNAUTHENTICATED, "the API key is not known", client.call, "ListWorkflows")

    def test_roles_change_under_their_holders(self):
        role = self.role("read")
        key, name = self.key(role=role)
        client = self.open(key)
        client.call("ListWorkflows")
        world.lone.psql("select wiggle.auth_put_role(:'role', '{event.read}')", role=role)
        self.becomes("PERMISSION_DENIED", client)
        world.lone.psql("select wiggle.auth_grant(:'name', 'viewer')", name=name)
        self.becomes("OK", client)

    def test_a_key_that_was_tried_before_it_was_made(self):
        client = self.open("wgk_tried-before-it-was-made-%d" % os.getpid())
        self.assertEqual(self.code(client.call, "ListWorkflows"), "UNAUTHENTICATED")
        world.lone.psql("insert into wiggle.wf_auth_credential values (:'id', 'viewer', sha256(convert_to(:'key', 'UTF8')),"
                        " 'wgk_tried', null, now(), null); select wiggle.auth_note('test', 'test', 'test', null)",
                        id=fresh_name("tried"), key="wgk_tried-before-it-was-made-%d" % os.getpid())
        self.becomes("OK", client)

    def test_an_expired_key(self):
        key, name = self.key("read", expires="now() + interval '1 day'")
        client = self.open(key)
        client.call("ListWorkflows")
        world.lone.psql("update wiggle.wf_auth_credential set expires_at = now() where id = :'name';"
                        " select wiggle.auth_note('test', 'test', :'name', null)", name=name)
        self.becomes("UNAUTHENTICATED", client)
        self.refused(grpc.StatusCode.UNAUTHENTICATED, "credential '%s' has expired" % name, client.call, "ListWorkflows")

    def test_no_key_is_ever_written_down(self):
        key, _ = self.key("trigger.write")
        client = self.open(key)
        self.code(client.call, "ListWorkflows")
        self.code(self.open(key + "x").call, "ListWorkflows")
        self.assertNotIn(key[4:], self.proxy.log())
        dumped = world.lone.psql("select string_agg(c::text, '') from wiggle.wf_auth_credential c") + \
            world.lone.psql("select string_agg(a::text, '') from wiggle.wf_auth_audit a") + world.lone.log()
        self.assertNotIn(key[12:], dumped)


class LogMode(AuthTest):
    mode = "log"

    def test_calls_are_served_and_told_once(self):
        key, name = self.key("trigger.write")
        before = len(self.proxy.log())
        for client in (self.open(), self.open("wgk_unknown"), self.open(key)):
            for _ in range(3):
                client.call("ListWorkflows")
        log = self.proxy.log()[before:]
        for line in ("enforce would refuse ListWorkflows: no credential came",
                     "enforce would refuse ListWorkflows: the API key is not known",
                     "enforce would refuse ListWorkflows: credential '%s' has not the permission 'read'" % name):
            self.assertEqual(log.count(line), 1, line)
        self.assertNotIn(key[4:], log)

    def test_nobody_manages_keys_where_nobody_is_asked_for_one(self):
        for proxy in (self.proxy, world.single):
            client = Keyed(proxy, self.key(role="admin")[0])
            self.addCleanup(client.close)
            self.refused(grpc.StatusCode.FAILED_PRECONDITION, "*WIGGLE_GRPC_AUTH*", client.manage, "ListRoles")


class AuthShard(ClientTest):
    """The shard with the credentials, when it is not home."""

    def test_what_is_cached_goes_on_to_its_end(self):
        home, keeper = world.make_shard(fresh_name("home")), world.make_shard(fresh_name("keeper"))
        for shard in (home, keeper):
            self.addCleanup(shard.stop)
        document = topology(home, keeper)
        document["shards"][1]["roles"] = ["instances", "auth"]
        proxies = [Proxy(world.AREA, document, name=fresh_name("kept"), WIGGLE_GRPC_AUTH="enforce",
                         WIGGLE_AUTH_CACHE_MILLIS=millis).start() for millis in (3600000, 1000)]
        keys = [keeper.psql("select wiggle.auth_create_key('k%d', 'viewer')" % i) for i in range(2)]
        last = keeper.psql("select wiggle.auth_head()")
        clients = []
        for proxy in proxies:
            self.addCleanup(proxy.stop)
            # a change that is seen later would end what is cached
            wait_for(lambda p=proxy: "wiggle_proxy_auth_last_change %s\n" % last in p.http("/metrics")[1], what="the change")
            clients.append([Keyed(proxy, key) for key in keys])
            for client in clients[-1]:
                self.addCleanup(client.close)
            self.assertTrue(self.served(clients[-1][0]))
        (kept, unknown), (short, _) = clients
        self.pg_ctl(keeper, "stop")
        wait_for(lambda: not self.served(short), what="the end of what is cached for a second")
        self.assertTrue(self.served(kept), "what is cached for an hour")
        with self.assertRaises(grpc.RpcError) as caught:
            unknown.call("ListWorkflows")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.pg_ctl(keeper, "restart")
        wait_for(lambda: self.served(short) and self.served(unknown), what="the shard's return")

        # the role does not move by itself, neither at once nor with a start
        moved = copy.deepcopy(document)
        moved["shards"][1]["roles"] = ["instances"]
        written(proxies[0], moved)
        wait_for(lambda: "the auth role cannot move from shard 1 to shard 0" in proxies[0].log(), what="the refusal")
        self.assertTrue(self.served(kept))
        fresh = Proxy(world.AREA, moved, name=fresh_name("moved"), WIGGLE_GRPC_AUTH="enforce")
        fresh.start(wait=False)
        self.assertEqual(fresh.process.wait(60), 1, fresh.log())
        self.assertIn("the topology gives the role auth to shard 0, but the keys and roles of clients are kept on shard 1", fresh.log())
        home.psql("select wiggle.shard_auth(0)")
        fresh.start()
        self.addCleanup(fresh.stop)

    def test_a_shard_for_this_alone(self):
        document = topology(*world.shards)
        document["shards"][1]["roles"] = ["auth"]
        document["generations"] = [{"id": 3, "activeFrom": "2026-01-01T00:00:00Z", "weights": {"0": 1}}]
        proxy = Proxy(world.AREA, document, name=fresh_name("alone"), WIGGLE_GRPC_AUTH="enforce").start()
        self.addCleanup(proxy.stop)
        clients = [Keyed(proxy, shard.psql("select wiggle.auth_create_key(:'name', 'admin')", name=fresh_name("key")))
                   for shard in world.shards]
        for client in clients:
            self.addCleanup(client.close)
        self.assertEqual(self.served(clients[0]), False, "a key of home, which has no credentials here")
        self.assertTrue(self.served(clients[1]))
        name = fresh_name("alone")
        clients[1].register(flow(name, "a"))
        self.assertEqual({clients[1].start(name).split(".")[1] for _ in range(3)}, {"s0"})
        document["shards"][1]["roles"] = ["search"]
        with open(os.path.join(world.AREA, proxy.name + ".topology.json"), "w", encoding="utf-8") as f:
            json.dump(document, f)
        wait_for(lambda: "the auth role cannot move from shard 1 to shard 0" in proxy.log(), 60, "the refusal")
        self.assertTrue(self.served(clients[1]))

    def pg_ctl(self, cluster, action):
        """On the same port, unlike the cluster's own."""
        subprocess.run(["pg_ctl", "-D", os.path.join(cluster.folder, "data"), "-m", "fast", "-w", "-s", action, "-l",
                        os.path.join(cluster.folder, "log")], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)

    def served(self, client):
        with contextlib.suppress(grpc.RpcError):
            client.call("ListWorkflows")
            return True
        return False


class Certificates(AuthTest):
    @classmethod
    def setUpClass(cls):
        cls.ca = Authority(os.path.join(world.AREA, "auth_ca"), "Auth")
        server = cls.ca.issue("server")
        cls.proxy = Proxy(world.AREA, topology(world.lone), name="auth-certificates", WIGGLE_GRPC_AUTH="enforce",
                          WIGGLE_TLS_KEYSTORE=server.chain, WIGGLE_TLS_KEY=server.key, WIGGLE_TLS_TRUSTSTORE=cls.ca.root,
                          WIGGLE_TLS_CLIENT_AUTH="optional").start()
        cls.addClassCleanup(cls.proxy.stop)

    def test_a_subject_is_a_credential(self):
        subject = "CN=%s,OU=Größe\\, Maße,O=Acme" % fresh_name("worker")
        identity = self.ca.issue("worker", "/O=Acme/OU=Größe, Maße/CN=" + subject[3:].split(",", 1)[0])
        client = self.open(credentials=self.ca.credentials(identity))
        self.refused(grpc.StatusCode.UNAUTHENTICATED, "no credential has the certificate's subject '%s'" % subject,
                     client.call, "ListWorkflows")
        world.lone.psql("select wiggle.auth_add_certificate(:'id', :'subject', 'viewer')", id=fresh_name("cert"),
                        subject=subject)
        wait_for(lambda: self.code(client.call, "ListWorkflows") == "OK", what="the certificate's role")
        self.assertEqual(self.code(client.call, "PollEvents", consumer="c"), "PERMISSION_DENIED")
        nobody = self.open(credentials=self.ca.credentials())
        self.assertEqual(self.code(nobody.call, "ListWorkflows"), "UNAUTHENTICATED")
        # a key wins
        client.metadata = [("authorization", "Bearer " + self.key("trigger.write")[0])]
        self.assertEqual(self.code(client.call, "ListWorkflows"), "PERMISSION_DENIED")


class Commands(AuthTest):
    """wiggle auth."""

    def run_as(self, key, status, *arguments):
        done = wiggle(*arguments, server=self.proxy.address, WIGGLE_API_KEY=key)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_a_day_of_an_administrator(self):
        admin, _ = self.key(role="admin")
        role, worker = fresh_name("r"), fresh_name("w")

        def does(status, *arguments):
            return self.run_as(admin, status, "auth", *arguments)
        self.assertEqual(does(0, "role", role, "read", "task.poll:q.*").stdout, "role %s\n" % role)
        made = does(0, "key", worker, "--role", role, "--expires", "1h")
        key = made.stdout.strip()
        self.assertRegex(key, "^wgk_[A-Za-z0-9_-]{43}$")
        self.assertIn("it is not shown again", made.stderr)
        self.run_as(key, 0, "list", "--limit", "1")
        listed = {c["id"]: c for c in json.loads(self.run_as(admin, 0, "--json", "auth", "list").stdout)}
        self.assertEqual((listed[worker]["role"], listed[worker]["key_prefix"]), (role, key[:12]))
        self.assertIsNotNone(listed[worker]["expires_at"])
        self.assertNotIn(key, does(0, "list").stdout)
        roles = {r["name"]: r for r in json.loads(self.run_as(admin, 0, "--json", "auth", "roles").stdout)}
        self.assertEqual(roles[role], {"name": role, "permissions": ["read", "task.poll:q.*"], "builtin": False})
        self.assertTrue(roles["admin"]["builtin"])
        self.assertIn("is held by %s" % worker, does(1, "drop", role).stderr)
        does(0, "grant", worker, "viewer")
        does(0, "drop", role)
        does(0, "certificate", worker + "-c", "CN=" + worker, "--role", "viewer")
        self.assertIn("exists already", does(1, "key", worker, "--role", "viewer").stderr)
        self.assertIn("already", does(1, "certificate", worker + "-d", "CN=" + worker, "--role", "viewer").stderr)
        self.assertIn("role 'nobody' not found", does(1, "key", fresh_name("k"), "--role", "nobody").stderr)
        self.assertIn("'fly' is no permission", does(1, "role", role, "fly").stderr)
        self.assertIn("built in", does(1, "role", "admin", "read").stderr)
        for wrong in (("key", worker), ("list", "--role", "x"), ("grant", worker), ("nothing",)):
            does(2, *wrong)
        self.assertIn("has not the permission 'user.manage'", self.run_as(key, 1, "auth", "list").stderr)
        does(0, "revoke", worker)
        self.assertIn("not found", does(1, "revoke", worker).stderr)
        wait_for(lambda: wiggle("list", "--limit", "1", server=self.proxy.address, WIGGLE_API_KEY=key).returncode == 1,
                 what="the end of the key")
        actors = world.lone.psql("select distinct actor from wiggle.wf_auth_audit where target = :'w'", w=worker)
        self.assertRegex(actors, "^credential key-")
