/*
 * status.h
 *	  gRPC statuses for people, and the exit statuses of the command.
 */
#ifndef WIGGLE_CLI_STATUS_H
#define WIGGLE_CLI_STATUS_H

#include <stddef.h>

#include "grpc_status.h"

/* What the command ends with; documented in its help. */
enum exit_status
{
	EXIT_DONE = 0,
	EXIT_REFUSED = 1,			/* the server refused the call */
	EXIT_USAGE = 2,				/* wrong arguments, or a file that is not valid */
	EXIT_UNREACHABLE = 3,		/* no answer from the server, or its database is not there */
	EXIT_NOT_COMPLETED = 4,		/* the awaited instance ended otherwise, or did not end in time */
	EXIT_STOPPED = 5			/* work: steps were killed on a second signal */
};

/* "NOT_FOUND"; "UNKNOWN" for numbers that gRPC does not define. */
extern const char *status_name(enum grpc_status status);

/* The exit status for a call that ended so. */
extern enum exit_status status_exit(enum grpc_status status);

/*
 * Undo the percent-coding of a grpc-message into out, terminated; what does not
 * fit is cut, control characters become spaces.
 */
extern void status_message_decode(const char *text, size_t len, char *out, size_t cap);

#endif							/* WIGGLE_CLI_STATUS_H */
