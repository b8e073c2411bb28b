/*
 * source.c
 *	  Text and workflow definitions from files and standard input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "definition.h"
#include "flow.h"
#include "jsontext.h"
#include "source.h"
#include "value.h"

#define MAX_BYTES (16u << 20)

bool
source_read(const char *path, struct buf *out, struct wig_error *err)
{
	FILE	   *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	size_t		n;
	bool		done;

	if (file == NULL)
		return wig_fail(err, "cannot open %s: %s", path, strerror(errno));
	do
	{
		buf_reserve(out, 65536);
		n = fread(out->data + out->len, 1, 65536, file);
		out->len += n;
	} while (n > 0 && out->len <= MAX_BYTES);
	if (ferror(file))
		done = wig_fail(err, "cannot read %s: %s", path, strerror(errno));
	else
		done = out->len <= MAX_BYTES || wig_fail(err, "%s is larger than 16 MiB", path);
	if (file != stdin)
		fclose(file);
	return done;
}

bool
source_json(const char *argument, struct buf *out, struct wig_error *err)
{
	struct wig_json_info info;

	if (strcmp(argument, "-") == 0 || argument[0] == '@')
	{
		if (!source_read(argument[0] == '@' ? argument + 1 : argument, out, err))
			return false;
	}
	else
		buf_text(out, argument);
	return wig_json_check((const char *) out->data, out->len, &info, err);
}

bool
source_value(const char *argument, struct buf *value, struct wig_error *err)
{
	struct buf	text = BUF_INIT;
	bool		done = source_json(argument, &text, err) &&
		json_to_value((const char *) text.data, text.len, value, err);

	buf_free(&text);
	return done;
}

/* Is the text a JSON object with a member of this name? */
static bool
has_member(const struct buf *text, const char *quoted_key)
{
	struct wig_json_member member;
	size_t		pos = 0;

	while (wig_json_next_member((const char *) text->data, text->len, &pos, &member))
	{
		if (wig_json_key_equal(member.key, member.key_len, quoted_key, strlen(quoted_key)))
			return true;
	}
	return false;
}

/*
 * JSON's reader keeps no places. YAML's does, and when it finds the same fault in the
 * same text, the place is known.
 */
static void
find_place(const char *data, size_t len, struct wig_error *err)
{
	struct wig_error same = {0};
	char	   *json;

	if (err->line != 0)
		return;
	json = wig_flow_from_yaml(data, len, &same);
	if (json == NULL && strcmp(same.message, err->message) == 0)
		*err = same;
	free(json);
}

char *
source_definition(const struct buf *text, struct wig_error *err)
{
	const char *data = (const char *) text->data;
	struct wig_json_info info;
	struct wig_definition *def;
	char	   *json;

	/* YAML takes JSON too, but JSON's own reader says better what is wrong. */
	if (!wig_json_check(data, text->len, &info, NULL) || info.type != WIG_JSON_OBJECT)
		return wig_flow_from_yaml(data, text->len, err);
	if (!has_member(text, "\"nodes\""))
	{
		json = wig_flow_from_json(data, text->len, err);
		if (json == NULL)
			find_place(data, text->len, err);
		return json;
	}
	def = wig_definition_parse(data, text->len, err);
	if (def == NULL)
		return NULL;
	json = wig_definition_to_json(def, false);
	wig_definition_free(def);
	if (json == NULL)
		wig_fail(err, "out of memory");
	return json;
}
