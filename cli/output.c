/*
 * output.c
 *	  Tables, JSON and times.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output.h"

#define COLUMN_GAP 2

size_t
text_width(const char *text)
{
	size_t		n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char) *text & 0xC0) != 0x80;
	return n;
}

/* ---- tables ---- */

/* A cell's copy in which nothing moves the cursor. */
static char *
copy_cell(const char *text)
{
	char	   *copy = xstrdup(text == NULL ? "" : text);

	for (char *p = copy; *p != '\0'; p++)
	{
		if ((unsigned char) *p < 0x20 || *p == 0x7f)
			*p = ' ';
	}
	return copy;
}

void
table_start(struct table *table, int ncolumns, const char *const *headings)
{
	if (ncolumns > TABLE_MAX_COLUMNS)
		abort();				/* the widths would not fit */
	memset(table, 0, sizeof(*table));
	table->ncolumns = ncolumns;
	if (headings != NULL)
		table_row(table, headings);
}

void
table_row(struct table *table, const char *const *cells)
{
	size_t		used = (size_t) table->nrows * (size_t) table->ncolumns;

	table->cells = xrealloc(table->cells, (used + (size_t) table->ncolumns) * sizeof(char *));
	for (int i = 0; i < table->ncolumns; i++)
		table->cells[used + (size_t) i] = copy_cell(cells[i]);
	table->nrows++;
}

void
table_print(const struct table *table, FILE *out)
{
	size_t		widths[TABLE_MAX_COLUMNS] = {0};

	for (int i = 0; i < table->nrows * table->ncolumns; i++)
	{
		size_t		width = text_width(table->cells[i]);

		if (width > widths[i % table->ncolumns])
			widths[i % table->ncolumns] = width;
	}
	for (int i = 0; i < table->nrows * table->ncolumns; i++)
	{
		const char *cell = table->cells[i];
		bool		last = i % table->ncolumns == table->ncolumns - 1;

		fputs(cell, out);
		if (last)
			fputc('\n', out);
		else
			fprintf(out, "%*s", (int) (widths[i % table->ncolumns] - text_width(cell)) + COLUMN_GAP, "");
	}
}

void
table_free(struct table *table)
{
	for (int i = 0; i < table->nrows * table->ncolumns; i++)
		free(table->cells[i]);
	free(table->cells);
	memset(table, 0, sizeof(*table));
}

/* ---- JSON ---- */

/* The comma and the key before a value. */
static void
start_value(struct buf *out, const char *key)
{
	if (out->len > 0 && strchr("{[:", (char) out->data[out->len - 1]) == NULL)
		buf_byte(out, ',');
	if (key == NULL)
		return;
	buf_json(out, key);
	buf_byte(out, ':');
}

void
json_open(struct buf *out, const char *key, char bracket)
{
	start_value(out, key);
	buf_byte(out, (uint8_t) bracket);
}

void
json_close(struct buf *out, char bracket)
{
	buf_byte(out, (uint8_t) bracket);
}

void
json_text(struct buf *out, const char *key, const char *text)
{
	start_value(out, key);
	if (text == NULL)
		buf_text(out, "null");
	else
		buf_json(out, text);
}

void
json_number(struct buf *out, const char *key, int64_t number)
{
	start_value(out, key);
	buf_printf(out, "%" PRId64, number);
}

void
json_raw(struct buf *out, const char *key, const char *json, size_t len)
{
	start_value(out, key);
	buf_append(out, json, len);
}

void
json_flag(struct buf *out, const char *key, bool flag)
{
	start_value(out, key);
	buf_text(out, flag ? "true" : "false");
}

void
json_time(struct buf *out, const char *key, int64_t ms)
{
	char		time[40];

	format_time(ms, time);
	json_text(out, key, time[0] == '\0' ? NULL : time);
}

static void
break_line(struct buf *out, int depth)
{
	buf_byte(out, '\n');
	for (int i = 0; i < depth; i++)
		buf_text(out, "  ");
}

void
json_indent(const char *json, size_t len, struct buf *out)
{
	bool		in_string = false;
	bool		fresh = false;	/* a bracket was opened and nothing stands in it yet */
	int			depth = 0;

	for (size_t i = 0; i < len; i++)
	{
		char		c = json[i];

		if (in_string)
		{
			buf_byte(out, (uint8_t) c);
			if (c == '\\' && i + 1 < len)
				buf_byte(out, (uint8_t) json[++i]);
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
			continue;
		if (c == '}' || c == ']')
		{
			depth--;
			if (!fresh)
				break_line(out, depth);
		}
		else if (fresh)
			break_line(out, depth);
		buf_byte(out, (uint8_t) c);
		in_string = c == '"';
		fresh = c == '{' || c == '[';
		if (fresh)
			depth++;
		else if (c == ':')
			buf_byte(out, ' ');
		else if (c == ',')
			break_line(out, depth);
	}
}

/* ---- the rest ---- */

void
format_time(int64_t ms, char out[40])
{
	time_t		seconds = (time_t) (ms / 1000);
	struct tm	utc;
	char		stamp[32];

	out[0] = '\0';
	if (ms <= 0 || gmtime_r(&seconds, &utc) == NULL ||
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return;
	snprintf(out, 40, "%s.%03dZ", stamp, (int) (ms % 1000));
}

void
format_duration(int64_t ms, char out[32])
{
	if (ms != 0 && ms % 3600000 == 0)
		snprintf(out, 32, "%" PRId64 "h", ms / 3600000);
	else if (ms != 0 && ms % 60000 == 0)
		snprintf(out, 32, "%" PRId64 "m", ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(out, 32, "%" PRId64 "s", ms / 1000);
	else
		snprintf(out, 32, "%" PRId64 "ms", ms);
}

void
print_buf(const struct buf *out)
{
	fwrite(out->data, 1, out->len, stdout);
	fputc('\n', stdout);
}
