/*
 * retention.c
 *	  Purging ended instances and old events.
 */
#include "wiggle.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "guc.h"
#include "retention.h"

/* Looked at again at least this much later, so that a trickle is purged in batches. */
#define MIN_PAUSE_USECS	(60 * USECS_PER_SEC)

/* Kept while a child lives, and while a parent has not been told of the end. */
#define ENDED_BEFORE \
	"i.status not in ('RUNNING', 'COMPENSATING') and i.updated_at < $1" \
	" and not exists (select from wiggle.wf_instance c, wiggle.wf_token t" \
	"  where t.instance = i.no and t.status in ('A', 'C', 'F')" \
	"  and c.parent_token_id = regexp_replace(i.id, '^wfi', 'tok') || '-' || t.n" \
	"  and c.status in ('RUNNING', 'COMPENSATING'))" \
	" and not exists (select from wiggle.wf_instance p, wiggle.wf_token t" \
	"  where p.id = regexp_replace(i.parent_token_id, '^tok(.*)-\\d+$', 'wfi\\1')" \
	"  and t.instance = p.no and t.n = substring(i.parent_token_id from '\\d+$')::int" \
	"  and t.status = 'A')"

static const char purge_instances[] =
	"with doomed as materialized (select i.no from wiggle.wf_instance i where " ENDED_BEFORE
	"  order by i.updated_at limit $2 for update skip locked),"
	" tokens as (delete from wiggle.wf_token t using doomed d where t.instance = d.no),"
	" scopes as (delete from wiggle.wf_scope s using doomed d where s.instance = d.no),"
	" undo as (delete from wiggle.wf_comp_log c using doomed d where c.instance = d.no)"
	" delete from wiggle.wf_instance i using doomed d where i.no = d.no";

static const char purge_events[] =
	"delete from wiggle.wf_event e where e.seq in (select o.seq from wiggle.wf_event o"
	" where o.created_at < $1 and o.seq <= coalesce((select min(c.acked)"
	"  from wiggle.wf_event_cursor c where c.shard = coalesce((select s.shard_id from wiggle.wf_shard s), 0)),"
	"  9223372036854775807) order by o.seq limit $2)";

/* Run a purge for what is older than `minutes`; -1 keeps all. */
static uint64
purge(const char *statement, TimestampTz now, int minutes, int max)
{
	Oid			types[] = {TIMESTAMPTZOID, INT4OID};
	Datum		values[] = {
		TimestampTzGetDatum(now - minutes * USECS_PER_MINUTE), Int32GetDatum(max)
	};

	if (minutes < 0)
		return 0;
	if (SPI_execute_with_args(statement, 2, types, values, NULL, false, 0) != SPI_OK_DELETE)
		elog(ERROR, "could not purge");
	return SPI_processed;
}

static TimestampTz
oldest(const char *query, int minutes)
{
	bool		isnull;
	Datum		value;

	if (minutes < 0)
		return WIG_NEVER;
	if (SPI_execute(query, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for what is to be purged");
	if (SPI_processed == 0)
		return WIG_NEVER;
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	return isnull ? WIG_NEVER : DatumGetTimestampTz(value) + minutes * USECS_PER_MINUTE;
}

bool
wig_retention_purge(TimestampTz now, int max, TimestampTz *next)
{
	uint64		instances;
	uint64		events;

	SPI_connect();
	instances = purge(purge_instances, now, wig_retention, max);
	events = purge(purge_events, now, wig_event_retention, max * 10);
	*next = Min(oldest("select min(updated_at) from wiggle.wf_instance"
					   " where status not in ('RUNNING', 'COMPENSATING')", wig_retention),
				oldest("select created_at from wiggle.wf_event order by seq limit 1",
					   wig_event_retention));
	SPI_finish();
	if (*next != WIG_NEVER)
		*next = Max(*next, now + MIN_PAUSE_USECS);
	return instances == (uint64) max || events == (uint64) max * 10;
}
