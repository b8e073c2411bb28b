// What a scenario program needs (see checks.py).
"use strict";

const assert = require("assert");

class Skip extends Error { }

async function waitFor(condition, what, seconds = 60) {
	const until = Date.now() + seconds * 1000;
	for (;;) {
		const value = await condition();
		if (value)
			return value;
		assert(Date.now() < until, `${what}: not within ${seconds} s`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}

function equal(got, expected, what) {
	assert.deepStrictEqual(got, expected,
		`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);
}

async function run(scenarios) {
	for (const [name, scenario] of Object.entries(scenarios)) {
		try {
			const remark = await scenario();
			console.log(`ok ${name}${remark ? " - " + remark : ""}`);
		} catch (error) {
			if (!(error instanceof Skip))
				console.error(error);
			const why = error.message.replace(/\s+/g, " ");
			console.log(`${error instanceof Skip ? "skip" : "not ok"} ${name} - ${why}`);
		}
	}
}

module.exports = { Skip, waitFor, equal, run };
