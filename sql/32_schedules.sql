-- Schedules at the SQL door, by the stopped clock: cadence, catch-up, exactly once.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"sc","version":1,"steps":[{"task":"tick"}]}');
select wt.register('{"workflow":"sc2","version":1,"steps":[{"task":"tock"}]}');
create function wt.schedule(statement text) returns text language plpgsql
as $$
declare
	r wiggle.schedule_row;
begin
	execute 'select * from ' || statement into r;
	return concat_ws(' ', r.workflow, 'every=' || r.every_millis, 'cron=' || r.cron, r.context, 'next=' || r.next_fire_at, 'created=' || r.created_at);
exception when others then
	return sqlstate || ': ' || sqlerrm;
end $$;
create function wt.fired(workflow text default 'sc') returns text language sql
as $$ select format('%s fired, next %s', (select count(*) from wiggle.wf_instance i where i.workflow = fired.workflow and i.correlation_id like 'schedule:%'),
					(select next_fire_at from wiggle.wf_schedule s where s.workflow = fired.workflow)) $$;
-- Move the clock and wait until what is due by then has been fired.
create procedure wt.let(seconds float8) language plpgsql
as $$
begin
	perform wt.at(seconds);
	commit;
	if wt.await('not exists (select from wiggle.wf_schedule where next_fire_at <= (wiggle.version()).now)') <> 'came true' then
		raise exception 'a schedule that is due was not fired';
	end if;
end $$;

select wt.at(0);
-- Refusals (81).
select title, wt.schedule('wiggle.schedule(' || args || ')') from (values
	('no cadence', '''sc'''), ('two cadences', '''sc'', ''1 s'', ''* * * * *'''), ('no workflow', 'null, ''1 s'''), ('empty workflow', ''''', ''1 s'''), ('unknown workflow', '''nobody'', ''1 s'''),
	('zero', '''sc'', ''0'''), ('negative', '''sc'', ''-1 s'''), ('less than a millisecond', '''sc'', ''999 us'''), ('mixed signs', '''sc'', ''1 day -1 s'''), ('a million years', '''sc'', ''1000000 years'''),
	('empty cron', '''sc'', null, '''''), ('four fields', '''sc'', null, ''* * * *'''), ('six fields', '''sc'', null, ''* * * * * *'''), ('step 0', '''sc'', null, ''*/0 * * * *'''),
	('out of range', '''sc'', null, ''60 * * * *'''), ('backwards', '''sc'', null, ''5-1 * * * *'''), ('a name', '''sc'', null, ''* * * jan *'''), ('dow 8', '''sc'', null, ''0 0 * * 8'''), ('dow 7-1', '''sc'', null, ''0 0 * * 7-1'''),
	('never', '''sc'', null, ''0 0 30 2 *'''), ('too long', '''sc'', null, ''' || repeat('1,', 60) || '1 * * * *'''), ('NUL', '''sc'', ''1 s'', null, ''{"a":"\u0000"}''')) v(title, args);
select * from wiggle.schedules();
-- An interval: first after it, then again and again, once each due time (80).
select wt.schedule('wiggle.schedule(''sc'', ''10 s'', null, ''{"by":"schedule","n":null}'')');
select id as sched from wiggle.schedules() \gset
select :'sched' ~ '^sched_[0-9a-z]{22}$' as form;
call wt.let(9.999);
select wt.fired();
call wt.let(10);
select wt.fired();
select version, status, correlation_id = 'schedule:' || :'sched' as correlation, context from wiggle.instances('sc');
call wt.let(10.5);
call wt.let(20);
call wt.let(21);
select wt.fired();
-- After a pause: one catch-up fire, then on time again, without drift.
call wt.let(57.25);
select wt.fired();
call wt.let(59.999);
call wt.let(60);
select wt.fired();
-- Upsert: id and creation stay, cadence, context and due time are new.
select wt.schedule('wiggle.schedule(''sc'', null, ''*/5 * * * *'', ''{"by":"cron"}'')');
select id = :'sched' as same_id, every_millis, cron, next_fire_at from wiggle.schedules();
call wt.let(299.9);
call wt.let(300);
select wt.fired();
select context, count(*) from wiggle.instances('sc') group by 1 order by 1;
-- A cron after a long pause: once, then at the next minute that it names.
call wt.let(7261);
select wt.fired();
call wt.let(7500);
select wt.fired();
-- Deleted: no more fires; deleting what is not there is a success.
select wiggle.unschedule(:'sched'), wiggle.unschedule(:'sched'), wiggle.unschedule('nobody'), wiggle.unschedule(null);
call wt.let(90000);
select wt.fired();
-- Rolled back, it was never there.
begin;
select wt.schedule('wiggle.schedule(''sc2'', ''1 s'')');
rollback;
call wt.let(90010);
select wt.fired('sc2');

-- The latest version fires; the context of a schedule may be anything.
select wt.register('{"workflow":"sc2","version":7,"steps":[{"task":"tock"}]}'), wt.schedule('wiggle.schedule(''sc2'', ''1 minute'', null, ''[1,2]'')');
call wt.let(90070);
select version, context from wiggle.instances('sc2');
-- Fired by a worker's sessions too: what it starts is dispatched.
select wt.drain('{sc2}');
-- Many at once, more than a batch of the clock worker: each once.
select count(wiggle.register(format('{"workflow":"m%s","version":1,"defaultQueue":"m","steps":[{"task":"x"}]}', k)::jsonb)), count(wiggle.schedule('m' || k, '1 hour')) from generate_series(1, 700) k;
call wt.let(93671);
select count(*), count(distinct i.workflow), count(distinct correlation_id) from wiggle.wf_instance i where i.workflow ~ '^m\d+$';
-- Two passes race: whoever comes second finds the due time moved. (A stale view of
-- a due time moves nothing.)
select next_fire_at as seen from wiggle.wf_schedule where workflow = 'm1' \gset
call wt.let(97272);
select count(*) from wiggle.wf_instance i where i.workflow ~ '^m\d+$';
update wiggle.wf_schedule set next_fire_at = next_fire_at where workflow = 'm1' and next_fire_at = :'seen';
-- The clock worker dies between two fires: none is lost, none comes twice.
select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'wiggle clock worker' and datname = current_database();
call wt.let(100873);
select count(*), max(n) from (select count(*) n from wiggle.wf_instance i where i.workflow ~ '^m\d+$' group by i.workflow) c;
delete from wiggle.wf_schedule where workflow ~ '^m\d+$';

-- Placement: another shard's instances go to the outbox, with their ids (home's part).
select * from wiggle.outbox();
select wiggle.publish_placement('[{"id":1,"activeFrom":"2020-01-01T00:00:00Z","weights":{"5":1}},{"id":2,"activeFrom":"2035-01-01T00:00:00Z","weights":{"6":1,"7":0}}]');
select * from wiggle.wf_placement order by 1, 3;
delete from wiggle.wf_schedule where workflow = 'sc2';
select wt.schedule('wiggle.schedule(''sc'', ''10 s'', null, ''{"far":1}'')');
call wt.let(100890);
select wt.fired(), count(*) from wiggle.outbox();
select id ~ '^wfi\.s5\.[0-9a-z]{22}$' as id, shard, workflow, correlation_id = 'schedule:' || (select id from wiggle.schedules()) as correlation, context from wiggle.outbox();
select count(*) from wiggle.outbox(0);
-- It is that shard's: this one refuses to start it.
select o.id as far from wiggle.outbox() o \gset
select regexp_replace(wt.refusal(format('select wiggle.start(''sc'', id => %L)', :'far')), 'wfi:<id>', 'wfi.s5.…');
select wiggle.outbox_done(array[:'far', 'nobody']), wiggle.outbox_done('{}');
select count(*) from wiggle.outbox();
-- By weight, over many fires; a generation to come is not in force.
select wiggle.publish_placement('[{"id":1,"activeFrom":"2020-01-01T00:00:00Z","weights":{"5":1,"6":3}}]');
select wt.schedule('wiggle.schedule(''sc'', ''1 s'')');
do $$
begin
	for k in 1 .. 200 loop
		call wt.let(100900 + k);
	end loop;
end $$;
select count(*), count(*) filter (where shard = 6) between 110 and 185 as by_weight from wiggle.outbox(1000);
select wiggle.unschedule(id) from wiggle.schedules();
-- Of one shard; what a shard has refused is due again later, behind what has come meanwhile, and counts once.
select distinct shard from wiggle.outbox(1000, array[6, 9]);
select count(*) from wiggle.outbox(1000, array[9]);
create temp table refused as select id from wiggle.outbox(2, array[6]);
select wiggle.outbox_done('{}', array(select id from refused)), wiggle.outbox_done('{}', array(select id from refused));
select count(*), count(r.id) from wiggle.outbox(1000) o left join refused r using (id);
select o.refusals, o.due_at - (wiggle.version()).now as again_in from wiggle.wf_outbox o join refused using (id);
call wt.let(101115);
select count(*), count(r.id), max(n) filter (where r.id is not null) = count(*) as last from (select o.id, row_number() over () as n from wiggle.outbox(1000) o) o left join refused r using (id);
select wiggle.outbox_done('{}', array(select id from refused));
select o.refusals from wiggle.wf_outbox o join refused using (id);
drop table refused;
select wiggle.outbox_done(array(select id from wiggle.wf_outbox));
insert into wiggle.wf_outbox values ('wfi.s9.0123456789abcdefghijkl', 9, 'sc', null, '{}', clock_timestamp() - interval '11 min');
select id, workflow, version, reason, node from wiggle.stuck;
select wiggle.outbox_done('{wfi.s9.0123456789abcdefghijkl}');
-- Who has not got the newest topology yet changes nothing; what is withdrawn is gone. Before any generation has begun the first one holds.
select wiggle.publish_placement('[{"id":20261129230000,"activeFrom":"2035-01-01T00:00:00Z","weights":{"6":1}},{"id":20261129230001,"activeFrom":"2036-01-01T00:00:00Z","weights":{"9":1}}]');
select wiggle.publish_placement('[{"id":4,"activeFrom":"2020-01-01T00:00:00Z","weights":{"5":1}}]', false);
select string_agg(generation || ':' || shard, ' ' order by generation) as known from wiggle.wf_placement;
select workflow from wiggle.schedule('sc', '10 s');
call wt.let(101900);
select distinct shard from wiggle.outbox();
select wiggle.unschedule(id) from wiggle.schedules();
select wiggle.outbox_done(array(select id from wiggle.wf_outbox));
select wiggle.publish_placement('[{"id":4,"activeFrom":"2020-01-01T00:00:00Z","weights":{"5":1}}]', true);
select string_agg(generation || ':' || shard, ' ' order by generation) as known from wiggle.wf_placement;
select coalesce(wiggle.publish_placement('[]'), 0) as none;
select wt.clear();
select * from wt.finish();
select wt.forget();
