/*
 * http_call.h
 *	  Calls by HTTP/1 on the second port, for http.c.
 *
 * A request to a method's path is a call in the Connect protocol (connect.h). While
 * its handler has it the connection is suspended and watched for the client's end,
 * which cancels the call as the reset of a stream would. The end of the client's sending
 * half cannot be told from a client that left in good order: it ends polls, nothing else.
 */
#ifndef WIGGLE_PROXY_HTTP_CALL_H
#define WIGGLE_PROXY_HTTP_CALL_H

#include <microhttpd.h>
#include <stdbool.h>

/* Calls at a time; more are refused with RESOURCE_EXHAUSTED. */
#define HTTP_CALLS 1024

/* Before the daemon starts: takes part in the drain. wake() has the daemon run in the
 * next turn, which it must after a connection was resumed. */
extern void http_call_setup(void (*wake) (void));

/* Is this the path of a call? */
extern bool http_call_is(const char *path);

/* The daemon's handler for such a path. */
extern enum MHD_Result http_call_handle(struct MHD_Connection *connection, const char *path,
										const char *method, const char *upload,
										size_t *upload_size, void **state);

/* The daemon's notification that a request is over; also of requests for pages. */
extern void http_call_completed(void *cls, struct MHD_Connection *connection, void **state,
								enum MHD_RequestTerminationCode why);

#endif							/* WIGGLE_PROXY_HTTP_CALL_H */
