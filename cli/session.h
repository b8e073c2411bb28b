/*
 * session.h
 *	  What every command gets: where the server is, how to print, how to call.
 */
#ifndef WIGGLE_CLI_SESSION_H
#define WIGGLE_CLI_SESSION_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "client.h"
#include "error.h"
#include "options.h"
#include "status.h"

/* Message types and their functions carry the package in their names. */
#define PB(type)			Com__Wiggle__Proto__##type
#define PB_INIT(type)		COM__WIGGLE__PROTO__##type##__INIT
#define PB_TYPE(type)		(&com__wiggle__proto__##type##__descriptor)

struct session
{
	bool		json;			/* --json */
	const char *server;			/* as given, or the default */
	char	   *next_page;		/* where the list that was given last goes on; NULL: it has ended */
	char	   *missing;		/* the shards that were complained of last, or NULL */
	const char *subject;		/* the instance that calls are about, for messages; or NULL */
	struct security security;
	uv_loop_t	loop;
	struct client *client;		/* NULL for commands that call no server */
	bool		ended;
};

/* Print "wiggle: <message>" with the place if it is known; returns status. */
extern enum exit_status complain(enum exit_status status, const char *file,
								 const struct wig_error *err);
extern enum exit_status complain_text(enum exit_status status, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));

/*
 * Make a call and wait. The decoded reply (free it with
 * protobuf_c_message_free_unpacked), or NULL with *status set and a complaint printed.
 */
extern ProtobufCMessage *session_call(struct session *session, const char *method,
									  const ProtobufCMessage *request,
									  const ProtobufCMessageDescriptor *reply_type,
									  const struct client_options *options,
									  enum grpc_status *status);

/* The same for what may not be there: NOT_FOUND is no complaint. */
extern ProtobufCMessage *session_find(struct session *session, const char *method,
									  const ProtobufCMessage *request,
									  const ProtobufCMessageDescriptor *reply_type,
									  enum grpc_status *status);

/* Run the loop for a while. */
extern void session_pause(struct session *session, uint64_t ms);

/* Close the connection and the loop; a second time it does nothing. */
extern void session_end(struct session *session);

/* One command of the table. */
struct command
{
	const char *name;
	const char *words;			/* how its arguments are called, for the usage line */
	int			min_words;
	int			max_words;
	const char *summary;		/* one line */
	const char *details;		/* paragraphs below the options */
	const struct option *options;
	bool		calls;			/* it talks to a server: there is a client */
	enum exit_status (*run) (struct session *session, const struct arguments *args);
};

extern const struct command command_validate;
extern const struct command command_register;
extern const struct command command_start;
extern const struct command command_get;
extern const struct command command_list;
extern const struct command command_signal;
extern const struct command command_cancel;
extern const struct command command_work;
extern const struct command command_schedule;
extern const struct command command_events;
extern const struct command command_stats;
extern const struct command command_backlog;
extern const struct command command_cluster;
extern const struct command command_auth;
extern const struct command command_shards;
extern const struct command command_topology;
extern const struct command command_config;

#endif							/* WIGGLE_CLI_SESSION_H */
