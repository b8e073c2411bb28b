/*
 * cmd_work.c
 *	  wiggle work: options and file to a worker's configuration.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "source.h"
#include "verdict.h"
#include "worker.h"

static enum exit_status run_work(struct session *session, const struct arguments *args);

static const struct option work_options[] = {
	{"file", 'f', "FILE", "a worker file (YAML, see below)"},
	{"step", 0, "NAME=COMMAND", "run COMMAND (by /bin/sh) for step NAME or WORKFLOW/NAME; repeatable"},
	{"queue", 'q', "NAME", "take steps of this queue only; repeatable (default: see below)"},
	{"concurrency", 'n', "N", "so many steps at a time (default 4)"},
	{"lease", 0, "DURATION", "how long a step stays ours without a sign of life (default 30s)"},
	{"timeout", 0, "DURATION", "stop a step after this long (default: never)"},
	{"worker-id", 0, "TEXT", "the worker's name (default: host name and process id)"},
	{NULL, 0, NULL, NULL}
};

const struct command command_work = {
	.name = "work",
	.words = "",
	.summary = "run the steps of workflows as commands",
	.details =
	"Polls for steps and runs a command for each. The command reads the instance's context\n"
	"as JSON from standard input. Of a task it may print the next context, as JSON, to\n"
	"standard output; when it prints nothing the context stays as it is. Standard error\n"
	"goes to the worker's log, line by line, and its last line is the message of a failure,\n"
	"which the instance keeps: write nothing there that must not be read. Contexts and\n"
	"what a command prints to standard output are never logged.\n"
	"\n"
	"Exit status of a command:\n"
	"  0      a task is done; a gate says true\n"
	"  1      a gate says false; a task failed and is tried again\n"
	"  100    failed, and trying again is of no use\n"
	"  other  failed, tried again by the step's retry policy\n"
	"A command that is killed, runs into its timeout or cannot be started has failed and is\n"
	"tried again. Output that is not JSON, or more than 3 MiB, is a failure for good.\n"
	"\n"
	"Environment of a command: WIGGLE_INSTANCE_ID, WIGGLE_TASK_ID, WIGGLE_WORKFLOW,\n"
	"WIGGLE_VERSION, WIGGLE_STEP and WIGGLE_ATTEMPT (the first is 1), beside the worker's own.\n"
	"A step may run more than once, after a crash for instance: WIGGLE_INSTANCE_ID and\n"
	"WIGGLE_STEP make a good key for whatever must happen only once.\n"
	"\n"
	"Special steps:\n"
	"  A combine is a step of its own, such as \"combine:a,b\" or the name that the workflow\n"
	"  gives it. Its context is the one before the fork and, until it has printed the next\n"
	"  one, the result of each arm as \"__arm__NAME\" (WIGGLE_ARMS: the names, one a line), or\n"
	"  those of all items, a list or map, under the key that WIGGLE_COLLECT_KEY holds.\n"
	"  A step within fork_each reads its item as its context. WIGGLE_ITEM_INDEX counts from\n"
	"  0, WIGGLE_ITEM_KEY is set for maps, and the file that WIGGLE_BASE_CONTEXT names\n"
	"  (descriptor 3) holds the context around the items. A combine within a branch has\n"
	"  the last one too.\n"
	"  A compensator is called NAME#compensate and undoes the step NAME, which the workflow\n"
	"  marks compensable, when the instance fails later. It reads {\"input\": …, \"result\": …},\n"
	"  the contexts before and after that step; its output is ignored.\n"
	"\n"
	"A worker file:\n"
	"  worker: order-worker          # optional, as are all but steps\n"
	"  queues: [orders, payments]\n"
	"  concurrency: 8\n"
	"  lease: 30s\n"
	"  timeout: 5m\n"
	"  dir: steps                    # where commands run; default: this file's folder\n"
	"  steps:\n"
	"    in-stock: ./in-stock.sh     # text is run by /bin/sh\n"
	"    order/charge:               # of this workflow only\n"
	"      run: [./charge.sh, --live]  # a list is run as it is\n"
	"      timeout: 10s\n"
	"    order/charge#compensate: ./refund.sh\n"
	"    order/combine:pay,ship: [./merge.sh]\n"
	"\n"
	"Queues: a worker takes steps of the queues that it is given. Without any, and when every\n"
	"step is named WORKFLOW/STEP, it asks the server for those workflows and takes steps of\n"
	"their queues, as the highest version has them. Otherwise it takes steps of every queue.\n"
	"A step that it gets and has no command for is failed for good: name the queues when\n"
	"others work on the same server. The log warns of both: of steps here that no registered\n"
	"workflow has, and of those that this worker will be given and has no command for.\n"
	"\n"
	"SIGTERM or SIGINT: nothing new is begun, what runs is finished and reported, exit status\n"
	"0. A second one: what runs is killed and reported as failed, exit status 5.\n"
	"\n"
	"Examples:\n"
	"  wiggle work -f worker.yaml\n"
	"  wiggle work --queue orders --step 'ship=./ship.sh' --step 'notify=mail -s Shipped ada'\n",
	.options = work_options,
	.calls = true,
	.run = run_work
};

static bool
read_file(struct worker_config *config, const char *path)
{
	struct buf	text = BUF_INIT;
	struct wig_error err = {0};
	bool		done = false;

	if (!source_read(path, &text, &err))
		complain(EXIT_USAGE, NULL, &err);
	else
	{
		done = worker_config_read(config, path, &text, &err);
		if (!done)
			complain(EXIT_USAGE, path, &err);
	}
	buf_free(&text);
	return done;
}

/* Options that may stand several times. */
static bool
take_repeated(struct worker_config *config, const struct arguments *args, struct wig_error *err)
{
	for (int i = 0; i < args->ngiven; i++)
	{
		const struct given *given = &args->given[i];

		if (strcmp(given->option->name, "step") == 0 &&
			!worker_config_step(config, given->value, err))
			return false;
		if (strcmp(given->option->name, "queue") == 0 &&
			!worker_config_queue(config, given->value, err))
			return false;
	}
	return true;
}

/* Options go before what the file says. */
static bool
configure(struct worker_config *config, const struct arguments *args)
{
	const char *file = options_value(args, "file");
	struct wig_error err = {0};
	int64_t		concurrency;

	if (!take_repeated(config, args, &err))
	{
		complain(EXIT_USAGE, NULL, &err);
		return false;
	}
	if (file != NULL && !read_file(config, file))
		return false;
	if (config->dir != NULL && access(config->dir, X_OK) != 0)
	{
		complain_text(EXIT_USAGE, "%s: the folder where commands run ('dir'), %s, cannot be used: %s", file,
					  config->dir, strerror(errno));
		return false;
	}
	concurrency = config->concurrency;
	if (!options_number(args, "concurrency", 1, WORKER_MAX_CONCURRENCY, &concurrency, &err) ||
		!options_duration(args, "lease", &config->lease_ms, &err) ||
		!options_duration(args, "timeout", &config->timeout_ms, &err))
	{
		complain(EXIT_USAGE, NULL, &err);
		return false;
	}
	config->concurrency = (int) concurrency;
	if (options_has(args, "worker-id"))
		config->worker_id = options_value(args, "worker-id");
	if (config->lease_ms < 1000)
	{
		complain_text(EXIT_USAGE, "--lease must be at least 1s");
		return false;
	}
	if (config->handlers == NULL)
	{
		complain_text(EXIT_USAGE, "no steps to serve: give -f FILE or --step NAME=COMMAND");
		return false;
	}
	return true;
}

static enum exit_status
run_work(struct session *session, const struct arguments *args)
{
	struct worker_config config;
	enum exit_status status = EXIT_USAGE;

	worker_config_init(&config);
	if (configure(&config, args))
		status = worker_run(session, &config);
	worker_config_free(&config);
	return status;
}
