/*
 * graph.h
 *	  Definitions, read once per backend and kept compiled.
 */
#ifndef WIGGLE_GRAPH_H
#define WIGGLE_GRAPH_H

#include "wiggle.h"

#include "definition.h"
#include "store.h"

typedef struct WigGraph
{
	int32		definition_id;	/* wf_definition.id */
	const struct wig_definition *def;
} WigGraph;

/* The graph of a version, NULL when it is not registered. Valid for the life of
 * the backend. */
extern const WigGraph *wig_graph_get(WigStore *store, const char *workflow, int32 version);

/* The highest registered version of a workflow, 0 when there is none. */
extern int32 wig_graph_latest(WigStore *store, const char *workflow);

static inline const struct wig_node *
wig_graph_node(const WigGraph *graph, int node)
{
	return &graph->def->nodes[node];
}

#endif							/* WIGGLE_GRAPH_H */
