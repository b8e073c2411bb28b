/*
 * flow_tree.c
 *	  Building and searching an authoring document's tree.
 */
#include <string.h>

#include "flow_tree.h"

struct wig_flow_value *
wig_flow_value_new(struct wig_arena *arena, enum wig_flow_type type, int line, int column)
{
	struct wig_flow_value *value = wig_arena_alloc(arena, sizeof(*value));

	if (value == NULL)
		return NULL;
	value->type = type;
	value->line = line;
	value->column = column;
	return value;
}

bool
wig_flow_append(struct wig_arena *arena, struct wig_flow_value *parent,
				const char *key, struct wig_flow_value *value)
{
	struct wig_flow_entry *entry = wig_arena_alloc(arena, sizeof(*entry));

	if (entry == NULL || value == NULL)
		return false;
	entry->key = key;
	entry->value = value;
	if (parent->last == NULL)
		parent->first = entry;
	else
		parent->last->next = entry;
	parent->last = entry;
	parent->n++;
	return true;
}

struct wig_flow_value *
wig_flow_get(const struct wig_flow_value *map, const char *key)
{
	if (map == NULL || map->type != WIG_FLOW_MAP)
		return NULL;
	for (const struct wig_flow_entry *entry = map->first; entry != NULL; entry = entry->next)
	{
		if (strcmp(entry->key, key) == 0)
			return entry->value;
	}
	return NULL;
}
