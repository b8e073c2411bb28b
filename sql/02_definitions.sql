-- Registering: what is stored, what a repeat changes, what definition() and
-- workflows() show.
\set demo '{"name":"demo","version":1,"startNode":"n1","executionMode":"DEFAULT","queues":["demo"],"nodes":[{"id":"n1","kind":"TASK","name":"a","activity":"demo#a","queue":"demo","next":"end2","retry":{"maxAttempts":2147483647,"initialBackoffMillis":1000,"multiplier":1.0,"maxBackoffMillis":60000,"jitter":0.0}},{"id":"end2","kind":"END","name":"end","success":true}]}'
select * from wiggle.register(:'demo');
select fingerprint, fingerprint_algo from wiggle.wf_definition where name = 'demo';
select jsonb_pretty(wiggle.definition('demo'));

-- The same graph again changes nothing, however it is written: other order of
-- keys and nodes, other spelling of numbers, unknown keys, other queues.
select * from wiggle.register(:'demo');
select * from wiggle.register('{"queues":["x","demo"],"color":"red","nodes":[{"success":true,"kind":"END","name":"end","id":"end2"},{"retry":{"multiplier":1,"maxAttempts":2.147483647e9,"initialBackoffMillis":1e3,"maxBackoffMillis":60000.0,"jitter":0},"next":"end2","queue":"demo","activity":"demo#a","name":"a","kind":"TASK","id":"n1","sleepMillis":0,"compensable":false,"hint":1}],"startNode":"n1","version":1.0,"name":"demo"}');
select count(*), count(distinct registered_at) from wiggle.wf_definition where name = 'demo';

-- The same graph under another version has the same fingerprint.
select created from wiggle.register(jsonb_set(:'demo', '{version}', '7'));
select count(*), count(distinct fingerprint) from wiggle.wf_definition where name = 'demo';
-- A mode is part of it, and so are checkpoints.
select created from wiggle.register(jsonb_set(jsonb_set(:'demo', '{version}', '8'), '{executionMode}', '"SERVER"'));
select created from wiggle.register(jsonb_set(jsonb_set(:'demo', '{version}', '9'), '{checkpoints}', '["n1"]'));
select version, count(*) over (partition by fingerprint) as shared from wiggle.wf_definition where name = 'demo' order by version;
select wiggle.definition('demo', 9)->'checkpoints' as checkpoints, wiggle.definition('demo', 8)->'executionMode' as mode;

-- Latest is the highest version, not the newest registration.
select created from wiggle.register(jsonb_set(:'demo', '{version}', '2'));
select wiggle.definition('demo')->'version' as latest, wiggle.definition('demo', 2)->'version' as named;
select name, version, latest, queues, mode, registered_at between now() - interval '1 minute' and now() as now
  from wiggle.workflows() where name = 'demo';

-- What definition() shows can be registered again and is the same graph.
select created from wiggle.register(wiggle.definition('demo', 1));

-- What another database lacks, with another graph or at all; and a mark that changes with the list.
select wiggle.definition_list() = (select jsonb_agg(jsonb_build_array(name, version, fingerprint) order by name, version) from wiggle.wf_definition) as list;
select * from wiggle.definitions_lacking(wiggle.definition_list());
select * from wiggle.definitions_lacking(wiggle.definition_list() || '[["demo",77,"x"],["demo",1,"other"],["none",1,"x"]]') order by 1, 2;
select wiggle.definition_mark() as mark \gset
begin;
update wiggle.wf_definition set fingerprint = 'another' where name = 'demo' and version = 9;
select wiggle.definition_mark() <> :'mark' as changed;
rollback;
select wiggle.definition_mark() = :'mark' as same;

-- Another graph under a version is refused; force needs the setting as well.
\set other '{"name":"demo","version":1,"startNode":"n1","nodes":[{"id":"n1","kind":"TASK","name":"b","activity":"demo#b","queue":"demo","next":"end2"},{"id":"end2","kind":"END","success":true}]}'
select wt.refusal(format('select wiggle.register(%L)', :'other'));
select wt.refusal(format('select wiggle.register(%L, true)', :'other'));
select wt.refusal(format('select wiggle.register_check(%L)', :'other'));
select wt.refusal(format('select wiggle.register_check(%L, true)', :'other'));
select wt.refusal('select wiggle.register_check(''{"name":"demo","version":9}'')'), wt.refusal('select wiggle.register_check(null)');
set wiggle.allow_graph_replace = on;
select wt.refusal(format('select wiggle.register(%L)', :'other'));
-- What a registration would answer, without doing it.
select * from wiggle.register_check(:'other', true);
select * from wiggle.register_check(:'demo');
select * from wiggle.register_check(jsonb_set(:'other', '{version}', '77'));
select count(*) from wiggle.wf_definition where name = 'demo' and version = 77;
select * from wiggle.register(:'other', true);
select wiggle.definition('demo', 1)->'nodes'->1->'name' as name_now;
select * from wiggle.register(:'other', true);
-- A session that has the old graph compiled starts on the new one.
select * from wiggle.register(:'demo', true);
select wt.start('old', 'demo', '{}', 1), wt.claim('old', 'demo');
select created from wiggle.register(:'other', true);
select wt.start('new', 'demo', '{}', 1), wt.claim('new', 'demo');
reset wiggle.allow_graph_replace;
-- Only who may set it can replace.
create role wt_admin in role wiggle_admin;
set role wt_admin;
set wiggle.allow_graph_replace = on;
reset role;
drop role wt_admin;

-- A registration is part of its transaction, and a start in it sees it.
begin;
select wt.register('{"workflow":"passing","version":1,"steps":[{"task":"a"}]}');
select wt.start('passing', 'passing');
rollback;
select wt.refusal('select wiggle.definition(''passing'')'), wt.refusal('select wiggle.definition(''passing'', 1)');
select wt.refusal('select wiggle.start(''passing'')'), wt.refusal('select wiggle.start(''passing'', version => 1)');
begin;
savepoint s;
select wt.register('{"workflow":"passing","version":1,"steps":[{"task":"a"}]}');
select wt.start('passing', 'passing');
rollback to s;
select wt.register('{"workflow":"passing","version":1,"steps":[{"task":"b"}]}');
select wt.start('passing', 'passing');
commit;
select wt.claim('passing', 'passing');

-- Both encodings of a combine are shown, whichever was sent, and echoing them
-- back is the same graph.
\set fork '{"name":"forked","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","name":"fork","branches":["a","b"]},{"id":"a","kind":"TASK","name":"a","activity":"forked#a","next":"j"},{"id":"b","kind":"TASK","name":"b","activity":"forked#b","next":"j"},{"id":"j","kind":"JOIN","name":"join","expected":2,"next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"forked#c","next":"e","itemsKey":"[\\"a\\",\\"b\\"]"},{"id":"e","kind":"END","success":true}]}'
select created from wiggle.register(:'fork');
select n->'armNames' as arm_names, n->'itemsKey' as items_key
  from jsonb_array_elements(wiggle.definition('forked')->'nodes') n where n->>'id' = 'c';
select created from wiggle.register(wiggle.definition('forked'));
select created from wiggle.register(jsonb_set(:'fork', '{nodes,4}', '{"id":"c","kind":"TASK","name":"c","activity":"forked#c","next":"e","armNames":["a","b"]}'));
select created from wiggle.register('{"name":"each","version":1,"startNode":"f","nodes":[{"id":"f","kind":"DYN_FORK","name":"each","itemsKey":"items","itemKey":"item","branches":["a"],"next":"j"},{"id":"a","kind":"TASK","name":"a","activity":"each#a","next":"j"},{"id":"j","kind":"JOIN","name":"join","next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"each#c","next":"e","itemsKey":"\"all\""},{"id":"e","kind":"END","success":true}]}');
select n->'id' as id, n->'collectKey' as collect_key, n->'itemsKey' as items_key
  from jsonb_array_elements(wiggle.definition('each')->'nodes') n where n ? 'itemsKey';
select created from wiggle.register(wiggle.definition('each'));

-- Every kind of node starts.
select created from wiggle.register('{"name":"signals","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SIGNAL","name":"paid","next":"e"},{"id":"e","kind":"END","success":true}]}');
select created from wiggle.register('{"name":"children","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SUB_WORKFLOW","name":"child","activity":"demo","next":"e"},{"id":"e","kind":"END","success":true}]}');
select created from wiggle.register('{"name":"sagas","version":1,"startNode":"s","nodes":[{"id":"s","kind":"TASK","name":"pay","activity":"sagas#pay","compensable":true,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select name, wt.refusal(format('select wiggle.start(%L)', name))
  from unnest(array['forked', 'each', 'signals', 'children', 'sagas']) name;

-- The authoring shorthand.
select * from wiggle.register('{"workflow":"short","version":3,"defaultQueue":"mail","steps":[{"task":"a"},{"gate":"ok"},{"sleep":"1500ms"},{"task":"b","queue":"fast","retry":{"max":3,"backoff":"2s","multiplier":2,"maxBackoff":"1m","jitter":0.5}},{"effect":"c","retry":"none"}]}');
\pset format unaligned
select n - 'activity' as node from jsonb_array_elements(wiggle.definition('short')->'nodes') n;
\pset format aligned
select queues, mode from wiggle.workflows() where name = 'short';
select * from wiggle.register('{"workflow":"unversioned","steps":[{"task":"a"}]}');

select wt.refusal('select wiggle.definition(''nobody'')');
select wt.refusal('select wiggle.definition(null)');
select wt.refusal('select wiggle.definition(''demo'', 3)'), wt.refusal('select wiggle.definition(''demo'', 0)'), wt.refusal('select wiggle.definition(''demo'', -1)');
select * from wt.finish();
