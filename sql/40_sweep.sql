-- Many workflows at once, moved at random by many hands: whatever happens, the
-- tables stay sound and every instance ends in an allowed state. Then the indexes
-- are compared with the tables.
do $$ begin perform setseed(0.4); end $$;
select wt.register('{"workflow":"w1","version":1,"defaultQueue":"sweep","steps":[{"task":"a"},{"task":"b"},{"task":"c"}]}');
select wt.register('{"workflow":"w2","version":1,"defaultQueue":"sweep","steps":[{"task":"a","retry":{"max":2,"backoff":"0ms"}},{"gate":"g"},{"task":"b","retry":"none"}]}');
select wt.register('{"workflow":"w3","version":1,"defaultQueue":"sweep","steps":[{"task":"a","retry":{"max":4,"backoff":"900ms","multiplier":3}},{"sleep":"5s"},{"task":"b"}]}');
select wt.register('{"workflow":"w4","version":1,"defaultQueue":"sweep","steps":[{"do_while":{"while":"more","body":[{"task":"t"},{"sleep":"1s"}]}}]}');
select wt.register('{"workflow":"w5","version":1,"defaultQueue":"sweep2","steps":[{"gate":"first"},{"task":"x","queue":"sweep"}]}');
select wt.at(100000);

-- One move of one hand: a claim with a fate, a start, a cancel, a jump of the clock.
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
				perform wiggle.start('w' || 1 + floor(random() * 5), jsonb_build_object('i', i));
			elsif dice < 0.17 then
				perform wiggle.cancel(id) from (select id from wiggle.wf_instance where status = 'RUNNING' and workflow like 'w_' order by random() limit 1) c;
			elsif dice < 0.22 then
				seconds := seconds + random() * 3;
				perform wt.at(seconds);
			else
				select * into t from wiggle.poll('w' || i, case when random() < 0.5 then array['sweep', 'sweep2'] end, 1 + (random() * 2)::int, make_interval(secs => 1 + random() * 5));
				continue when t.task_id is null;
				dice := random();
				if dice < 0.6 and t.kind = 'TASK' then
					perform wiggle.complete(t.task_id, t.lease_owner, jsonb_build_object('i', i, 'null', null));
				elsif dice < 0.6 then
					perform wiggle.decide(t.task_id, t.lease_owner, random() < 0.5);
				elsif dice < 0.75 then
					perform wiggle.fail(t.task_id, t.lease_owner, 'by chance', random() < 0.9);
				elsif dice < 0.8 then
					perform wiggle.heartbeat(t.task_id, t.lease_owner, make_interval(secs => random() * 4));
				elsif dice < 0.9 then
					raise exception using errcode = 'WT001', message = 'undo it all';
				end if;
			end if;
		exception
			when sqlstate 'WT001' then null;
			when sqlstate 'WG409' then null;
		end;
	end loop;
	return format('%s moves', n);
end $$;
-- Committed piece by piece, so that the clock worker takes its part.
create procedure wt.sweep(pieces int) language plpgsql
as $$
begin
	for k in 1 .. pieces loop
		perform wt.moves(60);
		if exists (select from wt.unsound()) then
			raise exception 'unsound after % pieces: %', k, (select string_agg(u, '; ') from wt.unsound() u);
		end if;
		commit;
	end loop;
end $$;
call wt.sweep(20);
select * from wt.unsound();
-- Something of every kind has happened.
select i.status, count(*) > 0 as some from wiggle.wf_instance i where i.workflow in ('w1', 'w2', 'w3', 'w4', 'w5') group by 1 order by 1;
select t.status, count(*) > 0 as some from wiggle.wf_token t join wiggle.wf_instance i on i.no = t.instance where i.workflow in ('w1', 'w2', 'w3', 'w4', 'w5') group by 1 order by 1;

-- Brought to an end by patient hands: every one lands.
create procedure wt.land() language plpgsql
as $$
declare
	t wiggle.task;
	seconds float := 200000;
	deadline timestamptz := clock_timestamp() + interval '60 s';
begin
	while exists (select from wiggle.wf_instance where status = 'RUNNING') and clock_timestamp() < deadline loop
		seconds := seconds + 100;
		perform wt.at(seconds);
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
select count(*) as running from wiggle.wf_instance where status = 'RUNNING';
select (select count(*) from wiggle.wf_ready) as ready, (select count(*) from wiggle.wf_lease) as leased, (select count(*) from wiggle.wf_timer) as timers;
select distinct i.status from wiggle.wf_instance i where i.workflow in ('w1', 'w2', 'w3', 'w4', 'w5') order by 1;
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
