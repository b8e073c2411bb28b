/*
 * workflows.c
 *	  The registered workflows that a worker's steps belong to, asked of the server.
 */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "registered.h"
#include "step_check.h"
#include "wiggle.pb-c.h"
#include "workflows.h"

#define MISSING_MS		2000	/* until the next question when a workflow is missing */
#define REFRESH_MS		60000	/* a new version may bring new queues and steps */

struct workflow
{
	char	   *name;
	bool		named;			/* by a step, so that it is missed when it is not there */
	bool		told;			/* that it cannot be had */
	int32_t		seen;			/* the newest version whose steps were looked at */
};

struct workflows
{
	struct client *client;
	const struct worker_config *config;
	void		(*found) (void *arg);
	void	   *arg;
	bool		gives_queues;
	bool		any;			/* some step names no workflow: all are of interest */
	struct workflow *list;
	size_t		n;
	size_t		next;			/* the one that is asked for now */
	bool		missing;		/* one of this round could not be had */
	struct step_check *check;
	char	  **queues;
	size_t		nqueues;
	struct client_call *call;
	uv_timer_t	timer;
};

static void ask(struct workflows *w);

/* ---- what is learnt ---- */

static void
add_workflow(struct workflows *w, const char *name, bool named)
{
	for (size_t i = 0; i < w->n; i++)
	{
		if (strcmp(w->list[i].name, name) == 0)
			return;
	}
	w->list = xrealloc(w->list, (w->n + 1) * sizeof(*w->list));
	w->list[w->n++] = (struct workflow) {.name = xstrdup(name), .named = named};
}

static bool
add_queue(struct workflows *w, const char *queue)
{
	for (size_t i = 0; i < w->nqueues; i++)
	{
		if (strcmp(w->queues[i], queue) == 0)
			return false;
	}
	w->queues = xrealloc(w->queues, (w->nqueues + 1) * sizeof(char *));
	w->queues[w->nqueues++] = xstrdup(queue);
	return true;
}

static void
add_queues(struct workflows *w, const struct wig_definition *def)
{
	bool		grown = false;

	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];

		/* The queue of steps that name none is the one without a name. */
		if (node->kind == WIG_TASK || node->kind == WIG_PREDICATE)
			grown |= add_queue(w, node->queue == NULL ? "" : node->queue);
	}
	if (grown)
		w->found(w->arg);
}

static bool
take_definition(struct workflows *w, struct workflow *workflow, const struct client_reply *reply)
{
	struct wig_definition *def = registered_read(reply->data, reply->len);

	if (def == NULL)
		return false;
	if (def->version != workflow->seen)
	{
		workflow->seen = def->version;
		step_check_version(w->check, def, workflow->named);
	}
	if (w->gives_queues)
		add_queues(w, def);
	wig_definition_free(def);
	return true;
}

/* ---- asking ---- */

static void
complain_missing(struct workflows *w, const struct workflow *workflow, const struct client_reply *reply)
{
	if (reply->status == GRPC_NOT_FOUND)
		log_warn("work", "workflow '%s' is not registered; looking again every %d s", workflow->name,
				 MISSING_MS / 1000);
	else
		log_warn("work", "cannot ask %s for workflow '%s', trying again: %s", client_server(w->client),
				 workflow->name, reply->status == GRPC_OK ? "the answer cannot be read" : reply->message);
}

static void
definition_came(void *arg, const struct client_reply *reply)
{
	struct workflows *w = arg;
	struct workflow *workflow = &w->list[w->next];
	bool		had = reply->status == GRPC_OK && take_definition(w, workflow, reply);

	w->call = NULL;
	if (had && workflow->told)
		log_info("work", "workflow '%s' is there now", workflow->name);
	else if (!had && !workflow->told && workflow->named)
		complain_missing(w, workflow, reply);
	workflow->told = !had;
	w->missing |= !had && workflow->named;
	w->next++;
	ask(w);
}

static void
names_came(void *arg, const struct client_reply *reply)
{
	struct workflows *w = arg;
	PB(WorkflowNames) *names = reply->status != GRPC_OK ? NULL : (PB(WorkflowNames) *)
		protobuf_c_message_unpack(PB_TYPE(workflow_names), NULL, reply->len, reply->data);

	w->call = NULL;
	w->missing |= names == NULL;
	for (size_t i = 0; names != NULL && i < names->n_workflows; i++)
		add_workflow(w, names->workflows[i], false);
	if (names != NULL)
		protobuf_c_message_free_unpacked(&names->base, NULL);
	ask(w);
}

static const struct client_options one_attempt = {.max_attempts = 1};

static void
begin_round(uv_timer_t *timer)
{
	struct workflows *w = timer->data;
	PB(Empty) request = PB_INIT(EMPTY);

	w->next = 0;
	w->missing = false;
	if (w->any)
		w->call = client_start(w->client, "ListWorkflows", &request.base, &one_attempt, names_came, w);
	else
		ask(w);
}

static void
ask(struct workflows *w)
{
	PB(GetWorkflowRequest) request = PB_INIT(GET_WORKFLOW_REQUEST);

	/* Those of no interest by name are looked at once. */
	while (w->next < w->n && !w->list[w->next].named && w->list[w->next].seen > 0)
		w->next++;
	if (w->next < w->n)
	{
		request.name = w->list[w->next].name;
		w->call = client_start(w->client, "GetWorkflow", &request.base, &one_attempt, definition_came, w);
		return;
	}
	if (!w->missing)
		step_check_rest(w->check);
	uv_timer_start(&w->timer, begin_round, w->missing ? MISSING_MS : REFRESH_MS, 0);
}

/* ---- the interface ---- */

struct workflows *
workflows_new(uv_loop_t *loop, struct client *client, const struct worker_config *config,
			  void (*found) (void *arg), void *arg)
{
	struct workflows *w = xcalloc(1, sizeof(*w));

	w->client = client;
	w->config = config;
	w->found = found;
	w->arg = arg;
	w->check = step_check_new(config);
	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (h->workflow == NULL)
			w->any = true;
		else
			add_workflow(w, h->workflow, true);
	}
	w->gives_queues = config->nqueues == 0 && !w->any;
	uv_timer_init(loop, &w->timer);
	w->timer.data = w;
	begin_round(&w->timer);
	return w;
}

bool
workflows_give_queues(const struct workflows *w)
{
	return w->gives_queues;
}

const char *const *
workflows_queues(const struct workflows *w, size_t *n)
{
	*n = w->nqueues;
	return (const char *const *) w->queues;
}

static void
timer_closed(uv_handle_t *handle)
{
	struct workflows *w = handle->data;

	for (size_t i = 0; i < w->nqueues; i++)
		free(w->queues[i]);
	for (size_t i = 0; i < w->n; i++)
		free(w->list[i].name);
	step_check_free(w->check);
	free(w->queues);
	free(w->list);
	free(w);
}

void
workflows_stop(struct workflows *w)
{
	if (w->call != NULL)
		client_cancel(w->call);
	w->call = NULL;
	uv_close((uv_handle_t *) &w->timer, timer_closed);
}
