-- Where the engine's functions cannot run, they say so and change nothing.
select wt.register('{"workflow":"gd","version":1,"steps":[{"task":"a"}]}');
select wt.start('g', 'gd'), wt.claim('g', 'gd');

-- Nothing here should ever wait for long.
set lock_timeout = '10s';

-- Read-only transactions: looking works, changing does not.
begin read only;
select status from wiggle.instance(wt.id('g'));
select status, attempt from wt.tokens('g');
select name from wiggle.workflows() where name = 'gd';
select wiggle.definition('gd')->'version' as version;
select count(*) from wiggle.running where workflow = 'gd';
select library from wiggle.version();
select count(*) > 0 from wiggle.transitions();
savepoint s;
select wiggle.start('gd');
rollback to s;
select wiggle.poll('w');
rollback to s;
select wiggle.complete('t', 'o');
rollback to s;
select wiggle.decide('t', 'o', true);
rollback to s;
select wiggle.fail('t', 'o', 'x');
rollback to s;
select wiggle.heartbeat('t', 'o');
rollback to s;
select wiggle.cancel('i');
rollback to s;
select wiggle.register('{}');
rollback to s;
select wiggle.batch(null, null, null, null, null, null);
rollback to s;
select wiggle.report('[{"task_id":"t","lease_owner":"o","steps":[{"node_id":"n"}]}]');
rollback to s;
select wiggle.release_owners('{w}');
rollback to s;
select wiggle.shard_claim(0);
rollback;

-- No function that writes is offered to parallel plans.
select p.oid::regprocedure from pg_proc p where p.pronamespace = 'wiggle'::regnamespace and p.proparallel <> 'u' and p.provolatile = 'v';

-- Two-phase commit: what the engine tells the clock worker at commit would be lost.
begin;
select wiggle.start('gd') is not null as started;
prepare transaction 'wiggle';
select format('rollback prepared %L', gid) as let_through from pg_prepared_xacts where database = current_database() \gexec
begin;
select wiggle.cancel(wt.id('g'));
prepare transaction 'wiggle';
select format('rollback prepared %L', gid) as let_through from pg_prepared_xacts where database = current_database() \gexec
begin;
select wt.complete('g', '{"done":true}');
prepare transaction 'wiggle';
select format('rollback prepared %L', gid) as let_through from pg_prepared_xacts where database = current_database() \gexec
select wt.show('g'), wt.complete('g', '{"done":true}');
begin;
select count(*) from wiggle.running;
prepare transaction 'only looked';
rollback prepared 'only looked';

-- Stricter isolation levels: what they cannot know they refuse as the server does,
-- and alone they work.
begin isolation level serializable;
select wt.start('ser', 'gd'), wt.claim('ser', 'gd'), wt.complete('ser', '{"ser":1}');
commit;
begin isolation level repeatable read;
select wt.start('rr', 'gd'), wt.claim('rr', 'gd'), wt.complete('rr', '{"rr":1}');
commit;
select wt.show('ser'), wt.show('rr');

-- Settings: who may set them, and their bounds.
select name, context, setting, unit, min_val, max_val from pg_settings where name like 'wiggle.%' and name not like 'wiggle.test%' order by name;
select name, short_desc <> '' as described from pg_settings where name like 'wiggle.%' order by name;
set wiggle.no_such_setting = 1;
\set VERBOSITY sqlstate
set wiggle.default_lease = 0;	-- 18 words it differently
\set VERBOSITY default
set wiggle.loop_max_iterations = 0;
set wiggle.max_queues = 3;

-- In a function, a procedure with commits, a cursor, a DO block.
do $$ begin perform wt.start('in do', 'gd', '{"do":1}'); end $$;
create procedure wt.many() language plpgsql as $$
begin
	for k in 1 .. 3 loop
		perform wt.start('proc' || k, 'gd');
		if k = 2 then rollback; else commit; end if;
	end loop;
end $$;
call wt.many();
select label from wt.instance where label like 'proc%' order by 1;
begin;
declare c cursor for select step_name from wiggle.poll('w', array['gd'], 2);
fetch c;
fetch c;
fetch c;
close c;
commit;
select count(*) from wiggle.wf_lease;
drop procedure wt.many();
select * from wt.finish();
