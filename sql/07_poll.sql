-- What a poll finds: oldest instance first, its queues, its versions, up to max.
select wt.register('{"workflow":"pq","version":1,"steps":[{"task":"a"},{"task":"b","queue":"pq-b"},{"task":"c"}]}');
select wt.register('{"workflow":"pq","version":2,"steps":[{"task":"a2"}]}');
select wt.register('{"workflow":"other","version":1,"defaultQueue":"pq","steps":[{"task":"o"}]}');

-- The oldest instance comes first, however late its token was made.
select wt.start('i1', 'pq', '{"i":1}', 1), wt.start('i2', 'pq', '{"i":2}', 1), wt.start('i3', 'pq', '{"i":3}', 1);
select wt.claim('i1', 'pq'), wt.complete('i1', '{"i":1}');
select wt.claim('i1', 'pq-b'), wt.complete('i1', '{"i":1}');
select step_name, context from wiggle.poll('w', array['pq'], 10);
select * from wt.finish();

-- Queues: one, several, every; names are exact.
select wt.start('q' || k, 'pq', jsonb_build_object('k', k), 1) from generate_series(1, 4) k;
select wt.claim('q', 'pq'), wt.complete('q');
select step_name from wiggle.poll('w', array['PQ'], 10);
select step_name from wiggle.poll('w', array['pq '], 10);
select step_name from wiggle.poll('w', array['nobody', 'pq-b', 'pq-b'], 10);
select step_name, context from wiggle.poll('w', array['pq-b', 'pq'], 1);
select step_name, context from wiggle.poll('w', max => 10);
select count(*) from wiggle.poll('w', max => 10);
select * from wt.finish();

-- Two queues give the overall oldest.
select wt.start('m' || k, 'pq', jsonb_build_object('k', k), 1) from generate_series(1, 4) k;
select wt.claim('m1', 'pq'), wt.complete('m1', '{"k":1}'), wt.claim('m2', 'pq'), wt.claim('m3', 'pq'), wt.complete('m3', '{"k":3}');
select step_name, context from wiggle.poll('w', array['pq', 'pq-b'], 10);
select * from wt.finish();

-- A step without a queue is for workers that name none.
select created from wiggle.register('{"name":"nq","version":1,"startNode":"a","nodes":[{"id":"a","kind":"TASK","name":"a","activity":"nq#a","next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('nq', 'nq');
select count(*) as named from wiggle.poll('w', array['nq', 'pq'], 10);
select step_name from wiggle.poll('w');
select wt.start('nq2', 'nq');
select step_name as no_queue_named from wiggle.poll('w', array[]::text[]);
select * from wt.finish();

-- Versions: a scoped poll never takes another, an unscoped one takes all.
select wt.start('v1', 'pq', '{}', 1), wt.start('v2', 'pq', '{}', 2), wt.start('o', 'other');
select step_name from wiggle.poll('w', array['pq'], 10, versions => '[["pq",2]]');
select step_name from wiggle.poll('w', array['pq'], 10, versions => '[["pq",2],["pq",7],["nobody",1]]');
select step_name from wiggle.poll('w', max => 10, versions => '[["other",1],["pq",2]]');
select step_name from wiggle.poll('w', array['pq'], 10, versions => '[]');
select * from wt.finish();
-- What a scoped poll passes over stays where the next claim finds it first.
select wt.start('v' || k, 'pq', jsonb_build_object('k', k), 1 + k % 2) from generate_series(1, 6) k;
select array_agg(context->'k') from wiggle.poll('w', array['pq'], 2, versions => '[["pq",1]]');
select array_agg(context->'k') from wiggle.poll('w', array['pq'], 2);
select array_agg(context->'k') from wiggle.poll('w', array['pq'], 10);
select * from wt.finish();
-- An instance keeps its version when another is registered, and finishes on it.
select wt.start('keeps', 'pq', '{}', 1), wt.claim('keeps', 'pq');
select wt.register('{"workflow":"pq","version":3,"steps":[{"task":"a3"}]}');
select wt.complete('keeps'), wt.claim('keeps', 'pq-b'), wt.complete('keeps'), wt.claim('keeps', 'pq'), wt.complete('keeps'), wt.show('keeps');

select versions, wt.refusal(format('select wiggle.poll(''w'', versions => %L)', versions))
  from unnest(array['{}', '"pq"', '1', '["pq",1]', '[["pq"]]', '[["pq",1,2]]', '[[1,"pq"]]', '[["pq","1"]]', '[[["pq",1]]]', '[["pq",null]]', '[["pq",3000000000]]']) versions;

-- max: at least one, as many as there are.
select wt.start('x' || k, 'pq', jsonb_build_object('k', k), 1) from generate_series(1, 8) k;
select count(*) as for_null from wiggle.poll('w', array['pq'], null);
select count(*) as for_zero from wiggle.poll('w', array['pq'], 0);
select count(*) as for_minus_one from wiggle.poll('w', array['pq'], -1);
select count(*) as for_two, count(distinct lease_owner) as owners, count(distinct task_id) as tasks from wiggle.poll('w', array['pq'], 2);
select count(*) as for_all from wiggle.poll('w', array['pq'], 2147483647);
select count(*) as leased, count(distinct owner) as owners from wiggle.wf_lease;
select * from wt.finish();

-- Each poll is an owner of its own, though the worker has one name.
select wt.start('u1', 'seq'), wt.start('u2', 'seq');
select wt.claim('u1', 'seq', 'twin'), wt.claim('u2', 'seq', 'twin'), wt.owner('u1') <> wt.owner('u2') as distinct;
select wt.refusal('select wiggle.complete(wt.task(''u1''), wt.owner(''u2''))'), wt.refusal('select wiggle.fail(wt.task(''u1''), wt.owner(''u2''), ''x'')'),
	   wt.refusal('select wiggle.heartbeat(wt.task(''u1''), wt.owner(''u2''))');
select wt.complete('u1'), wt.complete('u2');

-- Worker ids
select wt.refusal('select wiggle.poll(null)'), wt.refusal('select wiggle.poll('''')');
select wt.refusal(format('select count(*) from wiggle.poll(%L)', repeat('w', 120))), wt.refusal(format('select wiggle.poll(%L)', repeat('w', 121)));
select wt.start('h', 'seq'), wt.claim('h', 'seq', 'a#b#c'), wt.mask(wt.owner('h')), wt.complete('h');

-- A claim that is rolled back gives the task back, unspent.
select * from wt.finish();
select wt.start('b', 'seq');
begin;
select wt.claim('b', 'seq'), wt.claim('b', 'seq');
rollback;
select wt.claim('b', 'seq'), wt.work('b');
select * from wt.finish();

-- As many are leased as are returned, whatever the planner may not do (C08).
set enable_hashagg = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_indexscan = off;
set enable_indexonlyscan = off;
select count(wiggle.start('other')) from generate_series(1, 100);
select max, (select count(*) from wiggle.poll('plan' || max, array['pq'], max)) as returned
  from unnest(array[1, 0, 7, 50, 100]) max;
select max, (select count(*) from wiggle.wf_lease where owner like 'plan' || max || '#%') as leased from unnest(array[1, 0, 7, 50, 100]) max;
reset all;
select * from wt.finish();

-- 1,000 tasks, taken in order by ever the same call.
select count(wiggle.start('other', jsonb_build_object('k', k))) from generate_series(1, 1000) k;
create temp table taken as
  select g, context from generate_series(1, 250) g, lateral (select context from wiggle.poll('w' || g, array['pq'], 4)) t;
select count(*), count(distinct context), max((context->>'k')::int), bool_and(((context->>'k')::int - 1) / 4 + 1 = g) as in_order from taken;
drop table taken;
select count(*) as left from wiggle.wf_ready;
select * from wt.finish();
