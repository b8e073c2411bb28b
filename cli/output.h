/*
 * output.h
 *	  What commands print: tables for people, JSON for programs.
 */
#ifndef WIGGLE_CLI_OUTPUT_H
#define WIGGLE_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "buf.h"

#define TABLE_MAX_COLUMNS 12

/*
 * A table collects rows of text and prints them with columns as wide as their
 * widest cell. Cells are copied; NULL is an empty cell.
 */
struct table
{
	int			ncolumns;
	int			nrows;			/* with the headings */
	char	  **cells;
};

/* headings NULL: none. */
extern void table_start(struct table *table, int ncolumns, const char *const *headings);
extern void table_row(struct table *table, const char *const *cells);
extern void table_print(const struct table *table, FILE *out);
extern void table_free(struct table *table);

/* Columns that a text takes on a terminal: its characters. */
extern size_t text_width(const char *text);

/* JSON, one piece after the other; objects and arrays put the commas themselves. */
extern void json_open(struct buf *out, const char *key, char bracket);
extern void json_close(struct buf *out, char bracket);

/* key NULL: an item of an array. A NULL text is null. */
extern void json_text(struct buf *out, const char *key, const char *text);
extern void json_number(struct buf *out, const char *key, int64_t number);
extern void json_flag(struct buf *out, const char *key, bool flag);
extern void json_raw(struct buf *out, const char *key, const char *json, size_t len);

/* Milliseconds since 1970, as format_time() writes them; null for 0. */
extern void json_time(struct buf *out, const char *key, int64_t ms);

/* Milliseconds since 1970 as "2026-10-01T12:00:00.123Z"; empty for 0. */
extern void format_time(int64_t ms, char out[40]);

/* A duration in its largest unit that leaves no fraction: "90s", "2h", "250ms". */
extern void format_duration(int64_t ms, char out[32]);

/* A JSON document with line breaks and two spaces a level; same text otherwise. */
extern void json_indent(const char *json, size_t len, struct buf *out);

/* Print the buffer and a newline to standard output. */
extern void print_buf(const struct buf *out);

#endif							/* WIGGLE_CLI_OUTPUT_H */
