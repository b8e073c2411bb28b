/*
 * topology_probe.c
 *	  Do the databases of a topology agree with it, and with each other?
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	const struct answer *answer;
	bool		unreachable;
	char	   *text;
};

struct probe
{
	struct answer *answers;		/* a shard's replicas behind its primary */
	int			nanswers;
	struct fault *faults;
	int			nfaults;
};

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
	probe->faults = xrealloc(probe->faults, (size_t) (probe->nfaults + 1) * sizeof(*probe->faults));
	probe->faults[probe->nfaults++] = (struct fault) {answer, unreachable, xstrdup(text)};
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
	if (*said->library != '\0' && strcmp(said->library, said->extension) != 0)
		fault(probe, answer, false, "the server runs version %s of the wiggle library, the database has version %s"
			  " of the extension; restart the server, then run \"alter extension wiggle update\"",
			  said->library, said->extension);
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

	for (int i = 0; i < topology->nshards; i++)
		n += 1 + topology->shards[i].nreplicas;
	probe->answers = xcalloc((size_t) n, sizeof(*probe->answers));
	for (int i = 0; i < topology->nshards; i++)
	{
		if (topology_serves(&topology->shards[i]))
			ask_shard(probe, &topology->shards[i]);
	}
	judge(probe);
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
		json_open(out, NULL, '{');
		json_text(out, "connection", probe->faults[i].answer->where);
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

		complain_text(EXIT_REFUSED, "%s: %s (%s): %s", file, f->answer->where, f->answer->name, f->text);
		if (status != EXIT_REFUSED)
			status = f->unreachable ? EXIT_UNREACHABLE : EXIT_REFUSED;
	}
	return status;
}
