/*
 * flow_value.c
 *	  Reading an authoring document's values.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flow_impl.h"

void *
wig_flow_allocate(struct compiler *c, size_t size)
{
	void	   *memory = wig_arena_alloc(c->arena, size);

	if (memory == NULL)
		wig_fail(c->err, "out of memory");
	return memory;
}

static const char *
type_name(value_t *value)
{
	switch (value->type)
	{
		case WIG_FLOW_LIST:
			return "a list";
		case WIG_FLOW_MAP:
			return "a mapping";
		case WIG_FLOW_SCALAR:
			return "a single value";
		default:
			return "null";
	}
}

static bool
is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

bool
wig_flow_need_map(struct compiler *c, value_t *value, const char *what)
{
	return value->type == WIG_FLOW_MAP ||
		FAIL(c, value, "%s must be a mapping, got %s", what, type_name(value));
}

bool
wig_flow_check_keys(struct compiler *c, value_t *map, const char *const *known, const char *of)
{
	for (const struct wig_flow_entry *entry = map->first; entry != NULL; entry = entry->next)
	{
		const char *near;
		int			i = 0;

		while (known[i] != NULL && strcmp(known[i], entry->key) != 0)
			i++;
		if (known[i] != NULL)
			continue;
		near = wig_flow_meant(entry->key, known);
		return wig_fail_at(c->err, entry->line, entry->column, "unknown key '%.60s'%.120s%s%s%s",
						   entry->key, of, near == NULL ? "" : "; did you mean '",
						   near == NULL ? "" : near, near == NULL ? "" : "'?");
	}
	return true;
}

/* A list under a key of map; of at least one item unless it may be empty. */
value_t *
wig_flow_need_list(struct compiler *c, value_t *map, const char *key, const char *what)
{
	value_t    *list = wig_flow_get(map, key);

	if (list == NULL || list->type == WIG_FLOW_NULL)
		FAIL(c, map, "'%s' is required", what);
	else if (list->type != WIG_FLOW_LIST)
		FAIL(c, list, "'%s' must be a list, got %s", what, type_name(list));
	else
		return list;
	return NULL;
}

/* A value that must be text and not blank. */
static const char *
need_text_value(struct compiler *c, value_t *owner, value_t *value, const char *key)
{
	if (value == NULL || value->type == WIG_FLOW_NULL)
		FAIL(c, owner, "'%s' is required", key);
	else if (value->type != WIG_FLOW_SCALAR)
		FAIL(c, value, "'%s' must be text, got %s", key, type_name(value));
	else if (is_blank(value->text))
		FAIL(c, value, "'%s' is required, and here it is empty", key);
	else
		return value->text;
	return NULL;
}

const char *
wig_flow_need_text(struct compiler *c, value_t *map, const char *key)
{
	return need_text_value(c, map, wig_flow_get(map, key), key);
}

bool
wig_flow_optional_text(struct compiler *c, value_t *map, const char *key, const char **text)
{
	value_t    *value = wig_flow_get(map, key);

	*text = NULL;
	if (value == NULL || value->type == WIG_FLOW_NULL)
		return true;
	*text = need_text_value(c, map, value, key);
	return *text != NULL;
}

bool
wig_flow_optional_bool(struct compiler *c, value_t *map, const char *key, bool *result)
{
	value_t    *value = wig_flow_get(map, key);
	bool		is_word = value != NULL && value->type == WIG_FLOW_SCALAR && !value->quoted;

	*result = is_word && strcmp(value->text, "true") == 0;
	return *result || value == NULL || value->type == WIG_FLOW_NULL ||
		(is_word && strcmp(value->text, "false") == 0) ||
		FAIL(c, value, "'%s' must be true or false", key);
}

bool
wig_flow_check_width(struct compiler *c, value_t *where, const char *what, const char *text,
					 size_t max)
{
	size_t		n = 0;

	for (const char *p = text; *p != '\0'; p++)
		n += ((unsigned char) *p & 0xC0) != 0x80;
	return n <= max ||
		FAIL(c, where, "%s is longer than %zu characters: '%s'", what, max, text);
}

bool
wig_flow_need_integer(struct compiler *c, value_t *map, const char *key, int64_t *result)
{
	value_t    *value = wig_flow_get(map, key);
	char	   *end = NULL;

	if (value != NULL && value->type == WIG_FLOW_SCALAR && !value->quoted)
	{
		errno = 0;
		*result = strtoll(value->text, &end, 10);
	}
	if (end == NULL || end == value->text || *end != '\0' || errno != 0)
		return FAIL(c, value == NULL ? map : value, "'%s' must be an integer", key);
	return true;
}

static bool
optional_number(struct compiler *c, value_t *map, const char *key, double *result)
{
	value_t    *value = wig_flow_get(map, key);
	char	   *end = NULL;

	if (value == NULL)
		return true;
	if (value->type == WIG_FLOW_SCALAR && !value->quoted)
		*result = strtod(value->text, &end);
	if (end == NULL || end == value->text || *end != '\0' || !isfinite(*result))
		return FAIL(c, value, "'%s' must be a number", key);
	return true;
}

/* "<digits><ms|s|m|h>", spaces allowed around and between. */
static bool
parse_duration(struct compiler *c, value_t *value, const char *text, int64_t *ms)
{
	static const struct
	{
		const char *unit;
		int64_t		factor;
	}			units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	const char *p = text + strspn(text, " \t");
	size_t		digits = strspn(p, "0123456789");
	const char *unit = p + digits + strspn(p + digits, " \t");
	size_t		unit_len = strcspn(unit, " \t");
	int64_t		n;

	errno = 0;
	n = strtoll(p, NULL, 10);
	for (size_t i = 0; digits > 0 && i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strlen(units[i].unit) != unit_len || strncmp(unit, units[i].unit, unit_len) != 0 ||
			!is_blank(unit + unit_len))
			continue;
		if (errno != 0 || n > WIG_MAX_DELAY_MS / units[i].factor)
			return FAIL(c, value, "duration '%s' is longer than one hundred years", text);
		*ms = n * units[i].factor;
		return true;
	}
	return FAIL(c, value, "bad duration '%s' (use <number> with unit ms|s|m|h)", text);
}

bool
wig_flow_need_duration(struct compiler *c, value_t *map, const char *key, int64_t *ms)
{
	const char *text = wig_flow_need_text(c, map, key);

	return text != NULL && parse_duration(c, wig_flow_get(map, key), text, ms);
}

static bool
parse_retry_map(struct compiler *c, value_t *value, struct wig_retry *retry)
{
	static const char *const keys[] = {"max", "backoff", "multiplier", "maxBackoff", "jitter", NULL};
	int64_t		max = 0;

	*retry = (struct wig_retry) {.multiplier = 1.0};
	if (!wig_flow_need_map(c, value, "retry") ||
		!wig_flow_check_keys(c, value, keys, " of retry") ||
		!wig_flow_need_integer(c, value, "max", &max) ||
		!wig_flow_need_duration(c, value, "backoff", &retry->initial_ms) ||
		!optional_number(c, value, "multiplier", &retry->multiplier) ||
		!optional_number(c, value, "jitter", &retry->jitter))
		return false;
	if (wig_flow_get(value, "maxBackoff") != NULL &&
		!wig_flow_need_duration(c, value, "maxBackoff", &retry->max_ms))
		return false;
	if (max < 1 || max > INT32_MAX)
		return FAIL(c, value, "maxAttempts must be >= 1 and <= 2147483647, got %" PRId64 " ('max')",
					max);
	retry->max_attempts = (int32_t) max;
	if (!(retry->multiplier >= 1.0))
		return FAIL(c, value, "multiplier must be >= 1.0, got %g", retry->multiplier);
	if (!(retry->jitter >= 0.0 && retry->jitter <= 1.0))
		return FAIL(c, value, "jitter must be between 0 and 1, got %g", retry->jitter);
	return true;
}

const struct wig_retry *
wig_flow_parse_retry(struct compiler *c, value_t *step)
{
	static const struct wig_retry none = {.max_attempts = 1, .multiplier = 1.0};
	value_t    *value = wig_flow_get(step, "retry");
	struct wig_retry *retry;

	if (value == NULL || value->type == WIG_FLOW_NULL)
		return &wig_retry_forever;
	if (value->type == WIG_FLOW_SCALAR)
	{
		if (strcmp(value->text, "none") == 0)
			return &none;
		if (strcmp(value->text, "forever") == 0)
			return &wig_retry_forever;
		FAIL(c, value, "unknown retry preset '%s' (use none, forever, or a map)", value->text);
		return NULL;
	}
	retry = wig_flow_allocate(c, sizeof(*retry));
	return retry != NULL && parse_retry_map(c, value, retry) ? retry : NULL;
}
