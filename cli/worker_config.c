/*
 * worker_config.c
 *	  What a worker serves, from a YAML file and from options.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "flow_tree.h"
#include "options.h"
#include "worker_config.h"

#define DEFAULT_CONCURRENCY	4
#define DEFAULT_LEASE_MS	30000
#define MIN_LEASE_MS		1000
#define MAX_LEASE_MS		(24 * 3600 * 1000)

typedef const struct wig_flow_value value_t;

void
worker_config_init(struct worker_config *config)
{
	memset(config, 0, sizeof(*config));
	config->arena = wig_arena_new();
	if (config->arena == NULL)
		abort();
	config->concurrency = DEFAULT_CONCURRENCY;
	config->lease_ms = DEFAULT_LEASE_MS;
}

void
worker_config_free(struct worker_config *config)
{
	wig_arena_free(config->arena);
	memset(config, 0, sizeof(*config));
}

static void *
allocate(struct worker_config *config, size_t size)
{
	void	   *memory = wig_arena_alloc(config->arena, size);

	if (memory == NULL)
		abort();
	return memory;
}

static char *
copy(struct worker_config *config, const char *text, size_t len)
{
	char	   *result = wig_arena_copy(config->arena, text, len);

	if (result == NULL)
		abort();
	return result;
}

/* ---- handlers ---- */

const struct handler *
worker_config_find(const struct worker_config *config, const char *workflow, const char *step)
{
	const struct handler *any = NULL;

	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (strcmp(h->step, step) != 0)
			continue;
		if (h->workflow != NULL && strcmp(h->workflow, workflow) == 0)
			return h;
		if (h->workflow == NULL && any == NULL)
			any = h;
	}
	return any;
}

static bool
is_known(const struct worker_config *config, const struct handler *handler)
{
	for (const struct handler *h = config->handlers; h != NULL; h = h->next)
	{
		if (strcmp(h->step, handler->step) == 0 &&
			(h->workflow == NULL) == (handler->workflow == NULL) &&
			(h->workflow == NULL || strcmp(h->workflow, handler->workflow) == 0))
			return true;
	}
	return false;
}

/* A handler for "step" or "workflow/step"; NULL when a part is empty. */
static struct handler *
new_handler(struct worker_config *config, const char *name, size_t len)
{
	const char *slash = memchr(name, '/', len);
	struct handler *handler = allocate(config, sizeof(*handler));

	if (slash != NULL)
	{
		handler->workflow = copy(config, name, (size_t) (slash - name));
		len -= (size_t) (slash - name) + 1;
		name = slash + 1;
	}
	handler->step = copy(config, name, len);
	if (handler->step[0] == '\0' || (handler->workflow != NULL && handler->workflow[0] == '\0'))
		return NULL;
	return handler;
}

static char **
shell_command(struct worker_config *config, const char *command)
{
	char	  **argv = allocate(config, 4 * sizeof(*argv));

	argv[0] = copy(config, "/bin/sh", 7);
	argv[1] = copy(config, "-c", 2);
	argv[2] = copy(config, command, strlen(command));
	return argv;
}

bool
worker_config_step(struct worker_config *config, const char *text, struct wig_error *err)
{
	const char *equals = strchr(text, '=');
	struct handler *handler;

	if (equals == NULL || equals[1] == '\0')
		return wig_fail(err, "--step takes NAME=COMMAND, got '%s'", text);
	handler = new_handler(config, text, (size_t) (equals - text));
	if (handler == NULL)
		return wig_fail(err, "--step takes NAME=COMMAND or WORKFLOW/NAME=COMMAND, got '%s'", text);
	if (is_known(config, handler))
		return wig_fail(err, "--step names '%.*s' twice", (int) (equals - text), text);
	handler->argv = shell_command(config, equals + 1);
	handler->next = config->handlers;
	config->handlers = handler;
	return true;
}

bool
worker_config_queue(struct worker_config *config, const char *queue, struct wig_error *err)
{
	const char **queues = allocate(config, (config->nqueues + 1) * sizeof(*queues));

	if (*queue == '\0')
		return wig_fail(err, "a queue's name is not empty");
	for (size_t i = 0; i < config->nqueues; i++)
		queues[i] = config->queues[i];
	queues[config->nqueues++] = copy(config, queue, strlen(queue));
	config->queues = queues;
	return true;
}

/* ---- the file ---- */

struct reader
{
	struct worker_config *config;
	struct wig_error *err;
};

#define FAIL(r, value, ...) \
	wig_fail_at((r)->err, (value)->line, (value)->column, __VA_ARGS__)

static bool
read_text(struct reader *r, value_t *value, const char *key, const char **result)
{
	if (value->type != WIG_FLOW_SCALAR || value->text[0] == '\0')
		return FAIL(r, value, "'%s' must be text", key);
	*result = value->text;
	return true;
}

static bool
read_duration(struct reader *r, value_t *value, const char *key, int64_t *ms)
{
	if (value->type != WIG_FLOW_SCALAR || !parse_duration(value->text, ms))
		return FAIL(r, value, "'%s' must be a number with unit ms, s, m or h", key);
	return true;
}

/* A command: text for the shell, or a list of the program and its arguments. */
static bool
read_command(struct reader *r, value_t *value, const char *name, struct handler *handler)
{
	int			n = 0;

	if (value->type == WIG_FLOW_SCALAR && value->text[0] != '\0')
	{
		handler->argv = shell_command(r->config, value->text);
		return true;
	}
	if (value->type != WIG_FLOW_LIST || value->n == 0)
		return FAIL(r, value, "the command of '%s' must be text, or a list of a program and its "
					"arguments", name);
	handler->argv = allocate(r->config, ((size_t) value->n + 1) * sizeof(char *));
	for (const struct wig_flow_entry *e = value->first; e != NULL; e = e->next)
	{
		if (e->value->type != WIG_FLOW_SCALAR)
			return FAIL(r, e->value, "an argument of '%s' must be text; quote it", name);
		handler->argv[n++] = copy(r->config, e->value->text, strlen(e->value->text));
	}
	return handler->argv[0][0] != '\0' || FAIL(r, value, "the program of '%s' is empty", name);
}

/* {run: COMMAND, timeout: DURATION} */
static bool
read_long_handler(struct reader *r, value_t *map, const char *name, struct handler *handler)
{
	if (wig_flow_get(map, "run") == NULL)
		return FAIL(r, map, "'%s' needs 'run', its command", name);
	for (const struct wig_flow_entry *e = map->first; e != NULL; e = e->next)
	{
		bool		done;

		if (strcmp(e->key, "run") == 0)
			done = read_command(r, e->value, name, handler);
		else if (strcmp(e->key, "timeout") == 0)
			done = read_duration(r, e->value, "timeout", &handler->timeout_ms);
		else
			done = FAIL(r, e->value, "unknown key '%s' of step '%s'; use run and timeout", e->key, name);
		if (!done)
			return false;
	}
	return true;
}

static bool
read_steps(struct reader *r, value_t *steps)
{
	if (steps->type != WIG_FLOW_MAP || steps->n == 0)
		return FAIL(r, steps, "'steps' must be a mapping of step names to commands");
	for (const struct wig_flow_entry *e = steps->first; e != NULL; e = e->next)
	{
		struct handler *handler = new_handler(r->config, e->key, strlen(e->key));

		if (handler == NULL)
			return FAIL(r, e->value, "'%s' must be STEP or WORKFLOW/STEP", e->key);
		if (e->value->type == WIG_FLOW_MAP
			? !read_long_handler(r, e->value, e->key, handler)
			: !read_command(r, e->value, e->key, handler))
			return false;

		/* What options said before stands. */
		if (is_known(r->config, handler))
			continue;
		handler->next = r->config->handlers;
		r->config->handlers = handler;
	}
	return true;
}

static bool
read_queues(struct reader *r, value_t *value)
{
	if (value->type != WIG_FLOW_LIST)
		return FAIL(r, value, "'queues' must be a list of names");
	for (const struct wig_flow_entry *e = value->first; e != NULL; e = e->next)
	{
		const char *name = NULL;

		if (!read_text(r, e->value, "queues", &name) ||
			!worker_config_queue(r->config, name, r->err))
			return false;
	}
	return true;
}

static bool
read_concurrency(struct reader *r, value_t *value)
{
	char	   *end = NULL;
	long		n = 0;

	if (value->type == WIG_FLOW_SCALAR)
		n = strtol(value->text, &end, 10);
	if (end == NULL || *end != '\0' || n < 1 || n > WORKER_MAX_CONCURRENCY)
		return FAIL(r, value, "'concurrency' must be between 1 and %d", WORKER_MAX_CONCURRENCY);
	r->config->concurrency = (int) n;
	return true;
}

static bool
read_lease(struct reader *r, value_t *value)
{
	if (!read_duration(r, value, "lease", &r->config->lease_ms))
		return false;
	return (r->config->lease_ms >= MIN_LEASE_MS && r->config->lease_ms <= MAX_LEASE_MS) ||
		FAIL(r, value, "'lease' must be between 1s and 24h");
}

static bool
read_entry(struct reader *r, const struct wig_flow_entry *e, const char **dir)
{
	if (strcmp(e->key, "steps") == 0)
		return read_steps(r, e->value);
	if (strcmp(e->key, "queues") == 0)
		return read_queues(r, e->value);
	if (strcmp(e->key, "worker") == 0)
		return read_text(r, e->value, "worker", &r->config->worker_id);
	if (strcmp(e->key, "dir") == 0)
		return read_text(r, e->value, "dir", dir);
	if (strcmp(e->key, "concurrency") == 0)
		return read_concurrency(r, e->value);
	if (strcmp(e->key, "lease") == 0)
		return read_lease(r, e->value);
	if (strcmp(e->key, "timeout") == 0)
		return read_duration(r, e->value, "timeout", &r->config->timeout_ms);
	return FAIL(r, e->value, "unknown key '%s'; use worker, queues, concurrency, lease, timeout, dir "
				"and steps", e->key);
}

/* The folder of a file, with `dir` below it unless that starts at the root. */
static const char *
folder(struct worker_config *config, const char *path, const char *dir)
{
	const char *slash = strrchr(path, '/');
	struct buf	text = BUF_INIT;
	char	   *result;

	if (dir == NULL || dir[0] != '/')
	{
		if (slash == path)
			buf_byte(&text, '/');
		else if (slash != NULL)
			buf_append(&text, path, (size_t) (slash - path));
		else
			buf_byte(&text, '.');
	}
	if (dir != NULL)
	{
		if (text.len > 0)
			buf_byte(&text, '/');
		buf_text(&text, dir);
	}
	result = copy(config, (const char *) text.data, text.len);
	buf_free(&text);
	return result;
}

bool
worker_config_read(struct worker_config *config, const char *path, const struct buf *text,
				   struct wig_error *err)
{
	struct reader r = {.config = config, .err = err};
	const char *dir = NULL;
	value_t    *root = wig_flow_read_yaml((const char *) text->data, text->len, config->arena, err);

	if (root == NULL)
		return false;
	if (root->type != WIG_FLOW_MAP)
		return FAIL(&r, root, "a worker file is a mapping; see wiggle work --help");
	for (const struct wig_flow_entry *e = root->first; e != NULL; e = e->next)
	{
		if (!read_entry(&r, e, &dir))
			return false;
	}
	if (strcmp(path, "-") != 0 || dir != NULL)
		config->dir = folder(config, strcmp(path, "-") == 0 ? "." : path, dir);
	return true;
}
