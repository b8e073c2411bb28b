/*
 * load.c
 *	  Load on a proxy: workers that poll, report and start, and a stop-watch.
 *
 *	load throughput --server H:P --workflow W --connections N --workers N --seconds S [--run N]
 *	load latency    --server H:P --start-server H:P --workflow W --count N
 *	load single     --server H:P --workflow W --count N
 *	load serve      --server H:P --workflow W --connections N --workers N --seconds S
 *
 * Each prints one JSON object. A virtual worker has one call in flight at any
 * time; --run makes it report so many steps at once, from the claimed one on.
 * Every refusal is counted and makes the exit status 1: a figure reached by work
 * that was not done is no figure.
 */
#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h2client.h"
#include "number.h"
#include "samples.h"
#include "wiggle.pb-c.h"

#define CONTEXT_MAX	1024
#define MAX_RUN		16
#define POLL_MS		20000
#define DRAIN_S		60

struct options
{
	const char *server;
	const char *start_server;
	char	   *workflow;
	int			connections;
	int			workers;
	int			seconds;
	int			count;
	int			run;			/* steps a report */
};

struct worker
{
	struct h2_conn *conn;
	struct bench *bench;
	char		id[32];
	char		task[160];
	char		owner[200];
	char		node[80];
	uint8_t		context[CONTEXT_MAX];
	size_t		context_len;
	int64_t		asked;			/* when the call in flight was made */
	int64_t		got_task;
	bool		idle;			/* nothing in flight, nothing left to do */
};

struct bench
{
	const struct options *options;
	struct h2_conn **conns;
	int			nconns;
	struct worker *workers;
	struct samples polls;
	struct samples reports;
	int64_t		steps;
	int64_t		refused;
	int64_t		live;			/* instances started and not known to have ended */
	int64_t		started;
	bool		counting;
	bool		draining;
	int64_t		activated;		/* latency: when the parked poll was answered */
	bool		completed;		/* single: the last report ended the instance */
	bool		answered;
	char		refusal[256];	/* the first one, for the person */
};

/* ---------------------------------------------------------------- contexts */

static size_t
put_tagged(uint8_t *out, uint8_t tag, const void *data, size_t len)
{
	size_t		n = 0;

	out[n++] = tag;
	if (len >= 128)
		out[n++] = (uint8_t) (len | 0x80);
	out[n++] = (uint8_t) (len >= 128 ? len >> 7 : len);
	memcpy(out + n, data, len);
	return n + len;
}

/*
 * About 200 bytes of JSON as a google.protobuf.Value: an order with a counter
 * that every step advances, so that each write differs from the one before.
 */
static size_t
order_context(uint8_t *out)
{
	static const char *const fields[][2] = {
		{"customer", "ada.lovelace@example.org"}, {"sku", "WGL-2207-BLUE"},
		{"address", "12 St James's Square, London SW1Y 4JH"}, {"carrier", "parcel-express"},
		{"note", "leave with the neighbour at number 14"}, {"counter", "#00000000"},
	};
	uint8_t		fields_buf[CONTEXT_MAX];
	size_t		total = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
	{
		uint8_t		value[256];
		uint8_t		entry[512];
		size_t		n = put_tagged(entry, 0x0a, fields[i][0], strlen(fields[i][0]));
		size_t		v = put_tagged(value, 0x1a, fields[i][1], strlen(fields[i][1]));

		n += put_tagged(entry + n, 0x12, value, v);
		total += put_tagged(fields_buf + total, 0x0a, entry, n);
	}
	return put_tagged(out, 0x2a, fields_buf, total);
}

/* What a worker does to a context: the counter goes up by one. */
static void
advance_counter(uint8_t *context, size_t len)
{
	uint8_t    *mark = memchr(context, '#', len);

	if (mark == NULL || (size_t) (mark - context) + 9 > len)
		return;
	for (int i = 8; i > 0; i--)
	{
		if (mark[i] < '9')
		{
			mark[i]++;
			return;
		}
		mark[i] = '0';
	}
}

/* ----------------------------------------------------------------- workers */

static void worker_poll(struct worker *w);
static void worker_start(struct worker *w);

static void
refusal(struct bench *b, const char *what, int status, const char *message)
{
	if (b->refused++ == 0)
		snprintf(b->refusal, sizeof(b->refusal), "%s: %d %s", what, status, message);
}

static void
copy_text(char *out, size_t size, const char *text)
{
	if ((size_t) snprintf(out, size, "%s", text) >= size)
		errx(1, "the server sent an unexpectedly long name: %s", text);
}

static void
started(void *arg, const struct h2_reply *reply)
{
	struct worker *w = arg;

	w->bench->answered = true;
	if (reply->status != 0)
	{
		refusal(w->bench, "StartInstance", reply->status, reply->message);
		w->bench->live--;
	}
	w->idle = true;
}

static void
reported(void *arg, const struct h2_reply *reply)
{
	struct worker *w = arg;
	struct bench *b = w->bench;
	Com__Wiggle__Proto__ReportStepsResult *result = NULL;
	Com__Wiggle__Proto__RunOutcome *run;

	w->idle = true;
	if (reply->status != 0)
	{
		refusal(b, "ReportSteps", reply->status, reply->message);
		return;
	}
	result = com__wiggle__proto__report_steps_result__unpack(NULL, reply->len, reply->data);
	if (result == NULL || result->n_results != 1)
		errx(1, "ReportSteps: an answer that cannot be read");
	run = result->results[0];
	if (run->error_status != 0 || run->applied == NULL)
		refusal(b, "ReportSteps", run->error_status, run->error);
	else
	{
		if (b->counting)
		{
			b->steps += b->options->run;
			samples_add(&b->reports, now_us() - w->asked);
		}
		if (strcmp(run->applied->instance_status, "RUNNING") != 0)
		{
			b->completed = true;
			b->live--;
		}
	}
	com__wiggle__proto__report_steps_result__free_unpacked(result, NULL);
}

static void
worker_report(struct worker *w)
{
	Com__Wiggle__Proto__ReportStepsRequest request = COM__WIGGLE__PROTO__REPORT_STEPS_REQUEST__INIT;
	Com__Wiggle__Proto__ReportedRun run = COM__WIGGLE__PROTO__REPORTED_RUN__INIT;
	Com__Wiggle__Proto__ReportedRun *runs[] = {&run};
	Com__Wiggle__Proto__StepResult step[MAX_RUN];
	Com__Wiggle__Proto__StepResult *steps[MAX_RUN];
	uint8_t		contexts[MAX_RUN][CONTEXT_MAX];
	char		nodes[MAX_RUN][16];
	int			first = w->bench->options->run > 1 ? number("run's first node", w->node + 1, INT_MAX - MAX_RUN) : 0;

	for (int i = 0; i < w->bench->options->run; i++)
	{
		advance_counter(w->context, w->context_len);
		memcpy(contexts[i], w->context, w->context_len);
		snprintf(nodes[i], sizeof(nodes[i]), "n%d", first + i);
		com__wiggle__proto__step_result__init(&step[i]);
		step[i].node_id = i == 0 ? w->node : nodes[i];
		step[i].outcome_case = COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_MERGE;
		step[i].merge.data = contexts[i];
		step[i].merge.len = w->context_len;
		steps[i] = &step[i];
	}
	run.task_id = w->task;
	run.lease_owner = w->owner;
	run.n_steps = (size_t) w->bench->options->run;
	run.steps = steps;
	run.final = true;
	request.n_runs = 1;
	request.runs = runs;
	w->asked = now_us();
	w->idle = false;
	h2_call(w->conn, "ReportSteps", &request.base, reported, w);
}

static void
polled(void *arg, const struct h2_reply *reply)
{
	struct worker *w = arg;
	struct bench *b = w->bench;
	Com__Wiggle__Proto__TaskList *list;
	int64_t		now = now_us();

	w->idle = true;
	b->answered = true;
	if (reply->status != 0)
	{
		refusal(b, "PollTasks", reply->status, reply->message);
		return;
	}
	list = com__wiggle__proto__task_list__unpack(NULL, reply->len, reply->data);
	if (list == NULL)
		errx(1, "PollTasks: an answer that cannot be read");
	if (list->n_tasks > 0)
	{
		Com__Wiggle__Proto__TaskActivation *task = list->tasks[0];

		if (b->counting)
			samples_add(&b->polls, now - w->asked);
		b->activated = now;
		copy_text(w->task, sizeof(w->task), task->task_id);
		copy_text(w->owner, sizeof(w->owner), task->lease_owner);
		copy_text(w->node, sizeof(w->node), task->node_id);
		if (task->context.len > sizeof(w->context))
			errx(1, "a context of %zu bytes", task->context.len);
		memcpy(w->context, task->context.data, task->context.len);
		w->context_len = task->context.len;
		w->got_task = now;
		worker_report(w);
	}
	com__wiggle__proto__task_list__free_unpacked(list, NULL);
}

static void
worker_poll(struct worker *w)
{
	Com__Wiggle__Proto__PollRequest request = COM__WIGGLE__PROTO__POLL_REQUEST__INIT;
	Com__Wiggle__Proto__WorkflowVersion version = COM__WIGGLE__PROTO__WORKFLOW_VERSION__INIT;
	Com__Wiggle__Proto__WorkflowVersion *versions[] = {&version};
	char	   *queues[] = {w->bench->options->workflow};

	version.workflow = queues[0];
	version.version = 1;
	request.worker_id = w->id;
	request.n_queues = 1;
	request.queues = queues;
	request.max = 1;
	request.wait_millis = w->bench->draining ? 200 : POLL_MS;
	request.n_versions = 1;
	request.versions = versions;
	w->asked = now_us();
	w->idle = false;
	h2_call(w->conn, "PollTasks", &request.base, polled, w);
}

static void
worker_start(struct worker *w)
{
	Com__Wiggle__Proto__StartInstanceRequest request = COM__WIGGLE__PROTO__START_INSTANCE_REQUEST__INIT;
	uint8_t		context[CONTEXT_MAX];

	request.workflow = w->bench->options->workflow;
	request.context.data = context;
	request.context.len = order_context(context);
	w->bench->live++;
	w->bench->started++;
	w->idle = false;
	h2_call(w->conn, "StartInstance", &request.base, started, w);
}

static void
bench_init(struct bench *b, const struct options *options, int nconns, int nworkers)
{
	memset(b, 0, sizeof(*b));
	b->options = options;
	b->nconns = nconns;
	b->conns = calloc((size_t) nconns, sizeof(struct h2_conn *));
	b->workers = calloc((size_t) nworkers, sizeof(struct worker));
	if (b->conns == NULL || b->workers == NULL)
		err(1, "calloc");
	for (int i = 0; i < nconns; i++)
		b->conns[i] = h2_connect(i > 0 && options->start_server != NULL ? options->start_server : options->server);
	for (int i = 0; i < nworkers; i++)
	{
		b->workers[i].conn = b->conns[i % nconns];
		b->workers[i].bench = b;
		b->workers[i].idle = true;
		snprintf(b->workers[i].id, sizeof(b->workers[i].id), "bench-%d", i);
	}
}

static int
bench_end(struct bench *b)
{
	for (int i = 0; i < b->nconns; i++)
		h2_close(b->conns[i]);
	free(b->conns);
	free(b->workers);
	free(b->polls.us);
	free(b->reports.us);
	if (b->refused == 0)
		return 0;
	warnx("%lld calls were refused, the first: %s", (long long) b->refused, b->refusal);
	return 1;
}

/* ------------------------------------------------------------------- modes */

/* Lines that tell who runs us when the counted time begins and ends. */
static void
mark(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* Give each worker without a call its next one: an instance for each that ended. */
static int
feed_workers(struct bench *b, int instances)
{
	int			busy = 0;

	for (int i = 0; i < b->options->workers; i++)
	{
		struct worker *w = &b->workers[i];

		if (w->idle && !b->draining && b->live < instances)
			worker_start(w);
		else if (w->idle && (!b->draining || b->live > 0))
			worker_poll(w);
		busy += !w->idle;
	}
	return busy;
}

static int
throughput(const struct options *options)
{
	struct bench b;
	int64_t		begin;
	int64_t		counted;
	int64_t		deadline;
	double		seconds;

	bench_init(&b, options, options->connections, options->workers);
	begin = now_us();
	counted = begin + 2000000;
	deadline = counted + (int64_t) options->seconds * 1000000;
	while (now_us() < deadline)
	{
		feed_workers(&b, options->workers);
		h2_turn(b.conns, b.nconns, 100);
		if (!b.counting && now_us() >= counted)
		{
			mark("begin");
			counted = now_us();
			b.counting = true;
		}
	}
	seconds = (double) (now_us() - counted) / 1e6;
	mark("end");
	b.counting = false;
	b.draining = true;
	deadline = now_us() + (int64_t) DRAIN_S * 1000000;
	while (feed_workers(&b, 0) > 0 && now_us() < deadline)
		h2_turn(b.conns, b.nconns, 100);
	if (b.live != 0)
		refusal(&b, "drain", 0, "instances were still live at the end");
	printf("{\"steps_per_s\": %.1f, \"steps\": %lld, \"seconds\": %.2f, \"instances\": %lld, \"refused\": %lld, "
		   "\"poll_p50_ms\": %.3f, \"poll_p99_ms\": %.3f, \"report_p50_ms\": %.3f, \"report_p99_ms\": %.3f}\n",
		   (double) b.steps / seconds, (long long) b.steps, seconds, (long long) b.started, (long long) b.refused,
		   samples_ms(&b.polls, 50), samples_ms(&b.polls, 99),
		   samples_ms(&b.reports, 50), samples_ms(&b.reports, 99));
	return bench_end(&b);
}

static void
turn_until(struct bench *b, const bool *flag, const char *what)
{
	int64_t		deadline = now_us() + (int64_t) 30 * 1000000;

	while (!*flag)
	{
		if (now_us() > deadline)
			errx(1, "%s: no answer within 30 s", what);
		h2_turn(b->conns, b->nconns, 100);
	}
}

/* Let the other side settle: turn for that long with nothing new to send. */
static void
rest(struct bench *b, int ms)
{
	int64_t		until = now_us() + (int64_t) ms * 1000;

	while (now_us() < until)
		h2_turn(b->conns, b->nconns, 1);
}

/* Start on one connection, activation on the other's parked poll. */
static int
latency(const struct options *options)
{
	struct bench b;
	struct samples wakes = {0};
	struct worker *worker;
	struct worker *starter;

	bench_init(&b, options, 2, 2);
	worker = &b.workers[0];
	starter = &b.workers[1];
	for (int i = 0; i < options->count; i++)
	{
		int64_t		begin;

		worker_poll(worker);
		rest(&b, 5 + i % 7);
		begin = now_us();
		b.activated = 0;
		b.completed = false;
		worker_start(starter);
		while (b.live > 0 && b.refused == 0)
		{
			if (now_us() - begin > 30000000)
				errx(1, "the instance did not end within 30 s");
			h2_turn(b.conns, b.nconns, 100);
			if (b.activated != 0 && begin != 0)
			{
				samples_add(&wakes, b.activated - begin);
				begin = now_us();
				b.activated = 0;
				break;
			}
		}
		while (b.live > 0 && b.refused == 0)
		{
			if (worker->idle)
				worker_poll(worker);
			if (now_us() - begin > 30000000)
				errx(1, "the instance did not end within 30 s");
			h2_turn(b.conns, b.nconns, 100);
		}
		turn_until(&b, &starter->idle, "StartInstance");
		turn_until(&b, &worker->idle, "ReportSteps");
		if (b.refused > 0)
			break;
	}
	printf("{\"count\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"refused\": %lld}\n",
		   wakes.n, samples_ms(&wakes, 50), samples_ms(&wakes, 99), (long long) b.refused);
	free(wakes.us);
	return bench_end(&b);
}

/* One instance at a time, from the start call to the report that ends it. */
static int
single(const struct options *options)
{
	struct bench b;
	struct samples whole = {0};

	bench_init(&b, options, 1, 1);
	for (int i = 0; i < options->count && b.refused == 0; i++)
	{
		struct worker *w = &b.workers[0];
		int64_t		begin = now_us();

		b.completed = false;
		worker_start(w);
		while (!b.completed && b.refused == 0)
		{
			if (w->idle)
				worker_poll(w);
			if (now_us() - begin > 30000000)
				errx(1, "the instance did not end within 30 s");
			h2_turn(b.conns, b.nconns, 100);
		}
		samples_add(&whole, now_us() - begin);
	}
	printf("{\"count\": %zu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"refused\": %lld}\n",
		   whole.n, samples_ms(&whole, 50), samples_ms(&whole, 99), (long long) b.refused);
	free(whole.us);
	return bench_end(&b);
}

/* Workers for what others start. */
static int
serve(const struct options *options)
{
	struct bench b;
	int64_t		deadline = now_us() + (int64_t) options->seconds * 1000000;

	bench_init(&b, options, options->connections, options->workers);
	b.counting = true;
	while (now_us() < deadline)
	{
		feed_workers(&b, INT_MIN);
		h2_turn(b.conns, b.nconns, 100);
	}
	printf("{\"steps\": %lld, \"refused\": %lld}\n", (long long) b.steps, (long long) b.refused);
	return bench_end(&b);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"server", required_argument, NULL, 's'},
		{"start-server", required_argument, NULL, 'S'},
		{"workflow", required_argument, NULL, 'f'},
		{"connections", required_argument, NULL, 'c'},
		{"workers", required_argument, NULL, 'w'},
		{"seconds", required_argument, NULL, 't'},
		{"count", required_argument, NULL, 'n'},
		{"run", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	struct options o = {.connections = 4, .workers = 64, .seconds = 10, .count = 200, .run = 1};
	const char *mode = argc > 1 ? argv[1] : "";
	int			c;

	optind = 2;
	while (argc > 1 && (c = getopt_long(argc, argv, "", longs, NULL)) != -1)
	{
		switch (c)
		{
			case 's':
				o.server = optarg;
				break;
			case 'S':
				o.start_server = optarg;
				break;
			case 'f':
				o.workflow = optarg;
				break;
			case 'c':
				o.connections = number("connections", optarg, 1024);
				break;
			case 'w':
				o.workers = number("workers", optarg, 10000);
				break;
			case 't':
				o.seconds = number("seconds", optarg, 3600);
				break;
			case 'n':
				o.count = number("count", optarg, 1000000);
				break;
			case 'r':
				o.run = number("run", optarg, MAX_RUN);
				break;
			default:
				return 2;
		}
	}
	if (o.server == NULL || o.workflow == NULL)
		errx(2, "usage: load throughput|latency|single|serve --server HOST:PORT --workflow NAME ...");
	if (strcmp(mode, "throughput") == 0)
		return throughput(&o);
	if (strcmp(mode, "latency") == 0)
		return latency(&o);
	if (strcmp(mode, "single") == 0)
		return single(&o);
	if (strcmp(mode, "serve") == 0)
		return serve(&o);
	errx(2, "unknown mode '%s'; use throughput, latency, single or serve", mode);
}
