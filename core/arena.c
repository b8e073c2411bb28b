/*
 * arena.c
 *	  Chunks of memory handed out from front to back.
 */
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

#define CHUNK_BYTES 8000

struct chunk
{
	struct chunk *next;
	size_t		size;
	size_t		used;
	alignas(max_align_t) char data[];
};

struct wig_arena
{
	struct chunk *chunks;		/* the newest first; only it has room */
};

struct wig_arena *
wig_arena_new(void)
{
	return calloc(1, sizeof(struct wig_arena));
}

void
wig_arena_free(struct wig_arena *arena)
{
	if (arena == NULL)
		return;
	while (arena->chunks != NULL)
	{
		struct chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	free(arena);
}

void *
wig_arena_alloc(struct wig_arena *arena, size_t size)
{
	struct chunk *chunk = arena->chunks;
	void	   *result;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (chunk == NULL || chunk->size - chunk->used < size)
	{
		size_t		room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = calloc(1, sizeof(struct chunk) + room);
		if (chunk == NULL)
			return NULL;
		chunk->size = room;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	result = chunk->data + chunk->used;
	chunk->used += size;
	return result;
}

char *
wig_arena_copy(struct wig_arena *arena, const char *text, size_t len)
{
	char	   *copy = wig_arena_alloc(arena, len + 1);

	if (copy != NULL)
		memcpy(copy, text, len);
	return copy;
}
