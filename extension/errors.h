/*
 * errors.h
 *	  The engine's statuses as SQLSTATEs, and as refusals in a row.
 *
 * Wiggle's engine knows three refusals: 400 bad input, 404 unknown, 409 wrong
 * state or lost lease. Batch functions return them as rows; functions for
 * people raise them under SQLSTATE class WG, which the proxy maps by code.
 */
#ifndef WIGGLE_ERRORS_H
#define WIGGLE_ERRORS_H

#include "wiggle.h"

#include "utils/elog.h"

#define ERRCODE_WIG_INVALID		MAKE_SQLSTATE('W','G','4','0','0')
#define ERRCODE_WIG_NOT_FOUND	MAKE_SQLSTATE('W','G','4','0','4')
#define ERRCODE_WIG_CONFLICT	MAKE_SQLSTATE('W','G','4','0','9')

/* 0 = applied; otherwise one of the three and a sentence for the client. */
typedef struct WigRefusal
{
	int			code;
	char	   *message;		/* palloc'd where the refusal was made */
} WigRefusal;

/* Widths are of characters, as the columns of other stores count them. */
extern bool wig_longer(const char *text, int characters);

/* The text, or its first characters: what a message quotes. Palloc'd. */
extern char *wig_clip(const char *text, int characters);

/* Fill *refusal; always returns false, so that checks read "return wig_refuse(...)". */
extern bool wig_refuse(WigRefusal *refusal, int code, const char *fmt,...)
			pg_attribute_printf(3, 4);

/* Raise a refusal as an ERROR with the SQLSTATE of its code. */
extern void wig_raise(const WigRefusal *refusal) __attribute__((noreturn));

/*
 * The same for a person: what was not found is named as the kind and id it was
 * asked for, and a conflict gets a hint (NULL: none).
 */
extern void wig_raise_about(const WigRefusal *refusal, const char *kind, const char *id,
							const char *conflict_hint) __attribute__((noreturn));

#endif							/* WIGGLE_ERRORS_H */
