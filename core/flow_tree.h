/*
 * flow_tree.h
 *	  An authoring document as a tree, whether it was written in YAML or JSON.
 */
#ifndef WIGGLE_CORE_FLOW_TREE_H
#define WIGGLE_CORE_FLOW_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "error.h"

/* Deeper documents are refused: whatever reads the tree may recurse. */
#define WIG_FLOW_MAX_DEPTH 64

enum wig_flow_type
{
	WIG_FLOW_NULL,
	WIG_FLOW_SCALAR,
	WIG_FLOW_LIST,
	WIG_FLOW_MAP
};

struct wig_flow_entry;

struct wig_flow_value
{
	enum wig_flow_type type;
	int			line;			/* 1-based, 0 = unknown */
	int			column;
	const char *text;			/* of a scalar, as written */
	bool		quoted;			/* a scalar that cannot be a number */
	struct wig_flow_entry *first;	/* of a list or mapping, in document order */
	struct wig_flow_entry *last;
	int			n;
};

struct wig_flow_entry
{
	const char *key;			/* NULL in a list */
	int			line;			/* of the key; 0 = unknown */
	int			column;
	struct wig_flow_value *value;
	struct wig_flow_entry *next;
};

/* NULL without memory. */
extern struct wig_flow_value *wig_flow_value_new(struct wig_arena *arena,
												 enum wig_flow_type type, int line, int column);

/* Append to a list (key NULL) or mapping; false without memory. */
extern bool wig_flow_append(struct wig_arena *arena, struct wig_flow_value *parent,
							const char *key, struct wig_flow_value *value);

/* The value of a key, NULL when the mapping has none. */
extern struct wig_flow_value *wig_flow_get(const struct wig_flow_value *map, const char *key);

/*
 * Read one YAML document into a tree; NULL with *err, position included, when it
 * is not YAML, is empty, or uses what the shorthand has no use for (aliases,
 * merge keys, several documents, a key twice).
 */
extern struct wig_flow_value *wig_flow_read_yaml(const char *text, size_t len,
												 struct wig_arena *arena,
												 struct wig_error *err);

/*
 * Compile a document's root (NULL: an empty document) into a checked definition
 * and return its JSON text (malloc). The arena is used for whatever is needed in
 * between.
 */
extern char *wig_flow_compile(const struct wig_flow_value *root, struct wig_arena *arena,
							  struct wig_error *err);

#endif							/* WIGGLE_CORE_FLOW_TREE_H */
