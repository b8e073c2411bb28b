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

#define WIG_HINT_WORKFLOWS	"wiggle.workflows() lists what is registered in this database."

/* 0 = applied; otherwise one of the three and a sentence for the client. */
typedef struct WigRefusal
{
	int			code;
	char	   *message;		/* palloc'd where the refusal was made */
	const char *hint;			/* what a person may do, or NULL; rows leave it out */
} WigRefusal;

/* Widths are of characters, as the columns of other stores count them. */
extern bool wig_longer(const char *text, int characters);

/* The text, or its first characters: what a message quotes. Palloc'd. */
extern char *wig_clip(const char *text, int characters);

/* Fill *refusal; always returns false, so that checks read "return wig_refuse(...)". */
extern bool wig_refuse(WigRefusal *refusal, int code, const char *fmt,...)
			pg_attribute_printf(3, 4);

/* Add a hint to a refusal just made; always returns false. */
extern bool wig_hint(WigRefusal *refusal, const char *hint);

/* Raise a refusal as an ERROR with the SQLSTATE of its code; detail may be NULL. */
extern void wig_raise(const WigRefusal *refusal, const char *detail) __attribute__((noreturn));

#endif							/* WIGGLE_ERRORS_H */
