/* extension/wiggle--0.1.sql */

\echo Use "CREATE EXTENSION wiggle" to load this file. \quit

-- Roles ----------------------------------------------------------------------
-- NOLOGIN groups to be granted; they belong to the cluster and outlive the extension.

do $roles$
declare
	name text;
begin
	foreach name in array array['wiggle_reader', 'wiggle_worker', 'wiggle_client', 'wiggle_admin'] loop
		if not exists (select from pg_catalog.pg_roles where rolname = name) then
			execute pg_catalog.format('create role %I nologin', name);
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
	id					text collate "C" not null unique,
	workflow			text collate "C" not null,
	status				text collate "C" not null,
	correlation_id		text collate "C",
	parent_token_id		text collate "C",
	termination_reason	text,
	error				text
) with (fillfactor = 80);
create index wf_instance_correlation on wf_instance (correlation_id, no) where correlation_id is not null;
comment on table wf_instance is 'One row a workflow instance; its lock is what every change of the instance takes first.';
comment on column wf_instance.no is 'Key of all rows of the instance: rises with its age (microseconds since 1970, made unique).';

create table wf_scope (
	instance			bigint not null,
	scope				int not null,
	parent				int,
	context				json not null,
	primary key (instance, scope)
) with (fillfactor = 45);
comment on table wf_scope is 'Contexts as validated JSON text; scope 0 is the context of the instance.';

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
	status				"char" not null,
	node				text collate "C" not null,
	loops				text,
	last_error			text,
	primary key (instance, n)
) with (fillfactor = 50);
comment on table wf_token is 'Where an instance stands and stood. status: R live (ready or leased), W waiting, D done, F failed, C cancelled; wiggle.tokens() shows Wiggle''s words.';

create table wf_ready (
	instance			bigint not null,
	n					int not null,
	definition			int not null,
	queue				text collate "C" not null,
	primary key (queue, instance, n)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
	autovacuum_vacuum_cost_delay = 0);
comment on table wf_ready is 'Tokens that a worker may claim, in claim order: oldest instance first. Queue '''' is that of steps that name none.';

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

create table wf_shard (
	shard_id			int not null,
	claimed_at			timestamptz not null,
	singleton			boolean not null default true unique
);
comment on table wf_shard is 'The shard that this database is: one row, written once.';

select pg_catalog.pg_extension_config_dump('wf_definition', '');
select pg_catalog.pg_extension_config_dump('wf_instance', '');
select pg_catalog.pg_extension_config_dump('wf_scope', '');
select pg_catalog.pg_extension_config_dump('wf_token', '');
select pg_catalog.pg_extension_config_dump('wf_ready', '');
select pg_catalog.pg_extension_config_dump('wf_lease', '');
select pg_catalog.pg_extension_config_dump('wf_timer', '');
select pg_catalog.pg_extension_config_dump('wf_shard', '');

-- Types ----------------------------------------------------------------------

create type instance as (
	id text, workflow text, version int, status text, termination_reason text, error text,
	correlation_id text, context jsonb, created_at timestamptz, updated_at timestamptz
);

create type token as (
	id text, node_id text, kind text, status text, activity text, attempt int,
	available_at timestamptz, lease_owner text, last_error text,
	started_at timestamptz, finished_at timestamptz, created_at timestamptz
);

create type task as (
	task_id text, instance_id text, workflow text, version int, node_id text, step_name text,
	activity text, kind text, attempt int, lease_owner text, lease_expires_at timestamptz,
	execution_mode text, context jsonb
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
create type batch_fails as (
	tasks text[], owners text[], messages text[], retryable bool[], modes int4[]
);
create type batch_beats as (tasks text[], owners text[], extends int8[]);
create type batch_releases as (tasks text[], owners text[]);
create type batch_polls as (
	owners text[], maxes int4[], leases int8[], queue_poll int4[], queue_name text[],
	version_poll int4[], version_workflow text[], version_number int4[]
);
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

-- Statuses and activity of a token follow from its row, its lease and its node.
create function instance_row(i wf_instance) returns instance
language sql stable
as $$
	select row(i.id, i.workflow, i.version, i.status, i.termination_reason, i.error,
			   i.correlation_id, s.context::jsonb, i.created_at,
			   greatest(i.updated_at,
						(select max(coalesce(t.finished_at, t.created_at))
						   from wiggle.wf_token t where t.instance = i.no)))::wiggle.instance
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
			detail = format('No instance has the id "%s".', id);
	end if;
	return found_row;
end
$$;
comment on function instance(text) is 'One instance. WG404: no such instance.';

create function instances(workflow text default null, status text default null,
	correlation_id text default null, max int default 50) returns setof instance
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	wanted int := case when max > 0 then max else 50 end;
	state text := upper(status);
begin
	if correlation_id is not null then
		return query select r.* from wiggle.wf_instance i, lateral wiggle.instance_row(i) r
			where i.correlation_id = instances.correlation_id order by i.no desc limit wanted;
		return;
	end if;
	if state is not null and state not in ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED',
		'COMPENSATING', 'COMPENSATED', 'COMPENSATION_FAILED') then
		raise exception using errcode = 'WG400',
			message = format('No enum constant com.wiggle.core.InstanceStatus.%s', state),
			hint = 'A status is RUNNING, COMPLETED, FAILED, CANCELLED, COMPENSATING, COMPENSATED or COMPENSATION_FAILED.';
	end if;
	return query select r.* from wiggle.wf_instance i, lateral wiggle.instance_row(i) r
		where (instances.workflow is null or i.workflow = instances.workflow)
		  and (state is null or i.status = state)
		order by i.no desc limit wanted;
end
$$;
comment on function instances(text, text, text, int) is
'Instances, newest first. With a correlation id the other filters are ignored. max <= 0 means 50. WG400: unknown status.';

create function tokens(id text) returns setof token
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
	owner_row wiggle.wf_instance;
begin
	select * into owner_row from wiggle.wf_instance i where i.id = tokens.id;
	if owner_row.no is null then
		raise exception using errcode = 'WG404', message = 'instance not found',
			detail = format('No instance has the id "%s".', id);
	end if;
	return query
	select regexp_replace(owner_row.id, '^wfi', 'tok') || '-' || t.n, t.node, d.node->>'kind',
		   case t.status when 'R' then case when l.owner is null then 'READY' else 'RUNNING' end
						 when 'W' then 'WAITING' when 'D' then 'DONE'
						 when 'F' then 'FAILED' when 'C' then 'CANCELLED' end,
		   d.node->>'activity', t.attempt, t.available_at, l.owner, t.last_error,
		   coalesce(t.started_at, l.claimed_at), t.finished_at, t.created_at
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
	releases batch_releases, polls batch_polls) returns setof batch_result
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_batch';
comment on function batch(batch_starts, batch_runs, batch_fails, batch_beats, batch_releases, batch_polls) is
'Not for applications: what a proxy''s lane sends, everything of one batch in one transaction. Refusals are rows (code, message), never errors. docs/batch.md describes the arrays.';

create function report(runs jsonb) returns setof outcome
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
	input wiggle.batch_runs;
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
	return query
	select input.tasks[b.item + 1], b.status,
		   to_timestamp(nullif(b.expires_at, 0) / 1000.0), b.task_id, b.code, b.message
	  from wiggle.batch(null, input, null, null, null, null) b where b.op = 'r' order by b.item;
exception
	when data_exception then
		raise exception using errcode = 'WG400', message = format('the runs cannot be read: %s', sqlerrm);
end
$$;
comment on function report(jsonb) is
'Reports one or many runs: [{"task_id", "lease_owner", "final", "steps": [{"node_id", "merge" | "predicate_value", "started_at", "finished_at"}]}]. Each run is answered on its own: error_status 0, 400, 404 or 409.';

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

-- Shard, versions, clock -----------------------------------------------------

create function shard(out shard_id int, out system_id text, out database oid,
	out library_version text, out catalog_version text, out now timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
	select (select s.shard_id from wiggle.wf_shard s), c.system_identifier::text,
		   (select d.oid from pg_database d where d.datname = current_database()),
		   v.library, v.catalog, v.now
	  from pg_control_system() c, wiggle.version() v
$$;
comment on function shard() is 'What this database is: its shard id (null: not claimed yet), its identity and versions.';

create function version(out library text, out catalog text, out now timestamptz)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_version';
comment on function @extschema@.version() is 'Versions of the loaded library and of the installed SQL objects, and the engine''s clock.';

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
			hint = 'Each entry of the topology needs a database of its own; a shard id is never changed or reused.';
	end if;
	if exists (select from wiggle.wf_instance) and shard_claim.shard_id <> 0 then
		raise exception using errcode = 'WG409',
			message = format('this database already holds instances without a shard id and cannot become shard %s', shard_claim.shard_id),
			hint = 'Ids without a shard are looked for on the home shard: make this database shard 0 and home.';
	end if;
	insert into wiggle.wf_shard values (shard_claim.shard_id, (wiggle.version()).now);
end
$$;
comment on function shard_claim(int) is 'Writes this database''s shard id, once. WG409: it already is another shard.';

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
								'wf_lease', 'wf_timer'] loop
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
	 where m.due_at < clock_timestamp() - interval '1 minute';
comment on view stuck is 'Work that nobody moves: no worker for its queue, or no clock worker.';

-- Privileges -------------------------------------------------------------------
-- PUBLIC gets nothing; tables are written only through functions.

revoke all on all tables in schema @extschema@ from public;
revoke all on all functions in schema @extschema@ from public;

grant usage on schema @extschema@ to wiggle_reader, wiggle_worker, wiggle_client, wiggle_admin;

grant select on all tables in schema @extschema@ to wiggle_reader, wiggle_admin;
grant execute on function definition(text, int), workflows(), instance(text), instances(text, text, text, int),
	tokens(text), instance_row(wf_instance), shard(), @extschema@.version(), transitions()
	to wiggle_reader, wiggle_client, wiggle_admin;
grant execute on function poll(text, text[], int, interval, jsonb), complete(text, text, jsonb),
	decide(text, text, boolean), fail(text, text, text, boolean), heartbeat(text, text, interval), report(jsonb)
	to wiggle_worker;
grant execute on function start(text, jsonb, int, text, text), mint(int), cancel(text, text) to wiggle_client;
grant execute on all functions in schema @extschema@ to wiggle_admin;

-- The clock worker of this database starts once this commits.
create function worker_wanted() returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'wig_worker_wanted';
comment on function worker_wanted() is 'Not for applications: asks the launcher for this database''s clock worker.';
revoke all on function worker_wanted() from public;
select worker_wanted();
