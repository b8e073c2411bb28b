-- A report of several runs in one call: what it takes, and what it answers to the
-- rest (run mode bit 8).
set timezone = 'UTC';
create function wt.local(name text, mode text, version int default 1, extra jsonb default '{}') returns text language sql
as $$
	select created from wiggle.register(jsonb_build_object('name', name, 'version', version, 'startNode', 'n1', 'executionMode', mode, 'nodes', jsonb_build_array(
		jsonb_build_object('id', 'n1', 'kind', 'TASK', 'name', 'one', 'activity', name || '#one', 'queue', name, 'next', 'n2') || extra,
		jsonb_build_object('id', 'n2', 'kind', 'TASK', 'name', 'two', 'activity', name || '#two', 'queue', name, 'next', 'z'),
		jsonb_build_object('id', 'z', 'kind', 'END', 'success', true))))
$$;
select wt.local('grpa', 'LOCAL_ASYNC'), wt.local('grps', 'LOCAL_SYNC'), wt.local('grpv', 'SERVER'), wt.local('grpd', 'DEFAULT');
-- Runs of two steps each; grouped and final.
create function wt.group(labels text[], nodes1 text[] default null, nodes2 text[] default null, mode int default 9, owners text[] default null) returns setof text language sql
as $$
	select wt.mask(concat_ws(' ', labels[b.item + 1], b.code, b.status, b.message, b.task_id)) from wiggle.batch(null, row(array(select wt.task(l) from unnest(labels) l), coalesce(owners, array(select wt.owner(l) from unnest(labels) l)),
		array_fill(mode, array[cardinality(labels)]), array(select k / 2 from generate_series(0, 2 * cardinality(labels) - 1) k),
		array(select case k % 2 when 0 then coalesce(nodes1[k / 2 + 1], 'n1') else coalesce(nodes2[k / 2 + 1], 'n2') end from generate_series(0, 2 * cardinality(labels) - 1) k),
		array_fill(1, array[2 * cardinality(labels)]), array(select format('{"step":%s}', k % 2) from generate_series(0, 2 * cardinality(labels) - 1) k),
		array_fill(0::int8, array[2 * cardinality(labels)]), array_fill(0::int8, array[2 * cardinality(labels)]))::wiggle.batch_runs, null, null, null, null) b order by b.item
$$;

-- Three independent instances, one commit (43).
select wt.start('a' || k, 'grpa'), wt.claim('a' || k, 'grpa') from generate_series(1, 3) k;
select * from wt.group('{a1,a2,a3}');
select wt.show('a' || k) from generate_series(1, 3) k;
-- A refused run stands beside those that commit, and can still be reported (44).
select wt.start('b' || k, 'grpa'), wt.claim('b' || k, 'grpa') from generate_series(1, 3) k;
select * from wt.group('{b1,b2,b3}', owners => array[wt.owner('b1'), 'w#0000000000000', wt.owner('b3')]);
select wt.show('b2'), wt.work('b2');
select * from wt.group('{b2}');
-- LOCAL_SYNC, SERVER and DEFAULT report singly (46).
select wt.start('c' || w, w), wt.claim('c' || w, w) from unnest(array['grps', 'grpv', 'grpd', 'grpa']) w;
select * from wt.group('{cgrps,cgrpv,cgrpd,cgrpa}');
select * from wt.group('{cgrps}', mode => 1);
-- A sub-workflow too.
select wt.register('{"workflow":"grpp","version":1,"steps":[{"sub_workflow":"grpa"}]}'), wt.start('p', 'grpp'), wt.claim('kid', 'grpa');
select wt.start('d', 'grpa'), wt.claim('d', 'grpa');
select wt.child('kid', 'p');
select * from wt.group('{kid,d}');
select * from wt.group('{kid}', mode => 1);
-- A first step of another node is a refusal; a later one rolls that run back alone (47).
select wt.start('e' || k, 'grpa'), wt.claim('e' || k, 'grpa') from generate_series(1, 3) k;
select * from wt.group('{e1,e2,e3}', '{n1,n2,n1}', '{n9,n2,n2}');
select wt.show('e' || k), wt.work('e' || k) from generate_series(1, 3) k;
-- A loop over its budget is a durable answer (48).
select created from wiggle.register('{"name":"grpl","version":1,"startNode":"n1","executionMode":"LOCAL_ASYNC","nodes":[{"id":"n1","kind":"PREDICATE","name":"again","activity":"grpl#again","queue":"grpl","loopBudget":1,"next":"n1","altNext":"z"},{"id":"z","kind":"END","success":true}]}');
create function wt.loop(label text, rounds int, mode int) returns text language sql
as $$ select wt.mask(concat_ws(' ', b.code, b.status, b.message)) from wiggle.batch(null, row(array[wt.task(label)], array[wt.owner(label)], array[mode], array_fill(0, array[rounds]), array_fill('n1'::text, array[rounds]),
		array_fill(2, array[rounds]), array_fill('true'::text, array[rounds]), array_fill(0::int8, array[rounds]), array_fill(0::int8, array[rounds]))::wiggle.batch_runs, null, null, null, null) b $$;
select wt.start('l', 'grpl'), wt.claim('l', 'grpl'), wt.loop('l', 3, 9), wt.show('l');
-- Structural: no steps; unknown; not running; ended (50, 60).
select wt.mask(concat_ws(' ', b.code, b.message)) from wiggle.batch(null, row(array[wt.task('e1'), 'tok_0123456789abcdefghjkmn-1', 'x', null], array[wt.owner('e1'), 'w', 'w', 'w'], array[9, 9, 9, 9], array[1, 2, 3], array['n1', 'n1', 'n1'], array[0, 0, 0], array[null, null, null]::text[], array[0, 0, 0]::int8[], array[0, 0, 0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select wt.start('n', 'grpa'), wiggle.cancel(wt.id('n'));
insert into wt.claim select 'n', regexp_replace(wt.id('n'), '^wfi', 'tok') || '-1', 'w#0000000000001';
select * from wt.group('{n}');
select * from wt.group('{n}', mode => 2);
select wt.start('r', 'grpa');
insert into wt.claim select 'r', regexp_replace(wt.id('r'), '^wfi', 'tok') || '-1', 'w#0000000000001';
select * from wt.group('{r,e1}', nodes2 => '{n2,n2}');
select wt.drain('{grpa}');
-- The document form, wiggle.report(), answers each run as if it came alone.
select wt.start('j1', 'grpa'), wt.claim('j1', 'grpa'), wt.start('j2', 'grpv'), wt.claim('j2', 'grpv');
select wt.mask(task_id), instance_status, error_status, wt.mask(error) from wiggle.report(jsonb_build_array(
	jsonb_build_object('task_id', wt.task('j1'), 'lease_owner', wt.owner('j1'), 'final', true, 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1', 'merge', '{"j":1}'::jsonb, 'events', '[{"type":"half"},{"type":"way","payload":{"k":1}}]'::jsonb), jsonb_build_object('node_id', 'n2', 'events', null))),
	jsonb_build_object('task_id', wt.task('j2'), 'lease_owner', wt.owner('j2'), 'steps', jsonb_build_array(jsonb_build_object('node_id', 'n1'), jsonb_build_object('node_id', 'n2', 'events', '[{"type":"wf.x"}]'::jsonb)))));
select wt.log('j1'), wt.log('j2'), wt.work('j2');
select wt.clear();
select * from wt.finish();
