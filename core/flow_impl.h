/*
 * flow_impl.h
 *	  What the files of the flow compiler share among themselves.
 */
#ifndef WIGGLE_CORE_FLOW_IMPL_H
#define WIGGLE_CORE_FLOW_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "definition.h"
#include "error.h"
#include "flow_tree.h"

/* A node being built: edges are pointers until everything is in place. */
struct draft
{
	char		id[24];
	enum wig_kind kind;
	const char *name;
	const char *activity;
	const char *queue;
	const struct wig_retry *retry;
	int64_t		sleep_ms;
	struct draft *next;
	struct draft *alt;
	struct draft **branches;
	int			nbranches;
	int			expected;
	const char *reason;
	const char *items_key;
	const char *item_key;
	const char **arm_names;
	int			narms;
	const char *collect_key;
	int			loop_budget;
	bool		compensable;
	struct draft *later;		/* the node created after this one */
};

/* An edge that still needs a target. */
struct open_end
{
	struct draft **edge;
	struct open_end *next;
};

/* A run of steps being laid out: the whole flow, a branch, a case, a body. */
struct stream
{
	struct draft *start;
	struct open_end *open;
	struct draft *join;			/* of the enclosing fork, NULL outside of any */
};

struct compiler
{
	struct wig_arena *arena;
	struct wig_error *err;
	const char *workflow;
	const char *default_queue;
	struct draft *first;
	struct draft *last;
	int			nnodes;
};

typedef const struct wig_flow_value value_t;

#define FAIL(c, value, ...) \
	wig_fail_at((c)->err, (value)->line, (value)->column, __VA_ARGS__)

/* Memory from the arena; NULL, with the error filled, when there is none. */
extern void *wig_flow_allocate(struct compiler *c, size_t size);

/*
 * Readers of a document's values. Each fills the error, naming key, value and
 * place, and returns false or NULL when the value is missing or unfit.
 */
extern bool wig_flow_need_map(struct compiler *c, value_t *value, const char *what);
extern value_t *wig_flow_need_list(struct compiler *c, value_t *map, const char *key,
								   const char *what);
extern const char *wig_flow_need_text(struct compiler *c, value_t *map, const char *key);
extern bool wig_flow_need_integer(struct compiler *c, value_t *map, const char *key,
								  int64_t *result);
extern bool wig_flow_need_duration(struct compiler *c, value_t *map, const char *key,
								   int64_t *ms);

/*
 * Every key of the mapping is one of the known (NULL-terminated) ones. `of` is a
 * phrase for the message, " of step 'x'" or "".
 */
extern bool wig_flow_check_keys(struct compiler *c, value_t *map, const char *const *known,
								const char *of);

/* What a key that is not among the known (NULL-terminated) ones was meant to be; or NULL. */
extern const char *wig_flow_meant(const char *key, const char *const *known);

/* The operators that a key may stand beside, as a phrase; NULL for any other word. */
extern const char *wig_flow_goes_with(const char *key);

/* Absent and null give NULL in *text. */
extern bool wig_flow_optional_text(struct compiler *c, value_t *map, const char *key,
								   const char **text);

/* Absent and null are false. */
extern bool wig_flow_optional_bool(struct compiler *c, value_t *map, const char *key,
								   bool *result);

/* Texts of more than max characters are refused at their place. */
extern bool wig_flow_check_width(struct compiler *c, value_t *where, const char *what,
								 const char *text, size_t max);

/* The retry policy beside an operator; Wiggle's default is to retry for ever. */
extern const struct wig_retry *wig_flow_parse_retry(struct compiler *c, value_t *step);

/*
 * Nodes and the edges between them (flow_node.c). Whatever returns a pointer or a
 * bool gives NULL or false, with the error filled, when it cannot: no memory, a
 * name given twice or too long, too many nodes.
 */

/* A node, numbered in the order of creation. */
extern struct draft *wig_flow_new_node(struct compiler *c, value_t *where, enum wig_kind kind,
									   const char *name);

/* A node that workers run: TASK or PREDICATE. Without a queue, the workflow's. */
extern struct draft *wig_flow_new_work(struct compiler *c, value_t *where, enum wig_kind kind,
									   const char *name, const char *queue,
									   const struct wig_retry *retry);

/* No step may be called as the compensator of another one is. */
extern bool wig_flow_check_undo(struct compiler *c, value_t *where, const struct draft *node);

/* Leave an edge to be wired to whatever comes next. */
extern bool wig_flow_open_edge(struct compiler *c, struct stream *s, struct draft **edge);

/* What another stream left open is left open by this one too. */
extern void wig_flow_absorb(struct stream *s, struct stream *other);

/* Point every open edge at a node. */
extern void wig_flow_wire_open(struct stream *s, struct draft *target);

/* Lead the stream to a node; the first one is where the stream starts. */
extern void wig_flow_attach(struct stream *s, struct draft *node);

/* The text "<a><separator><b>". */
extern const char *wig_flow_concat(struct compiler *c, const char *a, const char *separator,
								   const char *b);

/* The nodes as a definition's JSON text (malloc), NULL without memory. */
extern char *wig_flow_write(const struct compiler *c, const struct draft *start,
							int64_t version);

#endif							/* WIGGLE_CORE_FLOW_IMPL_H */
