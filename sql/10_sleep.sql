-- Sleeps: parked without a worker, over when due by the stopped clock.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"nap","version":1,"steps":[{"task":"a"},{"sleep":"90s"},{"task":"b"}]}');
select wt.at(0);
select wt.start('n', 'nap'), wt.claim('n', 'nap'), wt.complete('n', '{"a":1}');
select wt.parked('n'), wt.work('n');
select * from wt.tokens('n');
select count(*) from wiggle.poll('w', array['nap']);
select wt.refusal(format('select wiggle.complete(%L, ''w#0000000000000'')', regexp_replace(wt.task('n'), '1$', '2')));
select wt.at(89.999);
select wt.work('n');
select wt.at(90), wt.await_claim('n', 'nap'), wt.complete('n', '{"a":1,"b":2}'), wt.show('n');
select n, node, kind, status from wt.tokens('n');
select node_id, started_at, finished_at from wiggle.tokens(wt.id('n')) where kind = 'SLEEP';

-- Many at once, out of order, and each at its own time.
select wt.register(format('{"workflow":"nap%s","version":1,"defaultQueue":"naps","steps":[{"sleep":"%ss"},{"task":"t"}]}', s, s)) from unnest(array[1, 2, 3]) s;
select wt.at(100);
select count(wiggle.start('nap' || 1 + k % 3, jsonb_build_object('s', 1 + k % 3))) from generate_series(1, 300) k;
select wt.at(101), wt.await('(select count(*) = 100 from wiggle.wf_ready where queue = ''naps'')');
select count(*), max(context->>'s') from wiggle.poll('w', array['naps'], 1000);
select wt.at(103), wt.await('(select count(*) = 200 from wiggle.wf_ready where queue = ''naps'')');
select count(*) from wiggle.poll('w', array['naps'], 1000);
select count(*) from wiggle.wf_timer;
-- More than one pass of the clock worker holds.
select count(wiggle.start('nap1')) from generate_series(1, 1500);
select wt.at(104), wt.await('(select count(*) = 1500 from wiggle.wf_ready where queue = ''naps'')');
select * from wt.finish();

-- Zero, the shortest, a sleep before the end, sleeps in a row; the longest (C18).
select wt.at(200);
select created from wiggle.register('{"name":"zero","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SLEEP","sleepMillis":0,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('zero', 'zero');
select wt.await('(wiggle.instance(wt.id(''zero''))).status = ''COMPLETED''');
select created from wiggle.register('{"name":"row","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SLEEP","sleepMillis":1,"next":"t"},{"id":"t","kind":"SLEEP","sleepMillis":1,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('row', 'row'), wt.parked('row');
select wt.at(200.001), wt.await('(select count(*) = 2 from wt.tokens(''row''))'), wt.parked('row');
select wt.at(200.002), wt.await('(wiggle.instance(wt.id(''row''))).status = ''COMPLETED''');
select * from wt.tokens('row');
select ms, created from unnest(array['2147483648', '9007199254740993', '3155760000000']) with ordinality u(ms, v),
	lateral (select wt.refusal(format('select created from wiggle.register(%L)', format('{"name":"long","version":%s,"startNode":"s","nodes":[{"id":"s","kind":"SLEEP","sleepMillis":%s,"next":"e"},{"id":"e","kind":"END","success":true}]}', v, ms))) created) r;
select wt.start('long1', 'long', '{}', 1), wt.parked('long1'), wt.start('long3', 'long', '{}', 3), wt.parked('long3');

-- A sleep that is rolled back leaves no timer; in a subtransaction as well.
begin;
select wt.start('gone', 'nap1');
rollback;
begin;
savepoint s;
select wt.start('gone', 'nap1');
rollback to s;
select wt.start('stays', 'nap1');
commit;
select count(*) from wiggle.wf_timer m join wiggle.wf_instance i on i.no = m.instance where i.workflow = 'nap1';

-- The clock runs again: a real timer fires when it is due, not on a tick.
select wiggle.test_set_clock(null);
select created from wiggle.register('{"name":"real","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SLEEP","sleepMillis":30,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('real', 'real');
select wt.await('(wiggle.instance(wt.id(''real''))).status = ''COMPLETED''');
select finished_at >= available_at as not_early from wiggle.tokens(wt.id('real')) where kind = 'SLEEP';
select * from wt.finish();
