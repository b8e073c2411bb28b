/*
 * step_check.c
 *	  Do a worker's steps and those of the registered workflows know each other?
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "log.h"
#include "nearest.h"
#include "registered.h"
#include "step_check.h"

#define UNDO		"#compensate"
#define MAX_LISTED	20

/* What is known of one of the worker's steps that may be of any workflow. */
struct loose
{
	const struct handler *handler;
	bool		settled;		/* some workflow has it, or it was said that none does */
	char	   *near;			/* a step of a similar name, and where it is; or NULL */
};

struct step_check
{
	const struct worker_config *config;
	struct loose *loose;
	size_t		nloose;
	size_t		versions;		/* that have been looked at */
};

struct step_check *
step_check_new(const struct worker_config *config)
{
	struct step_check *check = xcalloc(1, sizeof(*check));

	check->config = config;
	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (h->workflow != NULL)
			continue;
		check->loose = xrealloc(check->loose, (check->nloose + 1) * sizeof(*check->loose));
		check->loose[check->nloose++] = (struct loose) {.handler = h};
	}
	return check;
}

void
step_check_free(struct step_check *check)
{
	for (size_t i = 0; i < check->nloose; i++)
		free(check->loose[i].near);
	free(check->loose);
	free(check);
}

/* ---- the names of a version ---- */

/* What workers may be asked for: NULL-terminated, free() each and the list. */
static char **
step_names(const struct wig_definition *def)
{
	char	  **names = xcalloc(2 * (size_t) def->nnodes + 1, sizeof(*names));
	size_t		n = 0;

	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];
		const char *step = registered_step(def, node);

		if (node->kind != WIG_TASK && node->kind != WIG_PREDICATE)
			continue;
		names[n++] = xstrdup(step);
		if (node->compensable)
		{
			struct buf	undo = BUF_INIT;

			buf_printf(&undo, "%s%s", step, UNDO);
			names[n++] = xstrdup(buf_cstr(&undo));
			buf_free(&undo);
		}
	}
	return names;
}

static void
free_names(char **names)
{
	for (size_t i = 0; names[i] != NULL; i++)
		free(names[i]);
	free(names);
}

static bool
is_among(char *const *names, const char *step)
{
	while (*names != NULL && strcmp(*names, step) != 0)
		names++;
	return *names != NULL;
}

static void
list_name(struct buf *list, int *n, const char *name)
{
	if (*n < MAX_LISTED)
		buf_printf(list, "%s%s", *n == 0 ? "" : ", ", name);
	else if (*n == MAX_LISTED)
		buf_text(list, ", ...");
	(*n)++;
}

/* ---- the worker's steps ---- */

static void
complain_unknown(const struct handler *handler, const struct wig_definition *def, char *const *names)
{
	const char *near = wig_nearest(handler->step, (const char *const *) names);
	struct buf	steps = BUF_INIT;
	int			n = 0;

	for (size_t i = 0; names[i] != NULL; i++)
		list_name(&steps, &n, names[i]);
	log_warn("work", "no step '%s' in %s:%d%s%s%s; steps are %s", handler->step, def->name,
			 (int) def->version, near == NULL ? "" : " (did you mean '", near == NULL ? "" : near,
			 near == NULL ? "" : "'?)", buf_cstr(&steps));
	buf_free(&steps);
}

static void
look_for_loose(struct loose *loose, const struct wig_definition *def, char *const *names)
{
	const char *near;
	struct buf	text = BUF_INIT;

	if (loose->settled)
		return;
	loose->settled = is_among(names, loose->handler->step);
	near = wig_nearest(loose->handler->step, (const char *const *) names);
	if (loose->settled || near == NULL || loose->near != NULL)
		return;
	buf_printf(&text, "'%s' of %s", near, def->name);
	loose->near = xstrdup(buf_cstr(&text));
	buf_free(&text);
}

/* ---- the version's steps ---- */

static bool
is_taken(const struct worker_config *config, const struct wig_node *node)
{
	for (size_t i = 0; i < config->nqueues; i++)
	{
		if (node->queue != NULL && strcmp(config->queues[i], node->queue) == 0)
			return true;
	}
	return config->nqueues == 0;
}

static void
complain_commandless(const struct step_check *check, const struct wig_definition *def)
{
	struct buf	steps = BUF_INIT;
	int			n = 0;

	for (int i = 0; i < def->nnodes; i++)
	{
		const struct wig_node *node = &def->nodes[i];
		const char *step = registered_step(def, node);
		struct buf	undo = BUF_INIT;

		if ((node->kind != WIG_TASK && node->kind != WIG_PREDICATE) || !is_taken(check->config, node))
			continue;
		buf_printf(&undo, "%s%s", step, UNDO);
		if (worker_config_find(check->config, def->name, step) == NULL)
			list_name(&steps, &n, step);
		if (node->compensable && worker_config_find(check->config, def->name, buf_cstr(&undo)) == NULL)
			list_name(&steps, &n, buf_cstr(&undo));
		buf_free(&undo);
	}
	if (n > 0)
		log_warn("work", "no command for what this worker will be given of %s:%d, which fails for good: %s",
				 def->name, (int) def->version, buf_cstr(&steps));
	buf_free(&steps);
}

/* ---- both ---- */

void
step_check_version(struct step_check *check, const struct wig_definition *def, bool named)
{
	char	  **names = step_names(def);

	check->versions++;
	for (const struct handler *h = check->config->handlers; h != NULL; h = h->next)
	{
		if (h->workflow != NULL && strcmp(h->workflow, def->name) == 0 && !is_among(names, h->step))
			complain_unknown(h, def, names);
	}
	for (size_t i = 0; i < check->nloose; i++)
		look_for_loose(&check->loose[i], def, names);

	/* A worker that takes all queues has been told so already, and why not to. */
	if (check->config->nqueues > 0 || (named && check->nloose == 0))
		complain_commandless(check, def);
	free_names(names);
}

void
step_check_rest(struct step_check *check)
{
	for (size_t i = 0; i < check->nloose && check->versions > 0; i++)
	{
		struct loose *loose = &check->loose[i];

		if (loose->settled)
			continue;
		loose->settled = true;
		log_warn("work", "no registered workflow has a step '%s'%s%s%s", loose->handler->step,
				 loose->near == NULL ? "" : "; did you mean ", loose->near == NULL ? "" : loose->near,
				 loose->near == NULL ? "" : "?");
	}
}
