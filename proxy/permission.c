/*
 * permission.c
 *	  What a call needs, and whether a role allows it.
 */
#include <string.h>

#include "permission.h"

/* The scope of a permission for the action: "" for all, NULL when it is for another one. */
static const char *
scope_of(const char *permission, const char *action)
{
	size_t		len = strlen(action);

	if (strcmp(permission, "*") == 0)
		return "";
	if (strncmp(permission, action, len) != 0)
		return NULL;
	if (permission[len] == '\0')
		return "";
	return permission[len] == ':' ? permission + len + 1 : NULL;
}

static bool
covers(const char *granted, const char *scope)
{
	size_t		len = strlen(granted);

	if (strcmp(granted, scope) == 0)
		return true;
	return len > 2 && strcmp(granted + len - 2, ".*") == 0 && strncmp(granted, scope, len - 1) == 0;
}

bool
permission_allows(const char *const *granted, int n, const char *action, const char *scope)
{
	for (int i = 0; i < n; i++)
	{
		const char *of = scope_of(granted[i], action);

		if (of != NULL && (*of == '\0' || (scope != NULL && covers(of, scope))))
			return true;
	}
	return false;
}

bool
permission_allows_some(const char *const *granted, int n, const char *action)
{
	for (int i = 0; i < n; i++)
		if (scope_of(granted[i], action) != NULL)
			return true;
	return false;
}
