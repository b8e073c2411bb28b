/* extension/wiggle--0.1.sql */

\echo Use "CREATE EXTENSION wiggle" to load this file. \quit

-- Roles ----------------------------------------------------------------------
-- NOLOGIN groups to be granted; they belong to the cluster and outlive the extension.

do $roles$
declare
	name text;
begin
	foreach name in array array['wiggle_reader', 'wiggle_worker', 'wiggle_client', 'wiggle_server', 'wiggle_admin'] loop
		if not exists (select from pg_catalog.pg_roles where rolname = name) then
			begin
				execute pg_catalog.format('create role %I nologin', name);
			exception when duplicate_object or unique_violation then
				null;	-- another database of the cluster is being given the extension
			end;
		end if;
	end loop;
end
$roles$;

-- Tables ---------------------------------------------------------------------
-- Text keys compare as bytes: the C code and the indexes must agree. There are no
-- foreign keys and no CHECKs, which the direct path in store.c would have to keep.

create table wf_definition (
	id					int not null unique,
	version				int not null,
	registered_at		timestamptz not null,
	name				text collate "C" not null,
	fingerprint			text not null,
	fingerprint_algo	text not null,
	body				json not null,
	primary key (name, version)
);
comment on table wf_definition is 'Registered workflow graphs, one row a version.';
comment on column wf_definition.body is 'The definition as it was registered; wiggle.definition() shows it normalised.';

create table wf_instance (
	no					bigint not null primary key,
	created_at			timestamptz not null,
	updated_at			timestamptz not null,
	version				int not null,
	depth				int not null,
	id					text collate "C" not null unique,
	workflow			text collate "C" not null,
	status				text collate "C" not null,
	correlation_id		text collate "C",
	parent_token_id		text collate "C",
	termination_reason	text,
	error				text
) with (fillfactor = 80);
create index wf_instance_correlation on wf_instance (correlation_id, no) where correlation_id is not null;
create index wf_instance_parent on wf_instance (parent_token_id) where parent_token_id is not null;
create index wf_instance_ended on wf_instance (updated_at) where status not in ('RUNNING', 'COMPENSATING');
comment on table wf_instance is 'One row a workflow instance; its lock is what every change of the instance takes first.';
comment on column wf_instance.no is 'Key of all rows of the instance: rises with its age (microseconds since 1970, made unique).';

create table wf_scope (
	instance			bigint not null,
	scope				int not null,
	parent				int,
	idx					int,
	"group"				int,
	arrived				int,
	kind				"char" not null,
	map_key				text,
	last_step			text,
	context				json,
	primary key (instance, scope)
) with (fillfactor = 45);
comment on table wf_scope is 'Contexts as validated JSON text: scope 0 is the context of the instance, each arm of a fork and each item of a forEach has its own while it runs; one without a context shows its parent''s.';

create table wf_token (
	instance			bigint not null,
	created_at			timestamptz not null,
	available_at		timestamptz not null,
	started_at			timestamptz,
	finished_at			timestamptz,
	nonce				bigint,
	n					int not null,
	scope				int not null,
	attempt				int not null,
	comp_seq			int,
	first_scope			int,
	width				int,
	missing				int,
	status				"char" not null,
	node				text collate "C" not null,
	loops				text,
	staged				text,
	input				text,
	output				text,
	last_error			text,
	primary key (instance, n)
) with (fillfactor = 50);
comment on table wf_token is 'Where an instance stands and stood. status: R ready or leased, W waiting, A awaiting, J joined, D done, F failed, C cancelled; wiggle.tokens() shows Wiggle''s words.';

create table wf_ready (
	instance			bigint not null,
	n					int not null,
	definition			int not null,
	bucket				smallint not null,
	queue				text collate "C" not null,
	primary key (queue, instance, n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
	autovacuum_vacuum_cost_delay = 0);
comment on table wf_ready is 'Tokens that a worker may claim, in claim order: oldest instance first. Queue '''' is that of steps that name none. bucket: CRC-32 of the task''s id modulo 1000.';

create table wf_lease (
	instance			bigint not null,
	expires_at			timestamptz not null,
	claimed_at			timestamptz not null,
	n					int not null,
	owner				text collate "C" not null,
	primary key (instance, n)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
	autovacuum_vacuum_cost_delay = 0);
comment on table wf_lease is 'Tokens that a worker holds, until when.';

create table wf_timer (
	due_at				timestamptz not null,
	instance			bigint not null,
	n					int not null,
	primary key (due_at, instance, n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
	autovacuum_vacuum_cost_delay = 0);
comment on table wf_timer is 'Tokens that time will move: sleeps and parked retries.';

create table wf_comp_log (
	instance			bigint not null,
	seq					int not null,
	compensated			boolean not null,
	node				text collate "C" not null,
	input				json not null,
	result				json not null,
	primary key (instance, seq)
);
comment on table wf_comp_log is 'Completed compensable steps, undone newest first when the instance fails.';

create table wf_event (
	seq					bigint not null primary key,
	created_at			timestamptz not null,
	version				int not null,
	instance_id			text collate "C" not null,
	workflow			text collate "C" not null,
	correlation_id		text collate "C",
	type				text collate "C" not null,
	node_id				text collate "C",
	payload				json
);
comment on table wf_event is 'The event log of this shard: one entry for each transition of an instance, and what handlers emit.';

create table wf_event_cursor (
	consumer			text collate "C" not null,
	shard				int not null,
	acked				bigint not null,
	updated_at			timestamptz not null,
	primary key (consumer, shard)
);
comment on table wf_event_cursor is 'How far each consumer has acknowledged the event log of each shard; kept on the home shard.';

create table wf_schedule (
	id					text collate "C" not null primary key,
	workflow			text collate "C" not null unique,
	every_millis		bigint,
	cron				text,
	context				json not null,
	next_fire_at		timestamptz not null,
	created_at			timestamptz not null
);
comment on table wf_schedule is 'Schedules, on the home shard: one for each workflow, with an interval or a cron expression (UTC).';

create table wf_placement (
	generation			bigint not null,
	active_from			timestamptz not null,
	shard				int not null,
	weight				int not null,
	primary key (generation, shard)
);
comment on table wf_placement is 'Where instances that schedules start are minted, as proxies publish it on the home shard. Empty: here.';

create table wf_outbox (
	id					text collate "C" not null primary key,
	shard				int not null,
	workflow			text collate "C" not null,
	correlation_id		text collate "C",
	context				json not null,
	created_at			timestamptz not null,
	refusals			int not null default 0,
	due_at				timestamptz not null default '-infinity'
);
comment on table wf_outbox is 'Instances due on another shard, their ids already minted; a proxy starts them there and removes the row. One that was refused is due again later.';

create table wf_node (
	id					text collate "C" not null primary key,
	name				text not null,
	first_heartbeat		timestamptz not null,
	last_heartbeat		timestamptz not null,
	workers				int not null,
	polls				jsonb not null,
	partition			boolean not null
);
comment on table wf_node is 'Proxies, on the home shard, and what their workers poll for. partition: whether it divides the tasks with others.';

create table wf_auth_role (
	name				text collate "C" not null primary key,
	permissions			text[] not null,
	created_at			timestamptz not null,
	updated_at			timestamptz not null
);
comment on table wf_auth_role is 'What clients of the proxies may do, on the auth shard: a role is a set of permissions. Those built in are in auth_roles().';

create table wf_auth_credential (
	id					text collate "C" not null primary key,
	role				text collate "C" not null,
	key_hash			bytea unique,
	key_prefix			text,
	subject				text collate "C" unique,
	created_at			timestamptz not null,
	expires_at			timestamptz
);
comment on table wf_auth_credential is 'Who clients of the proxies are, on the auth shard: by an API key, of which only the SHA-256 is kept, or by a certificate''s subject.';

create table wf_auth_audit (
	seq					bigint not null primary key,
	at					timestamptz not null,
	actor				text not null,
	action				text not null,
	target				text not null,
	detail				text
);
comment on table wf_auth_audit is 'Every change of roles and credentials. Proxies watch its end, and then look anew at what they had read.';

create table wf_shard (
	shard_id			int not null,
	claimed_at			timestamptz not null,
	singleton			boolean not null default true primary key,
	home				int,
	state				text collate "C",
	identity			uuid not null default pg_catalog.gen_random_uuid(),
	system_id			text not null,
	database			oid not null,
	adopted_at			timestamptz,
	emptied_at			timestamptz,
	complete_at			timestamptz
);
comment on table wf_shard is 'The shard that this database is: one row, whose id is written once.';
comment on column wf_shard.home is 'The home shard, as proxies tell it; null until one has.';
comment on column wf_shard.state is 'This shard''s state in the topology, as proxies tell it.';
comment on column wf_shard.identity is 'Drawn when the shard was claimed or adopted: what tells it from any other database that bears its id.';
comment on column wf_shard.system_id is 'The cluster in which the identity was drawn; with another one this is a copy.';
comment on column wf_shard.database is 'The database in which the identity was drawn; with another one this is a copy.';
comment on column wf_shard.adopted_at is 'When this copy took the place of the original, by wiggle.shard_adopt().';
comment on column wf_shard.emptied_at is 'When wiggle.shard_retire() found nothing left here.';
comment on column wf_shard.complete_at is 'When this shard was found to have every definition that home has; null: it lacked some.';

create table wf_shard_registry (
	shard_id			int not null primary key,
	state				text collate "C" not null,
	first_seen			timestamptz not null,
	changed_at			timestamptz not null,
	seen_at				timestamptz,
	place				text,
	identity			uuid,
	adopted_at			timestamptz,
	system_id			text,
	database			oid,
	timeline			int,
	wal					pg_lsn,
	wal_at				timestamptz,
	emptied_at			timestamptz,
	auth				boolean not null default false
);
comment on table wf_shard_registry is 'On home: every shard there has been, its state, which only moves forward, and which database it is.';
comment on column wf_shard_registry.place is 'Host, port and database as a proxy last reached it.';
comment on column wf_shard_registry.timeline is 'Of the server''s history, with wal: a database that is behind is a former primary or an older copy.';
comment on column wf_shard_registry.wal_at is 'When wal was noted: proxies tell it every few seconds, and of many one is written.';
comment on column wf_shard_registry.auth is 'It keeps the keys and roles of clients, as a proxy that asks for them noted first, or shard_auth() since.';
comment on column wf_shard_registry.emptied_at is 'When the shard was found to hold nothing any more, or was written off: it may be RETIRED.';

create table wf_beat (
	at					timestamptz not null,
	singleton			boolean not null default true primary key
);
comment on table wf_beat is 'A moment that proxies renew while the shard has replicas: what a replica has of it tells how far it is behind.';

select pg_catalog.pg_extension_config_dump('wf_definition', '');
select pg_catalog.pg_extension_config_dump('wf_instance', '');
select pg_catalog.pg_extension_config_dump('wf_scope', '');
select pg_catalog.pg_extension_config_dump('wf_token', '');
select pg_catalog.pg_extension_config_dump('wf_ready', '');
select pg_catalog.pg_extension_config_dump('wf_lease', '');
select pg_catalog.pg_extension_config_dump('wf_timer', '');
select pg_catalog.pg_extension_config_dump('wf_comp_log', '');
select pg_catalog.pg_extension_config_dump('wf_event', '');
select pg_catalog.pg_extension_config_dump('wf_event_cursor', '');
select pg_catalog.pg_extension_config_dump('wf_schedule', '');
select pg_catalog.pg_extension_config_dump('wf_placement', '');
select pg_catalog.pg_extension_config_dump('wf_outbox', '');
select pg_catalog.pg_extension_config_dump('wf_node', '');
select pg_catalog.pg_extension_config_dump('wf_auth_role', '');
select pg_catalog.pg_extension_config_dump('wf_auth_credential', '');
select pg_catalog.pg_extension_config_dump('wf_auth_audit', '');
select pg_catalog.pg_extension_config_dump('wf_shard', '');
select pg_catalog.pg_extension_config_dump('wf_shard_registry', '');

-- Types ----------------------------------------------------------------------

create type instance as (
	id text, workflow text, version int, status text, termination_reason text, error text,
	correlation_id text, context jsonb, created_at timestamptz, updated_at timestamptz
);

create type token as (
	id text, node_id text, kind text, status text, activity text, attempt int,
	available_at timestamptz, lease_owner text, last_error text,
	started_at timestamptz, finished_at timestamptz, created_at timestamptz,
	input text, output text
);

create type task as (
	task_id text, instance_id text, workflow text, version int, node_id text, step_name text,
	activity text, kind text, attempt int, lease_owner text, lease_expires_at timestamptz,
	execution_mode text, context jsonb, base_context jsonb, item_index int, item_key text,
	collect_key text, arm_names text[]
);

create type outcome as (
	task_id text, instance_status text, lease_expires_at timestamptz, next_task_id text,
	error_status int, error text
);

create type batch_starts as (
	ids text[], workflows text[], versions int4[], correlations text[], contexts text[]
);
create type batch_runs as (
	tasks text[], owners text[], modes int4[],
	step_run int4[], step_node text[], step_kind int4[], step_value text[],
	step_started int8[], step_finished int8[]
);
create type batch_events as (step int4[], types text[], payloads text[]);
create type batch_fails as (
	tasks text[], owners text[], messages text[], retryable bool[], modes int4[]
);
create type batch_beats as (tasks text[], owners text[], extends int8[]);
create type batch_releases as (tasks text[], owners text[]);
create type batch_polls as (
	owners text[], maxes int4[], leases int8[], queue_poll int4[], queue_name text[],
	version_poll int4[], version_workflow text[], version_number int4[]
);
create type batch_shares as (polls int4[], queues text[], starts int4[], ends int4[]);
create type batch_result as (
	op "char", item int4, code int4, message text, task_id text, instance_id text,
	status text, expires_at int8, lease_owner text, workflow text, version int4,
	node_id text, step_name text, activity text, kind text, attempt int4, mode text,
	context text, base_context text, item_index int8, item_map_key text,
	collect_key text, arm_names text[]
);

-- Definitions ----------------------------------------------------------------

create function register(definition jsonb, force boolean default false,
	out name text, out version int, out nodes int, out created boolean)
language c volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'wig_register';
comment on function register(jsonb, boolean) is
'Registers a workflow definition, or the authoring shorthand {"workflow": …, "steps": […]}. The same graph again changes nothing; another graph under an existing version is refused (WG409) unless force is given and wiggle.allow_graph_replace is on. WG400: the graph is not valid.';

create function register_check(definition jsonb, force boolean default false,
	out name text, out version int, out nodes int, out created boolean)
language c volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'wig_register_check';
comment on function register_check(jsonb, boolean) is
'Refuses what register() would refuse and answers what it would answer, and writes nothing.';

create function definition(name text, version int default null) returns jsonb
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_definition';
comment on function definition(text, int) is
'The normalised definition of a version, by default the highest. WG404: not registered.';

create function workflows()
returns table (name text, version int, latest boolean, queues text[], mode text, registered_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select d.name, d.version, d.version = max(d.version) over (partition by d.name),
		   array(select distinct n->>'queue' from json_array_elements(d.body->'nodes') n
				 where n->>'queue' is not null order by 1),
		   coalesce(d.body->>'executionMode', 'DEFAULT'), d.registered_at
	  from wiggle.wf_definition d order by d.name, d.version
$$;
comment on function workflows() is 'Every registered version.';

create function definition_list() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select coalesce(jsonb_agg(jsonb_build_array(d.name, d.version, d.fingerprint) order by d.name, d.version), '[]')
	  from wiggle.wf_definition d
$$;
comment on function definition_list() is 'Not for applications: what is registered here, for definitions_lacking() on another shard.';

create function definition_mark() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select count(*) || '.' || coalesce(sum(hashtextextended(d.name || ':' || d.version || ' ' || d.fingerprint, 0)), 0)
	  from wiggle.wf_definition d
$$;
comment on function definition_mark() is 'Not for applications: changes whenever definition_list() does.';

create function definitions_lacking(list jsonb) returns table (name text, version int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	found_any boolean;
begin
	return query
	select e.value->>0, (e.value->>1)::int from jsonb_array_elements(list) e
	 where not exists (select from wiggle.wf_definition d
						where d.name = e.value->>0 and d.version = (e.value->>1)::int and d.fingerprint = e.value->>2)
	 limit 100;
	found_any := found;
	update wiggle.wf_shard s set complete_at = case when found_any then null else clock_timestamp() end
	 where (s.complete_at is null) <> found_any;
end
$$;
comment on function definitions_lacking(jsonb) is
'Not for applications: which of another shard''s definitions are not here, or with another graph, up to 100; whether any is gets noted in wf_shard.';

-- Instances ------------------------------------------------------------------

create function start(workflow text, context jsonb default '{}', version int default null,
	correlation_id text default null, id text default null) returns text
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_start_instance';
comment on function start(text, jsonb, int, text, text) is
'Starts an instance in the caller''s transaction and returns its id: it exists if and only if that transaction commits. With an id from wiggle.mint() a repeat returns it again and changes nothing. WG404: unknown workflow or version. WG400: bad input.';

create function mint(n int default 1) returns setof text
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_mint';
comment on function mint(int) is 'Mints n instance ids of this shard for wiggle.start(id => …).';

create function cancel(id text, reason text default null) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_cancel_instance';
comment on function cancel(text, text) is
'Cancels a RUNNING instance with its live tokens; any other status is left as it is. WG404: no such instance.';

create function signal(id text, signal text, payload jsonb default null) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_signal_sql';
comment on function signal(text, text, jsonb) is
'Delivers a signal to the oldest token that waits for it; its payload merges into that token''s context. Nothing is buffered. WG404: no such instance. WG409: not running, or nobody waits. WG400: bad name or payload.';

create function whereabouts(kind text, id text) returns text
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_whereabouts';
comment on function whereabouts(text, text) is
'Not for applications: why nothing has this id here, for the errors of others.';

-- Statuses and activity of a token follow from its row, its lease and its node.
create function instance_row(i wf_instance) returns instance
language sql stable
as $$
	select row(i.id, i.workflow, i.version, i.status, i.termination_reason, i.error,
			   i.correlation_id, s.context::jsonb, i.created_at,
			   -- A worker's clock may be ahead.
			   greatest(i.updated_at, least((wiggle.version()).now,
						(select max(coalesce(t.finished_at, t.created_at))
						   from wiggle.wf_token t where t.instance = i.no))))::wiggle.instance
	  from wiggle.wf_scope s where s.instance = i.no and s.scope = 0
$$;

comment on function instance_row(wf_instance) is
'Not for applications: the row that instance() and instances() show.';

create function instance(id text) returns instance
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	found_row wiggle.instance;
begin
	select r.* into found_row from wiggle.wf_instance i, lateral wiggle.instance_row(i) r where i.id = instance.id;
	if found_row.id is null then
		raise exception using errcode = 'WG404', message = 'instance not found',
			detail = wiggle.whereabouts('instance', coalesce(id, ''));
	end if;
	return found_row;
end
$$;
comment on function instance(text) is 'One instance. WG404: no such instance.';

create function instance_list(workflow text, status text, correlation_id text, max int, before bigint)
	returns table (no bigint, shown instance)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	wanted int := case when max > 0 then max else 50 end;
	state text := upper(status);
	-- Compared without a condition on null, so that the index begins there.
	bound bigint := coalesce(before, 9223372036854775807);
begin
	if correlation_id is not null then
		return query select i.no, r from wiggle.wf_instance i, lateral wiggle.instance_row(i) r
			where i.correlation_id = instance_list.correlation_id and i.no < bound order by i.no desc limit wanted;
		return;
	end if;
	if state is not null and state not in ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED',
		'COMPENSATING', 'COMPENSATED', 'COMPENSATION_FAILED') then
		raise exception using errcode = 'WG400',
			message = format('No enum constant com.wiggle.core.InstanceStatus.%s', state),
			hint = 'A status is RUNNING, COMPLETED, FAILED, CANCELLED, COMPENSATING, COMPENSATED or COMPENSATION_FAILED.';
	end if;
	return query select i.no, r from wiggle.wf_instance i, lateral wiggle.instance_row(i) r
		where (instance_list.workflow is null or i.workflow = instance_list.workflow)
		  and (state is null or i.status = state) and i.no < bound
		order by i.no desc limit wanted;
end
$$;
comment on function instance_list(text, text, text, int, bigint) is
'Not for applications: what instances() gives, each with its number in wf_instance.';

create function instances(workflow text default null, status text default null,
	correlation_id text default null, max int default 50, before bigint default null) returns setof instance
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select (l.shown).* from wiggle.instance_list(workflow, status, correlation_id, max, before) l $$;
comment on function instances(text, text, text, int, bigint) is
'Instances, newest first: by wf_instance.no, and with before only those whose number is less, for the next page. With a correlation id the other filters are ignored. max <= 0 means 50. WG400: unknown status.';

create function tokens(id text) returns setof token
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	owner_row wiggle.wf_instance;
begin
	select * into owner_row from wiggle.wf_instance i where i.id = tokens.id;
	if owner_row.no is null then
		raise exception using errcode = 'WG404', message = 'instance not found',
			detail = wiggle.whereabouts('instance', coalesce(id, ''));
	end if;
	return query
	select regexp_replace(owner_row.id, '^wfi', 'tok') || '-' || t.n, t.node, d.node->>'kind',
		   case t.status when 'R' then case when l.owner is null then 'READY' else 'RUNNING' end
						 when 'W' then 'WAITING' when 'A' then 'AWAITING'
						 when 'J' then 'JOINED' when 'D' then 'DONE'
						 when 'F' then 'FAILED' when 'C' then 'CANCELLED' end,
		   case when t.comp_seq <> 0 then d.node->>'activity' || '#compensate'
				when d.node->>'kind' = 'SIGNAL' then d.node->>'name'
				else d.node->>'activity' end, t.attempt, t.available_at,
		   regexp_replace(l.owner, '#[^#]*$', ''), t.last_error,	-- without the nonce, the lease's secret
		   coalesce(t.started_at, l.claimed_at), t.finished_at, t.created_at, t.input, t.output
	  from wiggle.wf_token t
	  join (select e.node from wiggle.wf_definition f, json_array_elements(f.body->'nodes') e(node)
			 where f.name = owner_row.workflow and f.version = owner_row.version) d
		on d.node->>'id' = t.node
	  left join wiggle.wf_lease l on l.instance = t.instance and l.n = t.n
	 where t.instance = owner_row.no order by t.n;
end
$$;
comment on function tokens(text) is 'The tokens of an instance, oldest first. WG404: no such instance.';

-- Tasks ----------------------------------------------------------------------

create function poll(worker_id text, queues text[] default null, max int default 1,
	lease interval default null, versions jsonb default null) returns setof task
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_poll';
comment on function poll(text, text[], int, interval, jsonb) is
'Claims up to max ready tasks of these queues (default: every queue) and versions ([["order",3],…]; default: every version) now; never waits. Report with the lease_owner that each task carries.';

create function complete(task_id text, lease_owner text, context jsonb default null) returns outcome
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_complete';
comment on function complete(text, text, jsonb) is
'Finishes a TASK with the next context; null leaves the context as it is. WG404: unknown task. WG409: lost lease, or a task that is no longer running. When the instance has ended, nothing changes and its status is the answer.';

create function decide(task_id text, lease_owner text, value boolean) returns outcome
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_decide';
comment on function decide(text, text, boolean) is
'Finishes a PREDICATE. Errors as complete(); WG400 for a null value.';

create function fail(task_id text, lease_owner text, message text, retryable boolean default true) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_fail_task';
comment on function fail(text, text, text, boolean) is
'Reports a failed attempt: retried by the step''s policy, or final. Errors as complete().';

create function heartbeat(task_id text, lease_owner text, extend interval default null) returns timestamptz
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_heartbeat';
comment on function heartbeat(text, text, interval) is
'Moves the lease''s expiry to extend (default wiggle.default_lease) from now and returns it. Errors as complete().';

create function batch(starts batch_starts, runs batch_runs, fails batch_fails, beats batch_beats,
	releases batch_releases, polls batch_polls, events batch_events default null,
	shares batch_shares default null)
	returns setof batch_result
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_batch';
comment on function batch(batch_starts, batch_runs, batch_fails, batch_beats, batch_releases, batch_polls, batch_events, batch_shares) is
'Not for applications: what a proxy''s lane sends, everything of one batch in one transaction. Refusals are rows (code, message), never errors. docs/batch.md describes the arrays.';

create function report(runs jsonb) returns setof outcome
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	input wiggle.batch_runs;
	emitted wiggle.batch_events;
	nruns int;
begin
	if jsonb_typeof(runs) is distinct from 'array' or jsonb_array_length(runs) = 0 then
		raise exception using errcode = 'WG400', message = 'report requires at least one run';
	end if;
	if exists (select from jsonb_array_elements(runs) r
				where coalesce(jsonb_array_length(nullif(r->'steps', 'null')), 0) = 0) then
		raise exception using errcode = 'WG400', message = 'report requires at least one step';
	end if;
	select array_agg(r->>'task_id' order by k), array_agg(r->>'lease_owner' order by k),
		   array_agg(coalesce((r->>'final')::boolean, false)::int order by k), count(*)
	  into input.tasks, input.owners, input.modes, nruns
	  from jsonb_array_elements(runs) with ordinality t(r, k);
	if exists (select from jsonb_array_elements(runs) r, jsonb_array_elements(r->'steps') s
				where s->>'node_id' is null) then
		raise exception using errcode = 'WG400', message = 'each step of a report names its node_id';
	end if;
	if (select count(distinct task) from unnest(input.tasks) task) < nruns then
		raise exception using errcode = 'WG400',
			message = format('task %s appears twice in the batch',
				(select task from unnest(input.tasks) task group by task having count(*) > 1 limit 1));
	end if;
	select array_agg((k - 1)::int order by k, m), array_agg(s->>'node_id' order by k, m),
		   array_agg(case when s ? 'predicate_value' then 2 when s ? 'merge' then 1 else 0 end order by k, m),
		   array_agg(case when s ? 'predicate_value' then (s->'predicate_value')::text
						  when s ? 'merge' then (s->'merge')::text end order by k, m),
		   array_agg(coalesce((s->>'started_at')::int8, 0) order by k, m),
		   array_agg(coalesce((s->>'finished_at')::int8, 0) order by k, m)
	  into input.step_run, input.step_node, input.step_kind, input.step_value,
		   input.step_started, input.step_finished
	  from jsonb_array_elements(runs) with ordinality t(r, k),
		   jsonb_array_elements(r->'steps') with ordinality u(s, m);
	select array_agg(step order by step, e), array_agg(v->>'type' order by step, e),
		   array_agg(nullif(v->'payload', 'null')::text order by step, e)
	  into emitted.step, emitted.types, emitted.payloads
	  from (select (row_number() over (order by k, m) - 1)::int as step, s
			  from jsonb_array_elements(runs) with ordinality t(r, k),
				   jsonb_array_elements(r->'steps') with ordinality u(s, m)) steps,
		   jsonb_array_elements(coalesce(nullif(s->'events', 'null'), '[]')) with ordinality w(v, e);
	return query
	select input.tasks[b.item + 1], b.status,
		   to_timestamp(nullif(b.expires_at, 0) / 1000.0), b.task_id, b.code, b.message
	  from wiggle.batch(null, input, null, null, null, null, emitted) b where b.op = 'r' order by b.item;
exception
	when data_exception then
		raise exception using errcode = 'WG400', message = format('the runs cannot be read: %s', sqlerrm);
end
$$;
comment on function report(jsonb) is
'Reports one or many runs: [{"task_id", "lease_owner", "final", "steps": [{"node_id", "merge" | "predicate_value", "started_at", "finished_at", "events": [{"type", "payload"}]}]}]. Each run is answered on its own: error_status 0, 400, 404 or 409.';

create function release_owners(owners text[], lost_pid int default null) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	released int;
begin
	-- A lost session may still be waiting for a lock and would claim afterwards.
	perform pg_terminate_backend(a.pid, 10000)
	   from pg_stat_activity a
	  where a.pid = lost_pid and a.usename = session_user
		and a.backend_start < (select b.backend_start from pg_stat_activity b where b.pid = pg_backend_pid());
	with held as (
		select array_agg(regexp_replace(i.id, '^wfi', 'tok') || '-' || l.n order by i.id, l.n) tasks,
			   array_agg(l.owner order by i.id, l.n) owners
		  from wiggle.wf_lease l join wiggle.wf_instance i on i.no = l.instance
		 where l.owner = any (release_owners.owners)
	)
	select count(*) into released
	  from held, wiggle.batch(null, null, null, null, row(held.tasks, held.owners)::wiggle.batch_releases, null) b
	 where held.tasks is not null and b.code = 0;
	return released;
end
$$;
comment on function release_owners(text[], int) is
'Not for applications: gives back, unspent, whatever these lease owners hold (a proxy lost the answer of their claims), after ending the session of the same role that was lost. Returns how many.';

-- Events -----------------------------------------------------------------------

create type event as (
	seq bigint, instance_id text, workflow text, version int, correlation_id text, type text,
	created_at timestamptz, payload jsonb, node_id text
);

create function event_horizon() returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_event_horizon_sql';
comment on function event_horizon() is
'Not for applications: entries of wf_event below this number are final. Ask before the snapshot that reads them.';

create function feed(after bigint, max int default 100) returns setof event
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	-- Read before the query takes its snapshot: see event.h.
	horizon bigint := wiggle.event_horizon();
begin
	-- A snapshot that is older than the horizon would step over entries.
	if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
		raise exception using errcode = 'WG400', message = format('the event feed is read at isolation level read committed, this transaction is %s', current_setting('transaction_isolation'));
	end if;
	return query
	select e.seq, e.instance_id, e.workflow, e.version, e.correlation_id, e.type,
		   e.created_at, e.payload::jsonb, e.node_id
	  from wiggle.wf_event e
	 where e.seq > after and e.seq < horizon order by e.seq limit greatest(feed.max, 1);
end
$$;
comment on function feed(bigint, int) is
'Not for applications: entries after a number, without a cursor.';

create function events(consumer text, max int default 100, start_from bigint default 0)
returns setof event
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	this_shard int := coalesce((select s.shard_id from wiggle.wf_shard s), 0);
	cursor_at bigint;
begin
	if coalesce(btrim(consumer), '') = '' then
		raise exception using errcode = 'WG400', message = 'a consumer name is required: the feed''s cursor is named, so two consumers with no name would share one place in the log';
	end if;
	select c.acked into cursor_at from wiggle.wf_event_cursor c
	 where c.consumer = events.consumer and c.shard = this_shard;
	if cursor_at is null then
		cursor_at := case when start_from = 0 then wiggle.event_horizon() - 1
						  when start_from < 0 then 0 else start_from end;
		perform wiggle.cursor_register(consumer, array[this_shard], array[cursor_at]);
	end if;
	return query select * from wiggle.feed(cursor_at, events.max);
end
$$;
comment on function events(text, int, bigint) is
'Entries of this shard''s log after what the consumer has acknowledged; does not move its cursor. The first call registers it: start_from 0 = from now on, negative = from the earliest, n = after n. WG400: no consumer name, or a transaction above read committed.';

create function ack(consumer text, seq bigint) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	select wiggle.cursor_ack(consumer, array[coalesce((select s.shard_id from wiggle.wf_shard s), 0)],
		array[least(seq, wiggle.event_horizon() - 1)])
$$;
comment on function ack(text, bigint) is
'Acknowledges entries of this shard''s log up to seq; never moves backwards; an unregistered consumer is ignored.';

create function cursor_read(consumer text) returns table (shard int, acked bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select c.shard, c.acked from wiggle.wf_event_cursor c
	 where c.consumer = cursor_read.consumer order by c.shard
$$;
comment on function cursor_read(text) is 'Not for applications: a consumer''s place in the log of each shard.';

create function cursor_register(consumer text, shards int[], at bigint[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	insert into wiggle.wf_event_cursor
	select cursor_register.consumer, p.shard, greatest(p.seq, 0), (wiggle.version()).now
	  from unnest(shards, at) p(shard, seq)
	on conflict do nothing
$$;
comment on function cursor_register(text, int[], bigint[]) is
'Not for applications: registers a consumer where it is not yet.';

create function cursor_ack(consumer text, shards int[], seqs bigint[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	update wiggle.wf_event_cursor c
	   set acked = greatest(c.acked, p.seq), updated_at = (wiggle.version()).now
	  from unnest(shards, seqs) p(shard, seq)
	 where c.consumer = cursor_ack.consumer and c.shard = p.shard and c.acked < p.seq
$$;
comment on function cursor_ack(text, int[], bigint[]) is
'Not for applications: moves a consumer''s places forward, never back.';

create function forget_consumer(consumer text) returns boolean
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	with gone as (delete from wiggle.wf_event_cursor c where c.consumer = forget_consumer.consumer returning 1)
	select exists (select from gone)
$$;
comment on function forget_consumer(text) is
'Removes a consumer of events with its places in the logs, which from then on are kept no longer for it. False: there was none of this name.';

-- Schedules --------------------------------------------------------------------

create type schedule_row as (
	id text, workflow text, every_millis bigint, cron text, context jsonb,
	next_fire_at timestamptz, created_at timestamptz
);

create function schedule(workflow text, every interval default null, cron text default null,
	context jsonb default '{}') returns schedule_row
language c volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
as 'MODULE_PATHNAME', 'wig_schedule';
comment on function schedule(text, interval, text, jsonb) is
'Starts the latest version of a workflow again and again: every interval, or by a cron expression of five fields (UTC). Exactly one of the two. One schedule a workflow: a second call replaces cadence and context. WG400: bad cadence. WG404: unknown workflow.';

create function unschedule(id text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$ delete from wiggle.wf_schedule s where s.id = unschedule.id $$;
comment on function unschedule(text) is 'Removes a schedule; one that does not exist is no error.';

create function schedules() returns setof schedule_row
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select s.id, s.workflow, s.every_millis, s.cron, s.context::jsonb, s.next_fire_at, s.created_at
	  from wiggle.wf_schedule s order by s.id
$$;
comment on function schedules() is 'All schedules of this database.';

-- Instances were minted by a generation that has begun, and go on being minted by it elsewhere: there is one of it.
create function placement_refusal(generations jsonb) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	with told as (
		select (g->>'id')::bigint as generation, (g->>'activeFrom')::timestamptz as active_from,
			(select jsonb_object_agg(w.key::int, w.value::int) from jsonb_each_text(g->'weights') w where w.value::int > 0) as weights
		  from jsonb_array_elements(generations) g),
	known as (
		select p.generation, p.active_from, jsonb_object_agg(p.shard, p.weight) as weights
		  from wiggle.wf_placement p group by p.generation, p.active_from)
	select format('generation %s has begun and cannot be changed: its %s on home, but %s in the topology; restore that, and append a'
			' generation instead', generation,
			concat_ws(' and its ', case when k.active_from <> t.active_from then 'activeFrom is ' || to_char(k.active_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end,
				case when k.weights <> t.weights then format('weights are %s', k.weights) end),
			concat_ws(' and ', case when k.active_from <> t.active_from then to_char(t.active_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end,
				case when k.weights <> t.weights then t.weights::text end))
	  from told t join known k using (generation)
	 where k.active_from <= (select v.now from wiggle.version() v)
	   and (k.active_from, k.weights) <> (t.active_from, t.weights)
	 order by generation limit 1
$$;
comment on function placement_refusal(jsonb) is
'Not for applications, on home: why the topology cannot have these generations, null when it can.';

create function publish_placement(generations jsonb, withdraw boolean default true) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	known bigint;
	told bigint := (select max((g->>'id')::bigint) from jsonb_array_elements(generations) g);
begin
	lock table wiggle.wf_placement in share row exclusive mode;
	select max(p.generation) into known from wiggle.wf_placement p;
	-- a proxy that has not got the newest topology yet must not undo what others have told
	if known > told and not withdraw then
		return known;
	end if;
	delete from wiggle.wf_placement;
	insert into wiggle.wf_placement
	select (g->>'id')::bigint, (g->>'activeFrom')::timestamptz, w.key::int, w.value::int
	  from jsonb_array_elements(generations) g, jsonb_each_text(g->'weights') w
	 where w.value::int > 0;
	return told;
end
$$;
comment on function publish_placement(jsonb, boolean) is
'Not for applications: the topology''s generations, for instances that this home shard''s schedules start. Unless withdraw is set, generations that end earlier than those known change nothing. The newest known.';

create function outbox(max int default 100, shards int[] default null)
returns table (id text, shard int, workflow text, correlation_id text, context text)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select o.id, o.shard, o.workflow, o.correlation_id, o.context::text
	  from wiggle.wf_outbox o
	 where (shards is null or o.shard = any (shards)) and o.due_at <= (select v.now from wiggle.version() v)
	 order by greatest(o.due_at, o.created_at), o.id limit outbox.max
$$;
comment on function outbox(int, int[]) is
'Not for applications: instances to be started on other shards, of all or of these.';

create function outbox_done(ids text[], refused text[] default '{}') returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	delete from wiggle.wf_outbox o where o.id = any (ids);

	-- Several proxies may have been refused the same one: it counts once.
	update wiggle.wf_outbox o
	   set refusals = o.refusals + 1, due_at = v.now + interval '10 s' * (1 << least(o.refusals, 5))
	  from wiggle.version() v
	 where o.id = any (refused) and o.due_at <= v.now
$$;
comment on function outbox_done(text[], text[]) is
'Not for applications: these were started on their shards, and those are to be tried again, after 10 s at first and 320 s at most.';

-- Reading ----------------------------------------------------------------------

create function backlog(max int default 100)
returns table (workflow text, version int, queue text, ready_count int, oldest_available_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select i.workflow, i.version, r.queue, count(*)::int, min(t.available_at)
	  from wiggle.wf_ready r join wiggle.wf_instance i on i.no = r.instance
	  join wiggle.wf_token t on t.instance = r.instance and t.n = r.n
	 group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit backlog.max
$$;
comment on function backlog(int) is 'Ready tasks by workflow, version and queue, most first.';

create function step_stats(workflow text, version int default null, since timestamptz default '-infinity',
	sample int default 10000)
returns table (node_id text, name text, count bigint, mean_millis float8, p50 bigint, p95 bigint,
	max bigint, wait_p50 bigint, wait_p95 bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	wanted int := coalesce(nullif(greatest(step_stats.version, 0), 0),
		(select max(d.version) from wiggle.wf_definition d where d.name = step_stats.workflow));
	spec json := (select d.body from wiggle.wf_definition d
				   where d.name = step_stats.workflow and d.version = wanted);
begin
	if spec is null then
		raise exception using errcode = 'WG404',
			message = format('workflow ''%s%s'' not found', step_stats.workflow,
				(select ':' || wanted where exists (select from wiggle.wf_definition d where d.name = step_stats.workflow))),
			hint = 'wiggle.workflows() lists what is registered in this database.';
	end if;
	return query
	with steps as (
		select t.node, extract(epoch from t.finished_at - t.started_at) * 1000 as took,
			   greatest(extract(epoch from t.started_at - t.available_at) * 1000, 0) as waited
		  from wiggle.wf_instance i join wiggle.wf_token t on t.instance = i.no
		 where i.workflow = step_stats.workflow and i.version = wanted and t.status = 'D'
		   and t.comp_seq is null and t.started_at is not null and t.finished_at >= since
		 order by i.no desc limit case when sample > 0 then sample else 10000 end
	)
	select s.node, n.node->>'name', count(*), avg(s.took)::float8,
		   percentile_disc(0.5) within group (order by s.took::bigint),
		   percentile_disc(0.95) within group (order by s.took::bigint), max(s.took)::bigint,
		   percentile_disc(0.5) within group (order by s.waited::bigint),
		   percentile_disc(0.95) within group (order by s.waited::bigint)
	  from steps s join json_array_elements(spec->'nodes') n(node) on n.node->>'id' = s.node
	 where n.node->>'kind' in ('TASK', 'PREDICATE')
	 group by s.node, n.node->>'name' order by 6 desc, 1;
end
$$;
comment on function step_stats(text, int, timestamptz, int) is
'How long the steps of a version took and waited, in milliseconds, over its newest sample of finished steps. WG404: unknown workflow.';

create function pending_signals()
returns table (instance_id text, workflow text, signal text, since timestamptz, deadline timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select i.id, i.workflow, coalesce(n.node->>'name', t.node), t.created_at,
		   case when t.available_at > t.created_at then t.available_at end
	  from wiggle.wf_token t join wiggle.wf_instance i on i.no = t.instance
	  join wiggle.wf_definition d on d.name = i.workflow and d.version = i.version,
	  json_array_elements(d.body->'nodes') n(node)
	 where t.status = 'A' and n.node->>'id' = t.node and n.node->>'kind' = 'SIGNAL'
	 order by t.created_at
$$;
comment on function pending_signals() is 'Signals that instances wait for, oldest first.';

create function node_beat(id text, name text, workers int, polls jsonb, partition boolean default false,
	out holder text, out heard timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	now timestamptz := (wiggle.version()).now;
	mine wiggle.wf_node;
	silent boolean;
begin
	select * into mine from wiggle.wf_node n where n.id = node_beat.id;
	-- A heartbeat that is still to come is from before the clock was set back.
	silent := mine.last_heartbeat not between now - interval '60 s' and now + interval '60 s';
	if partition and (mine.partition is not true or silent) then
		-- Of two that come under one name at the same moment the second sees the first. Who was silent has lost it.
		lock table wiggle.wf_node in share row exclusive mode;
		select n.id, n.last_heartbeat into holder, heard from wiggle.wf_node n
		 where n.partition and n.name = node_beat.name and n.id <> node_beat.id
		   and n.last_heartbeat > now - interval '60 s' and n.last_heartbeat < now + interval '60 s'
		 order by n.last_heartbeat desc, n.id limit 1;
	end if;
	insert into wiggle.wf_node
	values (id, name, now, now, workers, polls, partition and holder is null)
	on conflict on constraint wf_node_pkey do update
	set name = excluded.name, last_heartbeat = excluded.last_heartbeat, workers = excluded.workers,
		polls = excluded.polls, partition = excluded.partition;
	if mine.id is null then
		-- Those that died, also where none ever leaves in order.
		delete from wiggle.wf_node n where n.id in (select m.id from wiggle.wf_node m
			where m.last_heartbeat not between now - interval '1 hour' and now + interval '1 hour' for update skip locked);
	end if;
	-- Rarely: who takes which share changes with it.
	if (mine.partition or partition) and ((mine.partition, mine.polls) is distinct from (partition and holder is null, polls) or silent) then
		perform pg_notify('wiggle_members', '');
	end if;
end $$;
comment on function node_beat(text, text, int, jsonb, boolean) is
'Not for applications: a proxy is alive. One that is to divide the tasks with others does so only while no other that does bears its name; else holder is the other''s id, and heard its last heartbeat.';

create function node_leave(id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	divided boolean;
begin
	delete from wiggle.wf_node n where n.id = node_leave.id returning n.partition into divided;
	if divided then
		perform pg_notify('wiggle_members', '');
	end if;
end $$;
comment on function node_leave(text) is 'Not for applications: a proxy stops.';

create function nodes()
returns table (id text, name text, first_heartbeat timestamptz, last_heartbeat timestamptz,
	workers int, polls jsonb, alive boolean, leader boolean, partition boolean, member boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	with n as (
		select m.*, m.last_heartbeat > v.now - interval '15 s' and m.last_heartbeat < v.now + interval '15 s' as alive,
			   m.partition and m.last_heartbeat > v.now - interval '60 s' and m.last_heartbeat < v.now + interval '60 s' as member
		  from wiggle.wf_node m, wiggle.version() v
	)
	select n.id, n.name, n.first_heartbeat, n.last_heartbeat, n.workers, n.polls, n.alive,
		   n.alive and n.id = (select f.id from n f where f.alive order by f.first_heartbeat, f.id limit 1),
		   n.partition, n.member
	  from n order by n.first_heartbeat, n.id
$$;
comment on function nodes() is
'Proxies of this cluster, longest-lived first; alive when heard from within 15 s. The leader is the longest-lived: a title, duties belong to each shard''s clock worker. member: takes its share of the tasks, since it divides them with others and was heard from within 60 s.';

-- Authorization of the proxies' clients ----------------------------------------
-- On the auth shard, which is home unless the topology says otherwise. Changes come one
-- after the other: a proxy that has seen an entry of the audit has seen all before it.

-- Those built in are no rows: a table that is filled from the start cannot be copied into
-- another database of the same kind.
create function auth_roles() returns table (name text, permissions text[], builtin boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select 'admin', '{*}'::text[], true
	union all select 'viewer', '{read}', true
	union all select r.name, r.permissions, false from wiggle.wf_auth_role r
	 order by 1
$$;
comment on function auth_roles() is 'Roles of the proxies'' clients.';

create function auth_note(actor text, action text, target text, detail text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
	lock table wiggle.wf_auth_audit in share row exclusive mode;
	insert into wiggle.wf_auth_audit
	select coalesce(max(a.seq), 0) + 1, (wiggle.version()).now, coalesce(auth_note.actor, ''),
		   auth_note.action, coalesce(auth_note.target, ''), auth_note.detail
	  from wiggle.wf_auth_audit a;
end
$$;
comment on function auth_note(text, text, text, text) is 'Not for applications: an entry of the audit, and the lock that changes take first.';

create function auth_check_name(kind text, name text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
	if name is null or name !~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$' then
		raise exception using errcode = 'WG400',
			message = format('%s ''%s'' must be up to 64 letters, digits and . _ @ -, with a letter or digit first', kind, name);
	end if;
end
$$;
comment on function auth_check_name(text, text) is 'Not for applications: WG400 unless this may name a role or a credential.';

create function auth_put_role(name text, permissions text[], actor text default session_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	p text;
	unscoped constant text := 'event.read, user.manage, shard.manage';
	scoped constant text := 'read, workflow.register, instance.start, instance.cancel, instance.signal, schedule.write, trigger.write, task.poll';
begin
	perform wiggle.auth_check_name('role', name);
	if coalesce(cardinality(permissions), 0) not between 1 and 200 then
		raise exception using errcode = 'WG400', message = format('role ''%s'' must have 1 to 200 permissions', name);
	end if;
	foreach p in array permissions loop
		if p is null or not (p = '*' or p = any (string_to_array(unscoped || ', ' || scoped, ', ')) or
			split_part(p, ':', 1) = any (string_to_array(scoped, ', ')) and p ~ '^[^:]+:[^[:cntrl:]]{1,200}$' and p !~ ':[*]$') then
			raise exception using errcode = 'WG400', message = format(
				'''%s'' is no permission: there are *, %s, and, alone or with a colon and a name or a prefix like acme.* behind, %s',
				p, unscoped, scoped);
		end if;
	end loop;
	perform wiggle.auth_note(actor, 'role.put', name, array_to_string(permissions, ' '));
	if exists (select from wiggle.auth_roles() r where r.name = auth_put_role.name and r.builtin) then
		raise exception using errcode = 'WG409', message = format('role ''%s'' is built in and cannot be changed', name);
	end if;
	insert into wiggle.wf_auth_role
	values (name, permissions, (wiggle.version()).now, (wiggle.version()).now)
	on conflict on constraint wf_auth_role_pkey do update
	set permissions = excluded.permissions, updated_at = excluded.updated_at;
end
$$;
comment on function auth_put_role(text, text[], text) is
'Creates or replaces a role of the proxies'' clients. WG400: a permission that is none. WG409: a built-in role.';

create function auth_drop_role(name text, actor text default session_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	holders text;
begin
	perform wiggle.auth_note(actor, 'role.drop', name, null);
	if exists (select from wiggle.auth_roles() r where r.name = auth_drop_role.name and r.builtin) then
		raise exception using errcode = 'WG409', message = format('role ''%s'' is built in and cannot be dropped', name);
	end if;
	select string_agg(c.id, ', ' order by c.id) into holders
	  from wiggle.wf_auth_credential c where c.role = auth_drop_role.name;
	if holders is not null then
		raise exception using errcode = 'WG409', message = format(
			'role ''%s'' is held by %s; revoke these credentials or grant them another role first', name, holders);
	end if;
	delete from wiggle.wf_auth_role r where r.name = auth_drop_role.name;
	if not found then
		raise exception using errcode = 'WG404', message = format('role ''%s'' not found', name);
	end if;
end
$$;
comment on function auth_drop_role(text, text) is 'Drops a role that no credential holds. WG404: there is none. WG409: held, or built in.';

create function auth_add(id text, role text, key_hash bytea, key_prefix text, subject text,
	expires_at timestamptz, actor text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
	perform wiggle.auth_check_name('credential', id);
	if expires_at <= (wiggle.version()).now then
		raise exception using errcode = 'WG400', message = format('credential ''%s'' would have expired already', id);
	end if;
	perform wiggle.auth_note(actor, 'credential.create', id,
		case when subject is null then 'key ' || key_prefix else 'certificate ' || subject end || ', role ' || role);
	if not exists (select from wiggle.auth_roles() r where r.name = auth_add.role) then
		raise exception using errcode = 'WG404', message = format('role ''%s'' not found', role);
	end if;
	if exists (select from wiggle.wf_auth_credential c where c.id = auth_add.id) then
		raise exception using errcode = 'WG409', message = format('credential ''%s'' exists already', id);
	end if;
	if exists (select from wiggle.wf_auth_credential c where c.subject = auth_add.subject) then
		raise exception using errcode = 'WG409', message = format('there is a credential for subject ''%s'' already', subject);
	end if;
	insert into wiggle.wf_auth_credential
	values (id, role, key_hash, key_prefix, subject, (wiggle.version()).now, expires_at);
end
$$;
comment on function auth_add(text, text, bytea, text, text, timestamptz, text) is 'Not for applications: a new credential.';

create function auth_create_key(id text, role text, expires_at timestamptz default null,
	actor text default session_user) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	key constant text := 'wgk_' || rtrim(translate(encode(sha256(uuid_send(gen_random_uuid())
		|| uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'), '+/', '-_'), '=');
begin
	perform wiggle.auth_add(id, role, sha256(convert_to(key, 'UTF8')), left(key, 12), null, expires_at, actor);
	return key;
end
$$;
comment on function auth_create_key(text, text, timestamptz, text) is
'Creates an API key with a role and returns it: the only time that anybody sees it. WG404: no such role. WG409: the id is taken.';

create function auth_add_certificate(id text, subject text, role text, expires_at timestamptz default null,
	actor text default session_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
	if btrim(coalesce(subject, '')) = '' or length(subject) > 512 or subject ~ '[[:cntrl:]]' then
		raise exception using errcode = 'WG400', message = format(
			'subject ''%s'' must be a distinguished name of up to 512 characters, such as CN=worker,O=Acme', subject);
	end if;
	perform wiggle.auth_add(id, role, null, null, btrim(subject), expires_at, actor);
end
$$;
comment on function auth_add_certificate(text, text, text, timestamptz, text) is
'Gives clients whose certificate has this subject (RFC 2253) a role. WG404: no such role. WG409: the id or the subject is taken.';

create function auth_grant(id text, role text, actor text default session_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
	perform wiggle.auth_note(actor, 'credential.grant', id, role);
	if not exists (select from wiggle.auth_roles() r where r.name = auth_grant.role) then
		raise exception using errcode = 'WG404', message = format('role ''%s'' not found', role);
	end if;
	update wiggle.wf_auth_credential c set role = auth_grant.role where c.id = auth_grant.id;
	if not found then
		raise exception using errcode = 'WG404', message = format('credential ''%s'' not found', id);
	end if;
end
$$;
comment on function auth_grant(text, text, text) is 'Gives a credential another role. WG404: there is no such credential or role.';

create function auth_revoke(id text, actor text default session_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
	perform wiggle.auth_note(actor, 'credential.revoke', id, null);
	delete from wiggle.wf_auth_credential c where c.id = auth_revoke.id;
	if not found then
		raise exception using errcode = 'WG404', message = format('credential ''%s'' not found', id);
	end if;
end
$$;
comment on function auth_revoke(text, text) is 'Removes a credential. WG404: there is none.';

create function auth_credentials()
returns table (id text, role text, key_prefix text, subject text, created_at timestamptz, expires_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select c.id, c.role, c.key_prefix, c.subject, c.created_at, c.expires_at
	  from wiggle.wf_auth_credential c order by c.id
$$;
comment on function auth_credentials() is 'Credentials of the proxies'' clients; of a key its first characters.';

create function auth_find(key_hash bytea, subject text)
returns table (id text, permissions text[], expires_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select c.id, r.permissions, c.expires_at
	  from wiggle.wf_auth_credential c join wiggle.auth_roles() r on r.name = c.role
	 where c.key_hash = auth_find.key_hash or c.subject = auth_find.subject
$$;
comment on function auth_find(bytea, text) is 'Not for applications: whose key or certificate this is.';

create function auth_head() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select coalesce(max(a.seq), 0) from wiggle.wf_auth_audit a $$;
comment on function auth_head() is 'Not for applications: the last change of roles and credentials.';

-- Shard, versions, clock -----------------------------------------------------

create function shard(out shard_id int, out system_id text, out database oid,
	out library_version text, out catalog_version text, out now timestamptz,
	out timeline int, out copied_by text)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select (select s.shard_id from wiggle.wf_shard s), c.system_identifier::text,
		   (select d.oid from pg_database d where d.datname = current_database()),
		   v.library, v.catalog, v.now,
		   -- The log that is being written: the control file tells of a promotion only after a checkpoint.
		   case when not pg_is_in_recovery()
				then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end,
		   (select min(b.subname) from pg_subscription b, pg_subscription_rel r, pg_class k
			 where b.oid = r.srsubid and k.oid = r.srrelid and k.relnamespace = 'wiggle'::regnamespace)
	  from pg_control_system() c, wiggle.version() v
$$;
comment on function shard() is 'What this database is: its shard id (null: not claimed yet), its identity and versions, the timeline it writes (null: a standby) and the subscription that makes it a logical replica.';

create function version(out library text, out catalog text, out now timestamptz, out compatible boolean)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_version';
comment on function @extschema@.version() is 'Versions of the loaded library and of the installed SQL objects, the engine''s clock, and whether the one runs with the other.';

create function shard_claim(shard_id int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	present int;
begin
	if shard_id is null or shard_id < 0 or shard_id > 999999999 then
		raise exception using errcode = 'WG400', message = format('shard id must be 0 to 999999999, got %s', shard_id);
	end if;
	lock table wiggle.wf_shard in share row exclusive mode;
	select s.shard_id into present from wiggle.wf_shard s;
	if present = shard_claim.shard_id then
		return;
	end if;
	if present is not null then
		raise exception using errcode = 'WG409',
			message = format('this database is shard %s and cannot become shard %s', present, shard_claim.shard_id),
			hint = 'Each entry of the topology needs a database of its own; a shard id is never changed or reused. In a database without instances that was claimed by mistake, "drop extension wiggle" and create it again.';
	end if;
	if exists (select from wiggle.wf_instance) and shard_claim.shard_id <> 0 then
		raise exception using errcode = 'WG409',
			message = format('this database already holds instances without a shard id and cannot become shard %s', shard_claim.shard_id),
			hint = 'Ids without a shard are looked for on the home shard: make this database shard 0 and home.';
	end if;
	insert into wiggle.wf_shard (shard_id, claimed_at, system_id, database)
	select shard_claim.shard_id, d.now, d.system_id, d.database from wiggle.shard() d;
end
$$;
comment on function shard_claim(int) is 'Writes this database''s shard id, once. WG409: it already is another shard.';

create function replica_beat() returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	-- Of many proxies one a second writes. The row's clock alone is compared with itself.
	insert into wiggle.wf_beat as b values (clock_timestamp())
	on conflict on constraint wf_beat_pkey do update set at = excluded.at
	 where b.at not between excluded.at - interval '500 ms' and excluded.at;
	select (extract(epoch from b.at) * 1000000)::bigint from wiggle.wf_beat b
$$;
comment on function replica_beat() is
'Not for applications: renews the moment in wf_beat and returns it, in microseconds since 1970.';

create function shard_home(home int, state text default null) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	update wiggle.wf_shard s
	   set home = shard_home.home,
		   state = case when s.state = 'DRAINING' then s.state else coalesce(shard_home.state, s.state) end
	 where s.home is distinct from shard_home.home
		or (s.state is distinct from 'DRAINING' and s.state is distinct from coalesce(shard_home.state, s.state))
$$;
comment on function shard_home(int, text) is
'Not for applications: tells this database which shard of its topology is home, and its own state there.';

create function shard_facts(out identity uuid, out timeline int, out genuine boolean, out complete boolean, out facts jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	me record;
	own wiggle.wf_shard;
	wal pg_lsn;
begin
	select * into me from wiggle.shard();
	select * into own from wiggle.wf_shard;
	if not pg_is_in_recovery() then
		wal := pg_current_wal_flush_lsn();
		timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
	end if;
	identity := own.identity;
	genuine := own.system_id = me.system_id and own.database = me.database;
	complete := own.complete_at is not null;
	facts := jsonb_build_object('identity', identity, 'system', me.system_id, 'database', me.database::text,
		'adopted', own.adopted_at, 'emptied', own.emptied_at, 'timeline', timeline, 'wal', wal::text);
end
$$;
comment on function shard_facts() is
'Not for applications: which database this is and where its history stands, for the registry on home; genuine: it is no copy.';

create function shard_adopt() returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	fresh uuid;
begin
	update wiggle.wf_shard s
	   set identity = gen_random_uuid(), system_id = me.system_id, database = me.database,
		   adopted_at = greatest(clock_timestamp(), s.adopted_at + interval '1 microsecond')
	  from wiggle.shard() me
	returning s.identity into fresh;
	if fresh is null then
		raise exception using errcode = 'WG409', message = 'this database is no shard yet',
			hint = 'Run "select wiggle.shard_claim(N)" first, with the id of the shard that it takes the place of.';
	end if;
	return fresh;
end
$$;
comment on function shard_adopt() is
'This database takes the place of its shard''s original, which is gone for good and must not run again: after a restore, pg_upgrade, or the loss of the original. WG409: it is no shard.';

create function shard_retire() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	own wiggle.wf_shard;
	n record;
	late record;
begin
	lock table wiggle.wf_instance in share row exclusive mode;
	select * into own from wiggle.wf_shard;
	if own.emptied_at is not null then
		return;
	end if;
	if own.state is distinct from 'DRAINING' then
		raise exception using errcode = 'WG409',
			message = format('shard %s is not draining, but %s', own.shard_id, coalesce(own.state, 'not in use')),
			hint = 'Append a generation without it to the topology, and when that has begun set its state to draining.';
	end if;
	-- nothing can start meanwhile: what is only to be told is counted up to a bound
	select * into n from wiggle.newest_instances(10001);
	if n.held > 0 then
		raise exception using errcode = 'WG409',
			message = format('shard %s still holds %s, %s of them not ended; they end where they are, and'
							 ' retention purges them after that (wiggle.retention is %s)', own.shard_id,
							 case when n.held > 10000 then 'more than 10000 instances' else n.held || ' instance(s)' end,
							 case when n.held > 10000 then 'at least ' || least(n.live, 10000) else n.live::text end,
							 current_setting('wiggle.retention'));
	end if;
	select c.consumer, e.n into late
	  from wiggle.wf_event_cursor c,
		   lateral (select count(*) as n from (select from wiggle.wf_event e where e.seq > c.acked limit 10001) e) e
	 where c.shard = own.shard_id and e.n > 0 order by 1 limit 1;
	if late.consumer is not null then
		raise exception using errcode = 'WG409',
			message = format('the consumer ''%s'' has not acknowledged %s of shard %s', late.consumer,
							 case when late.n > 10000 then 'more than 10000 events' else late.n || ' event(s)' end, own.shard_id),
			hint = 'Let it read them, or forget it: wiggle.forget_consumer().';
	end if;
	update wiggle.wf_shard set emptied_at = clock_timestamp();
	create trigger retired before insert on wiggle.wf_instance for each row execute function wiggle.shard_is_retired();
end
$$;
comment on function shard_retire() is
'Confirms that this draining shard holds nothing any more; nothing can be started here from then on, and the topology may call it retired. WG409: it holds something, or does not drain.';

create function shard_is_retired() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
	raise exception using errcode = 'WG409', message = 'this shard is retired: nothing can be started here';
end
$$;
comment on function shard_is_retired() is 'Not for applications: refuses instances on a shard that was retired.';

-- Of the newest ones up to a bound, whatever the statistics say: a shard may hold millions of ended ones.
create function newest_instances(most int, out live bigint, out held bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
	select count(*) filter (where n.status in ('RUNNING', 'COMPENSATING')), count(*)
	  from (select i.status from wiggle.wf_instance i order by i.no desc limit most) n
$$;
comment on function newest_instances(int) is
'Not for applications: how many instances there are, and how many of them have not ended, among the newest.';

create function shard_load(out live bigint, out held bigint, out lag_millis bigint, out extension text, out more boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select least(i.live, 10000), least(i.held, 10000),
		   (select coalesce(greatest(extract(epoch from v.now - min(t.due_at)) * 1000, 0), 0)::bigint
			  from wiggle.wf_timer t where t.due_at > '-infinity'), v.catalog,
		   i.held > 10000
	  from wiggle.version() v, wiggle.newest_instances(10001) i
$$;
comment on function shard_load() is
'Instances that have not ended, and all that are not purged, of the newest 10000 (more: there are others), and how long the oldest timer is overdue.';

create function clock_stats() returns table (duty text, running boolean, passes bigint, errors bigint)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_clock_stats';
comment on function clock_stats() is
'The clock worker of this database since the server''s start: is it running, passes of each duty, errors of all.';

-- One row a number, bounded in what it reads, whatever the statistics say: proxies ask every few seconds.
create function watch() returns table (metric text, label text, value float8)
language sql stable security definer set search_path = pg_catalog, pg_temp
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set jit = off
as $$
	with recursive queue (name, instance, n, place) as (
		(select r.queue, r.instance, r.n, 1 from wiggle.wf_ready r order by r.queue, r.instance, r.n limit 1)
		union all
		select r.queue, r.instance, r.n, q.place + 1
		  from queue q cross join lateral (select r.queue, r.instance, r.n from wiggle.wf_ready r
			 where r.queue > q.name order by r.queue, r.instance, r.n limit 1) r
		 where q.place < 1000
	), late (name) as (
		-- One that waits must not hide behind many that do not.
		select q.name from queue q join wiggle.wf_token t on t.instance = q.instance and t.n = q.n
		 order by t.available_at, q.name limit 64
	), clock as (
		select v.now from wiggle.version() v
	), snapshot as (
		select a.backend_xmin as xmin, a.xact_start as since from pg_stat_activity a
		 where a.backend_xmin is not null and (a.datname = current_database() or a.backend_type = 'walsender')
		union all
		select s.xmin, null from pg_replication_slots s where s.xmin is not null
		union all
		select p.transaction, p.prepared from pg_prepared_xacts p where p.database = current_database()
	)
	select m.metric, q.name, m.value
	  from late q cross join clock c cross join lateral (
		select 'queue_ready', count(*)::float8
		  from (select from wiggle.wf_ready r where r.queue = q.name limit 10000) r
		union all
		select 'queue_oldest', greatest(extract(epoch from c.now - min(t.available_at)), 0)::float8
		  from (select r.instance, r.n from wiggle.wf_ready r where r.queue = q.name order by r.instance, r.n limit 1000) r
		  join wiggle.wf_token t on t.instance = r.instance and t.n = r.n) m (metric, value)
	 where m.value is not null
	union all
	select 'clock_lag', 'timers', coalesce(greatest(extract(epoch from c.now - (select t.due_at from wiggle.wf_timer t
		where t.due_at > '-infinity' order by t.due_at limit 1)), 0), 0)::float8 from clock c
	union all
	select 'clock_lag', 'schedules',
		   coalesce(greatest(extract(epoch from c.now - (select min(s.next_fire_at) from wiggle.wf_schedule s)), 0), 0)::float8
	  from clock c
	union all
	select 'clock_passes', s.duty, s.passes::float8 from wiggle.clock_stats() s
	union all
	select 'clock_errors', '', max(s.errors)::float8 from wiggle.clock_stats() s
	union all
	select 'clock_running', '', case when bool_or(s.running) then 1 else 0 end from wiggle.clock_stats() s
	union all
	select 'oldest_xmin_age', '', coalesce(max(age(s.xmin)), 0)::float8 from snapshot s
	union all
	select 'oldest_snapshot', '', coalesce(max(extract(epoch from clock_timestamp() - s.since)), 0)::float8 from snapshot s
	union all
	select m.metric, s.relname, m.value
	  from pg_stat_user_tables s cross join lateral (
		values ('table_rows', s.n_live_tup::float8), ('table_dead', s.n_dead_tup::float8)) m (metric, value)
	 where s.schemaname = 'wiggle' and s.relname in ('wf_ready', 'wf_lease', 'wf_timer', 'wf_token', 'wf_instance', 'wf_scope', 'wf_event')
	union all
	select 'outbox_rows', '', count(*)::float8 from (select from wiggle.wf_outbox limit 10000) o
	union all
	select 'outbox_oldest', '', coalesce(extract(epoch from c.now - (select min(o.created_at) from (select o.created_at
		from wiggle.wf_outbox o order by o.id limit 1000) o)), 0)::float8 from clock c
$$;
comment on function watch() is
'What is worth watching: ready tasks by queue (counted up to 10000; 64 queues), what the clock worker does and how late it is, old snapshots, rows and dead rows of the busy tables, the outbox. Times are in seconds.';

-- With the caller's own rights: who may not, is told what an administrator would run.
create function settings_push(wanted jsonb, apply boolean)
returns table (name text, problem text, statement text)
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
	for name, statement in
		select w.key, format('alter database %I set %s = %L', current_database(), w.key, w.value)
		  from jsonb_each_text(wanted) w
		 where w.key ~ '^wiggle\.[a-z_]+$' and not exists (
			select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) c
			 where d.datname = current_database() and s.setrole = 0 and c = w.key || '=' || w.value)
		 order by w.key
	loop
		problem := null;
		if apply then
			begin
				execute statement;
			exception when others then
				problem := sqlerrm;
			end;
		else
			problem := 'nothing is changed where the schema is only verified';
		end if;
		return next;
	end loop;
end
$$;
comment on function settings_push(jsonb, boolean) is
'Not for applications: set settings (wiggle.*) for this database as far as the role may; a row for each that was not as wanted. Sessions that are open keep the former values.';

create function shard_owed(shard_id int) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	n bigint := (select count(*) from wiggle.wf_outbox o where o.shard = shard_owed.shard_id);
begin
	if n > 0 then
		raise exception using errcode = 'WG409',
			message = format('%s instance(s) that schedules have begun for shard %s wait in wf_outbox on home, to be started there'
				' once it is reached', n, shard_id);
	end if;
end
$$;
comment on function shard_owed(int) is
'Not for applications, on home. WG409: instances minted for this shard have not been started there yet.';

-- Their ids name the shard, so they can be started nowhere else.
create function shard_disown(shard_id int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	n bigint;
begin
	delete from wiggle.wf_outbox o where o.shard = shard_disown.shard_id;
	get diagnostics n = row_count;
	if n > 0 then
		raise warning '% instance(s) that schedules had begun for shard % are given up with it: they were never started', n, shard_id;
	end if;
end
$$;
comment on function shard_disown(int) is
'Not for applications, on home: forgets what was to be started on a shard that is gone, with a warning.';

create function shard_write_off(shard_id int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
	update wiggle.wf_shard_registry r set emptied_at = coalesce(r.emptied_at, clock_timestamp())
	 where r.shard_id = shard_write_off.shard_id
	   and r.shard_id is distinct from (select s.shard_id from wiggle.wf_shard s);
	if not found then
		raise exception using errcode = 'WG404', message = format('the registry of this database has no other shard %s', shard_id),
			hint = 'The registry is on the home shard: wiggle.shards() lists it.';
	end if;
	perform wiggle.shard_disown(shard_write_off.shard_id);
end
$$;
comment on function shard_write_off(int) is
'On home: the shard''s database is lost for good, with all that it held; the topology may call it retired. WG404: no such shard.';

create function shards()
returns table (shard_id int, state text, first_seen timestamptz, changed_at timestamptz, seen_at timestamptz,
	place text, emptied boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select r.shard_id, r.state, r.first_seen, r.changed_at, r.seen_at, r.place, r.emptied_at is not null
	  from wiggle.wf_shard_registry r order by r.shard_id
$$;
comment on function shards() is 'The shards that home knows, with their states; empty on other shards.';

create function shard_rank(state text) returns int
language sql immutable parallel safe set search_path = pg_catalog, pg_temp
as $$ select case state when 'ACTIVE' then 1 when 'DRAINING' then 2 when 'RETIRED' then 3 end $$;
comment on function shard_rank(text) is 'Not for applications: states of shards only move to a greater rank.';

-- One that was never reached holds nothing: it may be taken back.
create function shard_unused(known wf_shard_registry) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select known.identity is null and known.state <> 'RETIRED' and not exists (select from wiggle.wf_outbox o where o.shard = known.shard_id)
$$;
comment on function shard_unused(wf_shard_registry) is 'Not for applications: nothing can be on this shard.';

-- Why the state that a topology gives to a shard cannot be, null when it can.
create function shard_state_refusal(known wf_shard_registry, wanted text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
	select case
		when wiggle.shard_rank(wanted) < wiggle.shard_rank(known.state) then
			format('it is %s in the topology, but has been %s since %s, and states only move forward; give it the state %s'
				' (to take instances on that database again it needs another shard id)',
				wanted, known.state, to_char(known.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), lower(known.state))
		when wanted = 'RETIRED' and known.state <> 'RETIRED' and known.emptied_at is null
			 and exists (select from wiggle.wf_outbox o where o.shard = known.shard_id) then
			format('it is RETIRED in the topology, but %s instance(s) that schedules have begun for it wait in wf_outbox on home;'
				' give it the state %s again: they are started once its database is reached; when that is lost for good, or takes'
				' nothing any more, run "select wiggle.shard_write_off(%s)" on home, which gives them up',
				(select count(*) from wiggle.wf_outbox o where o.shard = known.shard_id), lower(known.state), known.shard_id)
		when wanted = 'RETIRED' and known.state <> 'RETIRED' and known.emptied_at is null then
			format('it is RETIRED in the topology, but nobody has confirmed that it holds nothing any more; give it the state'
				' %s again and, once it drains and is empty, run "wiggle shards retire %s"; when its database is lost for'
				' good, run "select wiggle.shard_write_off(%s)" on home', lower(known.state), known.shard_id, known.shard_id)
	end
$$;
comment on function shard_state_refusal(wf_shard_registry, text) is 'Not for applications: why a shard cannot have this state.';

-- Why a database is not the shard that the registry knows, null when it is.
create function shard_identity_refusal(known wf_shard_registry, facts jsonb) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
	select case
		when known.identity is null then null
		when known.identity <> (facts->>'identity')::uuid then case
			when known.system_id = facts->>'system' and known.database::text = facts->>'database' then null
			when (facts->>'adopted')::timestamptz > coalesce(known.adopted_at, '-infinity') then null
			else format('this is not the database that home knows as this shard, which was last reached at %s; correct the'
				' topology, or, when that one is gone for good and this one is to take its place, run "select'
				' wiggle.shard_adopt()" in this one', known.place) end
		when known.timeline > (facts->>'timeline')::int then
			format('its server is on timeline %s, but the shard has moved on to timeline %s, last reached at %s: this is a'
				' former primary or an older copy; stop it, or let it follow the present primary; when the present one is'
				' gone for good, run "select wiggle.shard_adopt()" in this one',
				facts->>'timeline', known.timeline, known.place)
		when known.timeline = (facts->>'timeline')::int and known.wal > (facts->>'wal')::pg_lsn then
			format('its write-ahead log ends at %s, but the shard, last reached at %s, had already written up to %s: this is'
				' an older copy; correct the topology, or, when the original is gone for good, run "select'
				' wiggle.shard_adopt()" in this one', facts->>'wal', known.place, known.wal)
	end
$$;
comment on function shard_identity_refusal(wf_shard_registry, jsonb) is 'Not for applications: why a database is not that shard.';

create function shard_admit(entries jsonb, whole boolean) returns table (shard int, refusal text, wal pg_lsn)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	entry jsonb;
	own int := (select s.shard_id from wiggle.wf_shard s);
	known wiggle.wf_shard_registry;
	facts jsonb;
	keeper int;
	wanted int := (select (e.value->>'id')::int from jsonb_array_elements(entries) e where (e.value->>'auth')::boolean);
begin
	lock table wiggle.wf_shard_registry in share row exclusive mode;
	for entry in select e.value from jsonb_array_elements(entries) e order by (e.value->>'id')::int loop
		shard := (entry->>'id')::int;
		facts := entry->'facts';
		select * into known from wiggle.wf_shard_registry r where r.shard_id = shard;
		continue when not found and facts is null;
		if not found then
			insert into wiggle.wf_shard_registry (shard_id, state, first_seen, changed_at)
			values (shard, 'ACTIVE', clock_timestamp(), clock_timestamp()) returning * into known;
		end if;
		-- Running proxies call it retired when it is taken back.
		continue when whole and entry->>'state' = 'RETIRED' and wiggle.shard_unused(known);
		if facts->>'emptied' is not null and known.emptied_at is null
		   and not exists (select from wiggle.wf_outbox o where o.shard = known.shard_id) then
			update wiggle.wf_shard_registry r set emptied_at = (facts->>'emptied')::timestamptz
			 where r.shard_id = known.shard_id returning * into known;
		end if;
		refusal := wiggle.shard_state_refusal(known, entry->>'state');
		-- this database's own position is in any copy of it, too
		if shard = own then
			known.wal := null;
		end if;
		wal := null;
		if refusal is null and facts is not null then
			refusal := wiggle.shard_identity_refusal(known, facts);
			if known.identity = (facts->>'identity')::uuid and known.timeline = (facts->>'timeline')::int
			   and known.wal > (facts->>'wal')::pg_lsn then
				wal := known.wal;
			end if;
		end if;
		if refusal is not null then
			return next;
			continue;
		end if;
		update wiggle.wf_shard_registry r
		   set seen_at = clock_timestamp(), place = entry->>'place', identity = (facts->>'identity')::uuid,
			   adopted_at = (facts->>'adopted')::timestamptz, system_id = facts->>'system',
			   database = (facts->>'database')::oid, timeline = (facts->>'timeline')::int,
			   wal = (facts->>'wal')::pg_lsn, wal_at = clock_timestamp()
		 where r.shard_id = shard and facts is not null;
	end loop;
	wal := null;
	keeper := (select r.shard_id from wiggle.wf_shard_registry r where r.auth);
	if wanted <> keeper and not (keeper = own and not exists (select from wiggle.wf_auth_credential)
								 and not exists (select from wiggle.wf_auth_role)) then
		-- a proxy that runs is not told this of home, without which it could do nothing
		shard := case when wanted = own then keeper else wanted end;
		refusal := format('the topology gives the role auth to shard %s, but the keys and roles of clients are kept on shard %s; give'
			' it back, or, once they have been copied to shard %s or are to begin anew there, run "select wiggle.shard_auth(%s)"'
			' on home', wanted, keeper, wanted, wanted);
		return next;
	end if;
	return query
	select r.shard_id, format('it is not in the topology, but home knows it as %s, last reached at %s; list it again: a shard'
			' stays listed, at last with the state retired', r.state, coalesce(r.place, 'no place yet')), null::pg_lsn
	  from wiggle.wf_shard_registry r
	 where whole and r.state <> 'RETIRED' and not wiggle.shard_unused(r)
	   and not exists (select from jsonb_array_elements(entries) e where (e.value->>'id')::int = r.shard_id)
	 order by 1;
end
$$;
comment on function shard_admit(jsonb, boolean) is
'Not for applications, on home: compares shards of a topology with the registry, and notes which databases they are; rows are refusals, with the position that the shard had reached when it lies behind that. whole: the topology has no others.';

create function topology_admit(entries jsonb, generations jsonb, withdraw boolean) returns table (refusal text, notice text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	refused boolean;
	last bigint := (select max((g->>'id')::bigint) from jsonb_array_elements(generations) g);
	newest bigint;
begin
	lock table wiggle.wf_shard_registry, wiggle.wf_placement in share row exclusive mode;
	return query select format('shard %s: %s', a.shard, a.refusal), null from wiggle.shard_admit(entries, true) a;
	refused := found;
	return query select r, null from wiggle.placement_refusal(generations) r where r is not null;
	if refused or found then
		return;
	end if;
	-- A wrong url, for instance, is taken back.
	delete from wiggle.wf_shard_registry r
	 where wiggle.shard_unused(r)
	   and not exists (select from jsonb_array_elements(entries) e
						where (e.value->>'id')::int = r.shard_id and e.value->>'state' <> 'RETIRED');
	insert into wiggle.wf_shard_registry (shard_id, state, first_seen, changed_at)
	select (e.value->>'id')::int, e.value->>'state', clock_timestamp(), clock_timestamp()
	  from jsonb_array_elements(entries) e where e.value->>'state' <> 'RETIRED'
		on conflict (shard_id) do nothing;
	perform wiggle.shard_disown(r.shard_id)
	   from wiggle.wf_shard_registry r join jsonb_array_elements(entries) e on (e.value->>'id')::int = r.shard_id
	  where e.value->>'state' = 'RETIRED' and r.state <> 'RETIRED';
	update wiggle.wf_shard_registry r set state = e.value->>'state', changed_at = clock_timestamp()
	  from jsonb_array_elements(entries) e
	 where (e.value->>'id')::int = r.shard_id and e.value->>'state' <> r.state;
	perform wiggle.shard_auth((e.value->>'id')::int) from jsonb_array_elements(entries) e where (e.value->>'auth')::boolean;
	newest := wiggle.publish_placement(generations, withdraw);
	if newest > last then
		notice := format('home knows generation %s, while this server''s topology ends with %s: roll the new document out to this'
			' server too; if that generation was taken back, delete it from wf_placement there', newest, last);
		return next;
	end if;
end
$$;
comment on function topology_admit(jsonb, jsonb, boolean) is
'Not for applications, on home: takes over the states of all shards and the generations of a topology, or, when there are refusals, nothing of it. withdraw: as in publish_placement().';

create function shard_auth(shard_id int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
	if not exists (select from wiggle.wf_shard_registry r where r.shard_id = shard_auth.shard_id) then
		raise exception using errcode = 'WG404', message = format('the registry of this database has no shard %s', shard_id),
			hint = 'The registry is on the home shard: wiggle.shards() lists it.';
	end if;
	update wiggle.wf_shard_registry r set auth = not r.auth
	 where r.auth <> (r.shard_id = shard_auth.shard_id);
end
$$;
comment on function shard_auth(int) is
'On home: the keys and roles of clients are kept on this shard from now on, which the topology has to say as well. WG404: no such shard.';

create function shard_positions(entries jsonb) returns setof int
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
	-- Of many proxies one writes, and none waits for another.
	with due as (
		select r.shard_id, e.wal
		  from jsonb_to_recordset(entries) e(id int, identity uuid, timeline int, wal pg_lsn)
		  join wiggle.wf_shard_registry r on r.shard_id = e.id and r.identity = e.identity and r.timeline = e.timeline
		 where e.wal > r.wal and r.wal_at not between clock_timestamp() - interval '3 s' and clock_timestamp()
		 for update of r skip locked)
	update wiggle.wf_shard_registry r set wal = due.wal, wal_at = clock_timestamp()
	  from due where r.shard_id = due.shard_id;
	select r.shard_id from wiggle.wf_shard_registry r where r.identity is not null
$$;
comment on function shard_positions(jsonb) is
'Not for applications, on home: how far the write-ahead logs of shards had come. The shards that any proxy has reached.';

create function transitions(out machine text, out from_status text, out to_status text, out rule text)
returns setof record
language c immutable parallel safe
as 'MODULE_PATHNAME', 'wig_transition_table';
comment on function transitions() is 'Every legal change of an instance''s and a token''s status.';

create function test_set_clock(at timestamptz) returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_test_set_clock';
comment on function test_set_clock(timestamptz) is
'For tests, needs wiggle.test_clock = on: stops the engine''s clock at an instant; null lets it run again.';

-- Statement triggers do not fire for the engine's own writes (store.c), only for
-- SQL: a restore, a repair. The clock worker then looks at everything anew.
create function rows_rewritten() returns trigger
language c as 'MODULE_PATHNAME', 'wig_rows_rewritten';
comment on function rows_rewritten() is
'Not for applications: tells the clock worker that rows were written by SQL.';

do $triggers$
declare
	name text;
begin
	foreach name in array array['wf_definition', 'wf_instance', 'wf_scope', 'wf_token', 'wf_ready',
								'wf_lease', 'wf_timer', 'wf_schedule', 'wf_event'] loop
		execute pg_catalog.format('create trigger rewritten after insert or update or delete or truncate'
			' on wiggle.%I for each statement execute function wiggle.rows_rewritten()', name);
	end loop;
end
$triggers$;

-- Views for people -------------------------------------------------------------

create view running as
	select i.id, i.workflow, i.version, i.created_at, i.correlation_id
	  from wf_instance i where i.status = 'RUNNING';
comment on view running is 'Instances that are running.';

create view failed as
	select i.id, i.workflow, i.version, i.error, i.created_at, i.updated_at, i.correlation_id
	  from wf_instance i where i.status = 'FAILED';
comment on view failed is 'Instances that failed, and why.';

create view stuck as
	select i.id, i.workflow, i.version, 'ready for over 10 minutes' as reason, t.node, t.available_at as since
	  from wf_ready r join wf_instance i on i.no = r.instance
	  join wf_token t on t.instance = r.instance and t.n = r.n
	 where t.available_at < clock_timestamp() - interval '10 minutes'
	union all
	select i.id, i.workflow, i.version, 'lease expired over a minute ago', t.node, l.expires_at
	  from wf_lease l join wf_instance i on i.no = l.instance
	  join wf_token t on t.instance = l.instance and t.n = l.n
	 where l.expires_at < clock_timestamp() - interval '1 minute'
	union all
	select i.id, i.workflow, i.version, 'timer due over a minute ago', t.node, m.due_at
	  from wf_timer m join wf_instance i on i.no = m.instance
	  join wf_token t on t.instance = m.instance and t.n = m.n
	 where m.due_at < clock_timestamp() - interval '1 minute'
	union all
	select i.id, i.workflow, i.version, 'its sub-workflow is gone', t.node, t.created_at
	  from wf_token t join wf_instance i on i.no = t.instance
	  join wf_definition d on d.name = i.workflow and d.version = i.version,
	  json_array_elements(d.body->'nodes') n(node)
	 where t.status = 'A' and n.node->>'id' = t.node and n.node->>'kind' = 'SUB_WORKFLOW'
	   and not exists (select from wf_instance c
						where c.parent_token_id = regexp_replace(i.id, '^wfi', 'tok') || '-' || t.n)
	union all
	select o.id, o.workflow, null, 'not started on shard ' || o.shard || ' for over 10 minutes', null, o.created_at
	  from wf_outbox o where o.created_at < clock_timestamp() - interval '10 minutes';
comment on view stuck is 'Work that nobody moves: no worker for its queue, no clock worker, a shard that does not take what schedules start there, a sub-workflow that somebody deleted.';

-- Privileges -------------------------------------------------------------------
-- PUBLIC gets nothing; tables are written only through functions.

revoke all on all tables in schema @extschema@ from public;
revoke all on all functions in schema @extschema@ from public;

grant usage on schema @extschema@ to wiggle_reader, wiggle_worker, wiggle_client, wiggle_server, wiggle_admin;

grant select on all tables in schema @extschema@ to wiggle_reader, wiggle_admin;
revoke select on table wf_auth_role, wf_auth_credential, wf_auth_audit from wiggle_reader;
grant execute on function definition(text, int), workflows(), instance(text), instances(text, text, text, int, bigint),
	tokens(text), instance_row(wf_instance), schedules(), backlog(int), step_stats(text, int, timestamptz, int),
	pending_signals(), nodes(), shard(), shard_facts(), shard_load(), shards(), clock_stats(), watch(), @extschema@.version(), transitions()
	to wiggle_reader, wiggle_client, wiggle_admin;
grant execute on function poll(text, text[], int, interval, jsonb), complete(text, text, jsonb),
	decide(text, text, boolean), fail(text, text, text, boolean), heartbeat(text, text, interval), report(jsonb)
	to wiggle_worker;
grant execute on function start(text, jsonb, int, text, text), mint(int), cancel(text, text),
	signal(text, text, jsonb), schedule(text, interval, text, jsonb), unschedule(text),
	events(text, int, bigint), ack(text, bigint), forget_consumer(text) to wiggle_client;
grant execute on all functions in schema @extschema@ to wiggle_admin, wiggle_server;

-- The proxy's role: every call of every client, and no decision that is a person's.
revoke execute on function shard_adopt(), shard_write_off(int), shard_auth(int), shard_disown(int), test_set_clock(timestamptz)
	from wiggle_server;
grant select on table wf_definition, wf_beat to wiggle_server;

-- The clock worker of this database starts once this commits.
create function worker_wanted() returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_worker_wanted';
comment on function worker_wanted() is 'Not for applications: asks the launcher for this database''s clock worker.';
revoke all on function worker_wanted() from public;
select worker_wanted();
