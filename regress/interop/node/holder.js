// holder.js QUEUE: a worker that takes a step, says whose it is and never ends it.
"use strict";

const { Client, Worker } = require("./wiggle");

class Short extends Client {
	poll(queue, more) {
		return super.poll(queue, { ...more, leaseMillis: 2000 });
	}
}

new Worker(new Short(process.env.WIGGLE_ADDRESS), process.argv[2], {
	a: (context, task) => { console.log(task.instanceId); return new Promise(() => setInterval(() => { }, 1e6)); },
}, 1);
