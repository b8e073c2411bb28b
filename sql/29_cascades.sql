-- A parent that ends takes its children along: by the clock worker, one instance
-- at a time, whatever the width or the depth (41, C09).
set timezone = 'UTC';
select wt.register('{"workflow":"waits","version":1,"steps":[{"await_signal":"never"}]}');
select wt.register('{"workflow":"wide","version":5,"defaultQueue":"w5","steps":[{"fork_each":{"over":"items","as":"it","combine":"all5","body":[{"sub_workflow":"waits"}]}}]}');

-- A cancelled parent: its children end with that reason, once each.
select wt.start('w', 'wide', (select jsonb_build_object('items', jsonb_agg(k)) from generate_series(1, 500) k));
select count(*) from wiggle.wf_instance where workflow = 'waits' and status = 'RUNNING';
select wiggle.cancel(wt.id('w'), 'no more');
select wt.await('not exists (select from wiggle.wf_instance where workflow = ''waits'' and status = ''RUNNING'')');
select status, termination_reason, count(*) from wiggle.wf_instance where workflow = 'waits' group by 1, 2;
select type, count(*), count(distinct instance_id) from wiggle.wf_event where workflow = 'waits' group by 1 order by 1;
select wt.show('w') like 'CANCELLED no more%' as ended, (select count(*) from wiggle.wf_timer) as timers;
select * from wt.unsound();

-- Cancelled before its children are committed, in one transaction.
begin;
select wt.start('w2', 'wide', '{"items":[1,2,3]}'), wiggle.cancel(wt.id('w2'));
commit;
select wt.await('not exists (select from wiggle.wf_instance where workflow = ''waits'' and status = ''RUNNING'')');
-- A cancel that is rolled back harms no child.
select wt.start('w3', 'wide', '{"items":[1,2]}');
begin;
select wiggle.cancel(wt.id('w3'));
rollback;
select count(*) from wiggle.wf_instance where workflow = 'waits' and status = 'RUNNING';
select wt.clear();
select wt.await('not exists (select from wiggle.wf_timer)');

-- A chain of 2,000: no stack, no thousand locks, no deadlock.
do $$
begin
	perform wiggle.register('{"workflow":"link","version":1,"steps":[{"choose":[{"when":"on","then":[{"sub_workflow":"link"}]},{"otherwise":{"then":[{"await_signal":"never"}]}}]}]}');
end $$;
create procedure wt.chain(length int) language plpgsql
as $$
declare
	t wiggle.batch_result;
begin
	for k in 1 .. length loop
		select * into t from wt.poll_one('{link}');
		if (select code from wt.report_one(t, 2, (k < length)::text)) <> 0 then
			raise exception 'the chain broke at %', k;
		end if;
	end loop;
end $$;
select wt.start('chain', 'link');
call wt.chain(2000);
select count(*), max(depth), bool_and(status = 'RUNNING') as running from wiggle.wf_instance where workflow = 'link';
select wiggle.cancel(wt.id('chain'), 'cut at the root');
select wt.await('not exists (select from wiggle.wf_instance where workflow = ''link'' and status = ''RUNNING'')');
select status, termination_reason, count(*) from wiggle.wf_instance where workflow = 'link' group by 1, 2 order by 3;
select type, count(*), count(distinct instance_id) from wiggle.wf_event where workflow = 'link' group by 1 order by 1;
select wt.await('not exists (select from wiggle.wf_timer)');
select * from wt.unsound();

-- The same chain, failing from below: every level is told in one statement.
select wt.register('{"workflow":"link2","version":1,"steps":[{"choose":[{"when":"on2","then":[{"sub_workflow":"link2"}]},{"otherwise":{"then":[{"task":"last","retry":"none"}]}}]}]}');
create procedure wt.chain2(length int) language plpgsql
as $$
declare
	t wiggle.batch_result;
begin
	for k in 1 .. length loop
		select * into t from wt.poll_one('{link2}');
		perform wt.report_one(t, 2, (k < length)::text);
	end loop;
	select * into t from wt.poll_one('{link2}');
	perform wt.fail_one(t, 'the last link', true);
end $$;
select wt.start('chain2', 'link2');
call wt.chain2(300);
select status, count(*), max(length(error)) < 1100 as bounded from wiggle.wf_instance where workflow = 'link2' group by 1;
select left(wt.show('chain2'), 60);

-- An arm that fails its parent: the child in the other arm does not live on (C09).
select wt.register('{"workflow":"torn","version":1,"steps":[{"fork":{"child":[{"sub_workflow":"waits"}],"bad":[{"task":"bad","retry":"none"}]}}]}');
select wt.handle('bad', 'wt.oops(''torn'')'), wt.start('t', 'torn'), wt.drain('{torn}'), wt.show('t');
select wt.await('not exists (select from wiggle.wf_instance where workflow = ''waits'' and status = ''RUNNING'')');
select termination_reason, count(*) from wiggle.wf_instance where workflow = 'waits' group by 1 order by 1;
-- So too when a loop's budget or a deadline fails it.
select wt.register('{"workflow":"timed","version":1,"steps":[{"fork":{"child":[{"sub_workflow":"waits"}],"late":[{"await_signal":"soon","timeout":"1ms"}]}}]}');
select wt.start('t2', 'timed');
select wt.await('(select status from wiggle.instance(wt.id(''t2''))) = ''FAILED'''), wt.await('not exists (select from wiggle.wf_instance where workflow = ''waits'' and status = ''RUNNING'')');
select wt.show('t2');
select wt.await('not exists (select from wiggle.wf_timer)');
select * from wt.finish();
select wt.forget();
