/*
 * show.h
 *	  An instance and its tokens, for people and for programs.
 */
#ifndef WIGGLE_CLI_SHOW_H
#define WIGGLE_CLI_SHOW_H

#include <stdbool.h>

#include "buf.h"
#include "session.h"
#include "wiggle.pb-c.h"

/* The members of an instance's JSON object, the context last. */
extern void show_members(struct buf *out, const PB(InstanceView) *view);

/* Print an instance and its tokens to standard output; for people with the names of its steps. */
extern void show_instance(struct session *session, const PB(InstanceDetail) *detail);

/* Why it ended so: its error, else its termination reason, else NULL. */
extern const char *show_why(const PB(InstanceView) *view);

/*
 * What there is to say of a token in a few words: how long it waits, who holds it,
 * what went wrong last. Appends nothing when that is nothing.
 */
extern void show_token_detail(struct buf *out, const PB(Token) *token);

/* A Value field as JSON text; null when it is absent or cannot be read. */
extern void show_value(struct buf *out, const ProtobufCBinaryData *value);

#endif							/* WIGGLE_CLI_SHOW_H */
