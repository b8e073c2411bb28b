/*
 * flow_yaml.c
 *	  The authoring shorthand written as YAML.
 */
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "flow.h"
#include "flow_tree.h"

struct reader
{
	yaml_parser_t parser;
	const char *text;
	size_t		len;
	struct wig_arena *arena;
	struct wig_error *err;
};

static bool
fail_mark(struct reader *r, const yaml_mark_t *mark, const char *what)
{
	return wig_fail_at(r->err, (int) mark->line + 1, (int) mark->column + 1, "%s", what);
}

/* Does the line of the mark begin with blanks among which there is a tab? */
static bool
tab_indents(const struct reader *r, const yaml_mark_t *mark)
{
	const char *p = r->text;
	const char *end = r->text + r->len;

	for (size_t line = 0; line < mark->line && p != NULL; line++)
	{
		p = memchr(p, '\n', (size_t) (end - p));
		p = p == NULL ? NULL : p + 1;
	}
	while (p != NULL && p < end && *p == ' ')
		p++;
	return p != NULL && p < end && *p == '\t';
}

/*
 * The bytes could not be read, for which libyaml has no mark. Of UTF-16, which it
 * reads too, the offset is all there is.
 */
static bool
fail_bytes(struct reader *r)
{
	size_t		offset = r->parser.problem_offset;
	int			line = 1;
	int			column = 1;

	if (r->parser.encoding != YAML_UTF8_ENCODING)
		return wig_fail(r->err, "not valid YAML: %s at byte %zu", r->parser.problem, offset + 1);
	for (size_t i = 0; i < offset; i++)
	{
		unsigned char c = (unsigned char) r->text[i];

		if (c == '\n')
		{
			line++;
			column = 1;
		}
		else if ((c & 0xC0) != 0x80)
			column++;
	}
	return wig_fail_at(r->err, line, column, "not valid YAML: %s", r->parser.problem);
}

/* The next event; the caller deletes it. */
static bool
next_event(struct reader *r, yaml_event_t *event)
{
	if (yaml_parser_parse(&r->parser, event))
		return true;
	if (r->parser.error == YAML_MEMORY_ERROR)
		return wig_fail(r->err, "out of memory");
	if (r->parser.error == YAML_READER_ERROR)
		return fail_bytes(r);
	if (tab_indents(r, &r->parser.problem_mark))
		return fail_mark(r, &r->parser.problem_mark,
						 "not valid YAML: a tab in the indentation; use blanks");
	return wig_fail_at(r->err, (int) r->parser.problem_mark.line + 1,
					   (int) r->parser.problem_mark.column + 1, "not valid YAML: %s%s%s",
					   r->parser.problem == NULL ? "unreadable" : r->parser.problem,
					   r->parser.context == NULL ? "" : " ",
					   r->parser.context == NULL ? "" : r->parser.context);
}

static bool
is_null_word(const char *text)
{
	return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
		strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static struct wig_flow_value *
new_value(struct reader *r, enum wig_flow_type type, const yaml_event_t *event)
{
	struct wig_flow_value *value = wig_flow_value_new(r->arena, type,
													  (int) event->start_mark.line + 1,
													  (int) event->start_mark.column + 1);

	if (value == NULL)
		wig_fail(r->err, "out of memory");
	return value;
}

static struct wig_flow_value *
read_scalar(struct reader *r, const yaml_event_t *event)
{
	const char *text = (const char *) event->data.scalar.value;
	struct wig_flow_value *value;

	if (memchr(text, '\0', event->data.scalar.length) != NULL)
	{
		fail_mark(r, &event->start_mark, "U+0000 cannot be part of a workflow");
		return NULL;
	}
	value = new_value(r, WIG_FLOW_SCALAR, event);
	if (value == NULL)
		return NULL;
	value->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (!value->quoted && is_null_word(text))
		value->type = WIG_FLOW_NULL;
	value->text = wig_arena_copy(r->arena, text, event->data.scalar.length);
	if (value->text == NULL)
	{
		wig_fail(r->err, "out of memory");
		return NULL;
	}
	return value;
}

static struct wig_flow_value *read_value(struct reader *r, yaml_event_t *event, int depth);

/* The items behind the start of a list, up to its end. */
static struct wig_flow_value *
read_list(struct reader *r, const yaml_event_t *start, int depth)
{
	struct wig_flow_value *list = new_value(r, WIG_FLOW_LIST, start);

	while (list != NULL)
	{
		yaml_event_t event;
		struct wig_flow_value *item;

		if (!next_event(r, &event))
			return NULL;
		if (event.type == YAML_SEQUENCE_END_EVENT)
		{
			yaml_event_delete(&event);
			return list;
		}
		item = read_value(r, &event, depth + 1);
		if (item == NULL)
			return NULL;
		if (!wig_flow_append(r->arena, list, NULL, item))
		{
			wig_fail(r->err, "out of memory");
			return NULL;
		}
	}
	return NULL;
}

/* A mapping's key and value, the key's event being read. */
static bool
read_entry(struct reader *r, struct wig_flow_value *map, yaml_event_t *event, int depth)
{
	yaml_mark_t mark = event->start_mark;
	struct wig_flow_value *key;
	struct wig_flow_value *value;
	yaml_event_t value_event;

	if (event->type != YAML_SCALAR_EVENT)
	{
		fail_mark(r, &mark, "a key must be plain text");
		yaml_event_delete(event);
		return false;
	}
	key = read_scalar(r, event);
	yaml_event_delete(event);
	if (key == NULL)
		return false;
	if (strcmp(key->text, "<<") == 0)
		return fail_mark(r, &mark, "merge keys are not supported; write the values out");
	if (wig_flow_get(map, key->text) != NULL)
		return wig_fail_at(r->err, key->line, key->column, "key '%s' stands twice in one mapping",
						   key->text);
	if (!next_event(r, &value_event))
		return false;
	value = read_value(r, &value_event, depth + 1);
	if (value == NULL)
		return false;
	if (!wig_flow_append(r->arena, map, key->text, value))
		return wig_fail(r->err, "out of memory");
	map->last->line = key->line;
	map->last->column = key->column;
	return true;
}

static struct wig_flow_value *
read_map(struct reader *r, const yaml_event_t *start, int depth)
{
	struct wig_flow_value *map = new_value(r, WIG_FLOW_MAP, start);

	while (map != NULL)
	{
		yaml_event_t event;

		if (!next_event(r, &event))
			return NULL;
		if (event.type == YAML_MAPPING_END_EVENT)
		{
			yaml_event_delete(&event);
			return map;
		}
		if (!read_entry(r, map, &event, depth))
			return NULL;
	}
	return NULL;
}

/* The value that an event starts; deletes the event. NULL when refused. */
static struct wig_flow_value *
read_value(struct reader *r, yaml_event_t *event, int depth)
{
	struct wig_flow_value *value = NULL;

	if (depth > WIG_FLOW_MAX_DEPTH)
		fail_mark(r, &event->start_mark, "nested too deeply");
	else if (event->type == YAML_SCALAR_EVENT)
		value = read_scalar(r, event);
	else if (event->type == YAML_SEQUENCE_START_EVENT)
		value = read_list(r, event, depth);
	else if (event->type == YAML_MAPPING_START_EVENT)
		value = read_map(r, event, depth);
	else
		fail_mark(r, &event->start_mark, "aliases are not supported; write the value out");
	yaml_event_delete(event);
	return value;
}

/* Exactly one document; *root stays NULL when it is empty. */
static bool
read_document(struct reader *r, struct wig_flow_value **root)
{
	bool		in_document = false;

	for (;;)
	{
		yaml_event_t event;
		yaml_event_type_t type;
		yaml_mark_t mark;

		if (!next_event(r, &event))
			return false;
		type = event.type;
		mark = event.start_mark;
		if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_END_EVENT ||
			type == YAML_STREAM_END_EVENT || type == YAML_DOCUMENT_START_EVENT)
			yaml_event_delete(&event);
		if (type == YAML_STREAM_END_EVENT)
			return true;
		if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_END_EVENT)
			continue;
		if (type == YAML_DOCUMENT_START_EVENT)
		{
			if (in_document)
				return fail_mark(r, &mark, "one file holds one workflow; this is a second document");
			in_document = true;
			continue;
		}
		*root = read_value(r, &event, 1);
		if (*root == NULL)
			return false;
	}
}

struct wig_flow_value *
wig_flow_read_yaml(const char *text, size_t len, struct wig_arena *arena, struct wig_error *err)
{
	struct reader r = {.text = text == NULL ? "" : text, .len = len, .arena = arena, .err = err};
	struct wig_flow_value *root = NULL;
	bool		done;

	if (!yaml_parser_initialize(&r.parser))
	{
		wig_fail(err, "out of memory");
		return NULL;
	}
	/* libyaml insists on a pointer even to nothing. */
	yaml_parser_set_input_string(&r.parser, (const unsigned char *) r.text, len);
	done = read_document(&r, &root);
	yaml_parser_delete(&r.parser);
	if (!done)
		return NULL;
	if (root == NULL || root->type == WIG_FLOW_NULL)
	{
		wig_fail_at(err, 1, 1, "the document is empty");
		return NULL;
	}
	return root;
}

char *
wig_flow_from_yaml(const char *text, size_t len, struct wig_error *err)
{
	struct wig_arena *arena = wig_arena_new();
	struct wig_flow_value *root;
	char	   *result = NULL;

	if (arena == NULL)
	{
		wig_fail(err, "out of memory");
		return NULL;
	}
	root = wig_flow_read_yaml(text, len, arena, err);
	if (root != NULL)
		result = wig_flow_compile(root, arena, err);
	wig_arena_free(arena);
	return result;
}
