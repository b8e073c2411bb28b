/*
 * The scenario set with Wiggle's own Java client of the 2.1 line, by its public API
 * (see ../checks.py).
 *
 *	Scenarios [NAME...]                      run all scenarios, or these
 *	Scenarios hold ADDRESS WORKFLOW STEP     a worker that takes a step and never ends it
 */
import com.wiggle.client.WiggleClient;
import com.wiggle.client.WiggleClient.WiggleApiException;
import com.wiggle.client.dsl.Activity;
import com.wiggle.client.dsl.Blueprint;
import com.wiggle.client.dsl.Branch;
import com.wiggle.client.dsl.Case;
import com.wiggle.client.dsl.Workflow;
import com.wiggle.client.worker.PermanentActivityException;
import com.wiggle.client.worker.Step;
import com.wiggle.client.worker.Worker;
import com.wiggle.client.worker.WorkerOptions;
import com.wiggle.core.ContextCodec;
import com.wiggle.core.ExecutionMode;
import com.wiggle.core.InstanceView;
import com.wiggle.core.RetryPolicy;
import com.wiggle.core.WorkflowDefinition;

import java.io.BufferedReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

public final class Scenarios {
	private static final String ADDRESS = System.getenv("WIGGLE_ADDRESS");
	private static final Duration PATIENCE = Duration.ofSeconds(60);
	private static final RetryPolicy QUICKLY = RetryPolicy.fixed(5, Duration.ofMillis(50));
	private static final WorkerOptions OPTIONS = WorkerOptions.defaults().withConcurrency(8)
			.withLease(Duration.ofSeconds(5)).withLongPollWait(Duration.ofSeconds(1));

	private interface Scenario {
		String run() throws Exception;
	}

	private static final class Skip extends RuntimeException {
		private static final long serialVersionUID = 1L;

		Skip(String why) {
			super(why);
		}
	}

	// ---- what scenarios have in common

	private static void check(boolean holds, String text) {
		if (!holds) throw new AssertionError(text);
	}

	private static void equal(Object got, Object expected, String what) {
		check(Objects.equals(got, expected), what + ": expected " + expected + ", got " + got);
	}

	private static void until(BooleanSupplier condition, String what) throws InterruptedException {
		long end = System.nanoTime() + PATIENCE.toNanos();
		while (!condition.getAsBoolean()) {
			check(System.nanoTime() < end, what + ": not within " + PATIENCE);
			Thread.sleep(20);
		}
	}

	/** An object as the client reads it: whole numbers are Longs. */
	private static Map<String, Object> map(Object... pairs) {
		Map<String, Object> out = new LinkedHashMap<>();
		for (int i = 0; i < pairs.length; i += 2) {
			out.put((String) pairs[i], pairs[i + 1] instanceof Integer n ? (Object) n.longValue() : pairs[i + 1]);
		}
		return out;
	}

	private static Map<String, Object> with(Map<String, Object> context, Object... pairs) {
		Map<String, Object> out = new LinkedHashMap<>(context);
		out.putAll(map(pairs));
		return out;
	}

	private static Activity<Map<String, Object>> put(Object... pairs) {
		return c -> with(c, pairs);
	}

	private static long number(Map<String, Object> context, String key) {
		return ((Number) context.get(key)).longValue();
	}

	/** A client and a worker that serves these. */
	private record Served(WiggleClient client, Worker worker) implements AutoCloseable {
		static Served of(Blueprint<?>... blueprints) {
			WiggleClient client = new WiggleClient(ADDRESS);
			Worker worker = new Worker(client, "java-worker", OPTIONS);
			for (Blueprint<?> one : blueprints) worker.register(one);
			return new Served(client, worker.start());
		}

		@Override
		public void close() {
			worker.close();
			client.close();
		}
	}

	private static InstanceView ended(WiggleClient client, String instance, String status, Object context, String reason, String error) {
		InstanceView view = client.awaitCompletion(instance, PATIENCE);
		equal(view.status(), status, "the status (" + view.error() + ")");
		equal(view.terminationReason(), reason, "the reason");
		check(error == null ? view.error() == null : view.error() != null && view.error().contains(error),
				"the error: expected " + error + ", got " + view.error());
		if (context != null) equal(view.context(), context, "the context");
		return view;
	}

	private static InstanceView completed(WiggleClient client, String instance, Object context) {
		return ended(client, instance, "COMPLETED", context, null, null);
	}

	private static void refused(int status, String what, Runnable call) {
		try {
			call.run();
		} catch (WiggleApiException refusal) {
			equal(refusal.status(), status, what + " (" + refusal.getMessage() + ")");
			return;
		}
		throw new AssertionError(what + " was accepted");
	}

	/** A signal is refused until the instance waits for it. */
	private static void send(WiggleClient client, String instance, String name, Object payload) throws InterruptedException {
		until(() -> {
			try {
				client.signal(instance, name, payload);
				return true;
			} catch (WiggleApiException refusal) {
				equal(refusal.status(), 409, "the signal " + name);
				return false;
			}
		}, "a token that waits for " + name);
	}

	// ---- what workflows are made of

	private static String linear() {
		AtomicReference<Object> seen = new AtomicReference<>();
		Blueprint<Map<String, Object>> flow = Workflow.define("java-linear")
				.step("a", c -> with(c, "n", (int) number(c, "n") + 1, "drop", true))
				.then("b", c -> {
					Map<String, Object> out = with(c);
					out.remove("drop");
					return out;
				})
				.effect("see", c -> seen.set(c.get("n")))
				.step("c", c -> with(c, "n", (int) number(c, "n") * 10)).build();
		List<Object> list = new ArrayList<>(Arrays.asList(1L, 2.5, null, map("x", true), map(), List.of()));
		try (Served s = Served.of(flow)) {
			InstanceView view = completed(s.client(), s.client().start(flow, map("n", 1, "text", "ünïcode", "list", list)),
					map("n", 20, "text", "ünïcode", "list", list));
			equal(view.version(), flow.version(), "the version");
			equal(seen.get(), 2L, "what the effect saw");
			check(!((List<?>) s.client().cluster().get("members")).isEmpty(), "no member of the cluster");
			equal(s.client().getWorkflow("java-linear").nodes(), flow.definition().nodes(), "the graph as it comes back");
		}
		return null;
	}

	private static String gate() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-gate").gate("open", c -> (Boolean) c.get("open"))
				.step("after", put("after", true)).build();
		try (Served s = Served.of(flow)) {
			ended(s.client(), s.client().start(flow, map("open", false)), "COMPLETED", map("open", false), "gated:open", null);
			completed(s.client(), s.client().start(flow, map("open", true)), map("open", true, "after", true));
		}
		return null;
	}

	private static String retry() {
		AtomicInteger calls = new AtomicInteger();
		Blueprint<Map<String, Object>> flow = Workflow.define("java-retry").step("flaky", c -> {
			if (calls.incrementAndGet() < 3) throw new IllegalStateException("not yet");
			return map("calls", calls.get(), "attempt", Step.attempt());
		}, QUICKLY).build();
		try (Served s = Served.of(flow)) {
			completed(s.client(), s.client().start(flow, map()), map("calls", 3, "attempt", 3));
		}
		return null;
	}

	private static String permanentFailure() {
		AtomicInteger calls = new AtomicInteger();
		Blueprint<Map<String, Object>> refuse = Workflow.define("java-permanent").step("refuse", c -> {
			calls.incrementAndGet();
			throw new PermanentActivityException("card declined");
		}, QUICKLY).build();
		Blueprint<Map<String, Object>> spend = Workflow.define("java-spent").step("fail", c -> {
			throw new IllegalStateException("always");
		}, RetryPolicy.fixed(2, Duration.ofMillis(10))).build();
		try (Served s = Served.of(refuse, spend)) {
			ended(s.client(), s.client().start(refuse, map("n", 1)), "FAILED", map("n", 1), null,
					"refuse: PermanentActivityException: card declined");
			equal(calls.get(), 1, "calls of the step");
			ended(s.client(), s.client().start(spend, map()), "FAILED", null, null, "fail: IllegalStateException: always");
		}
		return null;
	}

	private static String sleep() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-sleep").step("a", put("a", 1))
				.sleep("nap", Duration.ofMillis(300)).step("b", put("b", 2)).build();
		try (Served s = Served.of(flow)) {
			completed(s.client(), s.client().start(flow, map()), map("a", 1, "b", 2));
		}
		return null;
	}

	private static String fork() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-fork").fork(
				Branch.of("left", b -> b.step("l1", put("l", 1)).step("l2", c -> with(c, "l", (int) number(c, "l") + 1))),
				Branch.of("right", b -> b.gate("go", c -> (Boolean) c.get("go")).step("r", put("r", 1))))
				.step("end", put("end", true)).build();
		try (Served s = Served.of(flow)) {
			completed(s.client(), s.client().start(flow, map("go", true)), map("go", true, "l", 2, "r", 1, "end", true));
			completed(s.client(), s.client().start(flow, map("go", false)), map("go", false, "l", 2, "end", true));
		}
		return "the 2.1 line has no combine: the branches share the context";
	}

	private static String forEach() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-each")
				.forkEach("each", "items", "item", b -> b.step("price",
						c -> with(c, "p" + c.get("itemIndex"), (int) number(c, "item") * 10)))
				.step("end", put("end", true)).build();
		try (Served s = Served.of(flow)) {
			completed(s.client(), s.client().start(flow, map("items", List.of(1L, 2L, 3L))),
					map("items", List.of(1L, 2L, 3L), "p0", 10, "p1", 20, "p2", 30, "end", true));
			completed(s.client(), s.client().start(flow, map("items", List.of())), map("items", List.of(), "end", true));
		}
		return null;
	}

	private static String choose() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-choose").choose(
				Case.when("big", c -> number(c, "n") > 100, b -> b.step("b", put("took", "big"))),
				Case.when("some", c -> number(c, "n") > 0, b -> b.step("s", put("took", "some"))),
				Case.otherwise("none", b -> b.step("o", put("took", "none")))).step("end", put("end", true)).build();
		try (Served s = Served.of(flow)) {
			Map.of(1000, "big", 1, "some", 0, "none").forEach((n, took) ->
					completed(s.client(), s.client().start(flow, map("n", n)), map("n", n, "took", took, "end", true)));
		}
		return null;
	}

	private static String loop() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-loop")
				.doWhile("more", c -> number(c, "n") < 5, b -> b.step("inc", c -> with(c, "n", (int) number(c, "n") + 1)))
				.step("end", put("end", true)).build();
		try (Served s = Served.of(flow)) {
			completed(s.client(), s.client().start(flow, map("n", 0)), map("n", 5, "end", true));
		}
		return null;
	}

	private static String signal() throws Exception {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-signal").awaitSignal("paid")
				.step("end", c -> with(c, "seen", c.get("by"))).build();
		try (Served s = Served.of(flow)) {
			String instance = s.client().start(flow, map("id", 1));
			send(s.client(), instance, "paid", map("by", "card"));
			completed(s.client(), instance, map("id", 1, "by", "card", "seen", "card"));
			refused(404, "a signal to nothing", () -> s.client().signal("wfi.s0.nothing", "paid", null));
		}
		return null;
	}

	private static String escalation() {
		Duration soon = Duration.ofMillis(200);
		Blueprint<Map<String, Object>> flow = Workflow.define("java-escalation")
				.awaitSignal("ack", soon, b -> b.step("page", put("paged", true))).step("end", put("end", true)).build();
		Blueprint<Map<String, Object>> late = Workflow.define("java-late").awaitSignal("ack", soon).build();
		try (Served s = Served.of(flow, late)) {
			completed(s.client(), s.client().start(flow, map()), map("paged", true, "end", true));
			ended(s.client(), s.client().start(late, map()), "FAILED", map(), null, "signal 'ack' timed out");
		}
		return null;
	}

	private static String subWorkflow() {
		Blueprint<Map<String, Object>> child = Workflow.define("java-child").step("work", c -> {
			if (c.get("fail") != null) throw new PermanentActivityException("the child's reason");
			return with(c, "child", (int) number(c, "n") * 2);
		}).build();
		Blueprint<Map<String, Object>> flow = Workflow.define("java-parent").subWorkflow("run", "java-child")
				.step("end", put("end", true)).build();
		try (Served s = Served.of(child, flow)) {
			completed(s.client(), s.client().start(flow, map("n", 4)), map("n", 4, "child", 8, "end", true));
			ended(s.client(), s.client().start(flow, map("n", 4, "fail", true)), "FAILED", null, null, "the child's reason");
		}
		return null;
	}

	// ---- what happens to instances and workers

	private static String schedule() throws Exception {
		AtomicInteger fired = new AtomicInteger();
		Blueprint<Map<String, Object>> flow = Workflow.define("java-schedule").step("a", c -> {
			equal(c, map("by", "clock"), "a scheduled instance's context");
			fired.incrementAndGet();
			return c;
		}).build();
		try (Served s = Served.of(flow)) {
			String id = s.client().createSchedule("java-schedule", Duration.ofSeconds(1), map("by", "clock"));
			check(s.client().schedules().stream().anyMatch(one -> one.id().equals(id) && one.everyMillis() == 1000
					&& one.cron() == null), "the schedule is not in the list");
			until(() -> fired.get() >= 2, "two instances by schedule");
			s.client().deleteSchedule(id);
			String cron = s.client().createCronSchedule("java-schedule", "0 3 * * *", null);
			check(s.client().schedules().stream().anyMatch(one -> one.id().equals(cron) && "0 3 * * *".equals(one.cron())),
					"the schedule by cron is not in the list");
			s.client().deleteSchedule(cron);
			check(s.client().schedules().stream().noneMatch(one -> one.workflow().equals("java-schedule")),
					"a schedule is there after its deletion");
		}
		return null;
	}

	private static String wiggle(String... arguments) throws Exception {
		List<String> command = new ArrayList<>(List.of("wiggle"));
		command.addAll(List.of(arguments));
		command.addAll(List.of("--server", ADDRESS));
		Process run = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
		String out = new String(run.getInputStream().readAllBytes());
		equal(run.waitFor(), 0, "wiggle " + arguments[0]);
		return out;
	}

	private static String correlation() throws Exception {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-correlation").step("a", put("a", 1)).build();
		try (Served s = Served.of(flow)) {
			String key = "java order " + System.nanoTime();
			String instance = s.client().start("java-correlation", map(), flow.version(), key);
			String other = s.client().start("java-correlation", map(), flow.version(), key + " more");
			completed(s.client(), instance, map("a", 1));
			String found = wiggle("list", "--correlation-id", key, "--json");
			check(found.contains("\"" + instance + "\"") && !found.contains(other), "what is found: " + found);
		}
		return "the 2.1 line gives the id and cannot ask for it: asked with `wiggle list`";
	}

	private static String cancel() {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-cancel").awaitSignal("never").build();
		try (Served s = Served.of(flow)) {
			String instance = s.client().start(flow, map("n", 1));
			for (String reason : List.of("changed my mind", "again")) {
				s.client().cancel(instance, reason);
				ended(s.client(), instance, "CANCELLED", map("n", 1), "changed my mind", null);
			}
			refused(409, "a signal after the end", () -> s.client().signal(instance, "never", null));
			refused(404, "cancelling nothing", () -> s.client().cancel("wfi.s0.nothing", null));
		}
		return null;
	}

	private static Blueprint<Map<String, Object>> versioned(String step) {
		return Workflow.define("java-versions").awaitSignal("go").step(step, put("by", step)).build();
	}

	private static String versions() throws Exception {
		Blueprint<Map<String, Object>> old = versioned("old"), fresh = versioned("fresh");
		try (Served s = Served.of(old, fresh)) {
			String first = s.client().start(old, map()), second = s.client().start(fresh, map());
			String third = s.client().start("java-versions", map());
			Blueprint<?> highest = old.version() > fresh.version() ? old : fresh;
			for (var one : List.of(Map.entry(first, old), Map.entry(second, fresh), Map.entry(third, highest))) {
				send(s.client(), one.getKey(), "go", null);
				InstanceView view = completed(s.client(), one.getKey(), map("by", one.getValue() == old ? "old" : "fresh"));
				equal(view.version(), one.getValue().version(), "the version");
			}
			WorkflowDefinition graph = fresh.definition();
			Blueprint<?> taken = new Blueprint<>(new WorkflowDefinition(graph.name(), old.version(), graph.startNode(), graph.nodes(),
					graph.queues(), graph.executionMode()), fresh.handlers(), fresh.codec());
			refused(409, "another graph in a version that is there", () -> s.client().register(taken));
			refused(404, "a version that is not there", () -> s.client().start("java-versions", map(), 7, null));
		}
		return null;
	}

	private static void hold(String address, String workflow, String step) {
		new Worker(new WiggleClient(address), "java-holder", WorkerOptions.defaults().withLease(Duration.ofSeconds(2)))
				.handle(workflow, step, c -> {
					System.out.println("holding " + ((Map<?, ?>) c).get("n"));
					new CountDownLatch(1).await();
					return null;
				}).start();
	}

	private static String workerKilled() throws Exception {
		Blueprint<Map<String, Object>> flow = Workflow.define("java-killed").step("a", put("by", "the second")).build();
		try (WiggleClient client = new WiggleClient(ADDRESS)) {
			client.register(flow);
			String instance = client.start(flow, map("n", 7));
			Process holder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
					System.getProperty("java.class.path"), "Scenarios", "hold", ADDRESS, "java-killed", "a")
					.redirectError(ProcessBuilder.Redirect.INHERIT).start();
			try (BufferedReader out = holder.inputReader()) {
				equal(out.readLine(), "holding 7", "what the holder said");
			} finally {
				holder.destroyForcibly().waitFor();
			}
			equal(client.instance(instance).status(), "RUNNING", "the status when the worker is dead");
			try (Served s = Served.of(flow)) {
				completed(s.client(), instance, map("n", 7, "by", "the second"));
			}
		}
		return null;
	}

	/** This line of the client calls once: nothing was applied by what was refused as unavailable. */
	private static <T> T patient(Supplier<T> call) throws InterruptedException {
		AtomicReference<T> out = new AtomicReference<>();
		until(() -> {
			try {
				out.set(call.get());
				return true;
			} catch (WiggleApiException refusal) {
				equal(refusal.status(), 0, "a call while the proxy drains (" + refusal.getMessage() + ")");
				return false;
			}
		}, "an answer");
		return out.get();
	}

	private static String drain() throws Exception {
		int count = 300;
		AtomicInteger done = new AtomicInteger();
		CountDownLatch half = new CountDownLatch(count);
		Activity<Map<String, Object>> work = c -> {
			done.incrementAndGet();
			half.countDown();
			return map("n", (int) number(c, "n") + 1);
		};
		Blueprint<Map<String, Object>> flow = Workflow.define("java-drain").step("a", work).step("b", work).step("c", work).build();
		try (WiggleClient client = new WiggleClient(System.getenv("WIGGLE_DRAIN_ADDRESS"));
				Worker worker = new Worker(client, "java-drain", OPTIONS).register(flow).start()) {
			List<String> instances = new ArrayList<>();
			for (int i = 0; i < count; i++) instances.add(client.start(flow, map("n", i)));
			check(half.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), "the worker does not get on");
			ProcessHandle.of(Long.parseLong(System.getenv("WIGGLE_DRAIN_PID"))).orElseThrow().destroy();
			for (int i = 0; i < count; i++) {
				String instance = instances.get(i);
				AtomicReference<InstanceView> view = new AtomicReference<>();
				long end = System.nanoTime() + PATIENCE.toNanos();
				do {
					check(System.nanoTime() < end, "the end of " + instance + ": not within " + PATIENCE);
					view.set(patient(() -> client.instance(instance)));
				} while (!view.get().isTerminal());
				equal(view.get().status(), "COMPLETED", "the status of an instance");
				equal(view.get().context(), map("n", i + 3), "the context of an instance");
			}
			completed(client, patient(() -> client.start(flow, map("n", 0))), map("n", 3));
			return count + " instances, " + (done.get() - 3 * (count + 1)) + " steps done twice";
		}
	}

	private static final String TWO = """
			{"workflow": "java-two", "version": 1, "steps": [{"task": "first"}, {"gate": "enough", "queue": "java-two-sh"},
			 {"task": "shell", "queue": "java-two-sh"}, {"task": "last"}]}
			""";

	/** A workflow that neither worker wrote. */
	private static String twoLanguages() throws Exception {
		Files.writeString(Path.of("java-two.json"), TWO);
		wiggle("register", "java-two.json");
		Process shell = new ProcessBuilder("wiggle", "work", "--server", ADDRESS, "--queue", "java-two-sh", "--step",
				"enough=grep -q Java", "--step", "shell=sed 's/}$/, \"second\": \"sh\"}/'")
				.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
		try (WiggleClient client = new WiggleClient(ADDRESS);
				Worker worker = new Worker(client, "java-two", OPTIONS)
						.handle("java-two", "first", ContextCodec.jsonMap(), put("first", "Java"))
						.handle("java-two", "last", ContextCodec.jsonMap(),
								c -> with(c, "last", c.get("first") + ", " + c.get("second"))).start()) {
			completed(client, client.start("java-two", map("n", 1.5)),
					map("n", 1.5, "first", "Java", "second", "sh", "last", "Java, sh"));
		} finally {
			shell.destroy();
			equal(shell.waitFor(), 0, "wiggle work's exit status");
		}
		return null;
	}

	/** Steps that the worker runs one after the other by itself; it tells of them with AdvanceRun. */
	private static String local() {
		for (ExecutionMode mode : List.of(ExecutionMode.LOCAL_SYNC, ExecutionMode.LOCAL_ASYNC)) {
			Blueprint<Map<String, Object>> flow = Workflow.define("java-" + mode).execution(mode)
					.step("a", put("a", 1)).gate("go", c -> true).step("b", put("b", 2)).checkpoint().step("c", put("c", 3)).build();
			try (Served s = Served.of(flow)) {
				completed(s.client(), s.client().start(flow, map("kept", true)), map("kept", true, "a", 1, "b", 2, "c", 3));
			}
		}
		return null;
	}

	private static Scenario notOffered(String what) {
		return () -> {
			throw new Skip("the 2.1 line has no " + what);
		};
	}

	private static Map<String, Scenario> scenarios() {
		Map<String, Scenario> all = new LinkedHashMap<>();
		all.put("linear", Scenarios::linear);
		all.put("gate", Scenarios::gate);
		all.put("retry", Scenarios::retry);
		all.put("permanent failure", Scenarios::permanentFailure);
		all.put("sleep", Scenarios::sleep);
		all.put("fork", Scenarios::fork);
		all.put("forEach", Scenarios::forEach);
		all.put("choose", Scenarios::choose);
		all.put("loop", Scenarios::loop);
		all.put("signal", Scenarios::signal);
		all.put("escalation", Scenarios::escalation);
		all.put("sub-workflow", Scenarios::subWorkflow);
		all.put("saga", notOffered("compensators"));
		all.put("schedule", Scenarios::schedule);
		all.put("events", notOffered("calls for events"));
		all.put("correlation", Scenarios::correlation);
		all.put("cancel", Scenarios::cancel);
		all.put("versions", Scenarios::versions);
		all.put("worker killed", Scenarios::workerKilled);
		all.put("drain", Scenarios::drain);
		all.put("two languages", Scenarios::twoLanguages);
		all.put("local execution", Scenarios::local);
		return all;
	}

	private static void report(String name, Scenario scenario) {
		try {
			String remark = scenario.run();
			System.out.println("ok " + name + (remark == null ? "" : " - " + remark));
		} catch (Skip why) {
			System.out.println("skip " + name + " - " + why.getMessage());
		} catch (Throwable failure) {
			failure.printStackTrace();
			System.out.println("not ok " + name + " - " + String.valueOf(failure.getMessage()).replaceAll("\\s+", " "));
		}
	}

	public static void main(String[] arguments) throws InterruptedException {
		List<String> names = List.of(arguments);
		if (names.size() == 4 && names.get(0).equals("hold")) {
			hold(names.get(1), names.get(2), names.get(3));
			new CountDownLatch(1).await();
		}
		scenarios().forEach((name, scenario) -> {
			if (names.isEmpty() || names.contains(name)) report(name, scenario);
		});
		System.exit(0);
	}
}
