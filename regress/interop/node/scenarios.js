// The scenario set on grpc-js, straight on the protocol (see checks.py).
"use strict";

const { spawn, spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");
const { Client, Worker, Permanent, grpc, toValue, fromValue } = require("./wiggle");
const { Skip, waitFor, equal, run } = require("./program");

const ADDRESS = process.env.WIGGLE_ADDRESS;
const client = new Client(ADDRESS);

async function served(name, steps, handlers, body, version = 1) {
	await client.register({ workflow: name, version, steps });
	const worker = new Worker(client, name, handlers);
	try {
		return await body((context, more) => client.start(name, context, more));
	} finally {
		await worker.stop();
	}
}

async function ended(id, status, context, more = {}, by = client) {
	const view = await waitFor(async () => {
		const v = await by.get(id);
		return ["RUNNING", "COMPENSATING"].includes(v.status) ? null : v;
	}, `the end of ${id}`);
	equal(view.status, status, `the status (${view.error})`);
	equal(view.context, context, "the context");
	for (const [member, expected] of Object.entries(more))
		equal(view[member], expected, member);
	return view;
}

async function refused(promise, code, details) {
	const error = await promise.then(() => null, (e) => e);
	equal(error && grpc.status[error.code], code, "the code of the refusal");
	if (details)
		equal(error.details, details, "the message of the refusal");
	return error;
}

// Refused until the instance waits for it.
function signalled(id, signal, payload) {
	return waitFor(() => client.call("signalInstance", { instanceId: id, signal, payload: toValue(payload) }).then(
		() => true, (error) => {
			if (error.code !== grpc.status.FAILED_PRECONDITION)
				throw error;
			return false;
		}), `the signal ${signal}`);
}

const put = (more) => (context) => ({ ...context, ...more });

const scenarios = {
	async linear() {
		await served("js-linear", [{ task: "a" }, { effect: "see" }, { task: "b" }], {
			a: (c) => ({ ...c, n: c.n + 1 }), see: () => undefined, b: (c) => ({ ...c, n: c.n * 10 }),
		}, async (start) => {
			await ended(await start({ n: 1, text: "ünïcode", list: [1, 2.5, null, { x: true }] }), "COMPLETED",
				{ n: 20, text: "ünïcode", list: [1, 2.5, null, { x: true }] });
		});
	},

	async gate() {
		await served("js-gate", [{ gate: "open" }, { task: "after" }],
			{ open: (c) => c.open, after: put({ after: true }) }, async (start) => {
				await ended(await start({ open: false }), "COMPLETED", { open: false }, { terminationReason: "gated:open" });
				await ended(await start({ open: true }), "COMPLETED", { open: true, after: true });
			});
	},

	async retry() {
		let calls = 0;
		await served("js-retry", [{ task: "flaky", retry: { max: 5, backoff: "20ms" } }], {
			flaky(c, task) {
				equal(task.attempt, ++calls, "the attempt");
				if (calls < 3)
					throw new Error("not yet");
				return { calls };
			},
		}, async (start) => ended(await start(), "COMPLETED", { calls: 3 }));
	},

	async "permanent failure"() {
		let calls = 0;
		await served("js-permanent", [{ task: "refuse" }],
			{ refuse() { calls++; throw new Permanent("card declined"); } }, async (start) => {
				await ended(await start({ n: 1 }), "FAILED", { n: 1 }, { error: "refuse: card declined" });
				equal(calls, 1, "calls of the step");
			});
	},

	async sleep() {
		await served("js-sleep", [{ task: "a" }, { sleep: "300ms" }, { task: "b" }],
			{ a: put({ a: 1 }), b: put({ b: 2 }) }, async (start) => ended(await start(), "COMPLETED", { a: 1, b: 2 }));
	},

	async fork() {
		await served("js-fork", [{ fork: { left: [{ task: "l" }], right: [{ gate: "go" }, { task: "r" }] }, combine: "meet" }], {
			l: put({ l: 2 }), go: (c) => c.go, r: put({ r: 1 }),
			meet(c, task) {
				equal(task.armNames, ["left", "right"], "the combine's arms");
				return { left: c.__arm__left, right: c.__arm__right };
			},
		}, async (start) => {
			await ended(await start({ go: true }), "COMPLETED", { left: { go: true, l: 2 }, right: { go: true, r: 1 } });
			await ended(await start({ go: false }), "COMPLETED", { left: { go: false, l: 2 }, right: { go: false } });
		});
	},

	async forEach() {
		await served("js-each", [{ fork_each: { over: "items", as: "item", combine: "sum", body: [{ task: "price" }] } }], {
			price(c, task) {
				equal(fromValue(task.baseContext).currency, "EUR", "the context around the item");
				return c * 10 + task.itemIndex;
			},
			sum: (c, task) => ({ prices: c[task.collectKey] }),
		}, async (start) => {
			await ended(await start({ items: [1, 2, 3], currency: "EUR" }), "COMPLETED", { prices: [10, 21, 32] });
			await ended(await start({ items: [] }), "COMPLETED", { items: [] });
		});
	},

	async choose() {
		await served("js-choose", [{ choose: [{ when: "big", then: [{ task: "b" }] }, { when: "some", then: [{ task: "s" }] },
			{ otherwise: { then: [{ task: "o" }] } }] }, { task: "end" }], {
			big: (c) => c.n > 100, some: (c) => c.n > 0, b: put({ took: "big" }), s: put({ took: "some" }),
			o: put({ took: "none" }), end: put({ end: true }),
		}, async (start) => {
			for (const [n, took] of [[1000, "big"], [1, "some"], [0, "none"]])
				await ended(await start({ n }), "COMPLETED", { n, took, end: true });
		});
	},

	async loop() {
		await served("js-loop", [{ do_while: { while: "more", body: [{ task: "inc" }] } }],
			{ inc: (c) => ({ n: c.n + 1 }), more: (c) => c.n < 5 }, async (start) => ended(await start({ n: 0 }), "COMPLETED", { n: 5 }));
	},

	async signal() {
		await served("js-signal", [{ await_signal: "paid" }, { task: "end" }], { end: (c) => ({ ...c, seen: c.by }) },
			async (start) => {
				const id = await start({ id: 1 });
				await signalled(id, "paid", { by: "card" });
				await ended(id, "COMPLETED", { id: 1, by: "card", seen: "card" });
				await refused(client.call("signalInstance", { instanceId: id, signal: "paid" }), "FAILED_PRECONDITION");
			});
	},

	async escalation() {
		await served("js-escalation", [{ await_signal: "ack", timeout: "200ms", escalation: [{ task: "page" }] }],
			{ page: put({ paged: true }) }, async (start) => ended(await start(), "COMPLETED", { paged: true }));
		await served("js-late", [{ await_signal: "ack", timeout: "200ms" }], {}, async (start) => ended(await start(), "FAILED", {}));
	},

	async "sub-workflow"() {
		await client.register({ workflow: "js-child", version: 1, steps: [{ task: "work" }] });
		const children = new Worker(client, "js-child", {
			work(c) {
				if (c.fail)
					throw new Permanent("the child's reason");
				return { ...c, child: c.n * 2 };
			},
		});
		try {
			await served("js-parent", [{ sub_workflow: "js-child" }, { task: "end" }], { end: put({ end: true }) }, async (start) => {
				await ended(await start({ n: 4 }), "COMPLETED", { n: 4, child: 8, end: true });
				await ended(await start({ n: 4, fail: true }), "FAILED", { n: 4, fail: true });
			});
		} finally {
			await children.stop();
		}
	},

	async saga() {
		const undone = [];
		const undo = (name) => ({ input, result }) => { undone.push([name, input, result]); };
		await served("js-saga", [{ task: "reserve", compensable: true }, { task: "debit", compensable: true }, { task: "credit" }], {
			reserve: put({ r: 1 }), debit: put({ d: 1 }), credit() { throw new Permanent("over the limit"); },
			"reserve#compensate": undo("reserve"), "debit#compensate": undo("debit"),
		}, async (start) => {
			await ended(await start({}), "COMPENSATED", { r: 1, d: 1 }, { error: "credit: over the limit" });
			equal(undone, [["debit", { r: 1 }, { r: 1, d: 1 }], ["reserve", {}, { r: 1 }]], "what was undone");
		});
	},

	async schedule() {
		await served("js-schedule", [{ task: "a" }], { a: put({ a: 1 }) }, async () => {
			const { id } = await client.call("createSchedule", { workflow: "js-schedule", everyMillis: 1000, context: toValue({ by: "clock" }) });
			const listed = async () => ((await client.call("listSchedules")).schedules || []).filter((s) => s.id === id);
			equal((await listed()).map((s) => s.everyMillis), [1000], "the schedules in the list");
			const done = await waitFor(async () => {
				const { instances = [] } = await client.call("listInstances", { workflow: "js-schedule", status: "COMPLETED" });
				return instances.length >= 2 && instances;
			}, "two instances by schedule");
			equal(fromValue(done[0].context), { by: "clock", a: 1 }, "a scheduled instance's context");
			await client.call("deleteSchedule", { id });
			equal(await listed(), [], "the schedules after deletion");
		});
	},

	async events() {
		const consumer = "js-events";
		// From now on; nothing of what others did before.
		await client.call("pollEvents", { consumer, max: 1, startFrom: 0 });
		await served("js-events", [{ task: "a" }], { a: put({ a: 1 }) }, async (start) => {
			const id = await start({});
			await ended(id, "COMPLETED", { a: 1 });
			const seen = [];
			await waitFor(async () => {
				const { events = [] } = await client.call("pollEvents", { consumer, max: 100, waitMillis: 5000 });
				seen.push(...events);
				if (events.length)
					await client.call("ackEvents", { consumer, ackedCursor: events[events.length - 1].cursor });
				return seen.some((e) => e.instanceId === id && e.type === "wf.completed");
			}, "the event of the end");
			const mine = seen.filter((e) => e.instanceId === id).map((e) => e.type);
			equal([mine[0], mine[mine.length - 1]], ["wf.started", "wf.completed"], "the first and the last event");
			equal(new Set(seen.map((e) => e.cursor)).size, seen.length, "events that came once");
			await client.call("forgetConsumer", { consumer });
		});
	},

	async correlation() {
		await served("js-correlation", [{ task: "a" }], { a: put({ a: 1 }) }, async (start) => {
			const id = await start({}, { correlationId: "js order 7" });
			await start({}, { correlationId: "js order 8" });
			const found = await client.call("listInstances", { correlationId: "js order 7" });
			equal(found.instances.map((v) => v.id), [id], "what is found");
		});
	},

	async cancel() {
		await served("js-cancel", [{ await_signal: "never" }], {}, async (start) => {
			const id = await start({ n: 1 });
			await client.call("cancelInstance", { instanceId: id, reason: "changed my mind" });
			await ended(id, "CANCELLED", { n: 1 }, { terminationReason: "changed my mind" });
			await client.call("cancelInstance", { instanceId: id, reason: "again" });
			await ended(id, "CANCELLED", { n: 1 }, { terminationReason: "changed my mind" });
			await refused(client.call("cancelInstance", { instanceId: "nothing" }), "NOT_FOUND");
		});
	},

	async versions() {
		const steps = (task) => [{ await_signal: "go" }, { task }];
		const handlers = { old: put({ by: "old" }), new: put({ by: "new" }) };
		await served("js-versions", steps("old"), handlers, async (start) => {
			const first = await start();
			await client.register({ workflow: "js-versions", version: 2, steps: steps("new") });
			const second = await start(), third = await start({}, { version: 1 });
			for (const [id, version, by] of [[first, 1, "old"], [second, 2, "new"], [third, 1, "old"]]) {
				await signalled(id, "go", {});
				await ended(id, "COMPLETED", { by }, { version });
			}
			await refused(client.register({ workflow: "js-versions", version: 1, steps: steps("other") }), "FAILED_PRECONDITION");
		});
	},

	async "worker killed"() {
		await client.register({ workflow: "js-killed", version: 1, steps: [{ task: "a" }] });
		const id = await client.start("js-killed");
		const holder = spawn(process.execPath, [path.join(__dirname, "holder.js"), "js-killed"], { stdio: ["ignore", "pipe", "inherit"] });
		const gone = new Promise((resolve) => holder.once("exit", resolve));
		try {
			const [line] = await new Promise((resolve, reject) => {
				holder.stdout.once("data", (data) => resolve(String(data).split("\n")));
				gone.then(() => reject(new Error("the worker took nothing")));
			});
			equal(line, id, "what the worker took");
		} finally {
			holder.kill("SIGKILL");
			await gone;
		}
		equal((await client.get(id)).status, "RUNNING", "the status when the worker is dead");
		await served("js-killed", [{ task: "a" }], { a: (c, task) => ({ attempt: task.attempt }) },
			() => ended(id, "COMPLETED", { attempt: 2 }));
	},

	async drain() {
		const count = 300, drained = new Client(process.env.WIGGLE_DRAIN_ADDRESS, { "grpc.max_reconnect_backoff_ms": 1000 });
		let done = 0, half;
		const reached = new Promise((resolve) => { half = resolve; });
		const work = (c) => {
			if (++done === count)
				half();
			return { n: c.n + 1 };
		};
		const patient = (call) => waitFor(() => call().catch((error) => {
			if (error.code !== grpc.status.UNAVAILABLE)
				throw error;
			return null;
		}), "an answer");
		await drained.register({ workflow: "js-drain", version: 1, steps: [{ task: "a" }, { task: "b" }, { task: "c" }] });
		const ids = await Promise.all(Array.from({ length: count }, (_, n) => drained.start("js-drain", { n })));
		const worker = new Worker(drained, "js-drain", { a: work, b: work, c: work });
		await reached;
		process.kill(Number(process.env.WIGGLE_DRAIN_PID), "SIGTERM");
		for (const [n, id] of ids.entries())
			await ended(id, "COMPLETED", { n: n + 3 }, {}, { get: (i) => patient(() => drained.get(i)) });
		await ended(await patient(() => drained.start("js-drain", { n: 0 })), "COMPLETED", { n: 3 }, {}, drained);
		await worker.stop();
		drained.close();
		return `${count} instances, ${done - 3 * (count + 1)} steps done twice`;
	},

	// One queue of a workflow is this worker's, the other wiggle-client's for Python.
	async "two languages"() {
		if (!process.env.PYTHON_CLIENT)
			throw new Skip(process.env.PYTHON_CLIENT_WHY);
		await client.register({ workflow: "js-two", version: 1,
			steps: [{ task: "first" }, { task: "python", queue: "js-two-py" }, { gate: "enough", queue: "js-two-py" }, { task: "last" }] });
		const python = spawn(process.env.PYTHON, [path.join(__dirname, "..", "python", "partner.py"), ADDRESS, "js-two"],
			{ stdio: ["pipe", "ignore", "inherit"], env: { ...process.env, PYTHONPATH: process.env.PYTHON_CLIENT } });
		const gone = new Promise((resolve) => python.once("exit", resolve));
		const worker = new Worker(client, "js-two", { first: put({ by: ["Node"] }), last: (c) => ({ by: [...c.by, "Node"] }) });
		try {
			await ended(await client.start("js-two"), "COMPLETED", { by: ["Node", "Python", "Node"] });
		} finally {
			await worker.stop();
			python.stdin.end();
			equal(await gone, 0, "the Python worker's exit status");
		}
		return "with wiggle-client 0.1.1";
	},

	// The page's program as it is, but for the server's address.
	async "docs/clients.md"() {
		await client.register({ workflow: "hello-node", version: 1, steps: [{ task: "greet" }] });
		const tree = path.join(__dirname, "..", "..", "..");
		const [, code] = fs.readFileSync(path.join(tree, "docs", "clients.md"), "utf8").match(/```js\n(.*?)```/s);
		fs.writeFileSync("page.js", code.replace("localhost:8080", ADDRESS));
		const done = spawnSync(process.execPath, [path.resolve("page.js")], { cwd: tree, encoding: "utf8", timeout: 60000 });
		equal([done.stderr, done.stdout], ["", "COMPLETED\n"], "what the program prints");
	},
};

run({ ...scenarios, ...require("./grpc")(client, ADDRESS, { refused, ended }) }).then(() => process.exit(0));
