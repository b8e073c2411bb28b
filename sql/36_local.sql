-- LOCAL_SYNC and LOCAL_ASYNC: the worker keeps its instance from step to step, until
-- something else than a step comes next.
set timezone = 'UTC';
set datestyle = 'ISO';
create function wt.mode(name text, mode text, steps jsonb) returns text language plpgsql
as $$
declare
	d jsonb;
begin
	perform wiggle.register(jsonb_build_object('workflow', name || 'shape', 'version', 1, 'defaultQueue', name, 'steps', steps));
	d := jsonb_set(jsonb_set(wiggle.definition(name || 'shape'), '{executionMode}', to_jsonb(mode)), '{name}', to_jsonb(name));
	return (wiggle.register(d)).created;
end $$;
create function wt.walk(label text, nodes text[], mode int default 0, kinds int[] default null, vals text[] default null, started int8[] default null, finished int8[] default null) returns text language plpgsql
as $$
declare
	b wiggle.batch_result;
begin
	select * into b from wiggle.batch(null, row(array[wt.task(label)], array[wt.owner(label)], array[mode], array_fill(0, array[cardinality(nodes)]), nodes, coalesce(kinds, array_fill(0, array[cardinality(nodes)])),
		coalesce(vals, array_fill(null::text, array[cardinality(nodes)])), coalesce(started, array_fill(0::int8, array[cardinality(nodes)])), coalesce(finished, array_fill(0::int8, array[cardinality(nodes)])))::wiggle.batch_runs, null, null, null, null);
	if b.task_id is not null then
		update wt.claim set task_id = b.task_id where claim.label = walk.label;
	end if;
	return wt.mask(concat_ws(' ', b.status, b.message, 'next=' || b.task_id, 'until=' || to_timestamp(nullif(b.expires_at, 0) / 1000.0)));
end $$;
select wt.at(0);
select wt.mode('lsync', 'LOCAL_SYNC', '[{"task":"a"},{"gate":"g"},{"task":"b"}]'), wt.mode('lasync', 'LOCAL_ASYNC', '[{"task":"a"},{"gate":"g"},{"task":"b"}]'), wt.mode('lserver', 'SERVER', '[{"task":"a"},{"gate":"g"},{"task":"b"}]');

-- Step by step: each is seen as it is done, the next is leased to the same worker
-- and nobody else can have it (53).
select wt.start('s', 'lsync'), wt.claim('s', 'lsync', 'w', '5 s');
select wt.at(1);
select wt.walk('s', '{n1}', 0, '{1}', '{"{\"a\":1}"}'), wt.show('s'), wt.work('s'), wt.drain('{lsync}');
select node_id, status, lease_owner is not null as leased, available_at, started_at, finished_at from wiggle.tokens(wt.id('s'));
select wt.walk('s', '{n2}', 0, '{2}', '{true}'), wt.walk('s', '{n4}', 0, '{1}', '{"{\"b\":1}"}'), wt.show('s');
-- Wrong node, wrong kind, then right; a heartbeat and a failure of the leased-back task.
select wt.start('t', 'lsync'), wt.claim('t', 'lsync'), wt.walk('t', '{n1}'), wt.walk('t', '{n1}'), wt.walk('t', '{n2}'), wt.walk('t', '{n2}', 0, '{1}', '{"{}"}'), wt.walk('t', '{n2}', 0, '{2}', '{true}');
select wiggle.heartbeat(wt.task('t'), wt.owner('t'), '1 minute');
select wt.fail('t', 'half way'), wt.work('t');
select * from wt.tokens('t');
select wt.clear();
-- Many at once, with final: the rest is handed back for others to claim (55, 57).
select wt.start('u', 'lasync', '{"v":1}'), wt.claim('u', 'lasync'), wt.walk('u', '{n1,n2}', 1, '{1,2}', '{"{\"a\":1}",true}'), wt.show('u'), wt.work('u'), wt.drain('{lasync}');
select wt.start('v', 'lasync'), wt.claim('v', 'lasync'), wt.walk('v', '{n1,n2,n4}', 0, '{1,2,1}', '{"{\"a\":1}",true,"{\"b\":2}"}'), wt.show('v'), wt.marks('v');
-- Without final and not at an end: leased back with the server's default lease.
select wt.start('w', 'lasync'), wt.claim('w', 'lasync', 'w', '5 s'), wt.walk('w', '{n1,n2}', 0, '{0,2}', '{NULL,true}'), wt.work('w'), wt.walk('w', '{n4}');
-- Asked again after a lost answer: the same answer, nothing twice.
select wt.start('x', 'lasync'), wt.claim('x', 'lasync');
create table wt.once as select * from wt.claim where label = 'x';
select wt.walk('x', '{n1}', 0, '{1}', '{"{\"a\":1}"}') = (select wt.mask(concat_ws(' ', b.status, 'next=' || b.task_id, 'until=' || to_timestamp(b.expires_at / 1000.0))) from wt.once, lateral wiggle.batch(null, row(array[task_id], array[owner], array[4], array[0], array['n1'], array[1], array['{"a":1}'], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b) as same;
select wt.mask(b.message) from wt.once, lateral wiggle.batch(null, row(array[task_id], array[owner], array[0], array[0], array['n1'], array[1], array['{"a":1}'], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select wt.marks('x');
-- So too when a sibling has moved on since, whose task the same poll took.
select wt.mode('lagain', 'LOCAL_ASYNC', '[{"fork":{"x":[{"task":"a1"},{"task":"a2"}],"y":[{"task":"b1"},{"task":"b2"}]},"combine":"m"}]'), wt.start('pair', 'lagain');
insert into wt.claim select step_name, task_id, lease_owner from wiggle.poll('w', array['lagain'], 2);
insert into wt.once select * from wt.claim where label in ('a1', 'b1');
create function wt.again(label text, node text, mode int) returns text language sql
as $$ select wt.mask(concat_ws(' ', b.status, b.message, 'next=' || b.task_id)) from wt.once o, lateral wiggle.batch(null, row(array[o.task_id], array[o.owner], array[mode | 4], array[0], array[node], array[0], array[null::text], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b where o.label = again.label $$;
select wt.walk('a1', '{n3}') like '%next=tok:pair-4 %' as a1, wt.walk('b1', '{n5}') like '%next=tok:pair-5 %' as b1;
select wt.again('a1', 'n3', 0), wt.again('b1', 'n5', 0);
-- What was handed back has no next task, whatever else its poll holds.
select wt.walk('a1', '{n4}', 1), wt.again('a1', 'n3', 0), wt.again('b1', 'n5', 0);
select wt.clear();
-- A gate that says no ends it all; what is reported behind a hand-back is ignored.
select wt.start('y', 'lasync'), wt.claim('y', 'lasync'), wt.walk('y', '{n1,n2,n4}', 0, '{0,2,1}', '{NULL,false,"{\"never\":1}"}'), wt.show('y');
select wt.clear();

-- What hands back: sleep, fork, join, signal, sub-workflow; another queue does not,
-- for the server does not ask who serves it (54).
select wt.mode('lb1', mode, '[{"task":"a"},{"sleep":"1h"},{"task":"z"}]'), wt.mode('lb2', mode, '[{"task":"a"},{"fork":{"x":[{"task":"x"}],"y":[{"task":"y"}]},"combine":"m"}]'), wt.mode('lb3', mode, '[{"task":"a"},{"await_signal":"s"}]'),
	   wt.mode('lb4', mode, '[{"task":"a"},{"sub_workflow":"lsync"}]'), wt.mode('lb5', mode, '[{"task":"a"},{"task":"z","queue":"elsewhere"}]'), wt.mode('lb6', mode, '[{"task":"a"},{"fork_each":{"over":"x","as":"i","combine":"c","body":[{"task":"b"}]}}]') from (values ('LOCAL_ASYNC')) v(mode);
select wt.start('lb' || k, 'lb' || k), wt.claim('lb' || k, 'lb' || k), wt.walk('lb' || k, '{n1}'), wt.marks('lb' || k), wt.work('lb' || k) from generate_series(1, 6) k;
-- An arm's end hands back at the join; its combine is for anybody, then kept.
select wt.drain('{lb2}', 1), wt.claim('arm', 'lb2'), wt.walk('arm', '{n4}'), wt.marks('lb2');
select wt.claim('arm', 'lb2'), wt.walk('arm', '{n6}', 0, '{1}', '{"{\"done\":1}"}'), wt.show('lb2');
select wt.clear();
-- SERVER applies several steps of one run, and hands back behind them.
select wt.start('z', 'lserver'), wt.claim('z', 'lserver'), wt.walk('z', '{n1,n2}', 0, '{1,2}', '{"{\"a\":1}",true}'), wt.work('z'), wt.drain('{lserver}');
-- What is dispatched names the mode; DEFAULT is SERVER.
select wt.start('m' || mode, mode) from unnest(array['lsync', 'lasync', 'lserver']) mode;
select workflow, execution_mode from wiggle.poll('w', array['lsync', 'lasync', 'lserver'], 10) order by 1;

-- Worker clocks: kept when both ends are given, for each step (58).
select wt.clear();
select wt.start('k', 'lasync'), wt.claim('k', 'lasync'), wt.walk('k', '{n1,n2,n4}', 1, '{0,2,0}', '{NULL,true,NULL}', '{1893456000000,0,1893456000500}', '{1893456000250,1893456000400,1893456000900}');
select node_id, started_at, finished_at from wiggle.tokens(wt.id('k'));
-- A loop in a run counts each round; a failing prefix leaves its steps done.
select wt.mode('lloop', 'LOCAL_ASYNC', '[{"do_while":{"while":"more","maxIterations":3,"body":[{"task":"turn"}]}}]');
select wt.start('r', 'lloop'), wt.claim('r', 'lloop'), wt.walk('r', '{n1,n2,n1,n2}', 0, '{0,2,0,2}', '{NULL,true,NULL,true}'), wt.walk('r', '{n1}'), wt.fail('r', 'boom', false), wt.show('r'), wt.marks('r');
-- What is undone is what was done, wherever in a run, recorded or not (93).
select wt.mode('lundo', 'LOCAL_ASYNC', '[{"task":"u1"},{"task":"u2","compensable":true},{"gate":"u3"},{"task":"u4","compensable":true},{"task":"u5"}]');
set wiggle.record_step_io = off;
select wt.start('undo', 'lundo', '{"from":0}'), wt.claim('undo', 'lundo'), wt.walk('undo', '{n1,n2,n3,n5}', 0, '{1,1,2,0}', '{"{\"u1\":1}","{\"u2\":2}",true,NULL}');
reset wiggle.record_step_io;
select wt.fail('undo', 'no', false), wt.drain('{lundo}');
-- What was staged for a combine is no context of the steps behind it.
select wt.mode('lstage', 'LOCAL_ASYNC', '[{"fork":{"x":[{"task":"sx"}],"y":[{"task":"sy"}]},"combine":"sc"},{"task":"s1","compensable":true},{"task":"s2"}]');
select wt.start('stage', 'lstage', '{"from":0}'), wt.drain('{lstage}', 2), wt.claim('stage', 'lstage'), wt.walk('stage', '{n5,n6}', 0, '{0,0}'), wt.fail('stage', 'no', false), wt.drain('{lstage}');
select node_id, input, output from wiggle.tokens(wt.id('stage')) where node_id in ('n5', 'n6', 'n7');
-- Leases that end: redelivered to others, attempt spent, the prefix kept.
select wt.start('q', 'lsync'), wt.claim('q', 'lsync'), wt.walk('q', '{n1}', 0, '{1}', '{"{\"kept\":1}"}');
select wt.at(32);
select wt.await('exists (select from wiggle.wf_timer where instance = wt.no(''q''))');
select * from wt.tokens('q');
select wt.at(33), wt.await_claim('q2', 'lsync', 'other'), wt.walk('q', '{n2}', 0, '{2}', '{true}'), wt.walk('q2', '{n2}', 0, '{2}', '{true}');
select wt.clear();
select wiggle.test_set_clock(null);
select * from wt.finish();
