/*
 * definition_decode.c
 *	  JSON text to a definition: fields, defaults, legacy combines, edges.
 *
 * Values are read as loosely as Wiggle reads them: a name may be given as a
 * number or a boolean, a number of another type counts as absent, unknown keys
 * are ignored. What a field then holds is checked here; how nodes fit together
 * is definition_check.c's concern.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "arena.h"
#include "definition_impl.h"
#include "jsontext.h"
#include "textbuf.h"

struct decoder
{
	struct wig_definition *def;
	struct wig_error *err;
};

/* A node's object, before and while nodes are sorted. */
struct raw_node
{
	const char *id;
	size_t		order;			/* place in the document */
	json_t	   *object;
};

static bool
out_of_memory(struct decoder *d)
{
	return wig_fail(d->err, "out of memory");
}

static const char *
json_type_name(const json_t *value)
{
	if (value == NULL)
		return "nothing";
	switch (json_typeof(value))
	{
		case JSON_OBJECT:
			return "an object";
		case JSON_ARRAY:
			return "an array";
		case JSON_STRING:
			return "a string";
		case JSON_REAL:
			return "a number";
		case JSON_TRUE:
		case JSON_FALSE:
			return "a boolean";
		default:
			return "null";
	}
}

/* Characters, not bytes, of valid UTF-8. */
static size_t
text_length(const char *text)
{
	size_t		n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char) *text & 0xC0) != 0x80;
	return n;
}

static bool
is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n\f\v")] == '\0';
}

/*
 * A value as text in the arena, NULL for null or absence. where names the owner
 * for messages: "workflow" or "node 'x'".
 */
static bool
get_text(struct decoder *d, const char *where, const char *field,
		 const json_t *value, size_t max, const char **result)
{
	struct wig_text text = {0};
	const char *source;
	bool		done;

	*result = NULL;
	if (value == NULL || json_is_null(value))
		return true;
	if (json_is_object(value) || json_is_array(value))
		return wig_fail(d->err, "%s: %s must be a string, not %s", where, field,
						json_type_name(value));
	if (json_is_real(value))
		wig_text_put_double(&text, json_real_value(value));
	else if (json_is_boolean(value))
		wig_text_puts(&text, json_is_true(value) ? "true" : "false");
	else
		wig_text_puts(&text, json_string_value(value));
	wig_text_put(&text, "", 1);
	if (text.failed)
	{
		wig_text_free(&text);
		return out_of_memory(d);
	}
	source = text.data;
	done = text_length(source) <= max;
	if (!done)
		wig_fail(d->err, "%s: %s is longer than %zu characters: '%s'", where, field, max, source);
	else
	{
		*result = wig_arena_copy(d->def->arena, source, text.len - 1);
		done = *result != NULL || out_of_memory(d);
	}
	wig_text_free(&text);
	return done;
}

/* A number as an integer, cut off like a cast and held within 64 bits. */
static int64_t
get_int(const json_t *value, int64_t absent)
{
	double		real;

	if (!json_is_real(value))
		return absent;
	real = json_real_value(value);
	if (real >= 9223372036854775808.0)
		return INT64_MAX;
	if (real <= -9223372036854775808.0)
		return INT64_MIN;
	return (int64_t) real;
}

static bool
get_int_between(struct decoder *d, const char *where, const char *field,
				const json_t *value, int64_t absent, int64_t min, int64_t max,
				int64_t *result)
{
	*result = get_int(value, absent);
	if (*result >= min && *result <= max)
		return true;
	return wig_fail(d->err, "%s: %s must be between %" PRId64 " and %" PRId64 ", got %" PRId64,
					where, field, min, max, *result);
}

static double
get_double(const json_t *value, double absent)
{
	return json_is_real(value) ? json_real_value(value) : absent;
}

/* An array of names; nulls are left out, as an absent array is empty. */
static bool
get_names(struct decoder *d, const char *where, const char *field, const json_t *value,
		  size_t max, const char ***result, int *n)
{
	size_t		index;
	json_t	   *item;

	*n = 0;
	*result = NULL;
	if (value == NULL || json_is_null(value))
		return true;
	if (!json_is_array(value))
		return wig_fail(d->err, "%s: %s must be an array, not %s", where, field,
						json_type_name(value));
	*result = wig_arena_alloc(d->def->arena, (json_array_size(value) + 1) * sizeof(char *));
	if (*result == NULL)
		return out_of_memory(d);
	json_array_foreach(value, index, item)
	{
		const char *name;

		if (!get_text(d, where, field, item, max, &name))
			return false;
		if (name != NULL)
			(*result)[(*n)++] = name;
	}
	return true;
}

static bool
decode_retry(struct decoder *d, const char *where, const json_t *value,
			 struct wig_node *node)
{
	struct wig_retry *retry = &node->retry;
	int64_t		max_attempts;

	*retry = wig_retry_forever;
	if (value == NULL || json_is_null(value))
		return true;
	if (!json_is_object(value))
		return wig_fail(d->err, "%s: retry must be an object, not %s", where,
						json_type_name(value));
	node->has_retry = true;
	max_attempts = get_int(json_object_get(value, "maxAttempts"), 1);
	if (max_attempts < 1)
		return wig_fail(d->err, "%s: retry: maxAttempts must be >= 1, got %" PRId64,
						where, max_attempts);
	if (max_attempts > INT32_MAX)
		return wig_fail(d->err, "%s: retry: maxAttempts must be <= 2147483647, got %" PRId64,
						where, max_attempts);
	retry->max_attempts = (int32_t) max_attempts;
	if (!get_int_between(d, where, "retry: initialBackoffMillis",
						 json_object_get(value, "initialBackoffMillis"), 0, 0,
						 WIG_MAX_DELAY_MS, &retry->initial_ms))
		return false;
	retry->max_ms = get_int(json_object_get(value, "maxBackoffMillis"), 0);
	retry->multiplier = get_double(json_object_get(value, "multiplier"), 1.0);
	if (!(retry->multiplier >= 1.0))
		return wig_fail(d->err, "%s: retry: multiplier must be >= 1.0, got %g",
						where, retry->multiplier);
	retry->jitter = get_double(json_object_get(value, "jitter"), 0.0);
	if (!(retry->jitter >= 0.0 && retry->jitter <= 1.0))
		return wig_fail(d->err, "%s: retry: jitter must be between 0 and 1, got %g",
						where, retry->jitter);
	return true;
}

/*
 * The encoding of combines before armNames and collectKey: a TASK whose itemsKey
 * is JSON text, an array of arm names or one string.
 */
static bool
decode_legacy_combine(struct decoder *d, const char *where, struct wig_node *node)
{
	json_error_t problem;
	json_t	   *keys;
	bool		done;

	if (node->kind != WIG_TASK || node->items_key == NULL)
		return true;
	if (node->narms == 0 && node->collect_key == NULL)
	{
		keys = json_loads(node->items_key, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &problem);
		if (keys == NULL)
			return wig_fail(d->err, "%s: itemsKey of a task must be JSON, an array of arm names "
							"or a string; JSON error at %d: %s", where, problem.position,
							problem.text);
		if (json_is_string(keys))
			done = get_text(d, where, "itemsKey", keys, WIG_MAX_NAME, &node->collect_key);
		else
			done = get_names(d, where, "itemsKey", keys, WIG_MAX_NAME,
							 &node->arm_names, &node->narms);
		json_decref(keys);
		if (!done)
			return false;
		node->legacy_combine = node->narms > 0 || node->collect_key != NULL;
	}
	node->items_key = NULL;
	return true;
}

/* Every field of a node that does not name another node. */
static bool
decode_fields(struct decoder *d, const char *where, const json_t *object,
			  struct wig_node *node)
{
	const char *kind;
	int64_t		value;

	if (!get_text(d, where, "kind", json_object_get(object, "kind"), WIG_MAX_NAME, &kind))
		return false;
	if (kind == NULL)
		return wig_fail(d->err, "%s: missing field 'kind'", where);
	if (!wig_kind_from_name(kind, &node->kind))
		return wig_fail(d->err, "%s: unknown kind '%s'; use TASK, PREDICATE, SLEEP, SIGNAL, "
						"SUB_WORKFLOW, FORK, DYN_FORK, JOIN or END", where, kind);

	if (!get_text(d, where, "name", json_object_get(object, "name"),
				  WIG_MAX_NAME, &node->name) ||
		!get_text(d, where, "activity", json_object_get(object, "activity"),
				  node->kind == WIG_SUB_WORKFLOW ? WIG_MAX_NAME : WIG_MAX_ACTIVITY,
				  &node->activity) ||
		!get_text(d, where, "queue", json_object_get(object, "queue"),
				  WIG_MAX_NAME, &node->queue) ||
		!get_text(d, where, "reason", json_object_get(object, "reason"),
				  WIG_MAX_NAME, &node->reason) ||
		!get_text(d, where, "itemsKey", json_object_get(object, "itemsKey"),
				  SIZE_MAX, &node->items_key) ||
		!get_text(d, where, "itemKey", json_object_get(object, "itemKey"),
				  WIG_MAX_NAME, &node->item_key) ||
		!get_text(d, where, "collectKey", json_object_get(object, "collectKey"),
				  WIG_MAX_ACTIVITY, &node->collect_key) ||
		!get_names(d, where, "armNames", json_object_get(object, "armNames"),
				   WIG_MAX_NAME, &node->arm_names, &node->narms))
		return false;

	if (!get_int_between(d, where, "sleepMillis", json_object_get(object, "sleepMillis"),
						 0, 0, WIG_MAX_DELAY_MS, &node->sleep_ms))
		return false;
	if (!get_int_between(d, where, "expected", json_object_get(object, "expected"),
						 0, 0, INT32_MAX, &value))
		return false;
	node->expected = (int32_t) value;
	if (!get_int_between(d, where, "loopBudget", json_object_get(object, "loopBudget"),
						 0, -1, INT32_MAX, &value))
		return false;
	node->loop_budget = (int32_t) value;
	node->success = json_is_true(json_object_get(object, "success"));
	node->compensable = json_is_true(json_object_get(object, "compensable"));
	return decode_retry(d, where, json_object_get(object, "retry"), node) &&
		decode_legacy_combine(d, where, node);
}

/* The index of the node that an edge names, -1 when it names none. */
static bool
decode_edge(struct decoder *d, const struct wig_node *node, const char *field,
			const json_t *value, int *edge)
{
	char		where[WIG_MAX_NODE_ID * 4 + 16];
	const char *id;

	*edge = -1;
	snprintf(where, sizeof(where), "node '%s'", node->id);
	if (!get_text(d, where, field, value, SIZE_MAX, &id))
		return false;
	if (id == NULL)
		return true;
	*edge = wig_definition_node(d->def, id, strlen(id));
	if (*edge < 0)
		return wig_fail(d->err, "node %s points at unknown node %s (%s)", node->id, id, field);
	return true;
}

static bool
decode_edges(struct decoder *d, const json_t *object, struct wig_node *node)
{
	const json_t *branches = json_object_get(object, "branches");

	if (!decode_edge(d, node, "next", json_object_get(object, "next"), &node->next) ||
		!decode_edge(d, node, "altNext", json_object_get(object, "altNext"), &node->alt))
		return false;
	if (branches == NULL || json_is_null(branches))
		return true;
	if (!json_is_array(branches))
		return wig_fail(d->err, "node '%s': branches must be an array, not %s", node->id,
						json_type_name(branches));
	node->branches = wig_arena_alloc(d->def->arena,
									 (json_array_size(branches) + 1) * sizeof(int));
	if (node->branches == NULL)
		return out_of_memory(d);
	for (size_t i = 0; i < json_array_size(branches); i++)
	{
		int			edge;

		if (!decode_edge(d, node, "branches", json_array_get(branches, i), &edge))
			return false;
		if (edge < 0)
			return wig_fail(d->err, "node '%s': branches holds null", node->id);
		node->branches[node->nbranches++] = edge;
	}
	return true;
}

static int
compare_raw(const void *a, const void *b)
{
	const struct raw_node *x = a;
	const struct raw_node *y = b;
	int			order = wig_compare_utf16(x->id, strlen(x->id), y->id, strlen(y->id));

	if (order != 0)
		return order;
	return x->order < y->order ? -1 : 1;
}

/* Sort by id; of several nodes with one id the last in the document stays. */
static size_t
sort_raw(struct raw_node *raw, size_t n)
{
	size_t		kept = 0;

	qsort(raw, n, sizeof(*raw), compare_raw);
	for (size_t i = 0; i < n; i++)
	{
		if (i + 1 < n && strcmp(raw[i].id, raw[i + 1].id) == 0)
			continue;
		raw[kept++] = raw[i];
	}
	return kept;
}

static bool
collect_raw(struct decoder *d, const json_t *nodes, struct raw_node *raw)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
	{
		char		where[40];

		snprintf(where, sizeof(where), "nodes[%zu]", i);
		raw[i].object = json_array_get(nodes, i);
		raw[i].order = i;
		if (!json_is_object(raw[i].object))
			return wig_fail(d->err, "%s must be an object, not %s", where,
							json_type_name(raw[i].object));
		if (!get_text(d, where, "id", json_object_get(raw[i].object, "id"),
					  WIG_MAX_NODE_ID, &raw[i].id))
			return false;
		if (raw[i].id == NULL || is_blank(raw[i].id))
			return wig_fail(d->err, "%s: missing field 'id'", where);
	}
	return true;
}

static bool
decode_nodes(struct decoder *d, const json_t *nodes)
{
	struct wig_definition *def = d->def;
	struct raw_node *raw;
	size_t		n;

	if (nodes == NULL || json_is_null(nodes))
		return wig_fail(d->err, "missing field 'nodes'");
	if (!json_is_array(nodes))
		return wig_fail(d->err, "nodes must be an array, not %s", json_type_name(nodes));
	n = json_array_size(nodes);
	if (n == 0)
		return wig_fail(d->err, "workflow defines no steps");
	raw = wig_arena_alloc(def->arena, n * sizeof(*raw));
	if (raw == NULL)
		return out_of_memory(d);
	if (!collect_raw(d, nodes, raw))
		return false;
	n = sort_raw(raw, n);
	def->nodes = wig_arena_alloc(def->arena, n * sizeof(*def->nodes));
	if (def->nodes == NULL)
		return out_of_memory(d);
	def->nnodes = (int) n;
	for (size_t i = 0; i < n; i++)
		def->nodes[i].id = raw[i].id;
	for (size_t i = 0; i < n; i++)
	{
		char		where[WIG_MAX_NODE_ID * 4 + 16];

		snprintf(where, sizeof(where), "node '%s'", raw[i].id);
		if (!decode_fields(d, where, raw[i].object, &def->nodes[i]) ||
			!decode_edges(d, raw[i].object, &def->nodes[i]))
			return false;
	}
	return true;
}

static int
compare_names(const void *a, const void *b)
{
	const char *x = *(const char *const *) a;
	const char *y = *(const char *const *) b;

	return wig_compare_utf16(x, strlen(x), y, strlen(y));
}

static bool
decode_queues(struct decoder *d, const json_t *value)
{
	struct wig_definition *def = d->def;
	int			kept = 0;

	if (!get_names(d, "workflow", "queues", value, WIG_MAX_NAME, &def->queues, &def->nqueues))
		return false;
	if (def->nqueues > 1)
		qsort(def->queues, (size_t) def->nqueues, sizeof(char *), compare_names);
	for (int i = 0; i < def->nqueues; i++)
	{
		if (kept == 0 || strcmp(def->queues[kept - 1], def->queues[i]) != 0)
			def->queues[kept++] = def->queues[i];
	}
	def->nqueues = kept;
	return true;
}

static bool
decode_checkpoints(struct decoder *d, const json_t *value)
{
	const char **ids;
	int			n;

	if (!get_names(d, "workflow", "checkpoints", value, SIZE_MAX, &ids, &n))
		return false;
	for (int i = 0; i < n; i++)
	{
		int			node = wig_definition_node(d->def, ids[i], strlen(ids[i]));

		if (node < 0)
			return wig_fail(d->err, "checkpoints names unknown node %s", ids[i]);
		d->def->nodes[node].checkpoint = true;
	}
	return true;
}

static bool
decode_mode(struct decoder *d, const json_t *value)
{
	static const enum wig_mode modes[] = {
		WIG_MODE_DEFAULT, WIG_MODE_SERVER, WIG_MODE_LOCAL_SYNC, WIG_MODE_LOCAL_ASYNC
	};
	const char *name;

	if (!get_text(d, "workflow", "executionMode", value, SIZE_MAX, &name))
		return false;
	if (name == NULL)
		return true;
	if (strcmp(name, "OBSERVED") == 0)
		return wig_fail(d->err, "OBSERVED execution was removed; register the workflow as "
						"SERVER, LOCAL_SYNC or LOCAL_ASYNC");
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
	{
		if (strcmp(name, wig_mode_name(modes[i])) == 0)
		{
			d->def->mode = modes[i];
			return true;
		}
	}
	return wig_fail(d->err, "unknown executionMode '%s'; use DEFAULT, SERVER, LOCAL_SYNC or "
					"LOCAL_ASYNC", name);
}

static bool
decode_head(struct decoder *d, const json_t *root)
{
	struct wig_definition *def = d->def;
	int64_t		version;

	if (!get_text(d, "workflow", "name", json_object_get(root, "name"),
				  WIG_MAX_NAME, &def->name))
		return false;
	if (def->name == NULL)
		return wig_fail(d->err, "missing field 'name'");
	if (is_blank(def->name))
		return wig_fail(d->err, "workflow name is required");
	version = get_int(json_object_get(root, "version"), 0);
	if (version < 1)
		return wig_fail(d->err, "workflow '%s' needs a positive version, got %" PRId64,
						def->name, version);
	if (version > INT32_MAX)
		return wig_fail(d->err, "workflow '%s' needs a version up to 2147483647, got %" PRId64,
						def->name, version);
	def->version = (int32_t) version;
	return decode_mode(d, json_object_get(root, "executionMode"));
}

static bool
decode_root(struct decoder *d, const json_t *root)
{
	struct wig_definition *def = d->def;
	const char *start;

	if (!json_is_object(root))
		return wig_fail(d->err, "expected JSON object, got %s", json_type_name(root));
	if (!decode_head(d, root))
		return false;
	if (!get_text(d, "workflow", "startNode", json_object_get(root, "startNode"),
				  SIZE_MAX, &start))
		return false;
	if (start == NULL)
		return wig_fail(d->err, "missing field 'startNode'");
	if (!decode_nodes(d, json_object_get(root, "nodes")))
		return false;
	def->start = wig_definition_node(def, start, strlen(start));
	if (def->start < 0)
		return wig_fail(d->err, "startNode points at unknown node %s", start);
	return decode_queues(d, json_object_get(root, "queues")) &&
		decode_checkpoints(d, json_object_get(root, "checkpoints"));
}

bool
wig_definition_decode(struct wig_definition *def, const char *json, size_t len,
					  struct wig_error *err)
{
	struct decoder d = {.def = def, .err = err};
	struct wig_json_info info;
	json_error_t problem;
	json_t	   *root;
	bool		done;

	/* What jansson does not refuse: deep nesting, and text no door lets in. */
	if (!wig_json_check(json, len, &info, err))
		return false;

	/*
	 * Every number as a double: that is what clients send, whole multipliers may
	 * pass 64 bits, and no integer field reaches 2^53.
	 */
	root = json_loadb(json, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &problem);
	if (root == NULL)
	{
		wig_fail(err, "not valid JSON: %s", problem.text);
		if (err != NULL)
		{
			err->line = problem.line;
			err->column = problem.column;
		}
		return false;
	}
	done = decode_root(&d, root);
	json_decref(root);
	return done;
}
