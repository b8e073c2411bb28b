/*
 * refusal.h
 *	  What an error of the database means: for the batch, and for the caller.
 */
#ifndef WIGGLE_PROXY_REFUSAL_H
#define WIGGLE_PROXY_REFUSAL_H

#include <stdbool.h>
#include <libpq-fe.h>

#include "grpc_status.h"

enum error_class
{
	ERROR_ENGINE,				/* the engine's refusal, or missing rights: the caller's */
	ERROR_RETRY,				/* deadlock, serialization: again as it was */
	ERROR_CONNECTION,			/* this session is of no use any more; nothing applied */
	ERROR_SCHEMA,				/* the extension is gone or another one */
	ERROR_PLAN,					/* the prepared statement is gone or stale */
	ERROR_BUSY,					/* timeout, out of some resource; nothing applied */
	ERROR_DEFECT				/* anything else */
};

/* The class of an SQLSTATE; "" and NULL are ERROR_CONNECTION. */
extern enum error_class error_classify(const char *sqlstate);

/*
 * The same of an error that a statement met: XX000 is ERROR_SCHEMA when it says
 * that an object of the extension, known from a plan or a type, is gone (the
 * extension was dropped and made anew; there is no SQLSTATE for it).
 */
extern enum error_class error_classify_statement(const char *sqlstate, const char *message);

/* An answer that is not OK. */
struct refusal
{
	enum grpc_status status;
	int			code;			/* 400, 404, 409 or 500 */
	bool		storage;		/* not the engine's own answer */
	char		message[1024];
};

/* The engine's own refusal, with its text as it is. */
extern void refusal_engine(struct refusal *refusal, const char *sqlstate, const char *message);

/* UNAVAILABLE: nothing was applied. Logs the cause under the reference that the message bears. */
extern void refusal_unavailable(struct refusal *refusal, int shard_id, const char *sqlstate,
								const char *cause);

/* INTERNAL: a defect, or it could not be learnt what was applied. */
extern void refusal_internal(struct refusal *refusal, int shard_id, const char *sqlstate,
							 const char *cause);

/* What an error result means to the only caller whom it concerns. */
extern void refusal_from_error(struct refusal *refusal, int shard_id, const char *sqlstate,
							   const char *message);

#endif							/* WIGGLE_PROXY_REFUSAL_H */
