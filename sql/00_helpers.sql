-- What the other tests share: names for what has random names, refusals as
-- text, waits for the clock worker, and the invariants of the hot tables.
create schema wt;

create table wt.instance (label text primary key, id text not null);
create table wt.claim (label text primary key, task_id text not null, owner text not null);

create function wt.id(label text) returns text language sql
as $$ select i.id from wt.instance i where i.label = id.label $$;
create function wt.no(label text) returns bigint language sql
as $$ select w.no from wiggle.wf_instance w where w.id = wt.id(no.label) $$;
create function wt.task(label text) returns text language sql
as $$ select c.task_id from wt.claim c where c.label = task.label $$;
create function wt.owner(label text) returns text language sql
as $$ select c.owner from wt.claim c where c.label = owner.label $$;

-- A text without anything random: known instances by their label, others as
-- <id>, nonces as *.
create function wt.mask(what text) returns text language plpgsql
as $$
declare
	known record;
begin
	for known in select label, substr(id, 4) tail from wt.instance loop
		what := replace(what, 'wfi' || known.tail, known.label);
		what := replace(what, 'tok' || known.tail, 'tok:' || known.label);
	end loop;
	what := regexp_replace(what, '(wfi|tok)(_|\.s\d+\.)[0-9a-z]{22}', '\1:<id>', 'g');
	return regexp_replace(what, '#[0-9a-z]{13}', '#*', 'g');
end $$;

-- What a statement is refused with, or what it answers.
create function wt.refusal(statement text) returns text language plpgsql
as $$
declare
	answer text;
begin
	execute statement into answer;
	return 'accepted: ' || coalesce(wt.mask(answer), 'null');
exception when others then
	return sqlstate || ': ' || wt.mask(sqlerrm);
end $$;

create function wt.register(shorthand text) returns text language sql
as $$ select format('%s:%s nodes=%s created=%s', name, version, nodes, created)
		from wiggle.register(shorthand::jsonb) $$;

create function wt.start(label text, workflow text, context jsonb default '{}', version int default null)
returns text language plpgsql
as $$
begin
	insert into wt.instance values (label, wiggle.start(workflow, context, version));
	return label;
end $$;

-- Claim one task of a queue and remember it; what was claimed.
create function wt.claim(label text, queue text, worker text default 'w', lease interval default null)
returns text language plpgsql
as $$
declare
	got wiggle.task;
begin
	select * into got from wiggle.poll(worker, array[queue], 1, lease);
	if got.task_id is null then
		return 'nothing';
	end if;
	insert into wt.claim values (label, got.task_id, got.lease_owner)
		on conflict on constraint claim_pkey do update set task_id = excluded.task_id, owner = excluded.owner;
	return wt.mask(format('%s of %s, attempt %s: %s', got.step_name, got.instance_id, got.attempt, got.context));
end $$;

create function wt.complete(label text, context jsonb default null) returns text language sql
as $$ select instance_status from wiggle.complete(wt.task(label), wt.owner(label), context) $$;
create function wt.decide(label text, value boolean) returns text language sql
as $$ select instance_status from wiggle.decide(wt.task(label), wt.owner(label), value) $$;
create function wt.fail(label text, message text, retryable boolean default true) returns text language plpgsql
as $$
begin
	perform wiggle.fail(wt.task(label), wt.owner(label), message, retryable);
	return 'noted';
end $$;

create function wt.show(label text) returns text language sql
as $$ select wt.mask(concat_ws(' ', i.status, i.termination_reason, i.error, i.context)) from wiggle.instance(wt.id(label)) i $$;
create function wt.tokens(label text)
returns table (n text, node text, kind text, status text, attempt int, owner text, last_error text) language sql
as $$ select substring(t.id from '\d+$'), t.node_id, t.kind, t.status, t.attempt, wt.mask(t.lease_owner), t.last_error
		from wiggle.tokens(wt.id(label)) t $$;
-- Where the live tokens of an instance stand.
create function wt.work(label text) returns text language sql
as $$ select format('ready %s leased %s timers %s',
		(select count(*) from wiggle.wf_ready where instance = (select wt.no(label))),
		(select count(*) from wiggle.wf_lease where instance = (select wt.no(label))),
		(select count(*) from wiggle.wf_timer where instance = (select wt.no(label)))) $$;

-- Wait for the clock worker: look until the condition holds, at most 30 s.
create function wt.await(condition text) returns text language plpgsql
as $$
declare
	deadline timestamptz := clock_timestamp() + interval '30 s';
	holds boolean;
begin
	loop
		execute 'select ' || condition into holds;
		if holds then
			return 'came true';
		end if;
		if clock_timestamp() > deadline then
			return 'NEVER: ' || condition;
		end if;
		perform pg_stat_clear_snapshot(), pg_sleep(0.01);
	end loop;
end $$;
create function wt.await_claim(label text, queue text, worker text default 'w') returns text language plpgsql
as $$
begin
	if wt.await(format('exists (select from wiggle.wf_ready where queue = %L)', queue)) <> 'came true' then
		return 'NEVER';
	end if;
	return wt.claim(label, queue, worker);
end $$;

-- Everything that must hold between transactions, whatever happened before. Done
-- in a second by aggregates: 10,000 siblings are no reason to look 10,000 times.
create view wt.graph as
	select i.no, i.id, i.workflow, i.status, i.parent_token_id, d.id as definition, d.body
	  from wiggle.wf_instance i left join wiggle.wf_definition d on d.name = i.workflow and d.version = i.version;
create view wt.node as
	select distinct on (d.id, e->>'id') d.id as definition, e->>'id' as node, e->>'kind' as kind, coalesce(e->>'queue', '') as queue,
		   coalesce((e->>'sleepMillis')::numeric, 0) as sleep
	  from wiggle.wf_definition d, json_array_elements(d.body->'nodes') e;
create view wt.place as
	with r as (select instance, n, count(*) rows from wiggle.wf_ready group by 1, 2),
		 l as (select instance, n, count(*) rows from wiggle.wf_lease group by 1, 2),
		 m as (select instance, n, count(*) rows, max(due_at) due_at from wiggle.wf_timer group by 1, 2)
	select t.instance, t.n, t.status, t.scope, t.comp_seq, t.finished_at, g.status of_instance, n.kind, n.sleep, g.id,
		   coalesce(r.rows, 0) ready, coalesce(l.rows, 0) leased,
		   case when m.due_at = t.available_at then m.rows else 0 end timers, coalesce(m.rows, 0) any_timers
	  from wiggle.wf_token t left join wt.graph g on g.no = t.instance
	  left join wt.node n on n.definition = g.definition and n.node = t.node
	  left join r using (instance, n) left join l using (instance, n) left join m using (instance, n);

-- Tokens: each live one has its one reason to move, a settled one has none.
create function wt.unsound_tokens() returns setof text language sql
as $$
	select format('token %s %s: %s', t.n, t.status, why) from wt.place t, lateral (values
		(case when t.of_instance is null then 'it has no instance' end),
		(case when t.status not in ('R', 'W', 'A', 'J', 'D', 'F', 'C') then 'unknown status' end),
		(case when t.status in ('R', 'W', 'A', 'J') and t.of_instance <> 'RUNNING' and not (t.of_instance = 'COMPENSATING' and t.comp_seq is not null)
			  then 'live, but its instance is ' || t.of_instance end),
		(case when t.status = 'R' and t.ready + t.leased + t.timers <> 1 then 'it stands in ' || t.ready + t.leased + t.timers || ' places' end),
		(case when t.status = 'W' and (t.timers <> 1 or t.ready + t.leased > 0) then 'it waits without its one timer' end),
		(case when t.status = 'A' and t.kind not in ('SIGNAL', 'SUB_WORKFLOW') then 'it awaits, at a ' || t.kind end),
		(case when t.status = 'A' and t.kind = 'SIGNAL' and t.timers <> (t.sleep > 0)::int then 'its deadline has ' || t.timers || ' timers' end),
		(case when t.status = 'J' and t.kind <> 'JOIN' then 'joined, at a ' || t.kind end),
		(case when t.status <> 'R' and t.ready + t.leased > 0 then 'not ready, but stands among the ready or leased' end),
		(case when t.status in ('R', 'W', 'A', 'J') and t.finished_at is not null then 'live, but finished' end),
		-- Within a run of several steps a worker that tells no times leaves none.
		(case when t.status in ('D', 'F', 'C') and t.finished_at is null and not (t.status = 'D' and t.kind in ('TASK', 'PREDICATE'))
			  then 'settled, nobody knows when' end),
		-- A child that ended while its parent was busy leaves a timer at the token that waits for it.
		(case when t.kind is distinct from 'SUB_WORKFLOW' and (t.any_timers <> t.timers or (t.status not in ('R', 'W', 'A') and t.any_timers > 0))
			  then 'a timer is not its' end)
	) v(why) where why is not null
	union all
	-- A timer with n = 0 is an instance whose parent gave it up.
	select format('a row of %s has no token', place) from (
		select 'wf_ready' place, instance, n from wiggle.wf_ready
		union all select 'wf_lease', instance, n from wiggle.wf_lease
		union all select 'wf_timer', instance, n from wiggle.wf_timer where n > 0) p
	 where not exists (select from wiggle.wf_token t where (t.instance, t.n) = (p.instance, p.n))
	union all
	select format('tokens of an instance of %s are numbered %s to %s, of %s', i.workflow, t.lowest, t.highest, t.number)
	  from wiggle.wf_instance i left join (select instance, min(n) lowest, max(n) highest, count(*) number from wiggle.wf_token group by 1) t on t.instance = i.no
	 where (t.lowest, t.highest) is distinct from (1, t.number::int)
	union all
	select format('two leases of owner %s', wt.mask(owner)) from wiggle.wf_lease group by owner, n, instance having count(*) > 1
	union all
	select format('token %s stands in queue %L of definition %s', r.n, r.queue, r.definition)
	  from wiggle.wf_ready r join wiggle.wf_token t using (instance, n) join wt.graph g on g.no = r.instance
	  join wt.node n on n.definition = g.definition and n.node = t.node
	 where g.definition <> r.definition or r.queue <> n.queue
$$;

-- Groups of siblings: counted right while some are missing, gone when all are in.
create function wt.unsound_groups() returns setof text language sql
as $$
	select format('an instance of %s has %s contexts', i.workflow, coalesce(s.number, 0))
	  from wiggle.wf_instance i left join (select instance, count(*) number from wiggle.wf_scope where scope = 0 group by 1) s on s.instance = i.no
	 where s.number is distinct from 1
	union all
	select format('fork %s of a %s instance of %s: width %s, missing %s, scopes %s, arrived %s, joined %s', t.n, g.status, g.workflow,
				  t.width, coalesce(t.missing, 0), coalesce(s.scopes, 0), coalesce(s.arrived, 0), coalesce(j.joined, 0))
	  from wiggle.wf_token t join wt.graph g on g.no = t.instance
	  left join (select instance, "group" n, count(*) scopes, count(arrived) arrived from wiggle.wf_scope where "group" is not null group by 1, 2) s using (instance, n)
	  left join (select k.instance, s."group" n, count(*) joined from wiggle.wf_token k join wiggle.wf_scope s on s.instance = k.instance and s.scope = k.scope
				  where k.status = 'J' and k.n = s.arrived group by 1, 2) j using (instance, n)
	 where t.width is not null
	   and (case when t.missing is null then s.scopes is not null or j.joined is not null
				 else s.scopes is distinct from t.width or s.arrived <> t.width - t.missing or t.missing not between 1 and t.width
					  or (g.status = 'RUNNING' and coalesce(j.joined, 0) <> s.arrived)
					  or g.status = 'COMPLETED' end)
	union all
	select format('a scope of an instance of %s belongs to no fork', g.workflow)
	  from wiggle.wf_scope s join wt.graph g on g.no = s.instance left join wiggle.wf_token t on t.instance = s.instance and t.n = s."group"
	 where s.scope > 0 and (t.width is null or s.scope not between t.first_scope and t.first_scope + t.width - 1)
	union all
	select format('a joined token of an instance of %s waits at no fork', g.workflow)
	  from wiggle.wf_token t join wt.graph g on g.no = t.instance left join wiggle.wf_scope s on s.instance = t.instance and s.scope = t.scope
	 where t.status = 'J' and s.arrived is distinct from t.n
$$;

-- Instances: what runs can move, what is over says why, once, in the log too.
create function wt.unsound_instances() returns setof text language sql
as $$
	select format('a %s instance of %s has %s live tokens, %s of them compensators', i.status, i.workflow, coalesce(t.live, 0), coalesce(t.undoing, 0))
	  from wiggle.wf_instance i
	  left join (select instance, count(*) live, count(comp_seq) undoing from wiggle.wf_token where status in ('R', 'W', 'A', 'J') group by 1) t on t.instance = i.no
	 where (i.status = 'RUNNING' and (coalesce(t.live, 0) = 0 or t.undoing > 0)) or (i.status = 'COMPENSATING' and (t.live, t.undoing) is distinct from (1, 1))
	union all
	select format('a running instance of %s has only joined tokens', i.workflow) from wiggle.wf_instance i
	 where i.status = 'RUNNING' and exists (select from wiggle.wf_token t where t.instance = i.no and t.status = 'J')
	   and not exists (select from wiggle.wf_token t where t.instance = i.no and t.status in ('R', 'W', 'A'))
	union all
	select format('an instance of %s is %s with error %s and reason %s', i.workflow, i.status, i.error, i.termination_reason)
	  from wiggle.wf_instance i
	 where i.status not in ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'COMPENSATING', 'COMPENSATED', 'COMPENSATION_FAILED')
		or (i.status in ('FAILED', 'COMPENSATING', 'COMPENSATED', 'COMPENSATION_FAILED')) <> (i.error is not null)
		or (i.status not in ('COMPLETED', 'CANCELLED') and i.termination_reason is not null)
		or (i.status = 'CANCELLED' and i.termination_reason is null)
	union all
	select format('the log of undoing of a %s instance of %s: %s', i.status, i.workflow, c.done)
	  from wiggle.wf_instance i join (select instance, string_agg(compensated::int::text, '' order by seq) done, min(seq) lowest, max(seq) highest, count(*) number
										 from wiggle.wf_comp_log group by 1) c on c.instance = i.no
	 where (c.lowest, c.highest) <> (1, c.number::int) or c.done !~ '^0*1*$' or (i.status = 'COMPENSATED') <> (c.done !~ '0')
		or (i.status in ('RUNNING', 'COMPLETED', 'CANCELLED') and c.done ~ '1') or i.status = 'FAILED'
	union all
	select format('a child of %s is %s, its token of %s is %s, its parent %s', c.workflow, c.status, p.workflow, t.status, p.status)
	  from wiggle.wf_instance c
	  left join wiggle.wf_instance p on p.id = regexp_replace(c.parent_token_id, '^tok(.*)-\d+$', 'wfi\1')
	  left join wiggle.wf_token t on t.instance = p.no and t.n = substring(c.parent_token_id from '\d+$')::int
	 where c.parent_token_id is not null
	   and case when c.status in ('RUNNING', 'COMPENSATING') then
				-- Given up by its parent: only until the clock worker comes.
				t.status is distinct from 'A' and not (c.status = 'COMPENSATING' and t.status is not null)
				and not exists (select from wiggle.wf_timer m where m.instance = c.no and m.n = 0)
				else t.status = 'A' and not exists (select from wiggle.wf_timer m where (m.instance, m.n) = (t.instance, t.n)) end
	union all
	select format('token %s of an instance of %s awaits a child that is not there', t.n, g.workflow)
	  from wiggle.wf_token t join wt.graph g on g.no = t.instance join wt.node n on n.definition = g.definition and n.node = t.node
	 where t.status = 'A' and n.kind = 'SUB_WORKFLOW'
	   and not exists (select from wiggle.wf_instance c where c.parent_token_id = regexp_replace(g.id, '^wfi', 'tok') || '-' || t.n)
	union all
	select format('the log of events of a %s instance of %s: %s', i.status, i.workflow, e.types)
	  from wiggle.wf_instance i left join (select instance_id, string_agg(type, ' ' order by seq) types from wiggle.wf_event where type like 'wf.%' group by 1) e on e.instance_id = i.id
	 where e.types is distinct from 'wf.started' || case i.status when 'RUNNING' then '' when 'COMPENSATED' then ' wf.compensating wf.compensated'
				when 'COMPENSATION_FAILED' then ' wf.compensating wf.compensation_failed' else ' wf.' || lower(i.status) end
$$;
create function wt.unsound() returns setof text language sql
as $$ select * from wt.unsound_tokens() union all select * from wt.unsound_groups() union all select * from wt.unsound_instances() $$;

-- Nothing is left running that a later claim could meet; parents before children.
create function wt.clear() returns text language plpgsql
as $$
declare
	live record;
begin
	for live in select id from wiggle.wf_instance where status = 'RUNNING' order by depth, no loop
		perform wiggle.cancel(live.id, 'the scene is over');
	end loop;
	return 'cleared';
end $$;

-- Take away what has ended: tens of thousands of rows slow down every later look.
create function wt.forget() returns text language sql
as $$
	delete from wiggle.wf_token t using wiggle.wf_instance i where i.no = t.instance and i.status not in ('RUNNING', 'COMPENSATING');
	delete from wiggle.wf_scope t using wiggle.wf_instance i where i.no = t.instance and i.status not in ('RUNNING', 'COMPENSATING');
	delete from wiggle.wf_comp_log t using wiggle.wf_instance i where i.no = t.instance and i.status not in ('RUNNING', 'COMPENSATING');
	delete from wiggle.wf_instance where status not in ('RUNNING', 'COMPENSATING');
	select 'forgotten'
$$;

-- Each test ends with this: what is unsound, then nothing left running. (Timers
-- of children that a parent gave up go when the clock worker has looked at them.)
create function wt.finish() returns setof text language plpgsql
as $$
begin
	return query select wt.unsound();
	perform wiggle.test_set_clock(null);
	perform wt.clear();
	return query select wt.unsound();
	if exists (select from wiggle.wf_ready) or exists (select from wiggle.wf_lease) or exists (select from wiggle.wf_timer where n > 0)
		or exists (select from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING')) then
		return next 'work is left';
	end if;
	delete from wt.instance;
	delete from wt.claim;
	delete from wt.handler;
	return next 'sound';
end $$;

-- A worker for tests: each step's handler is an SQL expression over its context c,
-- the context around it base, its place i and key k, and its attempt.
create table wt.handler (step text primary key, expr text not null);
create function wt.handle(step text, expr text) returns void language sql
as $$ insert into wt.handler values (step, expr) on conflict on constraint handler_pkey do update set expr = excluded.expr $$;
create sequence wt.nonce;
create function wt.nonce() returns text language sql as $$ select lpad(nextval('wt.nonce')::text, 13, '0') $$;

create function wt.poll_one(queues text[]) returns setof wiggle.batch_result language sql
as $$
	select * from wiggle.batch(null, null, null, null, null, row(array['w#' || wt.nonce()], array[1], array[0::int8],
			array_fill(0, array[cardinality(queues)]), queues, null, null, null)::wiggle.batch_polls) where op = 't'
$$;
create function wt.report_one(t wiggle.batch_result, kind int, value text, events wiggle.batch_events default null) returns setof wiggle.batch_result language sql
as $$
	select * from wiggle.batch(null, row(array[t.task_id], array[t.lease_owner], array[1], array[0], array[t.node_id], array[kind], array[value],
			array[0::int8], array[0::int8])::wiggle.batch_runs, null, null, null, null, events)
$$;
create function wt.fail_one(t wiggle.batch_result, message text, retryable boolean) returns setof wiggle.batch_result language sql
as $$ select * from wiggle.batch(null, null, row(array[t.task_id], array[t.lease_owner], array[message], array[retryable], array[0])::wiggle.batch_fails, null, null, null) $$;

-- Do what is ready in these queues, one task after the other, and tell it: step
-- and context, then what came of it. A handler that raises WT001 fails for good.
create function wt.drain(queues text[], max int default 1000, quiet boolean default false) returns text language plpgsql
as $$
declare
	t wiggle.batch_result;
	answer wiggle.batch_result;
	handler text;
	value jsonb;
	shown text;
	told text[] := '{}';
begin
	for n in 1 .. max loop
		select * into t from wt.poll_one(queues);
		exit when t.task_id is null;
		select expr into handler from wt.handler where step = t.step_name;
		shown := concat_ws(' ', t.step_name, case when t.attempt > 1 then '(' || t.attempt || ')' end, t.context,
			'base=' || t.base_context, case when t.base_context is not null then 'i=' || t.item_index end, 'key=' || t.item_map_key, 'collect=' || t.collect_key, 'arms=' || t.arm_names::text);
		begin
			value := null;
			if handler is not null then
				execute 'select (' || handler || ')::text::jsonb from (values ($1, $2, $3, $4, $5)) v(c, base, i, k, attempt)' into value
					using t.context::jsonb, t.base_context::jsonb, t.item_index, t.item_map_key, t.attempt;
			elsif t.kind = 'PREDICATE' then
				value := 'true';
			end if;
			select * into answer from wt.report_one(t, case when t.kind = 'PREDICATE' then 2 else 1 end, value::text);
			shown := concat_ws(' ', shown, '->', coalesce(value::text, 'nothing'), nullif(answer.status, 'RUNNING'), answer.message);
		exception when raise_exception or sqlstate 'WT001' then
			select * into answer from wt.fail_one(t, sqlerrm, sqlstate <> 'WT001');
			shown := concat_ws(' ', shown, '-> failed:', sqlerrm, answer.message);
		end;
		told := told || shown;
	end loop;
	return case when quiet then cardinality(told) || ' steps' else wt.mask(array_to_string(told, E'\n')) end;
end $$;
-- CompleteTask, which a claimed task of its client ends with: a task's result merges.
create function wt.complete_task(label text, result jsonb default null) returns text language sql
as $$ select coalesce(b.message, b.status) from wiggle.batch(null, row(array[wt.task(label)], array[wt.owner(label)], array[2], array[0], array[null::text], array[1], array[result::text],
			array[0::int8], array[0::int8])::wiggle.batch_runs, null, null, null, null) b $$;
create function wt.oops(message text, final boolean default false) returns jsonb language plpgsql
as $$
begin
	raise exception using errcode = case when final then 'WT001' else 'P0001' end, message = message;
end $$;

-- What the log says of an instance, in order.
create function wt.log(label text) returns text language sql
as $$ select wt.mask(string_agg(concat_ws(' ', type, node_id, payload::text), ', ' order by seq)) from wiggle.wf_event where instance_id = wt.id(label) $$;
-- Its tokens in a line: node, status.
create function wt.marks(label text) returns text language sql
as $$ select string_agg(format('%s %s', node_id, status), ', ' order by substring(id from '\d+$')::int) from wiggle.tokens(wt.id(label)) $$;
-- They can tell: a lost ready row, a token left live, a stray timer; below, what
-- groups, children and logs can lose.
select wt.register('{"workflow":"helped","version":1,"steps":[{"task":"a"},{"task":"b"}]}');
select wt.start('one', 'helped');
select wt.claim('held', 'helped'), wt.refusal('select wt.complete(''held'', ''{"a":1}'')'), wt.refusal('select wt.complete(''held'')');
begin;
delete from wiggle.wf_ready where instance = (select wt.no('one'));
select * from wt.unsound();
rollback;
begin;
update wiggle.wf_instance set status = 'COMPLETED' where no = (select wt.no('one'));
select * from wt.unsound();
rollback;
begin;
insert into wiggle.wf_timer select due_at, instance, n from wiggle.wf_ready, (values (now())) t(due_at) where instance = (select wt.no('one'));
select * from wt.unsound();
rollback;
begin;
update wiggle.wf_token set status = 'D' where instance = (select wt.no('one'));
select * from wt.unsound() order by 1;
rollback;
begin;
delete from wiggle.wf_token where instance = (select wt.no('one')) and n = 1;
delete from wiggle.wf_scope where instance = (select wt.no('one'));
update wiggle.wf_instance set error = 'none' where no = (select wt.no('one'));
update wiggle.wf_ready set queue = 'other' where instance = (select wt.no('one'));
select * from wt.unsound() order by 1;
rollback;
select wt.register('{"workflow":"helping","version":1,"steps":[{"task":"t","compensable":true},{"fork":{"x":[{"sub_workflow":"helped"}],"y":[{"await_signal":"s","timeout":"1h"}],"z":[{"sleep":"1h"}],"now":[{"gate":"shut"}]}}]}');
select wt.handle('shut', 'false');
select wt.start('two', 'helping'), wt.drain('{helping}');
select * from wt.unsound();
begin;
update wiggle.wf_token set missing = missing - 1 where instance = (select wt.no('two')) and width is not null;
delete from wiggle.wf_timer where instance = (select wt.no('two'));
select * from wt.unsound() order by 1;
rollback;
begin;
update wiggle.wf_instance set status = 'COMPENSATING', error = 'x' where no = (select wt.no('two'));
select * from wt.unsound() order by 1;
rollback;
begin;
update wiggle.wf_token set status = 'D' where instance = (select wt.no('two')) and node in (select node from wt.node where kind = 'SUB_WORKFLOW');
select * from wt.unsound() order by 1;
rollback;
begin;
delete from wiggle.wf_instance where parent_token_id is not null;
select * from wt.unsound() order by 1;
rollback;
begin;
update wiggle.wf_scope set arrived = null where arrived is not null;
update wiggle.wf_comp_log set compensated = true;
delete from wiggle.wf_event;
select * from wt.unsound() order by 1;
rollback;
begin;
update wiggle.wf_token set status = 'D' where instance = (select wt.no('two')) and status in ('W', 'A');
delete from wiggle.wf_scope where scope > 0 and arrived is null;
select * from wt.unsound() order by 1;
rollback;
select * from wt.finish();
