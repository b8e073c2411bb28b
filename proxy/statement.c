/*
 * statement.c
 *	  The SQL text of the proxy.
 *
 * Every name is qualified: a lane must not depend on a search_path.
 */
#include "link.h"
#include "statement.h"

/* Proxies that set up one database at a time wait for one another. */
#define SETUP_LOCK_KEY "7420398115703004"

/* Where the log ends, and whether that lies behind what is known of it. */
#define WAL(known) \
	"f.facts->>'wal', (f.facts->>'wal')::pg_catalog.pg_lsn < " known "::pg_catalog.pg_lsn"

/* For link_pooled. */
#define BACKEND "pg_catalog.pg_backend_pid() as " LINK_BACKEND

#define SESSION \
	"select s.shard_id::text, s.system_id::text, s.database::text," \
	" s.library_version::text, s.catalog_version::text, f.identity::text, f.timeline::text," \
	" " WAL("$3") "," \
	" pg_catalog.set_config('lock_timeout', $1, false)," \
	" pg_catalog.set_config('statement_timeout', $2, false)," \
	" pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', false), " BACKEND \
	" from wiggle.shard() s, wiggle.shard_facts() f"

#define MILLIS(column) "(extract(epoch from " column ") * 1000)::pg_catalog.int8"

#define MOMENT(param) "pg_catalog.to_timestamp((" param "::pg_catalog.int8 / 1000.0)::pg_catalog.float8)"

#define INSTANCE_COLUMNS(number, context, over) \
	"i.id, i.workflow, i.version, i.status, i.termination_reason, i.error, " \
	MILLIS("i.created_at") ", " MILLIS("i.updated_at") ", " \
	number ", " context ", " over

#define SCHEDULE_COLUMNS \
	"s.id, s.workflow, s.every_millis, s.cron, " MILLIS("s.next_fire_at") ", " MILLIS("s.created_at")

#define FEED_COLUMNS \
	"seq, instance_id, workflow, version, correlation_id, type, " MILLIS("created_at") "," \
	" (extract(epoch from created_at) * 1000000)::pg_catalog.int8, doc, node_id, found"

/* At least one entry, however large: a consumer must be able to pass it. */
#define FEED_ROWS(most) \
	"(select f.*, f.payload::pg_catalog.text as doc, count(*) over () as found," \
	" row_number() over w as place," \
	" sum(octet_length(coalesce(f.payload::pg_catalog.text, '')) + 512) over w as total" \
	" from wiggle.feed($1::pg_catalog.int8, " most ") f" \
	" window w as (order by f.seq rows unbounded preceding)) f" \
	" where place = 1 or total <= $3::pg_catalog.int8 order by seq"

static const char *const texts[STATEMENTS] = {
	[SQL_BATCH] =
	"select op, item, code, message, task_id, instance_id, status, expires_at, lease_owner, workflow,"
	" version, node_id, step_name, activity, kind, attempt, mode, context, base_context, item_index,"
	" item_map_key, collect_key, arm_names"
	" from wiggle.batch($1::wiggle.batch_starts, $2::wiggle.batch_runs, $3::wiggle.batch_fails,"
	" $4::wiggle.batch_beats, $5::wiggle.batch_releases, $6::wiggle.batch_polls,"
	" $7::wiggle.batch_events, $8::wiggle.batch_shares)",
	[SQL_IMPATIENT] = "select pg_catalog.set_config('lock_timeout', '400', true)",
	[SQL_RELEASE_OWNERS] = "select wiggle.release_owners($1::pg_catalog.text[], $2::pg_catalog.int4)",
	[SQL_SESSION_LANE] = SESSION,
	[SQL_SESSION_SIDE] = SESSION,
	[SQL_LISTEN] = "listen wiggle_ready; listen wiggle_event; listen wiggle_outbox; listen wiggle_members",
	[SQL_PROBE] = "select 1",
	[SQL_DEALLOCATE] = "deallocate all",
	[SQL_TIMELINE] =
	"select ('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8))"
	"::pg_catalog.\"bit\"(32)::pg_catalog.int4, pg_catalog.pg_current_wal_lsn() - '0/0'::pg_catalog.pg_lsn, " BACKEND,
	[SQL_SETUP_SERVER] = "select " BACKEND,
	[SQL_SETUP_BEHIND] =
	"select (select system_identifier from pg_catalog.pg_control_system())::text,"
	" (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())::text",

	/*
	 * Who waits holds up others: for their turn proxies wait a while, an update for tables shortly, and both try
	 * again. A session whose proxy has vanished does not keep the lock.
	 */
	[SQL_SETUP_LOCK] =
	"select pg_catalog.set_config('idle_session_timeout', '60s', false), pg_catalog.set_config('lock_timeout', '30s', false),"
	" pg_catalog.pg_advisory_lock(" SETUP_LOCK_KEY "), pg_catalog.set_config('lock_timeout', '3s', false)",
	[SQL_SETUP_STATE] =
	"select (select extversion from pg_catalog.pg_extension where extname = 'wiggle'),"
	" (select default_version from pg_catalog.pg_available_extensions where name = 'wiggle'),"
	" pg_catalog.current_database(),"
	" exists(select from pg_catalog.pg_db_role_setting r join pg_catalog.pg_database d on d.oid = r.setdatabase,"
	" pg_catalog.unnest(r.setconfig) c where d.datname = pg_catalog.current_database()"
	" and r.setrole = 0 and c like 'search_path=%wiggle%')",
	[SQL_SETUP_CREATE] = "create extension if not exists wiggle",
	[SQL_SETUP_LIBRARY] = "select library, compatible from wiggle.version()",
	[SQL_SETUP_UPDATE] = "alter extension wiggle update",
	[SQL_SETUP_SEARCH_PATH] =
	"do $$ begin execute pg_catalog.format('alter database %I set search_path = \"$user\", public, wiggle',"
	" pg_catalog.current_database()); end $$",
	[SQL_SETUP_IDENTITY] =
	"select s.shard_id::text, s.system_id::text, s.database::text, s.library_version::text, s.catalog_version::text,"
	" f.identity::text, f.timeline::text, " WAL("$1") ","
	" (select pg_catalog.bool_and(pg_catalog.has_function_privilege(p.oid, 'execute'))::text"
	"  from pg_catalog.pg_proc p where p.pronamespace = 'wiggle'::pg_catalog.regnamespace"
	"  and p.proname in ('batch', 'release_owners', 'register', 'instance_list', 'cancel')), session_user::text,"
	" f.genuine, f.facts::text, f.complete, (select v.compatible from wiggle.version() v)"
	" from wiggle.shard() s, wiggle.shard_facts() f",
	[SQL_SETUP_CLAIM] = "select wiggle.shard_claim($1::pg_catalog.int4)",
	[SQL_SETUP_HOME] = "select wiggle.shard_home($1::pg_catalog.int4, $2)",
	[SQL_SETUP_SETTINGS] =
	"select name, problem, statement from wiggle.settings_push($1::pg_catalog.jsonb, $2::pg_catalog.bool)",
	[SQL_SETUP_UNLOCK] = "select pg_catalog.pg_advisory_unlock(" SETUP_LOCK_KEY ")",
	[SQL_FACTS] = "select facts::text from wiggle.shard_facts()",
	[SQL_ADMIT] =
	"select shard, refusal, wal from wiggle.shard_admit($1::pg_catalog.jsonb, $2::pg_catalog.bool)",
	[SQL_TOPOLOGY_ADMIT] =
	"select refusal, notice from wiggle.topology_admit($1::pg_catalog.jsonb, $2::pg_catalog.jsonb, $3::pg_catalog.bool)",
	[SQL_POSITION] =
	"select identity::pg_catalog.text, timeline, facts->>'wal' from wiggle.shard_facts() where facts->>'wal' is not null",
	[SQL_POSITIONS] = "select wiggle.shard_positions($1::pg_catalog.jsonb)",
	[SQL_WORKFLOWS] = "select distinct name from wiggle.workflows() order by name",
	[SQL_DEFINITION_LIST] = "select wiggle.definition_list()::text, wiggle.definition_mark()",
	[SQL_DEFINITION_BODY] =
	"select body::text from wiggle.wf_definition where name = $1 and version = $2::pg_catalog.int4",
	[SQL_LACKING] = "select name, version from wiggle.definitions_lacking($1::pg_catalog.jsonb)",
	[SQL_REGISTER] =
	"select name, version, nodes from wiggle.register($1::pg_catalog.jsonb, $2::pg_catalog.bool)",
	[SQL_REGISTER_CHECK] =
	"select name, version, nodes from wiggle.register_check($1::pg_catalog.jsonb, $2::pg_catalog.bool)",
	[SQL_DEFINITION] = "select wiggle.definition($1, $2::pg_catalog.int4)::pg_catalog.text",
	[SQL_INSTANCE] =
	"with l as materialized (select i.*, i.context::pg_catalog.text as doc from wiggle.instance($1) i),"
	" s as (select octet_length(doc) > $2::pg_catalog.int8 as over_bytes from l)"
	" select " INSTANCE_COLUMNS("null", "case when row_number() over w = 1 and not s.over_bytes then i.doc end",
								"s.over_bytes")
	", t.id, t.node_id, t.kind, t.status, t.activity, t.attempt, " MILLIS("t.available_at")
	", t.lease_owner, t.last_error, " MILLIS("t.started_at") ", " MILLIS("t.finished_at") ", "
	MILLIS("t.created_at")
	", case when t.io <= $2::pg_catalog.int8 then t.input end, case when t.io <= $2::pg_catalog.int8 then t.output end"
	" from l i cross join s left join lateral"
	" (select k.*, sum(coalesce(octet_length(k.input), 0) + coalesce(octet_length(k.output), 0)) over () as io"
	" from wiggle.tokens(i.id) k) t on true"
	" window w as (order by t.created_at, t.id) order by t.created_at, t.id",

	/*
	 * Rows that do not fit come without contexts: a caller that goes page by page
	 * takes those before them, and any other is refused.
	 */
	[SQL_INSTANCES] =
	"with l as materialized (select i.no, (i.shown).*, (i.shown).context::pg_catalog.text as doc"
	" from wiggle.instance_list($1, $2, $3, $4::pg_catalog.int4, $6::pg_catalog.int8) i),"
	" b as (select l.*, sum(coalesce(octet_length(doc), 0) + 256) over (order by no desc)"
	" > $5::pg_catalog.int8 as over_bytes from l)"
	" select " INSTANCE_COLUMNS("i.no", "case when i.over_bytes then null else i.doc end", "i.over_bytes")
	" from b i",
	[SQL_CANCEL] = "select wiggle.cancel($1, $2)",
	[SQL_SIGNAL] = "select wiggle.signal($1, $2, $3::pg_catalog.jsonb)",
	[SQL_SCHEDULE] =
	"select " SCHEDULE_COLUMNS " from wiggle.schedule($1, every => $2::pg_catalog.int8 * interval '1 millisecond',"
	" cron => $3, context => $4::pg_catalog.jsonb) s",
	[SQL_SCHEDULES] = "select " SCHEDULE_COLUMNS " from wiggle.schedules() s order by s.id collate \"C\"",
	[SQL_UNSCHEDULE] = "select wiggle.unschedule($1)",
	[SQL_HORIZON] = "select wiggle.event_horizon()",

	[SQL_FEED] = "select " FEED_COLUMNS " from " FEED_ROWS("$2::pg_catalog.int4"),

	/*
	 * Cursors live on home, but a log is trimmed where it is, and not beyond what its
	 * slowest consumer has acknowledged: each look tells the shard where this one is.
	 * The sum is there so that it is told when there are no entries, too.
	 */
	[SQL_FEED_AWAY] =
	"with told as materialized (select 0 as nothing,"
	" wiggle.cursor_register($4, array[$5::pg_catalog.int4], array[$1::pg_catalog.int8]),"
	" wiggle.cursor_ack($4, array[$5::pg_catalog.int4], array[$1::pg_catalog.int8]))"
	" select " FEED_COLUMNS " from told cross join lateral " FEED_ROWS("$2::pg_catalog.int4 + told.nothing"),
	[SQL_CURSOR_READ] = "select shard, acked from wiggle.cursor_read($1)",
	[SQL_CURSOR_REGISTER] =
	"select wiggle.cursor_register($1, $2::pg_catalog.int4[], $3::pg_catalog.int8[])",
	[SQL_CURSOR_ACK] = "select wiggle.cursor_ack($1, $2::pg_catalog.int4[], $3::pg_catalog.int8[])",
	[SQL_FORGET_CONSUMER] = "select wiggle.forget_consumer($1)",
	[SQL_STEP_STATS] =
	"select node_id, name, count, mean_millis, p50, p95, max, wait_p50, wait_p95 from wiggle.step_stats($1,"
	" $2::pg_catalog.int4, to_timestamp($3::pg_catalog.float8 / 1000), $4::pg_catalog.int4)",
	[SQL_BACKLOG] =
	"select workflow, version, coalesce(queue, ''), ready_count, " MILLIS("oldest_available_at")
	" from wiggle.backlog($1::pg_catalog.int4)",
	[SQL_BEAT] = "select wiggle.replica_beat()",
	[SQL_BEAT_READ] = "select (extract(epoch from at) * 1000000)::pg_catalog.int8 from wiggle.wf_beat",
	[SQL_NODES] =
	"select id, name, " MILLIS("first_heartbeat") ", " MILLIS("last_heartbeat") ", workers,"
	" polls::pg_catalog.text, alive, leader, partition, member from wiggle.nodes() order by first_heartbeat, id",
	[SQL_NODE_BEAT] =
	"select b.holder, " MILLIS("b.heard") ","
	" exists(select from wiggle.nodes() n where n.id = $1 and n.leader), " MILLIS("(wiggle.version()).now")
	", wiggle.definition_mark()"
	" from wiggle.node_beat($1, $2, $3::pg_catalog.int4, $4::pg_catalog.jsonb, $5::pg_catalog.bool) b",
	[SQL_NODE_LEAVE] = "select wiggle.node_leave($1)",
	[SQL_OUTBOX] =
	"select id, shard, workflow, correlation_id, context"
	" from wiggle.outbox($1::pg_catalog.int4, $2::pg_catalog.int4[])",
	[SQL_WATCH] = "select metric, label, value from wiggle.watch()",
	[SQL_SHARD_LOAD] = "select live, held, lag_millis, extension, more from wiggle.shard_load()",
	[SQL_SHARD_OWED] = "select wiggle.shard_owed($1::pg_catalog.int4)",
	[SQL_SHARD_RETIRE] = "select wiggle.shard_retire()",
	[SQL_OUTBOX_DONE] = "select wiggle.outbox_done($1::pg_catalog.text[], $2::pg_catalog.text[])",
	[SQL_INSTANCE_WORKFLOW] = "select i.workflow from wiggle.instance($1) i",
	[SQL_SCHEDULE_WORKFLOW] = "select s.workflow from wiggle.schedules() s where s.id = $1",
	[SQL_AUTH_FIND] =
	"select id, pg_catalog.array_to_string(permissions, E'\n'),"
	" " MILLIS("nullif(expires_at, 'infinity') - (wiggle.version()).now")
	" from wiggle.auth_find(pg_catalog.decode($1, 'hex'), $2)",
	[SQL_AUTH_HEAD] = "select wiggle.auth_head()",
	[SQL_AUTH_CREATE_KEY] = "select wiggle.auth_create_key($1, $2, " MOMENT("$3") ", $4)",
	[SQL_AUTH_ADD_CERTIFICATE] = "select wiggle.auth_add_certificate($1, $2, $3, " MOMENT("$4") ", $5)",
	[SQL_AUTH_CREDENTIALS] =
	"select id, role, key_prefix, subject, " MILLIS("created_at") ", " MILLIS("nullif(expires_at, 'infinity')")
	" from wiggle.auth_credentials()",
	[SQL_AUTH_GRANT] = "select wiggle.auth_grant($1, $2, $3)",
	[SQL_AUTH_REVOKE] = "select wiggle.auth_revoke($1, $2)",
	[SQL_AUTH_PUT_ROLE] = "select wiggle.auth_put_role($1, pg_catalog.string_to_array($2, E'\n'), $3)",
	[SQL_AUTH_ROLES] =
	"select name, pg_catalog.array_to_string(permissions, E'\n'), builtin from wiggle.auth_roles()",
	[SQL_AUTH_DROP_ROLE] = "select wiggle.auth_drop_role($1, $2)",
};

const char *
statement_text(enum statement statement)
{
	return texts[statement];
}
