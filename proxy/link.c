/*
 * link.c
 *	  One libpq connection on the loop: connect, greet, watch, lose, connect again.
 *
 * libpq may close its socket and open another with the same number between two
 * calls of PQconnectPoll (other encryption), which silently ends the
 * kernel's registration. So the watch is stopped before every call and armed
 * anew after it, on a new handle when the number has changed.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "link.h"
#include "log.h"
#include "target.h"

/* What is said of several places is told together. */
#define REASON_BYTES		512

#define BACKOFF_FIRST_MS	100
#define BACKOFF_MAX_MS		5000

/* A session that broke sooner than this counts as a failed attempt. */
#define STEADY_MS			5000

/*
 * One attempt: all names are resolved, then one place is tried after the other, each for
 * as long as the setting says. libpq could be given them all, but would not leave one that
 * is silent.
 */
struct attempt
{
	struct link *link;			/* NULL when it was given up */
	uint64_t	since;
	uv_getaddrinfo_t request;
	bool		busy;
	int			host;			/* the next one to resolve */
	struct target_list list;
	int			at;				/* the place that is tried, in one round or two */
	char		sqlstate[6];	/* the last that a place gave */
	char		why[REASON_BYTES];	/* what the places before it said */
};

static void resolve_next(struct attempt *attempt);
static void link_step(struct link *link);

static void
close_watch_done(uv_handle_t *handle)
{
	free(handle);
}

static void
close_watch(struct link *link)
{
	if (link->watch == NULL)
		return;
	uv_poll_stop(link->watch);
	link->watch->data = NULL;
	uv_close((uv_handle_t *) link->watch, close_watch_done);
	link->watch = NULL;
	link->fd = -1;
	link->events = 0;
}

static void
close_conn(struct link *link)
{
	deadline_clear(&link->timer);
	close_watch(link);
	if (link->conn != NULL)
	{
		PQfinish(link->conn);
		link->conn = NULL;
	}
}

static void
free_attempt(struct attempt *attempt)
{
	target_list_free(&attempt->list);
	free(attempt);
}

static void
forget_attempt(struct link *link)
{
	struct attempt *attempt = link->attempt;

	link->attempt = NULL;
	if (attempt == NULL)
		return;
	attempt->link = NULL;
	if (attempt->busy)
		uv_cancel((uv_req_t *) &attempt->request);
	else
		free_attempt(attempt);
}

/* Free everything of the current attempt or session. */
static void
close_session(struct link *link)
{
	close_conn(link);
	forget_attempt(link);
}

static uint64_t
backoff_ms(unsigned attempts)
{
	uint64_t	ms = attempts == 0 ? 0 : BACKOFF_FIRST_MS;

	for (unsigned i = 1; i < attempts && ms < BACKOFF_MAX_MS; i++)
		ms *= 2;
	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	return ms + (uint64_t) random() % (ms / 4 + 10);
}

static void
begin_attempt(struct deadline *timer)
{
	struct link *link = deadline_owner(timer, struct link, timer);
	struct attempt *attempt = xcalloc(1, sizeof(*attempt));

	link->state = LINK_RESOLVING;
	link->attempt = attempt;
	attempt->link = link;
	attempt->since = loop_now();
	resolve_next(attempt);
}

/* The pause counts from a moment: who has waited for a silent place has had it. */
static void
schedule_attempt(struct link *link, uint64_t since)
{
	uint64_t	when = since + backoff_ms(link->attempts);

	link->state = LINK_WAITING;
	deadline_set(&link->timer, when > loop_now() ? when : loop_now(), begin_attempt);
}

/* An attempt that never came up ends here. */
static void
attempt_failed(struct link *link, const char *sqlstate, const char *why)
{
	char		reason[REASON_BYTES];
	char		state[sizeof(link->attempt->sqlstate)];
	uint64_t	since = link->attempt->since;

	snprintf(reason, sizeof(reason), "%s", why);
	snprintf(state, sizeof(state), "%s", sqlstate);
	close_session(link);
	link->attempts++;
	schedule_attempt(link, since);
	if (link->ops->failed != NULL)
		link->ops->failed(link, state, reason);
}

/* libpq's message, which ends with newlines and may have several lines. */
static const char *
conn_error(const PGconn *conn)
{
	static char text[REASON_BYTES];
	size_t		used = 0;

	/* several lines, some behind a tab, become one */
	for (const char *p = PQerrorMessage(conn); *p != '\0' && used < sizeof(text) - 1; p++)
	{
		bool		blank = *p == '\n' || *p == '\t' || *p == ' ';

		if (!blank)
			text[used++] = *p;
		else if (used > 0 && text[used - 1] != ' ')
			text[used++] = ' ';
	}
	while (used > 0 && text[used - 1] == ' ')
		used--;
	text[used] = '\0';
	return used > 0 ? text : "connection lost";
}

static void
watched(uv_poll_t *watch, int status, int events)
{
	struct link *link = watch->data;

	(void) events;
	if (link == NULL)
		return;
	/*
	 * With an error pending on the socket libuv stops the handle by itself. There
	 * may be input to read before libpq meets the error: watch() must arm it anew.
	 */
	if (status < 0)
		link->events = 0;
	link_step(link);
}

/* Watch the connection's present socket for events. */
static void
watch(struct link *link, int events)
{
	int			fd = PQsocket(link->conn);

	if (link->watch != NULL && link->fd != fd)
		close_watch(link);
	if (fd < 0)
		return;
	if (link->watch == NULL)
	{
		link->watch = xcalloc(1, sizeof(*link->watch));
		if (uv_poll_init(loop_get(), link->watch, fd) != 0)
		{
			free(link->watch);
			link->watch = NULL;
			return;
		}
		link->watch->data = link;
		link->fd = fd;
		link->events = 0;
	}
	if (link->events != events)
	{
		uv_poll_start(link->watch, events, watched);
		link->events = events;
	}
}

/* libpq would print notices on standard error. */
static void
ignore_notice(void *arg, const PGresult *result)
{
	(void) arg;
	(void) result;
}

/* Where a standby is preferred, the first round over several places wants one. */
static int
rounds(const struct link *link)
{
	return link->target->kind == SESSION_ANY && link->attempt->list.n > 1 ? 2 : 1;
}

static const char *
server_wanted(const struct link *link)
{
	if (link->target->kind == SESSION_WRITES)
		return "read-write";
	return link->attempt->at < link->attempt->list.n * (rounds(link) - 1) ? "standby" : "any";
}

static const struct target_place *
current_place(const struct attempt *attempt)
{
	return &attempt->list.places[attempt->at % attempt->list.n];
}

static void connect_now(struct link *link);

static void
connect_next(struct deadline *timer)
{
	connect_now(deadline_owner(timer, struct link, timer));
}

/* The attempt goes on with the next place, or ends. */
static void
place_failed(struct link *link, const char *sqlstate, const char *why)
{
	struct attempt *attempt = link->attempt;
	size_t		used = strlen(attempt->why);

	snprintf(attempt->why + used, sizeof(attempt->why) - used, "%s%s", used > 0 ? "; " : "", why);
	if (*sqlstate != '\0')
		snprintf(attempt->sqlstate, sizeof(attempt->sqlstate), "%s", sqlstate);
	close_conn(link);
	if (++attempt->at >= attempt->list.n * rounds(link))
	{
		attempt_failed(link, attempt->sqlstate, attempt->why);
		return;
	}
	/* the second round comes last to what was silent in the first */
	if (attempt->at == attempt->list.n)
		target_list_sort(link->target, &attempt->list);
	link->state = LINK_CONNECTING;
	deadline_set(&link->timer, loop_now(), connect_next);
}

static void
place_timed_out(struct deadline *timer)
{
	struct link *link = deadline_owner(timer, struct link, timer);
	const struct target_place *place = current_place(link->attempt);
	const char *name = place->host->name;
	const char *port = *place->host->port ? place->host->port : "5432";
	char		why[REASON_BYTES];

	if (*place->address != '\0' && strcmp(name, place->address) != 0)
		snprintf(why, sizeof(why), "connection to server at \"%s\" (%s), port %s, timed out", name,
				 place->address, port);
	else
		snprintf(why, sizeof(why), "connection to server at \"%s\", port %s, timed out", name, port);
	target_defer(link->target, place);
	place_failed(link, "", why);
}

static void
connect_now(struct link *link)
{
	link->conn = target_connect(link->target, current_place(link->attempt), server_wanted(link), link->purpose);
	if (link->conn == NULL || PQstatus(link->conn) == CONNECTION_BAD)
	{
		place_failed(link, "", link->conn == NULL ? "out of memory" : conn_error(link->conn));
		return;
	}
	PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
	link->state = LINK_CONNECTING;
	deadline_set(&link->timer, loop_now() + (uint64_t) config.connect_timeout_ms, place_timed_out);
	watch(link, UV_WRITABLE);
}

static void
resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	struct attempt *attempt = request->data;
	const struct target_host *host;

	attempt->busy = false;
	if (attempt->link == NULL)
	{
		uv_freeaddrinfo(addresses);
		free_attempt(attempt);
		return;
	}
	host = &attempt->link->target->hosts[attempt->host];
	if (status != 0)
	{
		size_t		used = strlen(attempt->why);

		snprintf(attempt->why + used, sizeof(attempt->why) - used, "%scannot resolve \"%s\": %s", used > 0 ? "; " : "",
				 host->name, uv_strerror(status));
	}
	for (struct addrinfo *a = status == 0 ? addresses : NULL; a != NULL; a = a->ai_next)
	{
		char		text[NI_MAXHOST];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0)
			target_list_add(&attempt->list, host, text);
	}
	uv_freeaddrinfo(addresses);
	attempt->host++;
	resolve_next(attempt);
}

static void
resolve_next(struct attempt *attempt)
{
	struct link *link = attempt->link;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};

	for (; attempt->host < link->target->nhosts; attempt->host++)
	{
		const struct target_host *host = &link->target->hosts[attempt->host];

		if (link->only >= 0 && link->only != attempt->host)
			continue;
		if (!host->resolve)
		{
			target_list_add(&attempt->list, host, host->address);
			continue;
		}
		attempt->request.data = attempt;
		attempt->busy = uv_getaddrinfo(loop_get(), &attempt->request, resolved, host->name, NULL, &hints) == 0;
		if (attempt->busy)
			return;
	}
	if (attempt->list.n == 0)
		attempt_failed(link, "", attempt->why);
	else if (attempt->list.n < link->fewest)
		attempt_failed(link, "", "there is no choice");
	else
	{
		target_list_sort(link->target, &attempt->list);
		connect_now(link);
	}
}

static void
came_up(struct link *link)
{
	deadline_clear(&link->timer);
	link->state = LINK_UP;
	link->up_since = loop_now();
	target_prefer(link->target, current_place(link->attempt));
	PQsetnonblocking(link->conn, 1);
	watch(link, UV_READABLE);
	link->ops->up(link);
}

static void
step_connecting(struct link *link)
{
	PostgresPollingStatusType status;

	if (link->watch != NULL)
	{
		uv_poll_stop(link->watch);
		link->events = 0;
	}
	status = PQconnectPoll(link->conn);
	if (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING)
	{
		watch(link, status == PGRES_POLLING_READING ? UV_READABLE : UV_WRITABLE);
		return;
	}
	if (status != PGRES_POLLING_OK)
	{
		place_failed(link, "", conn_error(link->conn));
		return;
	}
	if (link->ops->greet == NULL)
	{
		came_up(link);
		return;
	}
	link->state = LINK_GREETING;
	PQsetnonblocking(link->conn, 1);
	if (!link->ops->greet(link))
	{
		place_failed(link, "", conn_error(link->conn));
		return;
	}
	link_flush(link);
}

bool
link_pooled(const struct link *link, const PGresult *result)
{
	int			column = PQfnumber(result, LINK_BACKEND);

	return PQntuples(result) == 1 && column >= 0 &&
		strtol(PQgetvalue(result, 0, column), NULL, 10) != PQbackendPID(link->conn);
}

static bool
greeted(struct link *link, const PGresult *result, struct wig_error *err)
{
	if (link_pooled(link, result))
		return wig_fail(err, TOPOLOGY_POOLER);
	return link->ops->greeted(link, result, err);
}

static void
step_greeting(struct link *link)
{
	bool		accepted = false;
	PGresult   *result;

	while (!PQisBusy(link->conn))
	{
		struct wig_error err = {.message = ""};
		const char *sqlstate;

		result = PQgetResult(link->conn);
		if (result == NULL)
		{
			if (accepted)
				came_up(link);
			else
				place_failed(link, "", conn_error(link->conn));
			return;
		}
		if (PQresultStatus(result) == PGRES_TUPLES_OK && greeted(link, result, &err))
		{
			accepted = true;
			PQclear(result);
			continue;
		}
		sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		if (PQresultStatus(result) == PGRES_TUPLES_OK)
			target_defer(link->target, current_place(link->attempt));
		else
			wig_fail(&err, "%s", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)
					 ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : conn_error(link->conn));
		{
			char		state[6];

			snprintf(state, sizeof(state), "%s", sqlstate ? sqlstate : "");
			PQclear(result);
			place_failed(link, state, err.message);
		}
		return;
	}
}

/* The socket can be read or written. */
static void
link_step(struct link *link)
{
	if (link->state == LINK_CONNECTING)
	{
		step_connecting(link);
		return;
	}
	if (link->state != LINK_GREETING && link->state != LINK_UP)
		return;

	/*
	 * Input first and always, also while output waits: the server may be unable
	 * to read more before we have read what it has said.
	 */
	if (!PQconsumeInput(link->conn) || PQstatus(link->conn) == CONNECTION_BAD)
	{
		if (link->state == LINK_GREETING)
		{
			place_failed(link, "", conn_error(link->conn));
			return;
		}

		/* what the server said last (57P01) is worth reading */
		link->ops->ready(link);
		if (link->state == LINK_UP)
			link_break(link, conn_error(link->conn));
		return;
	}
	if (link->state == LINK_GREETING)
		step_greeting(link);
	else
		link->ops->ready(link);
	if ((link->state == LINK_GREETING || link->state == LINK_UP) && link->conn != NULL)
		link_flush(link);
}

static void
lost(struct deadline *timer)
{
	struct link *link = deadline_owner(timer, struct link, timer);

	link_break(link, conn_error(link->conn));
}

void
link_init(struct link *link, const struct link_ops *ops, const struct target *target,
		  const char *purpose, void *owner)
{
	memset(link, 0, sizeof(*link));
	link->ops = ops;
	link->target = target;
	link->purpose = purpose;
	link->owner = owner;
	link->fd = -1;
	link->only = -1;
	link->state = LINK_STOPPED;
}

void
link_start(struct link *link)
{
	if (link->state != LINK_STOPPED)
		return;
	link->attempts = 0;
	schedule_attempt(link, loop_now());
}

void
link_aim(struct link *link, const struct target *target)
{
	link->target = target;
	if (link->state == LINK_UP)
		forget_attempt(link);
	if (link->state == LINK_STOPPED || link->state == LINK_UP)
		return;
	close_session(link);
	link->attempts = 0;
	schedule_attempt(link, loop_now());
}

void
link_hurry(struct link *link)
{
	if (link->state == LINK_WAITING)
		deadline_set(&link->timer, loop_now(), begin_attempt);
}

void
link_stop(struct link *link)
{
	close_session(link);
	link->state = LINK_STOPPED;
}

const struct target_place *
link_place(const struct link *link)
{
	return link->attempt != NULL && link->attempt->list.n > 0 ? current_place(link->attempt) : NULL;
}

void
link_next_host(struct link *link)
{
	if (link_place(link) != NULL)
		target_defer(link->target, link_place(link));
}

void
link_flush(struct link *link)
{
	int			rest = PQflush(link->conn);

	if (rest < 0 || PQsocket(link->conn) < 0)
	{
		/* the loss is told on a turn of its own: the caller is in the middle of something */
		deadline_set(&link->timer, loop_now(), lost);
		return;
	}
	watch(link, rest > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

void
link_break(struct link *link, const char *why)
{
	bool		was_up = link->state == LINK_UP;
	char		reason[REASON_BYTES];

	if (link->state == LINK_STOPPED || link->state == LINK_WAITING)
		return;
	snprintf(reason, sizeof(reason), "%s", why);
	if (link->state == LINK_RESOLVING)
		attempt_failed(link, "", reason);
	else if (!was_up)
		place_failed(link, "", reason);
	if (!was_up)
		return;
	close_session(link);
	link->attempts = loop_now() - link->up_since >= STEADY_MS ? 0 : link->attempts + 1;
	schedule_attempt(link, loop_now());
	link->ops->down(link, reason);
}
