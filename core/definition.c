/*
 * definition.c
 *	  The life of a definition, and looking things up in it.
 */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "definition_impl.h"

static const char *const kind_names[] = {
	[WIG_TASK] = "TASK",
	[WIG_PREDICATE] = "PREDICATE",
	[WIG_SLEEP] = "SLEEP",
	[WIG_SIGNAL] = "SIGNAL",
	[WIG_SUB_WORKFLOW] = "SUB_WORKFLOW",
	[WIG_FORK] = "FORK",
	[WIG_DYN_FORK] = "DYN_FORK",
	[WIG_JOIN] = "JOIN",
	[WIG_END] = "END"
};

static const char *const mode_names[] = {
	[WIG_MODE_DEFAULT] = "DEFAULT",
	[WIG_MODE_SERVER] = "SERVER",
	[WIG_MODE_LOCAL_SYNC] = "LOCAL_SYNC",
	[WIG_MODE_LOCAL_ASYNC] = "LOCAL_ASYNC"
};

const char *
wig_kind_name(enum wig_kind kind)
{
	return kind_names[kind];
}

const char *
wig_mode_name(enum wig_mode mode)
{
	return mode_names[mode];
}

bool
wig_kind_from_name(const char *name, enum wig_kind *kind)
{
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
	{
		if (strcmp(name, kind_names[i]) == 0)
		{
			*kind = (enum wig_kind) i;
			return true;
		}
	}
	return false;
}

int
wig_compare_utf16(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t		len = a_len < b_len ? a_len : b_len;

	for (size_t i = 0; i < len; i++)
	{
		unsigned char x = (unsigned char) a[i];
		unsigned char y = (unsigned char) b[i];

		if (x == y)
			continue;

		/*
		 * UTF-8 sorts by code point. UTF-16 puts what lies beyond U+FFFF
		 * (lead bytes from F0), as surrogates, before U+E000..U+FFFF (lead
		 * bytes EE and EF).
		 */
		if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0))
			return x >= 0xF0 ? -1 : 1;
		return x < y ? -1 : 1;
	}
	if (a_len == b_len)
		return 0;
	return a_len < b_len ? -1 : 1;
}

int
wig_definition_node(const struct wig_definition *def, const char *id, size_t len)
{
	int			low = 0;
	int			high = def->nnodes - 1;

	while (low <= high)
	{
		int			middle = low + (high - low) / 2;
		const char *other = def->nodes[middle].id;
		int			order = wig_compare_utf16(id, len, other, strlen(other));

		if (order == 0)
			return middle;
		if (order < 0)
			high = middle - 1;
		else
			low = middle + 1;
	}
	return -1;
}

struct wig_definition *
wig_definition_parse(const char *json, size_t len, struct wig_error *err)
{
	struct wig_definition *def = calloc(1, sizeof(*def));

	if (def == NULL || (def->arena = wig_arena_new()) == NULL)
	{
		free(def);
		wig_fail(err, "out of memory");
		return NULL;
	}
	if (!wig_definition_decode(def, json, len, err) || !wig_definition_check(def, err))
	{
		wig_definition_free(def);
		return NULL;
	}
	return def;
}

void
wig_definition_free(struct wig_definition *def)
{
	if (def == NULL)
		return;
	wig_arena_free(def->arena);
	free(def);
}
