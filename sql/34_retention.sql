-- Retention: what ended long enough ago is purged, in bounded batches; what lives,
-- or has a child that lives, stays, however old.
set timezone = 'UTC';
select wt.register('{"workflow":"rt","version":1,"steps":[{"task":"t","compensable":true},{"task":"u","retry":"none"}]}');
select wt.register('{"workflow":"rtc","version":1,"steps":[{"task":"tc","compensable":true},{"task":"uc","retry":"none"}]}');
select wt.register('{"workflow":"rtp","version":1,"steps":[{"sub_workflow":"rt"}]}');
select wt.register('{"workflow":"rts","version":1,"steps":[{"await_signal":"s"}]}');
-- One of every end, and one of every life, long ago.
select wt.at(0);
select wt.start('completed', 'rt'), wt.drain('{rt}');
select wt.handle('u', 'wt.oops(''x'')'), wt.start('compensated', 'rt'), wt.drain('{rt}'), wt.show('compensated');
select wt.handle('uc', 'wt.oops(''x'')'), wt.start('compensating', 'rtc'), wt.drain('{rtc}', 2), wt.show('compensating');
select wt.start('running', 'rts'), wt.start('cancelled', 'rts'), wiggle.cancel(wt.id('cancelled'));
select wt.handle('t', 'wt.oops(''y'', true)'), wt.start('failed', 'rt'), wt.drain('{rt}', 1), wt.show('failed');
delete from wt.handler where step = 't';
-- A parent that was cancelled while its child undoes what it did: the child lives.
select wt.start('parent', 'rtp'), wt.child('child', 'parent');
select wt.drain('{rt}', 2), wt.show('child'), wiggle.cancel(wt.id('parent')), wt.show('parent');
select wt.await('not exists (select from wiggle.wf_timer)');
select l.label, i.status from wt.instance l join wiggle.wf_instance i using (id) order by 1;
create table wt.before as select i.id, i.status, l.label from wiggle.wf_instance i left join wt.instance l using (id);
-- Ended a second less than the retention ago: kept.
alter system set wiggle.retention = '1h';
select pg_reload_conf();
select wt.at(3599.5);
select count(*) = (select count(*) from wt.before where label is not null) as all_kept from wiggle.wf_instance i join wt.before b using (id) where b.label is not null;
select wt.at(3700);
select wt.await('not exists (select from wiggle.wf_instance where status in (''COMPLETED'', ''FAILED'', ''COMPENSATED'') and updated_at < ''2030-01-01 00:30+00'')');
select b.label, b.status, i.id is not null as kept from wt.before b left join wiggle.wf_instance i using (id) where b.label is not null order by 1;
select (select count(*) from wiggle.wf_token t where not exists (select from wiggle.wf_instance i where i.no = t.instance)) as tokens,
	   (select count(*) from wiggle.wf_scope t where not exists (select from wiggle.wf_instance i where i.no = t.instance)) as scopes,
	   (select count(*) from wiggle.wf_comp_log t where not exists (select from wiggle.wf_instance i where i.no = t.instance)) as undo;
-- Its events stay: they have an age of their own.
select count(*) > 0 as events from wiggle.wf_event where instance_id = wt.id('completed');
select wt.refusal(format('select wiggle.instance(%L)', wt.id('completed'))), wt.refusal(format('select wiggle.cancel(%L)', wt.id('completed')));

-- The child lands; later both may go.
select wt.drain('{rt,rtc}'), wt.show('child'), wt.show('compensating');
select wt.at(7400);
select wt.await('not exists (select from wiggle.wf_instance where status not in (''RUNNING''))');
select label from wt.instance join wiggle.wf_instance using (id);

-- A timer that a purged instance left goes when it is due; one of the living stays.
insert into wiggle.wf_timer values ('2030-01-01 02:03+00', 1, 0), ('2030-01-01 02:03+00', 1, 3), ('2030-01-01 02:03+00', wt.no('running'), 99);
select wt.await('not exists (select from wiggle.wf_timer where instance = 1)');
select count(*) from wiggle.wf_timer where instance = wt.no('running');
delete from wiggle.wf_timer;

-- Many: more than a batch of the clock worker, all gone by batches.
do $$ begin perform wiggle.cancel(wiggle.start('rts')) from generate_series(1, 1700); end $$;
select wt.at(11100);
select wt.await('(select count(*) from wiggle.wf_instance) = 1');
-- -1 keeps all; a clock worker that begins with it has surely read it.
alter system set wiggle.retention = -1;
select pg_reload_conf();
select pid as former from pg_stat_activity where backend_type = 'wiggle clock worker' and datname = current_database() \gset
select pg_terminate_backend(:former, 30000);
select wt.await('exists (select from pg_stat_activity where backend_type = ''wiggle clock worker'' and datname = current_database() and pid <> ' || :former || ')');
select wt.start('kept', 'rts'), wiggle.cancel(wt.id('kept'));
select wt.at(1000000);
select wt.show('kept');
alter system reset wiggle.retention;
select pg_reload_conf();
-- The unit is minutes: what would be rounded to none is refused.
alter system set wiggle.retention = '10s';
alter system set wiggle.event_retention = 0;
select wiggle.test_set_clock(null);
select * from wt.finish();
