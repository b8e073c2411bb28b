/*
 * statement.c
 *	  The SQL text of the proxy.
 *
 * Every name is qualified: a lane must not depend on a search_path.
 */
#include "statement.h"

/* Proxies that set up one database at a time wait for one another. */
#define SETUP_LOCK_KEY "7420398115703004"

#define SESSION \
	"select s.shard_id::text, s.system_id::text, s.database::text," \
	" s.library_version::text, s.catalog_version::text," \
	" pg_catalog.set_config('lock_timeout', $1, false)," \
	" pg_catalog.set_config('statement_timeout', $2, false)," \
	" pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', false)" \
	" from wiggle.shard() s"

#define MILLIS(column) "(extract(epoch from " column ") * 1000)::pg_catalog.int8"

#define INSTANCE_COLUMNS(context, over) \
	"i.id, i.workflow, i.version, i.status, i.termination_reason, i.error, " \
	MILLIS("i.created_at") ", " MILLIS("i.updated_at") ", " \
	"(extract(epoch from i.created_at) * 1000000)::pg_catalog.int8, " context ", " over

static const char *const texts[STATEMENTS] = {
	[SQL_BATCH] =
	"select op, item, code, message, task_id, instance_id, status, expires_at, lease_owner, workflow,"
	" version, node_id, step_name, activity, kind, attempt, mode, context, base_context, item_index,"
	" item_map_key, collect_key, arm_names"
	" from wiggle.batch($1::wiggle.batch_starts, $2::wiggle.batch_runs, $3::wiggle.batch_fails,"
	" $4::wiggle.batch_beats, $5::wiggle.batch_releases, $6::wiggle.batch_polls)",
	[SQL_RELEASE_OWNERS] = "select wiggle.release_owners($1::pg_catalog.text[], $2::pg_catalog.int4)",
	[SQL_SESSION_LANE] = SESSION,
	[SQL_SESSION_SIDE] = SESSION,
	[SQL_LISTEN] = "listen wiggle_ready",
	[SQL_PROBE] = "select 1",
	[SQL_DEALLOCATE] = "deallocate all",
	[SQL_SETUP_LOCK] = "select pg_catalog.pg_advisory_lock(" SETUP_LOCK_KEY ")",
	[SQL_SETUP_STATE] =
	"select (select extversion from pg_catalog.pg_extension where extname = 'wiggle'),"
	" (select default_version from pg_catalog.pg_available_extensions where name = 'wiggle'),"
	" pg_catalog.current_database(),"
	" exists(select from pg_catalog.pg_db_role_setting r join pg_catalog.pg_database d on d.oid = r.setdatabase,"
	" pg_catalog.unnest(r.setconfig) c where d.datname = pg_catalog.current_database()"
	" and r.setrole = 0 and c like 'search_path=%wiggle%')",
	[SQL_SETUP_CREATE] = "create extension if not exists wiggle",
	[SQL_SETUP_LIBRARY] = "select library from wiggle.version()",
	[SQL_SETUP_UPDATE] = "alter extension wiggle update",
	[SQL_SETUP_SEARCH_PATH] =
	"do $$ begin execute pg_catalog.format('alter database %I set search_path = \"$user\", public, wiggle',"
	" pg_catalog.current_database()); end $$",
	[SQL_SETUP_IDENTITY] =
	"select shard_id::text, system_id::text, database::text, library_version::text, catalog_version::text,"
	" (select pg_catalog.bool_and(pg_catalog.has_function_privilege(p.oid, 'execute'))::text"
	"  from pg_catalog.pg_proc p where p.pronamespace = 'wiggle'::pg_catalog.regnamespace"
	"  and p.proname in ('batch', 'release_owners', 'register', 'instances', 'cancel')), session_user::text"
	" from wiggle.shard()",
	[SQL_SETUP_CLAIM] = "select wiggle.shard_claim($1::pg_catalog.int4)",
	[SQL_SETUP_UNLOCK] = "select pg_catalog.pg_advisory_unlock(" SETUP_LOCK_KEY ")",
	[SQL_WORKFLOWS] = "select distinct name from wiggle.workflows() order by name",
	[SQL_REGISTER] =
	"select name, version, nodes from wiggle.register($1::pg_catalog.jsonb, $2::pg_catalog.bool)",
	[SQL_DEFINITION] = "select wiggle.definition($1, $2::pg_catalog.int4)::pg_catalog.text",
	[SQL_INSTANCE] =
	"with l as materialized (select i.*, i.context::pg_catalog.text as doc from wiggle.instance($1) i),"
	" s as (select octet_length(doc) > $2::pg_catalog.int8 as over_bytes from l)"
	" select " INSTANCE_COLUMNS("case when row_number() over w = 1 and not s.over_bytes then i.doc end",
								"s.over_bytes")
	", t.id, t.node_id, t.kind, t.status, t.activity, t.attempt, " MILLIS("t.available_at")
	", t.lease_owner, t.last_error, " MILLIS("t.started_at") ", " MILLIS("t.finished_at") ", "
	MILLIS("t.created_at")
	" from l i cross join s left join lateral wiggle.tokens(i.id) t on true"
	" window w as (order by t.created_at, t.id) order by t.created_at, t.id",

	/*
	 * A listing that would not fit gives no contexts at all, so that the proxy
	 * never holds more of it than it may send.
	 */
	[SQL_INSTANCES] =
	"with l as materialized (select i.*, i.context::pg_catalog.text as doc"
	" from wiggle.instances($1, $2, $3, $4::pg_catalog.int4) i),"
	" s as (select coalesce(sum(octet_length(doc) + 256), 0) > $5::pg_catalog.int8 as over_bytes from l)"
	" select " INSTANCE_COLUMNS("case when s.over_bytes then null else i.doc end", "s.over_bytes")
	" from l i, s order by i.created_at desc, i.id desc",
	[SQL_CANCEL] = "select wiggle.cancel($1, $2)",
};

const char *
statement_text(enum statement statement)
{
	return texts[statement];
}
