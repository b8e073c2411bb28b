/*
 * topology_probe.c
 *	  Do the databases of a topology agree with it, and with each other?
 */
#define _GNU_SOURCE				/* strverscmp */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "output.h"
#include "session.h"
#include "topology_probe.h"

struct answer
{
	const struct topology_shard *shard;
	int			replica;		/* from 1; 0 is the primary */
	char		where[64];		/* "shard 0 replica 1" */
	char	   *name;
	struct database said;
};

struct fault
{
	const struct answer *answer;	/* NULL: about a shard that nobody connects to */
	int			shard;
	bool		unreachable;
	char	   *text;
};

struct probe
{
	const struct topology *topology;
	struct answer *answers;		/* a shard's replicas behind its primary */
	int			nanswers;
	struct fault *faults;
	int			nfaults;
};

static void
add_fault(struct probe *probe, struct fault fault)
{
	probe->faults = xrealloc(probe->faults, (size_t) (probe->nfaults + 1) * sizeof(*probe->faults));
	probe->faults[probe->nfaults++] = fault;
}

static void fault(struct probe *probe, const struct answer *answer, bool unreachable,
				  const char *fmt,...) __attribute__((format(printf, 4, 5)));

static void
fault(struct probe *probe, const struct answer *answer, bool unreachable, const char *fmt,...)
{
	char		text[640];
	va_list		args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	add_fault(probe, (struct fault) {answer, answer->shard->id, unreachable, xstrdup(text)});
}

static bool
is_faulty(const struct probe *probe, const struct answer *answer)
{
	for (int i = 0; i < probe->nfaults; i++)
	{
		if (probe->faults[i].answer == answer)
			return true;
	}
	return false;
}

/* "shard 2 replica 1", or "shard 7" where nothing is connected to. */
static const char *
fault_place(const struct fault *fault, char out[64])
{
	snprintf(out, 64, "shard %d", fault->shard);
	return fault->answer != NULL ? fault->answer->where : out;
}

static void
name_place(const struct topology_shard *shard, int replica, char out[64])
{
	if (replica == 0)
		snprintf(out, 64, "shard %d primary", shard->id);
	else
		snprintf(out, 64, "shard %d replica %d", shard->id, replica);
}

/* ---- judging ---- */

static void
judge_primary(struct probe *probe, const struct answer *answer)
{
	const struct database *said = &answer->said;
	char		id[16];

	snprintf(id, sizeof(id), "%d", answer->shard->id);
	if (said->in_recovery)
		fault(probe, answer, false, "this is a standby and takes no writes; name the primary here, or all hosts,"
			  " of which the one that takes writes is used");
	if (*said->extension == '\0' && *said->available == '\0')
		fault(probe, answer, false, "the extension wiggle is not available on its server; install pg_wiggle there");
	if (*said->shard != '\0' && strcmp(said->shard, id) != 0)
		fault(probe, answer, false, "the database belongs to shard %s; correct the topology", said->shard);
	else if (*said->shard != '\0' && said->copied)
		fault(probe, answer, false, TOPOLOGY_COPY, answer->shard->id);
	if (*said->extension == '\0' && *said->available != '\0' && !said->in_recovery && !said->may_create)
		fault(probe, answer, false, "the role \"%s\" may not create the extension wiggle; as a superuser run \"create"
			  " extension wiggle\" there and grant wiggle_server to it, or let the proxy connect as a superuser", said->role);
	if (*said->facts != '\0' && !said->may_serve)
		fault(probe, answer, false, TOPOLOGY_MAY_NOT_SERVE, said->role, said->role);
	if (*said->library != '\0' && !said->compatible)
		fault(probe, answer, false, "the server runs version %s of the wiggle library, the database has version %s"
			  " of the extension; %s", said->library, said->extension,
			  strverscmp(said->library, said->extension) < 0 ? "restart the server"
			  : "run \"alter extension wiggle update\" there");
}

static void
judge_replica(struct probe *probe, const struct answer *answer, const struct answer *primary)
{
	const struct database *said = &answer->said;
	const struct database *source = &primary->said;

	if (!said->in_recovery)
		fault(probe, answer, false, "this is no standby, so it follows nothing; name a standby of the primary");
	else if (said->lag_ms > answer->shard->max_replica_lag_ms)
		fault(probe, answer, false, "it is %" PRId64 " ms behind, more than maxReplicaLagMillis (%" PRId64
			  "), so it serves no reads", said->lag_ms, answer->shard->max_replica_lag_ms);
	if (*source->system != '\0' && (strcmp(said->system, source->system) != 0 ||
									strcmp(said->oid, source->oid) != 0))
		fault(probe, answer, false, "this is no copy of the primary's database (%s); name a standby of that one",
			  primary->name);
}

/* Is a primary before this one the same database, or a copy of it that runs by itself? */
static void
judge_twins(struct probe *probe, const struct answer *answer)
{
	for (const struct answer *other = probe->answers; other < answer; other++)
	{
		if (other->replica > 0 || *other->said.system == '\0' ||
			strcmp(other->said.system, answer->said.system) != 0 ||
			strcmp(other->said.oid, answer->said.oid) != 0)
			continue;
		if (strcmp(other->said.started, answer->said.started) == 0)
			fault(probe, answer, false, "this is the same database as %s (%s); every shard needs one of its own",
				  other->where, other->name);
		else
			fault(probe, answer, false, "this and %s (%s) are copies of one database; a shard needs one of its"
				  " own, and a restored copy must not run beside its original", other->where, other->name);
	}
}

static void
judge(struct probe *probe)
{
	const struct answer *primary = NULL;

	for (int i = 0; i < probe->nanswers; i++)
	{
		const struct answer *answer = &probe->answers[i];

		if (answer->replica == 0)
			primary = answer;
		if (answer->said.pooled)
			fault(probe, answer, false, TOPOLOGY_POOLER);
		else if (*answer->said.problem != '\0')
			fault(probe, answer, !answer->said.reached, "%s", answer->said.problem);
		if (*answer->said.system == '\0')
			continue;
		if (answer->replica > 0)
			judge_replica(probe, answer, primary);
		else
		{
			judge_primary(probe, answer);
			judge_twins(probe, answer);
		}
	}
}

/* ---- home's registry ---- */

static const struct answer *
primary_of(const struct probe *probe, int shard)
{
	for (int i = 0; i < probe->nanswers; i++)
	{
		if (probe->answers[i].replica == 0 && probe->answers[i].shard->id == shard)
			return &probe->answers[i];
	}
	return NULL;
}

/* In a database that is no shard yet one would be drawn, which is none that home knows. */
#define NEW_IDENTITY "00000000-0000-0000-0000-000000000000"

/* What a proxy would tell home of the database. */
static void
put_facts(struct buf *out, const struct answer *answer)
{
	const struct database *said = &answer->said;

	buf_text(out, ",\"place\":");
	buf_json(out, answer->name);
	if (*said->shard != '\0')
		buf_printf(out, ",\"facts\":%s", said->facts);
	else
		buf_printf(out, ",\"facts\":{\"identity\":\"%s\",\"system\":\"%s\",\"database\":\"%s\"}", NEW_IDENTITY,
				   said->system, said->oid);
}

static void
put_entries(const struct probe *probe, struct buf *out)
{
	const struct topology *topology = probe->topology;
	const char *auth = getenv("WIGGLE_GRPC_AUTH");

	buf_byte(out, '[');
	for (int i = 0; i < topology->nshards; i++)
	{
		const struct answer *answer = primary_of(probe, topology->shards[i].id);

		buf_printf(out, "%s{\"id\":%d,\"state\":\"%s\"", i > 0 ? "," : "", topology->shards[i].id,
				   topology_state_name(topology->shards[i].state));
		if (answer != NULL && *answer->said.system != '\0' && !is_faulty(probe, answer))
			put_facts(out, answer);
		if (i == topology_auth(topology) && auth != NULL && *auth != '\0' && strcasecmp(auth, "off") != 0)
			buf_text(out, ",\"auth\":true");
		buf_byte(out, '}');
	}
	buf_byte(out, ']');
}

/* Other proxies may have told home since it was asked how far the shard has written: it is asked again. */
static void
home_refuses(int shard, const char *refusal, const char *wal, void *arg)
{
	struct probe *probe = arg;
	const struct answer *answer = primary_of(probe, shard);

	if (answer == NULL || *wal == '\0' ||
		!database_reaches(answer->shard->url, answer->shard->user, answer->shard->password, wal))
		add_fault(probe, (struct fault) {answer, shard, false, xstrdup(refusal)});
}

/* Where home is not in order itself its registry says nothing. */
static void
judge_by_home(struct probe *probe)
{
	const struct topology_shard *home = &probe->topology->shards[probe->topology->home];
	const struct answer *answer = primary_of(probe, home->id);
	char		problem[DATABASE_PROBLEM];
	struct buf	entries = BUF_INIT;

	if (*answer->said.shard == '\0' || is_faulty(probe, answer))
		return;
	put_entries(probe, &entries);
	if (!database_judge(home->url, home->user, home->password, buf_cstr(&entries), home_refuses, probe, problem))
		fault(probe, answer, false, "its list of shards cannot be asked: %s", problem);
	buf_free(&entries);
}

/* ---- asking ---- */

static void
ask_shard(struct probe *probe, const struct topology_shard *shard)
{
	for (int n = 0; n <= shard->nreplicas; n++)
	{
		struct answer *answer = &probe->answers[probe->nanswers++];
		const struct topology_replica *replica = n > 0 ? &shard->replicas[n - 1] : NULL;
		struct buf	name = BUF_INIT;

		answer->shard = shard;
		answer->replica = n;
		name_place(shard, n, answer->where);
		database_name(replica ? replica->url : shard->url, replica ? replica->user : shard->user, &name);
		answer->name = xstrdup(buf_cstr(&name));
		buf_free(&name);
		database_ask(replica ? replica->url : shard->url, replica ? replica->user : shard->user,
					 replica ? replica->password : shard->password, n == 0, &answer->said);
	}
}

struct probe *
probe_run(const struct topology *topology)
{
	struct probe *probe = xcalloc(1, sizeof(*probe));
	int			n = 0;

	probe->topology = topology;
	for (int i = 0; i < topology->nshards; i++)
		n += 1 + topology->shards[i].nreplicas;
	probe->answers = xcalloc((size_t) n, sizeof(*probe->answers));
	for (int i = 0; i < topology->nshards; i++)
	{
		if (topology_serves(&topology->shards[i]))
			ask_shard(probe, &topology->shards[i]);
	}
	judge(probe);
	judge_by_home(probe);
	return probe;
}

void
probe_free(struct probe *probe)
{
	if (probe == NULL)
		return;
	for (int i = 0; i < probe->nanswers; i++)
		free(probe->answers[i].name);
	for (int i = 0; i < probe->nfaults; i++)
		free(probe->faults[i].text);
	free(probe->answers);
	free(probe->faults);
	free(probe);
}

/* ---- telling ---- */

static const char *
condition(const struct database *said)
{
	if (!said->reached)
		return "not reached";
	if (*said->system == '\0')
		return "no answer";
	return said->in_recovery ? "standby" : "writable";
}

/* "0.1", or what becomes of it when a proxy starts. */
static void
put_extension(struct buf *out, const struct database *said)
{
	if (*said->extension != '\0')
		buf_text(out, said->extension);
	else if (*said->system != '\0')
		buf_text(out, *said->available != '\0' ? "not created yet" : "not available");
}

void
probe_print(const struct probe *probe)
{
	static const char *const headings[] =
	{"CONNECTION", "DATABASE", "IS", "POSTGRESQL", "WIGGLE", "SHARD", "BEHIND"};
	struct table table;

	table_start(&table, 7, headings);
	for (int i = 0; i < probe->nanswers; i++)
	{
		const struct answer *answer = &probe->answers[i];
		const struct database *said = &answer->said;
		struct buf	extension = BUF_INIT;
		char		behind[32] = "";
		const char *cells[] = {answer->where, answer->name, condition(said), said->server, NULL,
			*said->extension != '\0' && *said->shard == '\0' ? "none yet" : said->shard, behind};

		put_extension(&extension, said);
		cells[4] = buf_cstr(&extension);
		if (said->in_recovery && said->lag_ms >= 0)
			snprintf(behind, sizeof(behind), "%" PRId64 "ms", said->lag_ms);
		table_row(&table, cells);
		buf_free(&extension);
	}
	table_print(&table, stdout);
	table_free(&table);
}

static void
put_text(struct buf *out, const char *key, const char *text)
{
	json_text(out, key, *text != '\0' ? text : NULL);
}

void
probe_put(const struct probe *probe, struct buf *out)
{
	json_open(out, "connections", '[');
	for (int i = 0; i < probe->nanswers; i++)
	{
		const struct answer *answer = &probe->answers[i];
		const struct database *said = &answer->said;

		json_open(out, NULL, '{');
		json_text(out, "connection", answer->where);
		json_text(out, "database", answer->name);
		json_text(out, "is", condition(said));
		put_text(out, "postgresql", said->server);
		put_text(out, "extension", said->extension);
		put_text(out, "shard", said->shard);
		put_text(out, "system", said->system);
		if (said->in_recovery && said->lag_ms >= 0)
			json_number(out, "lag_millis", said->lag_ms);
		else
			json_text(out, "lag_millis", NULL);
		json_close(out, '}');
	}
	json_close(out, ']');
	json_open(out, "problems", '[');
	for (int i = 0; i < probe->nfaults; i++)
	{
		char		place[64];

		json_open(out, NULL, '{');
		json_text(out, "connection", fault_place(&probe->faults[i], place));
		json_text(out, "problem", probe->faults[i].text);
		json_close(out, '}');
	}
	json_close(out, ']');
}

enum exit_status
probe_complain(const struct probe *probe, const char *file)
{
	enum exit_status status = EXIT_DONE;

	for (int i = 0; i < probe->nfaults; i++)
	{
		const struct fault *f = &probe->faults[i];

		char		place[64];

		complain_text(EXIT_REFUSED, "%s: %s%s%s%s: %s", file, fault_place(f, place), f->answer ? " (" : "",
					  f->answer ? f->answer->name : "", f->answer ? ")" : "", f->text);
		if (status != EXIT_REFUSED)
			status = f->unreachable ? EXIT_UNREACHABLE : EXIT_REFUSED;
	}
	return status;
}
