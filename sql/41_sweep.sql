-- Many workflows of every node kind at once, moved at random by many hands: whatever
-- happens, the tables stay sound and every instance ends in an allowed state. Then
-- the indexes are compared with the tables.
select wt.forget();
do $$ begin perform setseed(0.4); end $$;
create function wt.sweeping(name text, steps text) returns text language sql
as $$ select wt.register(format('{"workflow":"%s","version":1,"defaultQueue":"sweep","steps":%s}', name, steps)) $$;
select wt.sweeping('w1', '[{"task":"a"},{"task":"b"},{"task":"c"}]');
select wt.sweeping('w2', '[{"task":"a","retry":{"max":2,"backoff":"0ms"}},{"gate":"g"},{"task":"b","retry":"none"}]');
select wt.sweeping('w3', '[{"task":"a","retry":{"max":4,"backoff":"900ms","multiplier":3}},{"sleep":"5s"},{"effect":"b"}]');
select wt.sweeping('w4', '[{"do_while":{"while":"more","maxIterations":3,"body":[{"task":"t"},{"sleep":"1s"}]}}]');
select wt.sweeping('w5', '[{"gate":"first"},{"task":"x","queue":"sweep2"}]');
select wt.sweeping('w6', '[{"fork":{"l":[{"task":"l"},{"fork":{"ll":[{"task":"ll"}],"lr":[{"sleep":"2s"}]},"combine":"inner"}],"m":[{"gate":"m"}],"r":[{"await_signal":"go","timeout":"4s","escalation":[{"task":"late"}]}]},"combine":"outer"},{"task":"z"}]');
select wt.sweeping('w7', '[{"fork_each":{"over":"items","as":"it","body":[{"task":"e"},{"choose":[{"when":"p","then":[{"task":"y"}]},{"otherwise":{"then":[{"fork_each":{"over":"items","as":"sub","body":[{"task":"n"}],"combine":"subs"}}]}}]}],"combine":"all"}}]');
select wt.sweeping('w8', '[{"task":"book","compensable":true,"retry":{"max":2,"backoff":"1s"}},{"fork":{"p":[{"task":"pay","compensable":true,"retry":"none"}],"q":[{"sub_workflow":"w2"}]}},{"task":"end","retry":"none"}]');
select wt.sweeping('w9', '[{"await_signal":"start"},{"sub_workflow":"w8"},{"await_signal":"stop","timeout":"3s"}]');
select wt.sweeping('w10', '[{"do_while":{"while":"again","maxIterations":2,"body":[{"fork_each":{"over":"items","as":"each","body":[{"sub_workflow":"w1"}]}}]}}]');
select wt.sweeping('w11', '[{"task":"a","compensable":true},{"task":"b"},{"gate":"g"},{"task":"c","compensable":true,"retry":"none"}]');
-- The same, kept by its worker from step to step; and arms that share their context.
select created from wiggle.register(jsonb_set(jsonb_set(wiggle.definition('w11'), '{executionMode}', '"LOCAL_ASYNC"'), '{name}', '"w12"'));
select created from wiggle.register('{"name":"w13","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b","j"]},{"id":"a","kind":"TASK","name":"a","activity":"w13#a","queue":"sweep","next":"s"},{"id":"s","kind":"SIGNAL","name":"go","sleepMillis":2000,"next":"j","altNext":"b"},{"id":"b","kind":"TASK","name":"b","activity":"w13#b","queue":"sweep","next":"j"},{"id":"j","kind":"JOIN","expected":3,"next":"x"},{"id":"x","kind":"END","reason":"never well"}]}');
select wt.at(100000);

-- One move of one hand: a claim with a fate, a start, a signal, a cancel, a jump of the clock.
create function wt.settle_one(t wiggle.task, i int) returns void language plpgsql
as $$
declare
	dice float := random();
	value jsonb := jsonb_build_object('i', i, 'null', null, 'items', (array['[]', '[1,{"a":2}]', '{"k":null,"l":"x"}', '[3]', '"none"'])[1 + floor(random() * 5)]::jsonb);
begin
	if t.activity like '%#compensate' and dice < 0.4 then
		perform wiggle.fail(t.task_id, t.lease_owner, 'cannot be undone', false);
	elsif dice < 0.6 and t.kind = 'TASK' and t.execution_mode = 'LOCAL_ASYNC' then
		perform wiggle.report(jsonb_build_array(jsonb_build_object('task_id', t.task_id, 'lease_owner', t.lease_owner, 'final', random() < 0.3,
			'steps', jsonb_build_array(jsonb_build_object('node_id', t.node_id, 'merge', value, 'events', '[{"type":"swept"}]'::jsonb)))));
	elsif dice < 0.6 and t.kind = 'TASK' then
		perform wiggle.complete(t.task_id, t.lease_owner, case when random() < 0.7 then value end);
	elsif dice < 0.6 then
		perform wiggle.decide(t.task_id, t.lease_owner, random() < 0.5);
	elsif dice < 0.75 then
		perform wiggle.fail(t.task_id, t.lease_owner, 'by chance', random() < 0.8);
	elsif dice < 0.8 then
		perform wiggle.heartbeat(t.task_id, t.lease_owner, make_interval(secs => random() * 4));
	elsif dice < 0.9 then
		raise exception using errcode = 'WT001', message = 'undo it all';
	end if;
end $$;
create function wt.moves(n int) returns text language plpgsql
as $$
declare
	t wiggle.task;
	seconds float := extract(epoch from (wiggle.version()).now - '2030-01-01 00:00:00+00');
	dice float;
begin
	for i in 1 .. n loop
		dice := random();
		begin
			if dice < 0.15 then
				perform wiggle.start('w' || (array[1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 11, 11, 12, 12, 12, 13])[1 + floor(random() * 18)], jsonb_build_object('i', i, 'items', '[1,2]'::jsonb));
			elsif dice < 0.17 then
				perform wiggle.cancel(id) from (select id from wiggle.wf_instance where status = 'RUNNING' and workflow like 'w_%' order by random() limit 1) c;
			elsif dice < 0.22 then
				perform wiggle.signal(instance_id, signal, '{"signalled":true}') from (select * from wiggle.pending_signals() order by random() limit 1) s;
			elsif dice < 0.26 then
				seconds := seconds + random() * 3;
				perform wt.at(seconds);
			else
				for t in select * from wiggle.poll('w' || i, case when random() < 0.5 then array['sweep', 'sweep2'] end, 1 + (random() * 2)::int, make_interval(secs => 1 + random() * 5)) loop
					perform wt.settle_one(t, i);
				end loop;
			end if;
		exception
			when sqlstate 'WT001' then null;
			when sqlstate 'WG409' then null;
		end;
	end loop;
	return format('%s moves', n);
end $$;
create view wt.swept as select * from wiggle.wf_instance where workflow ~ '^w\d+$' and created_at >= '2030-01-02 00:00+00';
create table wt.happened (status text primary key);
-- Committed piece by piece, so that the clock worker takes its part.
create procedure wt.sweep(pieces int) language plpgsql
as $$
begin
	for k in 1 .. pieces loop
		perform wt.moves(120);
		if exists (select from wt.unsound()) then
			raise exception 'unsound after % pieces: %', k, (select string_agg(u, '; ') from wt.unsound() u);
		end if;
		insert into wt.happened select status from wt.swept union select status::text from wiggle.wf_token t where t.instance in (select no from wt.swept)
			on conflict do nothing;
		commit;
	end loop;
end $$;
select workflow from wiggle.schedule('w10', '2 s', context => '{"items":["from a schedule"]}');
call wt.sweep(10);
select * from wt.unsound();
select wiggle.unschedule(id) from wiggle.schedules();
-- One is undone to its end, whatever chance has done to the others.
select wt.register('{"workflow":"w14","version":1,"steps":[{"task":"a","queue":"sure","compensable":true},{"task":"b","queue":"sure","retry":"none"}]}');
select wt.start('sure', 'w14') <> '' as started;
select c.instance_status from wiggle.poll('w', array['sure']) t, lateral wiggle.complete(t.task_id, t.lease_owner) c;
select count(wiggle.fail(t.task_id, t.lease_owner, 'no')) as failed from wiggle.poll('w', array['sure']) t;
insert into wt.happened select status from wt.swept on conflict do nothing;
select c.instance_status from wiggle.poll('w', array['sure']) t, lateral wiggle.complete(t.task_id, t.lease_owner) c;
insert into wt.happened select status from wt.swept on conflict do nothing;
-- Something of every kind has happened.
select * from wt.happened order by length(status) > 1, 1;
select distinct n.kind from wiggle.wf_token t join wt.swept i on i.no = t.instance join wiggle.wf_definition d on d.name = i.workflow and d.version = i.version
  join wt.node n on n.definition = d.id and n.node = t.node order by 1;
select count(distinct workflow) as workflows from wt.swept;
select count(*) > 0 as scheduled from wt.swept where correlation_id like 'schedule:%';
select count(*) > 0 as emitted from wiggle.wf_event where type = 'swept';

-- Brought to an end by patient hands: every one lands.
create procedure wt.land() language plpgsql
as $$
declare
	t wiggle.task;
	waiting record;
	seconds float := 200000;
	deadline timestamptz := clock_timestamp() + interval '60 s';
begin
	while exists (select from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING')) and clock_timestamp() < deadline loop
		seconds := seconds + 100;
		perform wt.at(seconds);
		for waiting in select * from wiggle.pending_signals() loop
			begin
				perform wiggle.signal(waiting.instance_id, waiting.signal);
			exception when sqlstate 'WG409' then null;
			end;
		end loop;
		for t in select * from wiggle.poll('patient', null, 1000, '1 day') loop
			if t.kind = 'TASK' then
				perform wiggle.complete(t.task_id, t.lease_owner);
			else
				perform wiggle.decide(t.task_id, t.lease_owner, false);
			end if;
		end loop;
		commit;
		perform pg_sleep(0.005);
	end loop;
end $$;
call wt.land();
select count(*) as live from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING');
select (select count(*) from wiggle.wf_ready) as ready, (select count(*) from wiggle.wf_lease) as leased, (select count(*) from wiggle.wf_timer) as timers,
	   (select count(*) from wiggle.wf_token t join wt.swept i on i.no = t.instance where t.status in ('R', 'W', 'A', 'J')) as tokens;
select distinct i.status from wt.swept i order by 1;
select * from wt.finish();

-- Every index holds every row, and no other.
create extension amcheck;
select c.oid::regclass as index, bt_index_check(c.oid, true) as checked from pg_class c join pg_index x on x.indexrelid = c.oid join pg_class t on t.oid = x.indrelid
 where t.relnamespace = 'wiggle'::regnamespace and c.relam = (select oid from pg_am where amname = 'btree') order by c.relname;
select count(*) as damage from pg_class c, lateral verify_heapam(c.oid) where c.relnamespace = 'wiggle'::regnamespace and c.relkind = 'r';
drop extension amcheck;

-- What the tests shared goes with them.
do $$ begin perform wiggle.test_set_clock(null); end $$;
set client_min_messages = warning;
drop schema wt cascade;
