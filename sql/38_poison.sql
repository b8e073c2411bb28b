-- What cannot be moved for an error keeps nothing else waiting: timers, leases and
-- schedules that raise one rest, and are tried again.
set timezone = 'UTC';
select wt.register('{"workflow":"poisoned","version":1,"steps":[{"sleep":"1s"}]}');
select wt.register('{"workflow":"poisoned-lease","version":1,"steps":[{"task":"t","retry":"none"}]}');
select wt.register('{"workflow":"sound","version":1,"steps":[{"sleep":"3s"}]}');
select wt.register('{"workflow":"sound-lease","version":1,"steps":[{"task":"t","retry":"none"}]}');
select wt.register('{"workflow":"gone","version":1,"steps":[{"task":"t"}]}');
select wt.at(0);
select wt.start('poisoned', 'poisoned'), wt.start('sound', 'sound');
select wt.start('poisoned-lease', 'poisoned-lease'), wt.claim('p', 'poisoned-lease', 'w', '1s');
select wt.start('sound-lease', 'sound-lease'), wt.claim('s', 'sound-lease', 'w', '3s');
create function wt.refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
create trigger poison before insert on wiggle.wf_event for each row when (new.workflow like 'poisoned%') execute function wt.refuse();
-- A timer that is due later shows that a pass has been there.
select wt.register('{"workflow":"ticking","version":1,"steps":[{"sleep":"0s"}]}');
select wt.at(1.5), wt.start('tick', 'ticking');
select wt.await('wt.show(''tick'') = ''COMPLETED {}'''), wt.show('poisoned'), wt.show('poisoned-lease');
-- Due while the others rest.
select wt.at(3.1), wt.await('wt.show(''sound'') = ''COMPLETED {}'''), wt.await('wt.show(''sound-lease'') like ''FAILED%''');
select wt.show('poisoned'), wt.show('poisoned-lease');
drop trigger poison on wiggle.wf_event;
select wt.at(20), wt.await('wt.show(''poisoned'') = ''COMPLETED {}'''), wt.await('wt.show(''poisoned-lease'') like ''FAILED%''');
-- A schedule whose workflow somebody deleted, beside one that fires each second.
delete from wiggle.wf_schedule;
select workflow from wiggle.schedule('gone', '1 s');
select workflow from wiggle.schedule('ticking', '1 s');
delete from wiggle.wf_definition where name = 'gone';
create procedure wt.fires(seconds float8, times int) language plpgsql
as $$
begin
	perform wt.at(seconds);
	commit;
	raise info '%: % %', seconds, times, wt.await(format('(select count(*) from wiggle.wf_instance where correlation_id like ''schedule:%%'') = %s', times));
end $$;
call wt.fires(21, 1);
call wt.fires(22, 2);
call wt.fires(23, 3);
call wt.fires(24, 4);
select workflow, next_fire_at from wiggle.schedules() order by 1;
delete from wiggle.wf_schedule;
-- Branches that bring more than a combine can be given end the instance.
select wt.register('{"workflow":"much","version":1,"steps":[{"fork_each":{"over":"items","as":"i","combine":"all","body":[{"task":"grow"}]}}]}');
select wt.start('much', 'much', (select jsonb_build_object('items', jsonb_agg(i)) from generate_series(1, 66) i));
do $$
declare
	t wiggle.task;
begin
	for t in select * from wiggle.poll('w', array['much'], 66) loop
		perform wiggle.complete(t.task_id, t.lease_owner, jsonb_build_object('x', repeat('x', 1024 * 1024)));
	end loop;
end $$;
select wt.show('much');
-- A worker's clock that is ahead, or runs backwards, is not the instance's.
select wt.register('{"workflow":"clock","version":1,"steps":[{"task":"t"}]}');
select wt.start('ahead', 'clock'), wt.claim('ahead', 'clock'), wt.start('back', 'clock'), wt.claim('back', 'clock');
select error_status from wiggle.report(jsonb_build_array(
	jsonb_build_object('task_id', wt.task('ahead'), 'lease_owner', wt.owner('ahead'), 'final', true, 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1', 'merge', jsonb_build_object(), 'started_at', 1924992000000, 'finished_at', 1924992060000))),
	jsonb_build_object('task_id', wt.task('back'), 'lease_owner', wt.owner('back'), 'final', true, 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1', 'merge', jsonb_build_object(), 'started_at', 1893456020000, 'finished_at', 1893456010000)))));
select updated_at <= (wiggle.version()).now as not_ahead from wiggle.instance(wt.id('ahead'));
select wt.mask(t.id), t.finished_at >= t.started_at as forwards from wiggle.tokens(wt.id('back')) t where t.kind = 'TASK';
-- Limits are in characters.
select wt.start('chars', 'clock'), wt.claim('chars', 'clock');
select error from wiggle.report(jsonb_build_array(jsonb_build_object('task_id', wt.task('chars'), 'lease_owner', wt.owner('chars'), 'final', true, 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1', 'events', jsonb_build_array(jsonb_build_object('type', repeat('é', 33))))))));
select error_status from wiggle.report(jsonb_build_array(jsonb_build_object('task_id', wt.task('chars'), 'lease_owner', wt.owner('chars'), 'final', true, 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1', 'events', jsonb_build_array(jsonb_build_object('type', repeat('é', 32))))))));
select wt.start('chars2', 'clock'), wiggle.cancel(wt.id('chars2'), repeat('é', 200));
select length(termination_reason) from wiggle.wf_instance where id = wt.id('chars2');
-- A sub-workflow that somebody deleted is told of.
select wt.register('{"workflow":"orphaned","version":1,"steps":[{"sub_workflow":"clock"}]}');
select wt.start('orphaned', 'orphaned');
select count(*) from wiggle.stuck where reason like 'its sub%';
delete from wiggle.wf_instance where workflow = 'clock' and status = 'RUNNING';
select workflow, reason from wiggle.stuck where reason like 'its sub%';
select wiggle.cancel(wt.id('orphaned'));
delete from wiggle.wf_token t where not exists (select from wiggle.wf_instance i where i.no = t.instance);
delete from wiggle.wf_scope t where not exists (select from wiggle.wf_instance i where i.no = t.instance);
delete from wiggle.wf_lease t where not exists (select from wiggle.wf_instance i where i.no = t.instance);
delete from wiggle.wf_ready t where not exists (select from wiggle.wf_instance i where i.no = t.instance);
select * from wt.finish();
select wt.forget();
