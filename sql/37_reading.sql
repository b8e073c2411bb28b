-- Reading: step statistics, backlog, pending signals, members, what steps got and gave.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"rd","version":1,"steps":[{"task":"slow"},{"gate":"check"},{"task":"none"},{"sleep":"1ms"},{"task":"last"}]}');
select wt.at(0);

-- Input and output of each step; an effect has no output, a predicate its verdict (59).
select wt.handle('slow', 'c || ''{"s":1}'''), wt.handle('last', '''{"only":null}'''), wt.start('io', 'rd', '{"in":1}'), wt.drain('{rd}');
select wt.at(1);
select wt.await_claim('io', 'rd'), wt.complete('io', '{"only":1}');
select node_id, kind, status, input, output from wiggle.tokens(wt.id('io'));
-- CompleteTask of a predicate records its verdict too.
select wt.start('io2', 'rd'), wt.claim('io2', 'rd'), wt.complete_task('io2', '{"m":1}'), wt.claim('io2', 'rd'), wt.complete_task('io2', '{"value":false}'), wt.show('io2');
select wt.start('io3', 'rd'), wt.claim('io3', 'rd'), wt.complete_task('io3'), wt.claim('io3', 'rd'), wt.complete_task('io3', 'true'), wt.claim('io3', 'rd');
select node_id, input, output from wiggle.tokens(wt.id('io2'));
select node_id, input, output from wiggle.tokens(wt.id('io3'));
-- Over 65,536 characters: length and head; counted in characters, not bytes.
select wt.clear();
select wt.register('{"workflow":"io","version":1,"steps":[{"task":"big"}]}');
create function wt.io(label text, context jsonb, result jsonb) returns text language plpgsql
as $$
declare
	t wiggle.token;
begin
	perform wt.start(label, 'io', context);
	perform wt.claim(label, 'io');
	perform wt.complete(label, result);
	select * into t from wiggle.tokens(wt.id(label)) limit 1;
	return format('in %s %s %s, out %s %s %s, context %s', t.input::jsonb->>'$truncated', length(t.input), length(t.input::jsonb->>'head'),
				  t.output::jsonb->>'$truncated', length(t.output), length(t.output::jsonb->>'head'), length((wiggle.instance(wt.id(label))).context::text));
end $$;
select wt.io('edge', jsonb_build_object('k', repeat('x', 65536 - 9)), jsonb_build_object('k', repeat('y', 65536 - 9)));
select wt.io('over', jsonb_build_object('k', repeat('x', 65536 - 8)), jsonb_build_object('k', repeat('y', 65536 - 8)));
select wt.io('wide', jsonb_build_object('k', repeat('ü', 65536 - 9)), jsonb_build_object('k', repeat('€', 65536 - 8)));
select left(output, 60) from wiggle.tokens(wt.id('over')) limit 1;
select wt.io('huge', jsonb_build_object('k', repeat('x', 5000000)), '{}');
-- Switched off, nothing is kept.
set wiggle.record_step_io = off;
select wt.io('off', '{"a":1}', '{"b":1}');
reset wiggle.record_step_io;
-- Integers beyond 2^53 stay what they were where no worker rewrites them (C22).
select wt.start('exact', 'rd', '{"id":9007199254740993,"big":12345678901234567890123,"one":1,"dec":1.50}'), wt.claim('exact', 'rd'), wt.complete_task('exact', '{"other":1}'), wt.show('exact');
select wt.refusal('select wiggle.start(''rd'', ''{"e":1e400}'')'), wt.refusal('select wiggle.start(''rd'', ''{"e":1e131072}'')');
select wt.clear();

-- Statistics: nearest rank over the newest sample; waits; slowest first (58).
select wt.register('{"workflow":"stat","version":1,"steps":[{"task":"a"},{"task":"b"}]}'), wt.register('{"workflow":"stat","version":2,"steps":[{"task":"a"},{"task":"b"}]}');
create procedure wt.timed(n int, millis int) language plpgsql
as $$
declare
	t wiggle.batch_result;
begin
	perform wiggle.start('stat', '{}', n);
	for k in 1 .. 2 loop
		select * into t from wt.poll_one('{stat}');
		perform wiggle.batch(null, row(array[t.task_id], array[t.lease_owner], array[1], array[0], array[t.node_id], array[0], array[null::text], array[1893456001000 + 5]::int8[], array[1893456001000 + 5 + millis * k]::int8[])::wiggle.batch_runs, null, null, null, null);
	end loop;
end $$;
do $$ begin for k in 1 .. 20 loop call wt.timed(1, k * 10); end loop; end $$;
select * from wiggle.step_stats('stat', 1);
select * from wiggle.step_stats('stat', 1, sample => 4);
select * from wiggle.step_stats('stat', 1, sample => 0) limit 1;
select v, (select count(*) from wiggle.step_stats('stat', v)) from unnest(array[null, 2, 0, -3]) v;
call wt.timed(2, 7);
select node_id, count, p95 from wiggle.step_stats('stat', null);
select node_id, count from wiggle.step_stats('stat', 1, since => '2030-01-01 00:00:01.300+00') order by 1;
select wt.refusal('select * from wiggle.step_stats(''nobody'')'), wt.refusal('select * from wiggle.step_stats(''stat'', 9)'), wt.refusal('select * from wiggle.step_stats(null)');

-- The backlog: by workflow, version and queue, most first; since when (66).
select wt.at(100);
select count(wiggle.start('rd')) from generate_series(1, 3);
select wt.at(110);
select count(wiggle.start('stat', version => 1)) from generate_series(1, 5);
select wiggle.start('stat', version => 2) is not null;
select * from wiggle.backlog();
select count(*) from wiggle.backlog(1);
select count(*) from wiggle.backlog(0);
select wt.clear(), count(*) from wiggle.backlog();
select * from wiggle.backlog();

-- A proxy is shown 64 queues, those that wait longest.
select wt.at(200);
select count(wt.register(format('{"workflow":"many-%s","version":1,"steps":[{"task":"a"}]}', lpad(k::text, 2, '0')))) from generate_series(0, 70) k;
select wt.start('many-70', 'many-70');
select wt.at(210);
select count(wt.start('many-' || lpad(k::text, 2, '0'), 'many-' || lpad(k::text, 2, '0'))) from generate_series(0, 69) k;
select count(*), min(label), max(label), max(value) from wiggle.watch() where metric = 'queue_oldest';
select wt.clear(), wt.at(110);

-- Members: alive while heard from, the longest-lived leads.
select wiggle.node_beat('n1', 'first', 3, '[{"queues":["a"],"versions":[["stat",1]]}]');
select wt.at(112);
select wiggle.node_beat('n2', 'second', 0, '[]');
select id, name, first_heartbeat, last_heartbeat, workers, polls, alive, leader, partition, member from wiggle.nodes();
select wt.at(126), wiggle.node_beat('n2', 'second again', 1, '[]');
select id, name, first_heartbeat, last_heartbeat, workers, alive, leader from wiggle.nodes();
select wiggle.node_leave('n2'), wiggle.node_leave('nobody');
select id, alive, leader from wiggle.nodes();
select wt.at(4000), wiggle.node_beat('n3', 'third', 0, '[]');
select id, alive, leader from wiggle.nodes();
select wiggle.node_leave('n3'), count(*) from wiggle.nodes();

-- What is stuck, for people.
select wt.at(-100000000);
select wt.start('stuck', 'stat');
select workflow, version, reason, node from wiggle.stuck;
select wiggle.test_set_clock(null);
select wt.clear();
select * from wt.finish();
