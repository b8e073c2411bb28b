// A client and a small worker for Wiggle's protocol on grpc-js: no library of Wiggle's
// exists for Node, and none is needed.
"use strict";

const path = require("path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const FOLDER = process.env.WIGGLE_PROTO;

function load(file) {
	return grpc.loadPackageDefinition(loader.loadSync(file, {
		includeDirs: [FOLDER], longs: Number, defaults: true, oneofs: true,
	}));
}

// google.protobuf.Value and Struct, which proto-loader leaves as messages.
function toValue(x) {
	if (x === null || x === undefined)
		return { nullValue: 0 };
	if (typeof x === "boolean")
		return { boolValue: x };
	if (typeof x === "number")
		return { numberValue: x };
	if (typeof x === "string")
		return { stringValue: x };
	if (Array.isArray(x))
		return { listValue: { values: x.map(toValue) } };
	return { structValue: toStruct(x) };
}

function toStruct(x) {
	return { fields: Object.fromEntries(Object.entries(x).map(([k, v]) => [k, toValue(v)])) };
}

function fromValue(v) {
	switch (v && v.kind) {
		case "boolValue": return v.boolValue;
		case "numberValue": return v.numberValue;
		case "stringValue": return v.stringValue;
		case "listValue": return (v.listValue.values || []).map(fromValue);
		case "structValue": return fromStruct(v.structValue);
		default: return null;
	}
}

function fromStruct(s) {
	return Object.fromEntries(Object.entries(s.fields || {}).map(([k, v]) => [k, fromValue(v)]));
}

class Client {
	constructor(address, options = {}) {
		const Service = load(path.join(FOLDER, "wiggle.proto")).com.wiggle.proto.WiggleControlPlane;
		this.service = new Service(address, grpc.credentials.createInsecure(), options);
	}

	// One call as a promise; `more`: metadata, and grpc-js's options (deadline).
	call(rpc, request = {}, more = {}) {
		return this.open(rpc, request, more).reply;
	}

	// The same with the call itself, for its metadata or to cancel it.
	open(rpc, request, { metadata = new grpc.Metadata(), ...options } = {}) {
		let handle;
		const reply = new Promise((resolve, reject) => {
			handle = this.service[rpc](request, metadata, options, (error, answer) => error ? reject(error) : resolve(answer));
		});
		return { handle, reply };
	}

	register(definition) {
		return this.call("registerWorkflow", { definition: toStruct(definition) });
	}

	async start(workflow, context = {}, more = {}) {
		return (await this.call("startInstance", { workflow, context: toValue(context), ...more })).instanceId;
	}

	async get(instanceId) {
		const { instance, tokens } = await this.call("getInstance", { instanceId });
		return { ...instance, context: fromValue(instance.context), tokens };
	}

	poll(queue, more = {}) {
		return this.call("pollTasks", { workerId: "node", queues: [queue], max: 1, waitMillis: 10000, ...more });
	}

	report(task, outcome, more = {}) {
		const step = { nodeId: task.nodeId };
		if (typeof outcome === "boolean")
			step.predicateValue = outcome;
		else if (outcome !== undefined)
			step.merge = toValue(outcome);
		return this.call("reportSteps",
			{ runs: [{ taskId: task.taskId, leaseOwner: task.leaseOwner, final: true, steps: [{ ...step, ...more }] }] });
	}

	fail(task, message, retryable = false) {
		return this.call("failTask", { taskId: task.taskId, leaseOwner: task.leaseOwner, message, retryable });
	}

	close() {
		this.service.close();
	}
}

class Permanent extends Error { }

// A worker of one queue: `polls` long polls at a time on one connection. A handler takes
// (context, task) and gives the next context, a boolean for a guard, or throws.
class Worker {
	constructor(client, queue, handlers, polls = 4) {
		this.client = client;
		this.queue = queue;
		this.handlers = handlers;
		this.running = true;
		this.failure = null;
		this.loops = Array.from({ length: polls }, () => this.loop().catch((error) => { this.failure = error; }));
	}

	async loop() {
		while (this.running) {
			try {
				const { tasks } = await this.patiently(() => this.client.poll(this.queue, { waitMillis: 500 }));
				for (const task of tasks)
					await this.work(task);
			} catch (error) {
				// The lease was lost: somebody does the step again.
				if (error.code !== grpc.status.FAILED_PRECONDITION)
					throw error;
			}
		}
	}

	async work(task) {
		const handler = this.handlers[task.activity.split("#").slice(1).join("#")];
		if (!handler)
			return this.client.fail(task, `no handler registered for activity '${task.activity}'`);
		let outcome;
		try {
			outcome = await handler(fromValue(task.context), task);
		} catch (error) {
			return this.client.fail(task, error.message, !(error instanceof Permanent));
		}
		const result = (await this.patiently(() => this.client.report(task, outcome))).results[0];
		if (result.errorStatus)
			throw new Error(`the report was refused: ${result.error}`);
		return result;
	}

	// UNAVAILABLE says that nothing was applied.
	async patiently(call) {
		for (;;) {
			try {
				return await call();
			} catch (error) {
				if (error.code !== grpc.status.UNAVAILABLE)
					throw error;
				await new Promise((resolve) => setTimeout(resolve, 50));
			}
		}
	}

	async stop() {
		this.running = false;
		await Promise.all(this.loops);
		if (this.failure)
			throw this.failure;
	}
}

module.exports = { Client, Worker, Permanent, load, grpc, toValue, fromValue, FOLDER };
