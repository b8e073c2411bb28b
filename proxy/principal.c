/*
 * principal.c
 *	  Who a caller is: credentials and their roles, as read from the auth shard.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "config.h"
#include "drain.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "principal.h"
#include "shard.h"

#define BUCKETS		1024
#define ENTRIES		8192		/* unknown keys count, too: the oldest goes */
#define WATCH_MS	1000

/* What is known of one credential. It is in its bucket, and in the list by last use. */
struct entry
{
	struct question question;	/* first: the side pool hands it back */
	struct credential credential;
	struct entry *next;
	struct entry *newer;
	struct entry *older;
	struct principal *principal;	/* NULL: unknown */
	bool		loaded;
	bool		asking;
	uint64_t	loaded_at;
	uint64_t	generation;		/* of what was asked for */
	char		hex[2 * CREDENTIAL_HASH + 1];
	char	   *subject;
	struct principal_wait *waiting;
};

static struct entry *buckets[BUCKETS];
static struct entry *newest;
static struct entry *oldest;
static int	count;
static uint64_t generation;

static struct question watch;
static struct deadline next_watch;
static bool watching;
static char head[72];			/* the database, and the number of its last change */

static struct metric *asked;
static struct metric *seen;

/* ------------------------------------------------------------------- shard */

struct shard *
principal_shard(void)
{
	return shard_at(topology_auth(shard_topology()));
}

/* -------------------------------------------------------------- principals */

void
principal_hold(struct principal *principal)
{
	principal->refs++;
}

void
principal_release(struct principal *principal)
{
	if (principal == NULL || --principal->refs > 0)
		return;
	free(principal->id);
	if (principal->npermissions > 0)
		free((char *) principal->permissions[0]);
	free(principal->permissions);
	free(principal);
}

/* A row of SQL_AUTH_FIND; permissions are separated by line feeds, which none has. */
static struct principal *
read_principal(const PGresult *result)
{
	struct principal *p = xcalloc(1, sizeof(*p));
	char	   *text = xstrdup(PQgetvalue(result, 0, AUTH_PERMISSIONS));
	char	   *save = NULL;
	size_t		most = 1;

	for (const char *c = text; *c != '\0'; c++)
		most += *c == '\n';
	p->refs = 1;
	p->id = xstrdup(PQgetvalue(result, 0, AUTH_ID));
	p->permissions = xcalloc(most, sizeof(p->permissions[0]));
	for (char *word = strtok_r(text, "\n", &save); word != NULL; word = strtok_r(NULL, "\n", &save))
		p->permissions[p->npermissions++] = word;
	if (p->npermissions == 0)
		free(text);
	p->expires_at = UINT64_MAX;
	if (!PQgetisnull(result, 0, AUTH_LEFT))
	{
		int64_t		left = strtoll(PQgetvalue(result, 0, AUTH_LEFT), NULL, 10);

		p->expires_at = loop_now() + (left > 0 ? (uint64_t) left : 0);
	}
	return p;
}

/* ----------------------------------------------------------------- entries */

static struct entry **
bucket_of(const struct credential *credential)
{
	unsigned	n = (unsigned) credential->hash[0] << 8 | credential->hash[1];

	return &buckets[n % BUCKETS];
}

static struct entry *
find_entry(const struct credential *credential)
{
	struct entry *e = *bucket_of(credential);

	while (e != NULL && !credential_equal(&e->credential, credential))
		e = e->next;
	return e;
}

static void
unlink_by_use(struct entry *e)
{
	*(e->newer != NULL ? &e->newer->older : &newest) = e->older;
	*(e->older != NULL ? &e->older->newer : &oldest) = e->newer;
}

static void
link_newest(struct entry *e)
{
	e->newer = NULL;
	e->older = newest;
	*(newest != NULL ? &newest->newer : &oldest) = e;
	newest = e;
}

static void
drop_entry(struct entry *e)
{
	struct entry **at = bucket_of(&e->credential);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	unlink_by_use(e);
	count--;
	principal_release(e->principal);
	free(e->subject);
	free(e);
}

/* NULL when all that there is room for is being asked for. */
static struct entry *
add_entry(const struct credential *credential)
{
	struct entry **at = bucket_of(credential);
	struct entry *e = oldest;

	while (e != NULL && e->asking)
		e = e->newer;
	if (count >= ENTRIES && e == NULL)
		return NULL;
	if (count >= ENTRIES)
		drop_entry(e);
	e = xcalloc(1, sizeof(*e));
	e->credential = *credential;
	e->credential.subject = NULL;
	if (credential->kind == CREDENTIAL_CERTIFICATE)
		e->subject = xstrdup(credential->subject);
	for (int i = 0; i < CREDENTIAL_HASH; i++)
		snprintf(e->hex + 2 * i, 3, "%02x", credential->hash[i]);
	e->next = *at;
	*at = e;
	link_newest(e);
	count++;
	return e;
}

static bool
is_fresh(const struct entry *e)
{
	return e->loaded && e->generation == generation &&
		loop_now() - e->loaded_at < (uint64_t) config.auth_cache_ms;
}

/* ----------------------------------------------------------------- asking */

static void
answer_all(struct entry *e, enum principal_answer answer)
{
	struct principal *principal = e->principal;
	struct principal_wait *waiting = e->waiting;
	struct principal_wait *wait;

	/* The entry may go while they are told. */
	e->waiting = NULL;
	if (waiting != NULL)
		waiting->prev = &waiting;
	if (principal != NULL)
		principal_hold(principal);
	while ((wait = waiting) != NULL)
	{
		principal_forget(wait);
		wait->done(wait, answer, principal);
	}
	principal_release(principal);
}

/* What is still good stays so when the shard does not answer. */
static void
found(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	struct entry *e = (struct entry *) question;

	e->asking = false;
	if (result == NULL)
	{
		log_debug("auth", "a credential could not be looked up: %s", refusal->message);
		answer_all(e, PRINCIPAL_UNREACHABLE);
		return;
	}
	principal_release(e->principal);
	e->principal = PQntuples(result) == 1 ? read_principal(result) : NULL;
	e->loaded = true;
	e->loaded_at = loop_now();
	answer_all(e, e->principal != NULL ? PRINCIPAL_KNOWN : PRINCIPAL_UNKNOWN);
}

static bool
ask(struct entry *e)
{
	bool		is_key = e->credential.kind == CREDENTIAL_KEY;

	e->question = (struct question) {
		.statement = SQL_AUTH_FIND,
		.nparams = 2,
		.params = {is_key ? e->hex : NULL, e->subject},
		.done = found,
	};
	e->generation = generation;
	e->loaded = false;
	e->asking = shard_ask(principal_shard(), &e->question) == SUBMIT_OK;
	metric_add(asked, 1);
	return e->asking;
}

enum principal_answer
principal_find(const struct credential *credential, struct principal **principal)
{
	struct entry *e = find_entry(credential);

	*principal = NULL;
	if (e == NULL || !is_fresh(e))
		return PRINCIPAL_ASK;
	unlink_by_use(e);
	link_newest(e);
	*principal = e->principal;
	return e->principal != NULL ? PRINCIPAL_KNOWN : PRINCIPAL_UNKNOWN;
}

bool
principal_ask(const struct credential *credential, struct principal_wait *wait)
{
	struct entry *e = find_entry(credential);

	if (e == NULL)
		e = add_entry(credential);
	if (e == NULL || (!e->asking && !ask(e)))
		return false;
	wait->next = e->waiting;
	wait->prev = &e->waiting;
	if (e->waiting != NULL)
		e->waiting->prev = &wait->next;
	e->waiting = wait;
	return true;
}

void
principal_forget(struct principal_wait *wait)
{
	if (wait->prev == NULL)
		return;
	*wait->prev = wait->next;
	if (wait->next != NULL)
		wait->next->prev = wait->prev;
	wait->prev = NULL;
}

/* ---------------------------------------------------------------- the watch */

static void
watched(struct question *question, const PGresult *result, const struct refusal *refusal)
{
	char		now[sizeof(head)];

	(void) question;
	(void) refusal;
	watching = false;
	if (result == NULL || PQntuples(result) != 1)
		return;

	/* another database, restored or adopted, may have come to the same number by other changes */
	snprintf(now, sizeof(now), "%s %s", principal_shard()->identity, PQgetvalue(result, 0, 0));
	if (strcmp(now, head) == 0)
		return;
	snprintf(head, sizeof(head), "%s", now);
	metric_set(seen, strtoll(PQgetvalue(result, 0, 0), NULL, 10));
	generation++;
}

static void
look(struct deadline *d)
{
	deadline_set(d, loop_now() + WATCH_MS, look);
	if (watching)
		return;
	watch = (struct question) {.statement = SQL_AUTH_HEAD, .done = watched};
	watching = shard_ask(principal_shard(), &watch) == SUBMIT_OK;
}

static void
begin_stop(void)
{
	deadline_clear(&next_watch);
}

static bool
is_idle(void)
{
	return !watching;
}

void
principal_start(void)
{
	static const struct drain_hook hook = {.name = "auth", .begin = begin_stop, .idle = is_idle};

	if (config.grpc_auth == GRPC_AUTH_OFF)
		return;
	asked = metric_counter("wiggle_proxy_auth_lookups_total", NULL, "Credentials looked up on the auth shard.");
	seen = metric_gauge("wiggle_proxy_auth_last_change", NULL,
						"The number of the last change of roles and credentials that was seen.");
	drain_register(&hook);
	deadline_set(&next_watch, loop_now() + WATCH_MS, look);
}
