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
		perform pg_sleep(0.01);
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

-- Everything that must hold between statements, whatever happened before.
create function wt.unsound() returns setof text language sql
as $$
	with r as (select instance, n, count(*) rows from wiggle.wf_ready group by 1, 2),
		 l as (select instance, n, count(*) rows from wiggle.wf_lease group by 1, 2),
		 m as (select instance, n, count(*) rows, max(due_at) due_at from wiggle.wf_timer group by 1, 2),
		 place as (
		select t.instance, t.n, t.status, i.status of_instance, coalesce(r.rows, 0) ready, coalesce(l.rows, 0) leased,
			   case when m.due_at = t.available_at then m.rows else 0 end timers, coalesce(m.rows, 0) any_timers
		  from wiggle.wf_token t left join wiggle.wf_instance i on i.no = t.instance
		  left join r using (instance, n) left join l using (instance, n) left join m using (instance, n)
	)
	select format('token %s %s: %s', t.n, t.status, why) from place t, lateral (values
		(case when t.of_instance is null then 'it has no instance' end),
		(case when t.status not in ('R', 'W', 'D', 'F', 'C') then 'unknown status' end),
		(case when t.status in ('R', 'W') and t.of_instance <> 'RUNNING' then 'live, but its instance is ' || t.of_instance end),
		(case when t.status = 'R' and t.ready + t.leased + t.timers <> 1 then 'it stands in ' || t.ready + t.leased + t.timers || ' places' end),
		(case when t.status = 'W' and (t.timers <> 1 or t.ready + t.leased > 0) then 'it waits without its one timer' end),
		(case when t.status not in ('R', 'W') and t.ready + t.leased > 0 then 'settled, but ready or leased' end),
		(case when t.any_timers <> t.timers or (t.status not in ('R', 'W') and t.any_timers > 0) then 'a timer is not its' end)
	) v(why) where why is not null
	union all
	select format('a row of %s has no token', place) from (
		select 'wf_ready' place, instance, n from wiggle.wf_ready
		union all select 'wf_lease', instance, n from wiggle.wf_lease
		union all select 'wf_timer', instance, n from wiggle.wf_timer) p
	 where not exists (select from wiggle.wf_token t where (t.instance, t.n) = (p.instance, p.n))
	union all
	select format('a running instance of %s has no live token', i.workflow) from wiggle.wf_instance i
	 where i.status = 'RUNNING' and not exists (select from wiggle.wf_token t where t.instance = i.no and t.status in ('R', 'W'))
	union all
	select format('an instance of %s is %s with error %s and reason %s', i.workflow, i.status, i.error, i.termination_reason)
	  from wiggle.wf_instance i
	 where i.status not in ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')
		or (i.status = 'FAILED') <> (i.error is not null)
		or (i.status in ('RUNNING', 'FAILED') and i.termination_reason is not null)
		or (i.status = 'CANCELLED' and i.termination_reason is null)
	union all
	select format('an instance of %s has %s contexts', i.workflow, (select count(*) from wiggle.wf_scope s where s.instance = i.no))
	  from wiggle.wf_instance i
	 where (select count(*) from wiggle.wf_scope s where s.instance = i.no and s.scope = 0) <> 1
	union all
	select format('tokens of an instance of %s are numbered %s', i.workflow, (select string_agg(n::text, ' ' order by n) from wiggle.wf_token t where t.instance = i.no))
	  from wiggle.wf_instance i
	 where (select (min(n), max(n)) is distinct from (1, count(*)::int) from wiggle.wf_token t where t.instance = i.no)
	union all
	select format('two leases of owner %s', wt.mask(owner)) from wiggle.wf_lease group by owner, n, instance having count(*) > 1
	union all
	select format('token %s stands in queue %L of definition %s', r.n, r.queue, r.definition)
	  from wiggle.wf_ready r join wiggle.wf_token t using (instance, n) join wiggle.wf_instance i on i.no = r.instance
	  join wiggle.wf_definition d on d.name = i.workflow and d.version = i.version
	 where d.id <> r.definition or r.queue <> (select coalesce(e->>'queue', '') from json_array_elements(d.body->'nodes') e where e->>'id' = t.node)
$$;

-- Nothing is left running that a later claim could meet.
create function wt.clear() returns text language sql
as $$ select 'cleared' from (select count(wiggle.cancel(i.id, 'the scene is over')) from wiggle.wf_instance i where i.status = 'RUNNING') c $$;

-- Each test ends with this: what is unsound, then nothing left running.
create function wt.finish() returns setof text language plpgsql
as $$
begin
	return query select wt.unsound();
	perform wiggle.test_set_clock(null);
	perform wiggle.cancel(i.id, 'the test is over') from wiggle.wf_instance i where i.status = 'RUNNING';
	return query select wt.unsound();
	if exists (select from wiggle.wf_ready) or exists (select from wiggle.wf_lease) or exists (select from wiggle.wf_timer) then
		return next 'work is left';
	end if;
	delete from wt.instance;
	delete from wt.claim;
	return next 'sound';
end $$;

-- They can tell: a lost ready row, a token left live, a stray timer.
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
select * from wt.finish();
