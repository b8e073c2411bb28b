/*
 * queue_finder.c
 *	  The queues of the workflows that a worker's steps name.
 */
#include <stdlib.h>
#include <string.h>

#include "definition.h"
#include "log.h"
#include "queue_finder.h"
#include "session.h"
#include "value.h"
#include "wiggle.pb-c.h"

#define MISSING_MS		2000	/* until the next question when a workflow is missing */
#define REFRESH_MS		60000	/* a new version may bring new queues */

struct queue_finder
{
	struct client *client;
	void		(*found) (void *arg);
	void	   *arg;
	const char **workflows;		/* the texts are the configuration's */
	bool	   *told;			/* that this one cannot be had */
	size_t		nworkflows;
	size_t		next;			/* the one that is asked for now */
	bool		missing;		/* one of this round could not be had */
	char	  **queues;
	size_t		nqueues;
	struct client_call *call;
	uv_timer_t	timer;
};

static void ask(struct queue_finder *finder);

static bool
add_queue(struct queue_finder *finder, const char *queue)
{
	for (size_t i = 0; i < finder->nqueues; i++)
	{
		if (strcmp(finder->queues[i], queue) == 0)
			return false;
	}
	finder->queues = xrealloc(finder->queues, (finder->nqueues + 1) * sizeof(char *));
	finder->queues[finder->nqueues++] = xstrdup(queue);
	return true;
}

/* The queues of a definition's nodes; false when it cannot be read. */
static bool
add_queues(struct queue_finder *finder, const struct client_reply *reply)
{
	PB(WorkflowDefinition) *message = (PB(WorkflowDefinition) *)
		protobuf_c_message_unpack(PB_TYPE(workflow_definition), NULL, reply->len, reply->data);
	struct wig_definition *def = NULL;
	struct buf	json = BUF_INIT;
	bool		grown = false;

	if (message != NULL && struct_to_json(message->definition.data, message->definition.len, &json, NULL))
		def = wig_definition_parse((const char *) json.data, json.len, NULL);
	buf_free(&json);
	if (message != NULL)
		protobuf_c_message_free_unpacked(&message->base, NULL);
	if (def == NULL)
		return false;
	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];

		/* The queue of steps that name none is the one without a name. */
		if (node->kind == WIG_TASK || node->kind == WIG_PREDICATE)
			grown |= add_queue(finder, node->queue == NULL ? "" : node->queue);
	}
	wig_definition_free(def);
	if (grown)
		finder->found(finder->arg);
	return true;
}

static void
ask_again(uv_timer_t *timer)
{
	struct queue_finder *finder = timer->data;

	finder->next = 0;
	finder->missing = false;
	ask(finder);
}

static void
answered(void *arg, const struct client_reply *reply)
{
	struct queue_finder *finder = arg;
	const char *workflow = finder->workflows[finder->next];
	bool	   *told = &finder->told[finder->next];
	bool		had = reply->status == GRPC_OK && add_queues(finder, reply);

	finder->call = NULL;
	if (had && *told)
		log_info("work", "workflow '%s' is there now", workflow);
	else if (!had && !*told)
	{
		if (reply->status == GRPC_NOT_FOUND)
			log_warn("work", "workflow '%s' is not registered; looking again every %d s", workflow,
					 MISSING_MS / 1000);
		else
			log_warn("work", "cannot ask %s for the queues of workflow '%s', trying again: %s",
					 client_server(finder->client), workflow,
					 reply->status == GRPC_OK ? "the answer cannot be read" : reply->message);
	}
	*told = !had;
	finder->missing |= !had;
	finder->next++;
	ask(finder);
}

static void
ask(struct queue_finder *finder)
{
	PB(GetWorkflowRequest) request = PB_INIT(GET_WORKFLOW_REQUEST);
	const struct client_options options = {.max_attempts = 1};

	if (finder->next == finder->nworkflows)
	{
		uv_timer_start(&finder->timer, ask_again, finder->missing ? MISSING_MS : REFRESH_MS, 0);
		return;
	}
	request.name = (char *) finder->workflows[finder->next];
	finder->call = client_start(finder->client, "GetWorkflow", &request.base, &options, answered, finder);
}

static bool
is_listed(const struct queue_finder *finder, const char *workflow)
{
	for (size_t i = 0; i < finder->nworkflows; i++)
	{
		if (strcmp(finder->workflows[i], workflow) == 0)
			return true;
	}
	return false;
}

struct queue_finder *
queue_finder_new(uv_loop_t *loop, struct client *client, const struct worker_config *config,
				 void (*found) (void *arg), void *arg)
{
	struct queue_finder *finder;
	size_t		nhandlers = 0;

	if (config->nqueues > 0)
		return NULL;
	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (h->workflow == NULL)
			return NULL;
		nhandlers++;
	}
	finder = xcalloc(1, sizeof(*finder));
	finder->client = client;
	finder->found = found;
	finder->arg = arg;
	finder->workflows = xcalloc(nhandlers, sizeof(char *));
	finder->told = xcalloc(nhandlers, sizeof(bool));
	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (!is_listed(finder, h->workflow))
			finder->workflows[finder->nworkflows++] = h->workflow;
	}
	uv_timer_init(loop, &finder->timer);
	finder->timer.data = finder;
	ask(finder);
	return finder;
}

const char *const *
queue_finder_queues(const struct queue_finder *finder, size_t *n)
{
	*n = finder->nqueues;
	return (const char *const *) finder->queues;
}

static void
timer_closed(uv_handle_t *handle)
{
	struct queue_finder *finder = handle->data;

	for (size_t i = 0; i < finder->nqueues; i++)
		free(finder->queues[i]);
	free(finder->queues);
	free(finder->workflows);
	free(finder->told);
	free(finder);
}

void
queue_finder_stop(struct queue_finder *finder)
{
	if (finder == NULL)
		return;
	if (finder->call != NULL)
		client_cancel(finder->call);
	finder->call = NULL;
	uv_close((uv_handle_t *) &finder->timer, timer_closed);
}
