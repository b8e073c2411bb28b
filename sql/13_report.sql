-- report(): one or many runs, each answered on its own, several steps in a run.
set timezone = 'UTC';
set datestyle = 'ISO';
create function wt.run(label text, steps text, final boolean default true) returns jsonb language sql
as $$ select jsonb_build_object('task_id', wt.task(label), 'lease_owner', wt.owner(label), 'final', final, 'steps', steps::jsonb) $$;
create function wt.report(variadic runs jsonb[]) returns setof text language sql
as $$ select wt.mask(concat_ws(' ', o.task_id, o.instance_status, case when o.lease_expires_at is not null then 'leased' end, 'next=' || o.next_task_id, o.error_status, o.error))
		from wiggle.report(to_jsonb(runs)) o $$;
select wt.register('{"workflow":"r","version":1,"steps":[{"task":"a"},{"gate":"g"},{"task":"b"},{"task":"c"}]}');
select n->>'id' as id, n->>'name' as name from jsonb_array_elements(wiggle.definition('r')->'nodes') n;

-- One step.
select wt.start('one', 'r', '{"n":0}'), wt.claim('one', 'r');
select wt.report(wt.run('one', '[{"node_id":"n1","merge":{"n":1,"gone":null}}]')), wt.show('one');
-- The whole of it: later steps are the run's own, results replace one another, the last counts.
select wt.claim('one', 'r');
select wt.report(wt.run('one', '[{"node_id":"n2","predicate_value":true},{"node_id":"n4","merge":{"n":3}},{"node_id":"n5","merge":{"n":4}}]')), wt.show('one');
select n, node, kind, status from wt.tokens('one');

-- A gate within a run; steps after what hands back do not count.
select wt.start('gate', 'r'), wt.claim('gate', 'r');
select wt.report(wt.run('gate', '[{"node_id":"n1","merge":{"n":1}},{"node_id":"n2","predicate_value":false},{"node_id":"n4","merge":{"never":true}}]')), wt.show('gate');
select n, node, kind, status from wt.tokens('gate');

-- Nothing merged: an effect. A JSON null as well.
select wt.start('eff', 'r', '{"n":0}'), wt.claim('eff', 'r');
select wt.report(wt.run('eff', '[{"node_id":"n1"}]')), wt.show('eff');
select wt.claim('eff', 'r');
select wt.report(wt.run('eff', '[{"node_id":"n2","predicate_value":true},{"node_id":"n4","merge":null}]')), wt.show('eff');
select node, status from wt.tokens('eff');

select wt.clear();
-- Server mode does not lease back, final or not.
select wt.start('sv', 'r'), wt.claim('sv', 'r');
select wt.report(wt.run('sv', '[{"node_id":"n1"}]', false)), wt.work('sv');

select wt.clear();
-- Local modes do, unless the run says it is final.
select created from wiggle.register('{"name":"loc","version":1,"startNode":"a","executionMode":"LOCAL_ASYNC","nodes":[{"id":"a","kind":"TASK","name":"a","activity":"loc#a","queue":"loc","next":"b"},{"id":"b","kind":"TASK","name":"b","activity":"loc#b","queue":"loc","next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"loc#c","queue":"loc","next":"s"},{"id":"s","kind":"SLEEP","sleepMillis":3600000,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('loc', 'loc', '{"n":0}');
select execution_mode from wiggle.poll('w', array['loc']);
select wiggle.cancel(wt.id('loc'));
select wt.start('loc2', 'loc', '{"n":0}'), wt.claim('loc2', 'loc');
select wt.report(wt.run('loc2', '[{"node_id":"a","merge":{"n":1}}]', false)), wt.work('loc2'), wt.show('loc2');
select n, node, status, owner from wt.tokens('loc2');
update wt.claim set task_id = regexp_replace(task_id, '1$', '2') where label = 'loc2';
select wt.claim('nobody', 'loc');
select wt.report(wt.run('loc2', '[{"node_id":"b","merge":{"n":2}},{"node_id":"c","merge":{"n":3}}]', false)), wt.work('loc2'), wt.show('loc2');
select n, node, status from wt.tokens('loc2');
select wt.start('fin', 'loc', '{"n":0}'), wt.claim('fin', 'loc');
select wt.report(wt.run('fin', '[{"node_id":"a"}]', true)), wt.work('fin');

select wt.clear();
-- Worker clocks count when both are given; of steps behind the first, nothing else is known.
select wt.start('t', 'r'), wt.claim('t', 'r');
select wt.report(wt.run('t', '[{"node_id":"n1","started_at":1000,"finished_at":3500},{"node_id":"n2","predicate_value":true},{"node_id":"n4","started_at":4000,"finished_at":5000}]', true));
select node_id, case when started_at < '2000-01-01' then started_at end as started, case when finished_at < '2000-01-01' then finished_at end as finished, started_at is null as untimed
  from wiggle.tokens(wt.id('t')) where status = 'DONE';
select wt.claim('t', 'r');
select wt.report(wt.run('t', '[{"node_id":"n5","started_at":9223372036854775807,"finished_at":9223372036854775807}]'));
select started_at > '2020-01-01' as by_the_engine from wiggle.tokens(wt.id('t')) where node_id = 'n5';

select wt.clear();
-- Refused runs: each with its status, and nothing of them is written.
select wt.report('{"task_id":"tok_0123456789abcdefghjkmn-1","lease_owner":"w","steps":[{"node_id":"n1"}]}', '{"task_id":"x","lease_owner":"w","steps":[{"node_id":"n1"}]}');
select wt.start('ref', 'r', '{"n":0}');
insert into wt.claim select 'ref', replace(wt.id('ref'), 'wfi', 'tok') || '-1', 'w#0000000000000';
select wt.report(wt.run('ref', '[{"node_id":"n1"}]'));
select wt.claim('ref', 'r');
select wt.report(jsonb_set(wt.run('ref', '[{"node_id":"n1"}]'), '{lease_owner}', '"else"'));
select wt.report(wt.run('ref', '[{"node_id":"n2","predicate_value":true}]'));
select wt.report(wt.run('ref', '[{"node_id":"n1","merge":{"n":9}},{"node_id":"n5","merge":{"n":9}}]'));
select wt.report(wt.run('ref', '[{"node_id":"n1","merge":{"n":9}},{"node_id":"n2","merge":{"value":true}}]'));
select wt.report(wt.run('ref', '[{"node_id":"n1","merge":{"n":9}},{"node_id":"n2"}]'));
select wt.report(jsonb_set(wt.run('ref', '[{"node_id":"n1"}]'), '{steps,0,merge}', wt.nest('{"a":', '}', 33)::jsonb));
select wt.report(jsonb_set(wt.run('ref', '[{"node_id":"n1"}]'), '{steps,0,merge}', '{"e":1e400}'));
select wt.show('ref'), wt.work('ref');
select n, node, status from wt.tokens('ref');
select wt.report(wt.run('ref', '[{"node_id":"n1","merge":{"n":1}}]')), wt.show('ref');
-- The node must be named.
select wt.claim('ref', 'r'), wt.refusal(format('select error_status || error from wiggle.report(%L)', jsonb_build_array(wt.run('ref', '[{"predicate_value":true}]'))));
select node, status from wt.tokens('ref');
-- A predicate reported with a merge (62).
select wt.report(wt.run('ref', '[{"node_id":"n2","merge":{"value":true}}]'));
-- After a cancel: its status, no error, nothing written.
select wiggle.cancel(wt.id('ref'));
select wt.report(wt.run('ref', '[{"node_id":"n2","predicate_value":true}]')), wt.show('ref');

-- The call as a whole.
select runs, wt.refusal(format('select wiggle.report(%L)', runs)) from unnest(array[null, 'null', '{}', '"x"', '[]', '[{"task_id":"x","lease_owner":"w"}]',
	'[{"task_id":"x","lease_owner":"w","steps":[]}]', '[{"task_id":"x","lease_owner":"w","steps":null}]', '[{"task_id":"x","lease_owner":"w","steps":{}}]', '[1]', '[{}]',
	'[{"task_id":"x","lease_owner":"w","steps":[{"node_id":"n"}]},{"task_id":"x","lease_owner":"w","steps":[{"node_id":"n"}]}]', '[{"task_id":"x","lease_owner":"w","steps":[{}]}]',
	'[{"task_id":"x","lease_owner":"w","final":"maybe","steps":[{"node_id":"n"}]}]', '[{"task_id":"x","lease_owner":"w","steps":[{"node_id":"n","started_at":"noon"}]}]', '[{"task_id":"x","lease_owner":"w","steps":[1]}]']) runs;

select wt.clear();
-- Many runs: answers in the order of the runs, a refused one hurts nobody and can be reported again.
select wt.start('m' || k, 'r', jsonb_build_object('k', k)) from generate_series(1, 3) k;
select wt.claim('m' || k, 'r') from generate_series(1, 3) k;
select wt.report(wt.run('m3', '[{"node_id":"n1","merge":{"by":3}}]'), jsonb_set(wt.run('m2', '[{"node_id":"n1"}]'), '{lease_owner}', '"else"'), wt.run('m1', '[{"node_id":"n1","merge":{"by":1}}]'));
select wt.show('m1'), wt.show('m2'), wt.show('m3');
select wt.report(wt.run('m2', '[{"node_id":"n1","merge":{"by":2}}]')), wt.show('m2');
-- A run with NUL in it cannot even be written as jsonb; a half surrogate neither.
select wt.refusal('select wiggle.report(''[{"task_id":"x","lease_owner":"w","steps":[{"merge":{"a":"\u0000"}}]}]'')');

-- A loop that runs over its budget within a run: the run is applied, the instance failed.
select wt.start('over', 'tight'), wt.claim('over', 'tight');
select wt.report(wt.run('over', '[{"node_id":"b"},{"node_id":"g","predicate_value":true},{"node_id":"b","merge":{"n":2}},{"node_id":"g","predicate_value":true},{"node_id":"b"},{"node_id":"g","predicate_value":true},{"node_id":"b","merge":{"n":4}}]'));
select wt.show('over');
select n, node, status from wt.tokens('over');
select * from wt.finish();
