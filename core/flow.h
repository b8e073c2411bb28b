/*
 * flow.h
 *	  The authoring shorthand: YAML, or the same shape as JSON, to a definition.
 */
#ifndef WIGGLE_CORE_FLOW_H
#define WIGGLE_CORE_FLOW_H

#include <stddef.h>

#include "error.h"

/*
 * Compile a document {workflow, version, defaultQueue, steps} into a
 * definition's JSON text (malloc, terminated; caller frees). NULL with *err,
 * line and column included for YAML, when it is refused. Node ids are
 * allocated in the order in which Wiggle's own compiler does it, so that
 * fingerprints agree.
 */
extern char *wig_flow_from_yaml(const char *text, size_t len, struct wig_error *err);
extern char *wig_flow_from_json(const char *text, size_t len, struct wig_error *err);

#endif							/* WIGGLE_CORE_FLOW_H */
