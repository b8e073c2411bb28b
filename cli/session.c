/*
 * session.c
 *	  Calls that are waited for, and complaints.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "session.h"

enum exit_status
complain_text(enum exit_status status, const char *fmt,...)
{
	va_list		args;

	fputs("wiggle: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

enum exit_status
complain(enum exit_status status, const char *file, const struct wig_error *err)
{
	if (file == NULL)
		return complain_text(status, "%s", err->message);
	if (err->line == 0)
		return complain_text(status, "%s: %s%s%s", file, err->place,
							 err->place[0] == '\0' ? "" : ": ", err->message);
	return complain_text(status, "%s:%d:%d: %s", file, err->line, err->column, err->message);
}

/* A call that is being waited for. */
struct waiting
{
	struct session *session;
	const char *method;
	const ProtobufCMessageDescriptor *type;
	bool		once;			/* it matters whether it was carried out */
	bool		may_lack;		/* NOT_FOUND is an answer like any other */
	ProtobufCMessage *reply;
	enum grpc_status status;
	bool		done;
};

/* Once, though each page of a list may lack the same. */
static void
tell_missing(struct session *session, const char *missing)
{
	if (missing != NULL && (session->missing == NULL || strcmp(session->missing, missing) != 0))
		complain_text(EXIT_SUCCESS, "shard %s does not answer: what it holds is not in here", missing);
	free(session->missing);
	session->missing = missing != NULL ? xstrdup(missing) : NULL;
}

static void
call_done(void *arg, const struct client_reply *reply)
{
	struct waiting *w = arg;
	const char *server = client_server(w->session->client);
	const char *subject = w->session->subject;

	w->done = true;
	w->status = reply->status;
	if (reply->status == GRPC_OK)
	{
		free(w->session->next_page);
		w->session->next_page = reply->next_page != NULL ? xstrdup(reply->next_page) : NULL;
		tell_missing(w->session, reply->missing);
		w->reply = protobuf_c_message_unpack(w->type, NULL, reply->len, reply->data);
		if (w->reply != NULL)
			return;
		w->status = GRPC_INTERNAL;
		complain_text(EXIT_REFUSED, "the answer of %s cannot be read", server);
	}
	else if (status_exit(reply->status) == EXIT_UNREACHABLE && !reply->answered)
	{
		complain_text(EXIT_UNREACHABLE, "no answer from %s: %s%s", server, reply->message,
					  strcmp(reply->message, uv_strerror(UV_ECONNREFUSED)) == 0
					  ? "; is wiggle-proxy running there? --server or WIGGLE_URL says where" : "");
		if (reply->lost && w->once)
			complain_text(EXIT_UNREACHABLE, "it is not known whether %s was carried out", w->method);
	}
	else if (reply->status == GRPC_NOT_FOUND && w->may_lack)
		return;
	else if (reply->status == GRPC_NOT_FOUND && subject != NULL && strstr(reply->message, subject) == NULL)
		complain_text(EXIT_REFUSED, "%s: '%s' (NOT_FOUND); \"wiggle list\" shows the instances",
					  reply->message, subject);
	else
		complain_text(EXIT_REFUSED, "%s (%s)", reply->message, status_name(reply->status));
}

static ProtobufCMessage *
call(struct waiting *w, const ProtobufCMessage *request, const struct client_options *options,
	 enum grpc_status *status)
{
	client_start(w->session->client, w->method, request, options, call_done, w);
	while (!w->done)
		uv_run(&w->session->loop, UV_RUN_ONCE);
	*status = w->status;
	return w->reply;
}

ProtobufCMessage *
session_call(struct session *session, const char *method, const ProtobufCMessage *request,
			 const ProtobufCMessageDescriptor *reply_type, const struct client_options *options,
			 enum grpc_status *status)
{
	struct waiting w = {
		.session = session,
		.method = method,
		.type = reply_type,
		.once = options != NULL && options->once
	};

	return call(&w, request, options, status);
}

ProtobufCMessage *
session_find(struct session *session, const char *method, const ProtobufCMessage *request,
			 const ProtobufCMessageDescriptor *reply_type, enum grpc_status *status)
{
	struct waiting w = {.session = session, .method = method, .type = reply_type, .may_lack = true};

	return call(&w, request, NULL, status);
}

static void
pause_over(uv_timer_t *timer)
{
	*(bool *) timer->data = true;
}

static void
timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void
session_pause(struct session *session, uint64_t ms)
{
	uv_timer_t *timer = xmalloc(sizeof(*timer));
	bool		over = false;

	uv_timer_init(&session->loop, timer);
	timer->data = &over;
	uv_update_time(&session->loop);
	uv_timer_start(timer, pause_over, ms, 0);
	while (!over)
		uv_run(&session->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *) timer, timer_closed);
}

void
session_end(struct session *session)
{
	if (session->ended)
		return;
	session->ended = true;
	client_free(session->client);
	session->client = NULL;
	while (uv_run(&session->loop, UV_RUN_DEFAULT) != 0)
		;
	uv_loop_close(&session->loop);
	security_free(&session->security);
	free(session->next_page);
	free(session->missing);
}
