/*
 * flow_json.c
 *	  The authoring shorthand written as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "flow.h"
#include "flow_tree.h"
#include "jsontext.h"

static struct wig_flow_value *
convert_scalar(struct wig_arena *arena, const json_t *json)
{
	struct wig_flow_value *value = wig_flow_value_new(arena, WIG_FLOW_SCALAR, 0, 0);
	char	   *text;

	if (value == NULL)
		return NULL;
	value->quoted = json_is_string(json);
	if (value->quoted)
		value->text = wig_arena_copy(arena, json_string_value(json), json_string_length(json));
	else
	{
		text = json_dumps(json, JSON_ENCODE_ANY);
		if (text == NULL)
			return NULL;
		value->text = wig_arena_copy(arena, text, strlen(text));
		free(text);
	}
	return value->text == NULL ? NULL : value;
}

/* The text was checked before, so its depth is bounded. NULL without memory. */
static struct wig_flow_value *
convert(struct wig_arena *arena, const json_t *json)
{
	struct wig_flow_value *value;
	const char *key;
	json_t	   *item;
	size_t		index;

	switch (json_typeof(json))
	{
		case JSON_NULL:
			return wig_flow_value_new(arena, WIG_FLOW_NULL, 0, 0);
		case JSON_ARRAY:
			value = wig_flow_value_new(arena, WIG_FLOW_LIST, 0, 0);
			if (value == NULL)
				return NULL;
			json_array_foreach(json, index, item)
			{
				if (!wig_flow_append(arena, value, NULL, convert(arena, item)))
					return NULL;
			}
			return value;
		case JSON_OBJECT:
			value = wig_flow_value_new(arena, WIG_FLOW_MAP, 0, 0);
			if (value == NULL)
				return NULL;
			json_object_foreach((json_t *) json, key, item)
			{
				const char *copy = wig_arena_copy(arena, key, strlen(key));

				if (copy == NULL || !wig_flow_append(arena, value, copy, convert(arena, item)))
					return NULL;
			}
			return value;
		default:
			return convert_scalar(arena, json);
	}
}

char *
wig_flow_from_json(const char *text, size_t len, struct wig_error *err)
{
	struct wig_json_info info;
	struct wig_arena *arena;
	struct wig_flow_value *root = NULL;
	json_error_t problem;
	json_t	   *json;
	char	   *result = NULL;

	if (!wig_json_check(text, len, &info, err))
		return NULL;
	json = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &problem);
	if (json == NULL)
	{
		wig_fail_at(err, problem.line, problem.column, "not valid JSON: %s", problem.text);
		return NULL;
	}
	arena = wig_arena_new();
	if (arena != NULL)
		root = convert(arena, json);
	json_decref(json);
	if (root == NULL)
		wig_fail(err, "out of memory");
	else
		result = wig_flow_compile(root->type == WIG_FLOW_NULL ? NULL : root, arena, err);
	wig_arena_free(arena);
	return result;
}
