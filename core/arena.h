/*
 * arena.h
 *	  Memory that is freed as a whole.
 */
#ifndef WIGGLE_CORE_ARENA_H
#define WIGGLE_CORE_ARENA_H

#include <stddef.h>

struct wig_arena;

/* NULL when there is no memory. */
extern struct wig_arena *wig_arena_new(void);

/* Frees everything that came from the arena; NULL is ignored. */
extern void wig_arena_free(struct wig_arena *arena);

/* Zeroed and aligned for any type; NULL when there is no memory. */
extern void *wig_arena_alloc(struct wig_arena *arena, size_t size);

/* A terminated copy of len bytes. */
extern char *wig_arena_copy(struct wig_arena *arena, const char *text, size_t len);

#endif							/* WIGGLE_CORE_ARENA_H */
