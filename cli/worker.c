/*
 * worker.c
 *	  The exec worker's loop: poll while there are free slots, start tasks, end well.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "log.h"
#include "task.h"
#include "worker.h"
#include "workflows.h"

#define POLL_WAIT_MS		10000	/* how long the server may hold a poll */
#define POLL_TIMEOUT_MS		(POLL_WAIT_MS + 15000)
#define SHORT_POLL_MS		5000	/* an empty answer before this is followed by a pause */
#define IDLE_PAUSE_MS		200
#define ERROR_PAUSE_MS		2000
#define MAX_WORKER_ID		120

struct worker
{
	struct session *session;
	const struct worker_config *config;
	struct task_owner owner;
	char		id[MAX_WORKER_ID + 1];
	struct task **tasks;
	int			ntasks;
	struct workflows *workflows;
	struct client_call *poll;
	uint64_t	polled_at;
	uv_timer_t	pause;
	bool		paused;
	uv_signal_t signals[2];
	int			nsignals;		/* that have come */
	bool		unreachable;	/* said so already */
};

static void poll_tasks(struct worker *worker);

/* ---- polling ---- */

static void
pause_over(uv_timer_t *timer)
{
	struct worker *worker = timer->data;

	worker->paused = false;
	poll_tasks(worker);
}

static void
pause_for(struct worker *worker, uint64_t ms)
{
	worker->paused = true;
	uv_timer_start(&worker->pause, pause_over, ms, 0);
}

static void
start_tasks(struct worker *worker, PB(TaskList) *list)
{
	for (size_t i = 0; i < list->n_tasks; i++)
	{
		worker->tasks = xrealloc(worker->tasks, (size_t) (worker->ntasks + 1) * sizeof(struct task *));
		worker->tasks[worker->ntasks++] = task_start(&worker->owner, list->tasks[i]);
	}

	/* The activations belong to the tasks now. */
	list->n_tasks = 0;
}

static void
take_tasks(struct worker *worker, const struct client_reply *reply)
{
	PB(TaskList) *list = (PB(TaskList) *)
		protobuf_c_message_unpack(PB_TYPE(task_list), NULL, reply->len, reply->data);
	uint64_t	waited = uv_now(&worker->session->loop) - worker->polled_at;

	if (list == NULL)
	{
		log_warn("work", "the answer to a poll cannot be read");
		pause_for(worker, ERROR_PAUSE_MS);
		return;
	}
	if (list->n_tasks > 0)
		start_tasks(worker, list);
	else if (list->retry_after_millis > 0)
		pause_for(worker, (uint64_t) list->retry_after_millis);
	else if (waited < SHORT_POLL_MS)
		pause_for(worker, IDLE_PAUSE_MS);
	protobuf_c_message_free_unpacked(&list->base, NULL);
}

static void
poll_done(void *arg, const struct client_reply *reply)
{
	struct worker *worker = arg;

	worker->poll = NULL;
	if (reply->status == GRPC_OK)
	{
		if (worker->unreachable)
			log_info("work", "%s answers again", client_server(worker->session->client));
		worker->unreachable = false;
		take_tasks(worker, reply);
	}
	else
	{
		if (!worker->unreachable)
			log_warn("work", "cannot poll %s, trying again: %s", client_server(worker->session->client),
					 reply->message);
		worker->unreachable = true;
		pause_for(worker, ERROR_PAUSE_MS);
	}
	poll_tasks(worker);
}

/* Ask for as many tasks as there are free slots, unless a poll is out. */
static void
poll_tasks(struct worker *worker)
{
	const struct client_options options = {.timeout_ms = POLL_TIMEOUT_MS, .once = true, .max_attempts = 1};
	PB(PollRequest) request = PB_INIT(POLL_REQUEST);
	int			room = worker->config->concurrency - worker->ntasks;

	if (worker->nsignals > 0 || worker->poll != NULL || worker->paused || room <= 0)
		return;
	request.queues = (char **) worker->config->queues;
	request.n_queues = worker->config->nqueues;
	if (workflows_give_queues(worker->workflows))
	{
		request.queues = (char **) workflows_queues(worker->workflows, &request.n_queues);
		if (request.n_queues == 0)
			return;				/* to name none would be to ask for all */
	}
	request.worker_id = worker->id;
	request.max = room;
	request.lease_millis = worker->config->lease_ms;
	request.wait_millis = POLL_WAIT_MS;
	worker->polled_at = uv_now(&worker->session->loop);
	worker->poll = client_start(worker->session->client, "PollTasks", &request.base, &options,
								poll_done, worker);
}

/* A poll that is out names the queues that were known before: begin another. */
static void
queues_found(void *arg)
{
	struct worker *worker = arg;

	if (worker->poll != NULL)
		client_cancel(worker->poll);
	worker->poll = NULL;
	poll_tasks(worker);
}

static void
task_ended(void *arg, struct task *task)
{
	struct worker *worker = arg;

	for (int i = 0; i < worker->ntasks; i++)
	{
		if (worker->tasks[i] == task)
		{
			worker->tasks[i] = worker->tasks[--worker->ntasks];
			break;
		}
	}
	poll_tasks(worker);
}

/* ---- signals ---- */

static void
take_signal(uv_signal_t *handle, int signum)
{
	struct worker *worker = handle->data;

	worker->nsignals++;
	if (worker->nsignals == 1)
	{
		log_info("work", "%s: no new steps; %d still run%s", signum == SIGINT ? "interrupted" : "asked to end",
				 worker->ntasks, worker->ntasks > 0 ? ", once more kills them" : "");
		if (worker->poll != NULL)
			client_cancel(worker->poll);
		worker->poll = NULL;
		uv_timer_stop(&worker->pause);
		return;
	}
	log_warn("work", "killing %d steps", worker->ntasks);
	for (int i = 0; i < worker->ntasks; i++)
		task_kill(worker->tasks[i]);
}

static void
watch_signals(struct worker *worker)
{
	static const int signums[] = {SIGTERM, SIGINT};

	for (int i = 0; i < 2; i++)
	{
		uv_signal_init(&worker->session->loop, &worker->signals[i]);
		worker->signals[i].data = worker;
		uv_signal_start(&worker->signals[i], take_signal, signums[i]);
	}
}

/* ---- running ---- */

static bool
name_worker(struct worker *worker)
{
	char		host[80] = "worker";

	if (worker->config->worker_id != NULL)
	{
		if (strlen(worker->config->worker_id) > MAX_WORKER_ID)
			return false;
		snprintf(worker->id, sizeof(worker->id), "%s", worker->config->worker_id);
		return true;
	}
	gethostname(host, sizeof(host) - 1);
	snprintf(worker->id, sizeof(worker->id), "%s-%d", host, (int) getpid());
	return true;
}

static void
say_hello(const struct worker *worker)
{
	struct buf	queues = BUF_INIT;
	int			steps = 0;

	for (const struct handler *h = worker->config->handlers; h != NULL; h = h->next)
		steps++;
	for (size_t i = 0; i < worker->config->nqueues; i++)
		buf_printf(&queues, "%s%s", i == 0 ? "" : ", ", worker->config->queues[i]);
	log_info("work", "%s: %d steps, %d at a time, queues %s, server %s", worker->id, steps,
			 worker->config->concurrency, queues.len > 0 ? buf_cstr(&queues)
			 : workflows_give_queues(worker->workflows) ? "of the workflows they name" : "all",
			 client_server(worker->session->client));
	if (queues.len == 0 && !workflows_give_queues(worker->workflows))
		log_warn("work", "takes the steps of every queue and fails for good those it has no command for;"
				 " give queues, or name steps WORKFLOW/STEP");
	buf_free(&queues);
}

enum exit_status
worker_run(struct session *session, const struct worker_config *config)
{
	struct worker worker = {.session = session, .config = config};

	if (!name_worker(&worker))
		return complain_text(EXIT_USAGE, "a worker's id has at most %d bytes", MAX_WORKER_ID);
	log_setup(LOG_LEVEL_INFO, session->json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
	worker.owner = (struct task_owner) {
		.loop = &session->loop,
		.client = session->client,
		.config = config,
		.ended = task_ended,
		.arg = &worker
	};
	uv_timer_init(&session->loop, &worker.pause);
	worker.pause.data = &worker;
	watch_signals(&worker);
	worker.workflows = workflows_new(&session->loop, session->client, config, queues_found, &worker);
	say_hello(&worker);
	poll_tasks(&worker);
	while (worker.nsignals == 0 || worker.ntasks > 0)
		uv_run(&session->loop, UV_RUN_ONCE);
	log_info("work", "ended");
	workflows_stop(worker.workflows);
	uv_close((uv_handle_t *) &worker.pause, NULL);
	for (int i = 0; i < 2; i++)
		uv_close((uv_handle_t *) &worker.signals[i], NULL);

	/* The handles live in this frame: let go of them before it ends. */
	session_end(session);
	free(worker.tasks);
	return worker.nsignals > 1 ? EXIT_STOPPED : EXIT_DONE;
}
