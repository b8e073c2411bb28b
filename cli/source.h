/*
 * source.h
 *	  Text and workflow definitions from files and standard input.
 */
#ifndef WIGGLE_CLI_SOURCE_H
#define WIGGLE_CLI_SOURCE_H

#include <stdbool.h>

#include "buf.h"
#include "error.h"

/* A whole file, "-" is standard input; at most 16 MiB. */
extern bool source_read(const char *path, struct buf *out, struct wig_error *err);

/* JSON from the command line: the text itself, "@file", or "-" for standard input. */
extern bool source_json(const char *argument, struct buf *out, struct wig_error *err);

/* The same, as the bytes of a protobuf Value. */
extern bool source_value(const char *argument, struct buf *value, struct wig_error *err);

/*
 * Compile a workflow's text to a checked definition's JSON text (malloc). It may be
 * the authoring shorthand, as YAML or JSON, or a whole definition as JSON.
 */
extern char *source_definition(const struct buf *text, struct wig_error *err);

#endif							/* WIGGLE_CLI_SOURCE_H */
