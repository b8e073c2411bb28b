/*
 * dbload.c
 *	  Steps of workflows through wiggle.batch alone: no proxy, one connection.
 *
 *	dbload --conninfo C --workflow W [--seconds N] [--batch N] [--polls N]
 *
 * Each call settles what the call before claimed, starts an instance for each
 * that ended and claims again: the shape of a lane's batch. Prints "begin" and
 * "end" around the counted time, then one JSON object. A refusal makes the exit
 * status 1.
 */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <libpq-fe.h>

#include "ids.h"
#include "number.h"

#define MAX_BATCH	1024
#define CONTEXT_MAX	1024
#define INT4OID		23
#define INT8OID		20
#define TEXTOID		25
#define INT4ARRAYOID	1007
#define INT8ARRAYOID	1016
#define TEXTARRAYOID	1009

/* One array parameter in PostgreSQL's binary format. */
struct array
{
	char	   *data;
	size_t		len;
	size_t		cap;
	int32_t		count;
};

struct task
{
	char		id[WIG_ID_MAX + 1];
	char		owner[200];
	char		node[80];
	char		context[CONTEXT_MAX];
};

enum param
{
	P_START_IDS, P_START_WORKFLOWS, P_START_VERSIONS, P_START_CORRELATIONS, P_START_CONTEXTS,
	P_RUN_TASKS, P_RUN_OWNERS, P_RUN_MODES, P_STEP_RUN, P_STEP_NODE, P_STEP_KIND, P_STEP_VALUE,
	P_STEP_STARTED, P_STEP_FINISHED,
	P_POLL_OWNERS, P_POLL_MAXES, P_POLL_LEASES, P_QUEUE_POLL, P_QUEUE_NAME, P_VERSION_POLL,
	P_VERSION_WORKFLOW, P_VERSION_NUMBER,
	P_COUNT
};

static const Oid param_types[P_COUNT] = {
	TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
	TEXTARRAYOID, TEXTARRAYOID, INT4ARRAYOID, INT4ARRAYOID, TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID,
	INT8ARRAYOID, INT8ARRAYOID,
	TEXTARRAYOID, INT4ARRAYOID, INT8ARRAYOID, INT4ARRAYOID, TEXTARRAYOID, INT4ARRAYOID,
	TEXTARRAYOID, INT4ARRAYOID
};

static const char batch_sql[] =
"select op, item, code, message, task_id, lease_owner, node_id, status, context from wiggle.batch("
"case when $1 is null then null else row($1,$2,$3,$4,$5)::wiggle.batch_starts end,"
"case when $6 is null then null else row($6,$7,$8,$9,$10,$11,$12,$13,$14)::wiggle.batch_runs end,"
"null, null, null, row($15,$16,$17,$18,$19,$20,$21,$22)::wiggle.batch_polls)";

enum column
{
	C_OP, C_ITEM, C_CODE, C_MESSAGE, C_TASK, C_OWNER, C_NODE, C_STATUS, C_CONTEXT
};

struct bench
{
	PGconn	   *conn;
	char	   *workflow;
	int			batch;
	int			polls;
	int32_t		shard;
	struct array params[P_COUNT];
	struct task tasks[MAX_BATCH];
	int			ntasks;
	int			to_start;
	int64_t		steps;
	int64_t		calls;
	int64_t		refused;
	char		refusal[256];
};

static int64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* -------------------------------------------------------------- parameters */

static void
append(struct array *a, const void *data, size_t len)
{
	if (a->len + len > a->cap)
	{
		a->cap = (a->len + len) * 2 + 64;
		a->data = realloc(a->data, a->cap);
		if (a->data == NULL)
			err(1, "realloc");
	}
	memcpy(a->data + a->len, data, len);
	a->len += len;
}

static void
append_int32(struct array *a, int32_t value)
{
	uint32_t	n = htonl((uint32_t) value);

	append(a, &n, sizeof(n));
}

/* Dimensions, "has nulls", element type, length (set by array_end), lower bound. */
static void
array_begin(struct array *a, Oid element)
{
	a->len = 0;
	a->count = 0;
	append_int32(a, 1);
	append_int32(a, 1);
	append_int32(a, (int32_t) element);
	append_int32(a, 0);
	append_int32(a, 1);
}

static void
array_end(struct array *a)
{
	uint32_t	n = htonl((uint32_t) a->count);

	memcpy(a->data + 12, &n, sizeof(n));
}

static void
put_text(struct array *a, const char *text)
{
	a->count++;
	if (text == NULL)
	{
		append_int32(a, -1);
		return;
	}
	append_int32(a, (int32_t) strlen(text));
	append(a, text, strlen(text));
}

static void
put_int4(struct array *a, int32_t value)
{
	a->count++;
	append_int32(a, 4);
	append_int32(a, value);
}

static void
put_int8(struct array *a, int64_t value)
{
	a->count++;
	append_int32(a, 8);
	append_int32(a, (int32_t) (value >> 32));
	append_int32(a, (int32_t) value);
}

static Oid
element_type(Oid array)
{
	return array == TEXTARRAYOID ? TEXTOID : array == INT4ARRAYOID ? INT4OID : INT8OID;
}

static uint64_t
random_bits(void)
{
	uint64_t	bits;

	if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		err(1, "getrandom");
	return bits;
}

static void
put_starts(struct bench *b)
{
	char		part[WIG_PART_LEN];
	char		id[WIG_ID_MAX + 1];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	for (int i = 0; i < b->to_start; i++)
	{
		wig_part_encode(part, (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000, random_bits());
		if (wig_id_format(id, "wfi", b->shard, part, sizeof(part)) < 0)
			errx(1, "cannot make an id for shard %d", (int) b->shard);
		put_text(&b->params[P_START_IDS], id);
		put_text(&b->params[P_START_WORKFLOWS], b->workflow);
		put_int4(&b->params[P_START_VERSIONS], 1);
		put_text(&b->params[P_START_CORRELATIONS], NULL);
		put_text(&b->params[P_START_CONTEXTS],
				 "{\"customer\":\"ada.lovelace@example.org\",\"sku\":\"WGL-2207-BLUE\","
				 "\"address\":\"12 St James's Square, London SW1Y 4JH\",\"carrier\":\"parcel-express\","
				 "\"note\":\"leave with the neighbour at number 14\",\"counter\":\"#00000000\"}");
	}
}

static void
advance_counter(char *context)
{
	char	   *mark = strchr(context, '#');

	for (int i = 8; mark != NULL && i > 0; i--)
	{
		if (mark[i] >= '0' && mark[i] < '9')
		{
			mark[i]++;
			return;
		}
		mark[i] = '0';
	}
}

static void
put_runs(struct bench *b)
{
	for (int i = 0; i < b->ntasks; i++)
	{
		struct task *t = &b->tasks[i];

		advance_counter(t->context);
		put_text(&b->params[P_RUN_TASKS], t->id);
		put_text(&b->params[P_RUN_OWNERS], t->owner);
		put_int4(&b->params[P_RUN_MODES], 1);
		put_int4(&b->params[P_STEP_RUN], i);
		put_text(&b->params[P_STEP_NODE], t->node);
		put_int4(&b->params[P_STEP_KIND], 1);
		put_text(&b->params[P_STEP_VALUE], t->context);
		put_int8(&b->params[P_STEP_STARTED], 0);
		put_int8(&b->params[P_STEP_FINISHED], 0);
	}
}

static void
put_polls(struct bench *b)
{
	int			each = b->batch / b->polls;

	for (int i = 0; i < b->polls; i++)
	{
		char		nonce[WIG_NONCE_LEN];
		char		owner[64];

		wig_nonce_encode(nonce, random_bits());
		snprintf(owner, sizeof(owner), "dbload#%.*s", WIG_NONCE_LEN, nonce);
		put_text(&b->params[P_POLL_OWNERS], owner);
		put_int4(&b->params[P_POLL_MAXES], each);
		put_int8(&b->params[P_POLL_LEASES], 0);
		put_int4(&b->params[P_QUEUE_POLL], i);
		put_text(&b->params[P_QUEUE_NAME], b->workflow);
		put_int4(&b->params[P_VERSION_POLL], i);
		put_text(&b->params[P_VERSION_WORKFLOW], b->workflow);
		put_int4(&b->params[P_VERSION_NUMBER], 1);
	}
}

/* ----------------------------------------------------------------- results */

static int32_t
int4_of(const PGresult *r, int row, int column)
{
	uint32_t	n;

	memcpy(&n, PQgetvalue(r, row, column), sizeof(n));
	return (int32_t) ntohl(n);
}

static void
copy_column(char *out, size_t size, const PGresult *r, int row, int column)
{
	size_t		len = (size_t) PQgetlength(r, row, column);

	if (len >= size)
		errx(1, "a column of %zu bytes", len);
	memcpy(out, PQgetvalue(r, row, column), len);
	out[len] = '\0';
}

static void
take_row(struct bench *b, const PGresult *r, int row)
{
	char		op = PQgetvalue(r, row, C_OP)[0];

	if (op == 't')
	{
		struct task *t = &b->tasks[b->ntasks++];

		copy_column(t->id, sizeof(t->id), r, row, C_TASK);
		copy_column(t->owner, sizeof(t->owner), r, row, C_OWNER);
		copy_column(t->node, sizeof(t->node), r, row, C_NODE);
		copy_column(t->context, sizeof(t->context), r, row, C_CONTEXT);
		return;
	}
	if (int4_of(r, row, C_CODE) != 0)
	{
		if (b->refused++ == 0)
			snprintf(b->refusal, sizeof(b->refusal), "op %c: %d %s", op, (int) int4_of(r, row, C_CODE),
					 PQgetvalue(r, row, C_MESSAGE));
	}
	else if (op == 'r')
	{
		char		status[32];

		b->steps++;
		copy_column(status, sizeof(status), r, row, C_STATUS);
		if (strcmp(status, "RUNNING") != 0)
			b->to_start++;
	}
}

static void
call_batch(struct bench *b)
{
	const char *values[P_COUNT];
	int			lengths[P_COUNT];
	int			formats[P_COUNT];
	PGresult   *r;

	for (int i = 0; i < P_COUNT; i++)
		array_begin(&b->params[i], element_type(param_types[i]));
	put_starts(b);
	put_runs(b);
	put_polls(b);
	for (int i = 0; i < P_COUNT; i++)
	{
		array_end(&b->params[i]);
		values[i] = b->params[i].count > 0 ? b->params[i].data : NULL;
		lengths[i] = (int) b->params[i].len;
		formats[i] = 1;
	}
	r = PQexecPrepared(b->conn, "batch", P_COUNT, values, lengths, formats, 1);
	if (PQresultStatus(r) != PGRES_TUPLES_OK)
		errx(1, "wiggle.batch: %s", PQerrorMessage(b->conn));
	b->ntasks = 0;
	b->to_start = 0;
	b->calls++;
	if (PQntuples(r) > 3 * MAX_BATCH)
		errx(1, "%d rows", PQntuples(r));
	for (int row = 0; row < PQntuples(r); row++)
		take_row(b, r, row);
	PQclear(r);
}

/* -------------------------------------------------------------------- main */

static int32_t
shard_of(PGconn *conn)
{
	PGresult   *r = PQexec(conn, "select shard_id from wiggle.shard()");
	int32_t		shard;

	if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
		errx(1, "wiggle.shard: %s", PQerrorMessage(conn));
	shard = PQgetisnull(r, 0, 0) ? WIG_NO_SHARD : (int32_t) strtol(PQgetvalue(r, 0, 0), NULL, 10);
	PQclear(r);
	return shard;
}

static void
mark(const char *what)
{
	puts(what);
	fflush(stdout);
}

static void
run(struct bench *b, int seconds)
{
	int64_t		counted = now_us() + 2000000;
	int64_t		deadline = counted + (int64_t) seconds * 1000000;
	int64_t		steps_before;
	int64_t		calls_before;
	int64_t		steps;
	int64_t		calls;
	double		elapsed;

	/* Twice the batch, so that another connection's claims leave enough. */
	b->to_start = b->batch;
	call_batch(b);
	b->to_start += b->batch;
	while (now_us() < counted)
		call_batch(b);
	mark("begin");
	counted = now_us();
	steps_before = b->steps;
	calls_before = b->calls;
	while (now_us() < deadline)
		call_batch(b);
	elapsed = (double) (now_us() - counted) / 1e6;
	steps = b->steps - steps_before;
	calls = b->calls - calls_before;
	mark("end");

	/* The rest of the started instances runs out, whoever claims its tokens. */
	for (deadline = now_us() + 1000000; now_us() < deadline;)
	{
		b->to_start = 0;
		call_batch(b);
		if (b->ntasks > 0)
			deadline = now_us() + 1000000;
		else
			nanosleep(&(struct timespec) {.tv_nsec = 20000000}, NULL);
	}
	printf("{\"steps_per_s\": %.1f, \"steps\": %lld, \"seconds\": %.2f, \"calls\": %lld, \"refused\": %lld}\n",
		   (double) steps / elapsed, (long long) steps, elapsed, (long long) calls, (long long) b->refused);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"conninfo", required_argument, NULL, 'd'},
		{"workflow", required_argument, NULL, 'f'},
		{"seconds", required_argument, NULL, 't'},
		{"batch", required_argument, NULL, 'b'},
		{"polls", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	static struct bench b = {.batch = 64, .polls = 64};
	const char *conninfo = NULL;
	int			seconds = 10;
	int			c;
	PGresult   *r;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
	{
		switch (c)
		{
			case 'd':
				conninfo = optarg;
				break;
			case 'f':
				b.workflow = optarg;
				break;
			case 't':
				seconds = number("seconds", optarg, 3600);
				break;
			case 'b':
				b.batch = number("batch", optarg, MAX_BATCH);
				break;
			case 'p':
				b.polls = number("polls", optarg, MAX_BATCH);
				break;
			default:
				return 2;
		}
	}
	if (conninfo == NULL || b.workflow == NULL || b.batch % b.polls != 0)
		errx(2, "usage: dbload --conninfo C --workflow W [--seconds N] [--batch N] [--polls a divisor of it]");
	b.conn = PQconnectdb(conninfo);
	if (PQstatus(b.conn) != CONNECTION_OK)
		errx(1, "%s", PQerrorMessage(b.conn));
	b.shard = shard_of(b.conn);
	r = PQprepare(b.conn, "batch", batch_sql, P_COUNT, param_types);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		errx(1, "cannot prepare: %s", PQerrorMessage(b.conn));
	PQclear(r);
	run(&b, seconds);
	PQfinish(b.conn);
	if (b.refused > 0)
		warnx("%lld items were refused, the first: %s", (long long) b.refused, b.refusal);
	return b.refused > 0;
}
