// gRPC itself, as grpc-js sees it.
"use strict";

const path = require("path");
const zlib = require("zlib");
const protobuf = require("protobufjs");
const { Client, grpc, load, toValue, fromValue, FOLDER } = require("./wiggle");
const { equal, waitFor } = require("./program");

// Of google/rpc/status.proto and error_details.proto, what is read here.
const DETAILS = `syntax = "proto3"; package google.rpc;
message Any { string type_url = 1; bytes value = 2; }
message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
message Duration { int64 seconds = 1; int32 nanos = 2; }
message RetryInfo { Duration retry_delay = 1; }`;

const BIG = "x".repeat(100000);

module.exports = (client, address, { refused, ended }) => ({
	// Twenty polls on one connection: each of twenty tasks goes to one of them.
	async "gRPC: long polls at once"() {
		await client.register({ workflow: "js-polls", version: 1, steps: [{ task: "a" }] });
		const polls = Array.from({ length: 20 }, (_, i) => client.poll("js-polls", { workerId: `w${i}`, waitMillis: 20000 }));
		const ids = await Promise.all(polls.map((_, n) => client.start("js-polls", { n })));
		const tasks = (await Promise.all(polls)).flatMap((list) => list.tasks);
		equal(tasks.map((t) => t.instanceId).sort(), ids.sort(), "the tasks that came");
		await Promise.all(tasks.map((t) => client.report(t, { done: true })));
		for (const id of ids)
			await ended(id, "COMPLETED", { done: true });
		equal((await client.poll("js-polls", { waitMillis: 100 })).tasks || [], [], "a poll that nobody serves");
	},

	async "gRPC: a poll that is cancelled"() {
		await client.register({ workflow: "js-gone", version: 1, steps: [{ task: "a" }] });
		const { handle, reply } = client.open("pollTasks", { workerId: "w", queues: ["js-gone"], waitMillis: 20000 });
		// grpc-js sends a call that is cancelled at once all the same, and never resets it: wait until it is there.
		await client.call("healthCheck");
		handle.cancel();
		await refused(reply, "CANCELLED");
		// The reset goes out when Node gets to it; a poll that it overtakes may have been given the task.
		await client.call("healthCheck");
		const id = await client.start("js-gone");
		equal((await client.poll("js-gone")).tasks.map((t) => t.instanceId), [id], "the next poll's task");
	},

	async "gRPC: deadline"() {
		await refused(client.call("pollTasks", { workerId: "w", queues: ["nobody"], waitMillis: 20000 },
			{ deadline: Date.now() + 300 }), "DEADLINE_EXCEEDED");
		equal((await client.call("healthCheck", {}, { deadline: Date.now() + 60000 })).status, "UP", "a call in time");
	},

	async "gRPC: refusals"() {
		await refused(client.start("ünbekannt 100%"), "NOT_FOUND", "workflow 'ünbekannt 100%' not found");
		await refused(client.call("getInstance", { instanceId: "nothing" }), "NOT_FOUND", "instance not found");
		await refused(client.register({ workflow: "js-bad", version: 0, steps: [] }), "INVALID_ARGUMENT");
		await refused(client.call("searchInstances", { text: "x" }), "FAILED_PRECONDITION");
		const other = grpc.makeGenericClientConstructor({ gone: {
			path: "/com.wiggle.proto.WiggleControlPlane/NoSuchCall", requestStream: false, responseStream: false,
			requestSerialize: (x) => x, requestDeserialize: (x) => x, responseSerialize: (x) => x, responseDeserialize: (x) => x,
		} });
		const stranger = new other(address, grpc.credentials.createInsecure());
		await refused(new Promise((resolve, reject) => stranger.gone(Buffer.alloc(0), (e, r) => e ? reject(e) : resolve(r))), "UNIMPLEMENTED");
		stranger.close();
	},

	// grpc-js compresses its requests; the answer is, because the client does.
	async "gRPC: gzip"() {
		const zipped = new Client(address, { "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip });
		const create = zlib.createGunzip;
		let unzipped = 0;
		const replace = (value) => Object.defineProperty(zlib, "createGunzip", { value, configurable: true });
		replace((...more) => { unzipped++; return create(...more); });
		try {
			await zipped.register({ workflow: "js-gzip", version: 1, steps: [{ task: "a" }] });
			const id = await zipped.start("js-gzip", { big: BIG });
			const before = unzipped;
			equal((await zipped.get(id)).context, { big: BIG }, "a context that was compressed");
			equal(unzipped > before, true, "whether the answer was compressed");
			const task = (await zipped.poll("js-gzip")).tasks[0];
			await zipped.report(task, { ...fromValue(task.context), more: BIG });
			await ended(id, "COMPLETED", { big: BIG, more: BIG });
		} finally {
			replace(create);
			zipped.close();
		}
	},

	async "gRPC: metadata"() {
		const metadata = new grpc.Metadata();
		metadata.set("x-request-id", "42");
		metadata.set("trace-bin", Buffer.from([0, 1, 255]));
		const { handle, reply } = client.open("healthCheck", {}, { metadata });
		const head = new Promise((resolve) => handle.once("metadata", resolve));
		const status = new Promise((resolve) => handle.once("status", resolve));
		equal((await reply).status, "UP", "a call with metadata");
		equal((await head).get("content-type"), ["application/grpc"], "the answer's content-type");
		equal((await status).code, grpc.status.OK, "the status");
	},

	async "gRPC: status details"() {
		const types = protobuf.parse(DETAILS).root;
		const details = async (instanceId) => {
			const error = await client.call("getInstance", { instanceId }).then(() => null, (e) => e);
			const status = types.lookupType("google.rpc.Status").decode(error.metadata.get("grpc-status-details-bin")[0]);
			equal([status.code, status.message], [error.code, error.details], "the status in the details");
			return status.details.map(({ typeUrl: url, value }) => {
				const type = types.lookupType(url.split("/")[1]);
				return type.toObject(type.decode(value), { longs: Number });
			});
		};
		equal(await details("nothing"), [{ reason: "NOT_FOUND", domain: "wiggle" }], "what is not found");
		equal(await details("wfi.s99.01m8mfs6nv209np4j3trex"),
			[{ reason: "NOTHING_APPLIED", domain: "wiggle" }, { retryDelay: { seconds: 1 } }], "what may be tried again");
	},

	async "gRPC: message limit"() {
		const id = await client.start("js-polls", { big: "x".repeat(4000000) });
		equal((await client.get(id)).context.big.length, 4000000, "what is below the limit");
		await refused(client.start("js-polls", { big: "x".repeat(4200000) }), "RESOURCE_EXHAUSTED");
		equal((await client.call("healthCheck")).status, "UP", "the next call on the connection");
	},

	async "gRPC: health"() {
		const { Health } = load(path.join(FOLDER, "grpc", "health", "v1", "health.proto")).grpc.health.v1;
		const health = new Health(address, grpc.credentials.createInsecure());
		const check = (service) => new Promise((resolve, reject) => health.check({ service }, (e, r) => e ? reject(e) : resolve(r.status)));
		try {
			equal([await check(""), await check("com.wiggle.proto.WiggleControlPlane")], [1, 1], "SERVING");
			await refused(check("no.such"), "NOT_FOUND");
			const seen = [], watch = health.watch({ service: "" });
			watch.on("error", () => { });
			watch.on("data", (r) => seen.push(r.status));
			await waitFor(() => seen.length > 0, "the first answer of Watch");
			watch.cancel();
			equal(seen, [1], "what Watch says");
		} finally {
			health.close();
		}
	},
});
