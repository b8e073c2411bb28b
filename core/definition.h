/*
 * definition.h
 *	  A workflow definition: decoded, normalised, checked, written, fingerprinted.
 *
 * struct wig_definition is the compiled graph as well: edges are indices into
 * nodes[], which is sorted by id. It is immutable once made, lives in memory of
 * its own (malloc) and is freed as a whole.
 */
#ifndef WIGGLE_CORE_DEFINITION_H
#define WIGGLE_CORE_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum wig_kind
{
	WIG_TASK, WIG_PREDICATE, WIG_SLEEP, WIG_SIGNAL, WIG_SUB_WORKFLOW,
	WIG_FORK, WIG_DYN_FORK, WIG_JOIN, WIG_END
};

enum wig_mode
{
	WIG_MODE_DEFAULT, WIG_MODE_SERVER, WIG_MODE_LOCAL_SYNC, WIG_MODE_LOCAL_ASYNC
};

/* All delays in milliseconds. A node without a policy gets wig_retry_forever. */
struct wig_retry
{
	int32_t		max_attempts;
	int64_t		initial_ms;
	double		multiplier;
	int64_t		max_ms;			/* <= 0: no cap */
	double		jitter;
};

struct wig_node
{
	const char *id;
	enum wig_kind kind;
	const char *name;			/* NULL allowed */
	const char *activity;		/* "<workflow>#<step>", child name, or NULL */
	const char *queue;			/* NULL: only workers that name no queue */
	bool		has_retry;
	struct wig_retry retry;		/* wig_retry_forever when !has_retry */
	int64_t		sleep_ms;		/* SLEEP duration, SIGNAL deadline, else 0 */
	int			next;			/* index into nodes[], -1 = none */
	int			alt;
	int		   *branches;
	int			nbranches;
	int			join;			/* FORK, DYN_FORK: where its branches meet, -1 = none */
	int32_t		expected;		/* JOIN width, 0 = dynamic */
	bool		success;		/* END */
	const char *reason;
	const char *items_key;		/* DYN_FORK */
	const char *item_key;
	const char **arm_names;		/* fork combine */
	int			narms;
	const char *collect_key;	/* forEach combine */
	int32_t		loop_budget;	/* 0 = no guard, -1 = engine default */
	bool		compensable;
	bool		legacy_combine;	/* came as TASK.itemsKey = JSON text */
	bool		checkpoint;
};

struct wig_definition
{
	const char *name;
	int32_t		version;
	enum wig_mode mode;
	int			start;			/* index into nodes[] */
	struct wig_node *nodes;
	int			nnodes;
	const char **queues;
	int			nqueues;
	void	   *arena;			/* owns everything above */
};

extern const struct wig_retry wig_retry_forever;

/*
 * Decode a definition object (upper-level keys name, version, startNode, nodes,
 * queues, executionMode, checkpoints), normalise it (legacy combines, unknown
 * keys dropped, defaults filled) and validate the whole graph: names, edges,
 * obligations of each kind, reachability from the start, an END reached,
 * joins that match their forks, unique step names. NULL with *err on refusal.
 */
extern struct wig_definition *wig_definition_parse(const char *json, size_t len,
												   struct wig_error *err);
extern void wig_definition_free(struct wig_definition *def);

/*
 * The normalised definition as JSON text (malloc, terminated; caller frees), or
 * NULL without memory. With show_legacy, combines carry both encodings (typed
 * fields and itemsKey): what GetWorkflow shows. Without, each combine is written
 * in the encoding in which it came, so that reading it again gives the same
 * definition, legacy_combine included: what storage keeps.
 */
extern char *wig_definition_to_json(const struct wig_definition *def, bool show_legacy);

#define WIG_FINGERPRINT_ALGO "sha256-canonical-v1"

/*
 * Lowercase hex and a terminator. Version and queues are not part of it. False
 * only without memory.
 */
extern bool wig_definition_fingerprint(const struct wig_definition *def, char out[65]);

/* Index of a node by its id, -1 when there is none. Binary search. */
extern int	wig_definition_node(const struct wig_definition *def, const char *id, size_t len);

/*
 * Delay in ms before the next attempt after `failures` >= 1 failures, never
 * negative, capped before it can overflow (at WIG_MAX_DELAY_MS). unit is a
 * uniform random number in [0,1) for the jitter.
 */
#define WIG_MAX_DELAY_MS	INT64_C(3155760000000)	/* one hundred years */
extern int64_t wig_retry_backoff(const struct wig_retry *retry, int64_t failures, double unit);

extern const char *wig_kind_name(enum wig_kind kind);
extern const char *wig_mode_name(enum wig_mode mode);
extern bool wig_kind_from_name(const char *name, enum wig_kind *kind);

#endif							/* WIGGLE_CORE_DEFINITION_H */
