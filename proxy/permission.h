/*
 * permission.h
 *	  What a call needs, and whether a role allows it. Pure.
 *
 * A permission is an action, alone for every scope, or with a scope behind a colon: the
 * name of a workflow (of a queue for task.poll), or a prefix with .* behind it: acme.*
 * allows acme.orders, not acme. "*" alone allows everything.
 */
#ifndef WIGGLE_PROXY_PERMISSION_H
#define WIGGLE_PROXY_PERMISSION_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

enum need_kind
{
	NEED_UNKNOWN,				/* nobody said: the call is refused */
	NEED_NOTHING,				/* no credential either */
	NEED_ACTION,				/* the action on every scope */
	NEED_SOME,					/* the action on any scope */
	NEED_NAMED,					/* on what a field of the request names */
	NEED_FILTER,				/* the same, on every scope when it names nothing */
	NEED_EACH,					/* on everything that a list names, every scope when it is empty */
	NEED_INSTANCE,				/* on the workflow of the instance that a field names */
	NEED_SCHEDULE,				/* on the workflow of the schedule that a field names */
	NEED_DEFINITION,			/* on the workflow that the definition in a field names */
	NEED_MANAGER				/* the action, and that permissions are enforced at all */
};

struct need
{
	enum need_kind kind;
	const char *action;
	const ProtobufCMessageDescriptor *request;	/* for those that look at a field */
	const char *field;
};

/* A role's permissions. Does one of them allow the action on the scope (NULL: on all)? */
extern bool permission_allows(const char *const *granted, int n, const char *action, const char *scope);

/* On any scope at all? */
extern bool permission_allows_some(const char *const *granted, int n, const char *action);

#endif							/* WIGGLE_PROXY_PERMISSION_H */
