-- Signals: a token waits until one comes or its deadline passes.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"sg","version":1,"steps":[{"task":"first"},{"await_signal":"paid"},{"task":"then"}]}');
select wt.at(0);

-- Parked awaiting, with the signal's name; the payload merges, the flow goes on (34).
select wt.handle('first', 'c || ''{"first":1}'''), wt.start('s', 'sg', '{"a":1,"b":2}'), wt.drain('{sg}');
select wt.show('s'), wt.work('s');
select node_id, kind, status, activity, available_at, started_at, finished_at from wiggle.tokens(wt.id('s'));
select wt.mask(instance_id) as instance, workflow, signal, since, deadline from wiggle.pending_signals();
-- Wrong name, early, late, unknown (35, C16): refused, never buffered.
select wt.refusal(format('select wiggle.signal(%L, ''unexpected'', ''{"x":1}'')', wt.id('s')));
select wt.at(5);
select wiggle.signal(wt.id('s'), 'paid', '{"b":null,"c":{"d":null},"a":9}'), wt.show('s'), wt.work('s');
select node_id, kind, status, started_at, finished_at from wiggle.tokens(wt.id('s')) where kind = 'SIGNAL';
select wt.refusal(format('select wiggle.signal(%L, ''paid'')', wt.id('s')));
select wt.drain('{sg}'), wt.show('s');
select wt.refusal(format('select wiggle.signal(%L, ''paid'')', wt.id('s')));
select wt.start('early', 'sg'), wt.refusal(format('select wiggle.signal(%L, ''paid'', ''{"n":1}'')', wt.id('early'))), wt.drain('{sg}'), wiggle.signal(wt.id('early'), 'paid', '{"n":2}'), wt.show('early');
select id, wt.refusal(format('select wiggle.signal(%L, ''paid'')', id)) from unnest(array['', 'x', 'wfi_0123456789abcdefghjkmn', 'wfi.s77.0123456789abcdefghjkmn', null]) id;
select wt.drain('{sg}'), wt.start('names', 'sg'), wt.drain('{sg}');
select left(name, 10) as name, wt.refusal(format('select wiggle.signal(%L, %L)', wt.id('names'), name)) from unnest(array['', null, 'PAID', 'paid ', repeat('é', 200), repeat('x', 201), repeat('x', 10000)]) name;
select left(payload, 12) as payload, wt.refusal(format('select wiggle.signal(%L, ''paid'', %L)', wt.id('names'), payload)) from unnest(array['{"a":"\u0000"}', '{"a":"\ud83e"}', 'nothing', repeat('[', 200) || repeat(']', 200)]) payload;
select wt.show('names'), wt.work('names');
select left(payload, 12), wt.refusal(format('select wiggle.signal(%L, ''paid'', %L)', wt.id('names'), payload)) from unnest(array['{"one":1,"neg0":-0.0,"id":9007199254740993,"big":12345678901234567890123}', '{"e":1e400}']) payload;
select wt.show('names');

-- How payloads merge: key-wise when both are objects, else they replace; null and
-- absent leave all as it is.
create function wt.merged(context jsonb, payload jsonb) returns text language plpgsql
as $$
declare
	label text := format('%s+%s', context, payload);
begin
	perform wt.start(label, 'sg', context);
	perform wt.handle('first', 'null');
	perform wt.drain('{sg}');
	perform wiggle.signal(wt.id(label), 'paid', payload);
	perform wt.drain('{sg}');
	return (wiggle.instance(wt.id(label))).context;
end $$;
select wt.clear();
select context, payload, wt.merged(context, payload) from (values ('{"a":1,"b":{"x":1}}'::jsonb, '{"b":{"y":2}}'::jsonb), ('{"a":1}', '{"a":null,"zz":null}'), ('{"a":1}', 'null'), ('{"a":1}', null),
	('{"a":1}', '[1,null]'), ('{"a":1}', '"text"'), ('[1]', '{"a":1,"b":null}'), ('7', '{"a":{}}'), ('null', '{"k":1}'), ('{"a":1}', '{}'), ('[1]', '[2]')) v(context, payload);
select wt.clear();

-- A deadline: without escalation the instance fails (37); with one, its steps run
-- and lead on behind the wait (36).
select wt.register('{"workflow":"sd","version":1,"steps":[{"await_signal":"go","timeout":"10s"},{"task":"end"}]}');
select wt.register('{"workflow":"se","version":1,"steps":[{"await_signal":"ok","timeout":"10s","escalation":[{"task":"remind"},{"task":"decide"}]},{"task":"end"}]}');
select wt.at(100);
select wt.start('late', 'sd'), wt.work('late'), wt.start('esc', 'se'), wt.start('intime', 'se'), wt.start('intime2', 'sd');
select wt.mask(instance_id) as instance, signal, since, deadline from wiggle.pending_signals();
select wt.at(109.999);
select wiggle.signal(wt.id('intime'), 'ok', '{"ok":1}'), wt.show('intime'), wt.work('intime');
select wiggle.signal(wt.id('intime2'), 'go'), wt.work('intime2');
select wt.at(110);
select wt.await('(select status from wiggle.instance(wt.id(''late''))) = ''FAILED'''), wt.await('exists (select from wiggle.wf_ready where queue = ''se'' and instance = wt.no(''esc''))');
select wt.show('late'), wt.log('late'), wt.marks('late');
select last_error, finished_at from wiggle.tokens(wt.id('late'));
select wt.refusal(format('select wiggle.signal(%L, ''go'')', wt.id('late'))), wt.refusal(format('select wiggle.signal(%L, ''ok'')', wt.id('esc')));
select wt.drain('{se,sd}'), wt.show('esc'), wt.show('intime'), wt.show('intime2');
select wt.marks('esc'), wt.marks('intime');
select * from wt.unsound();

-- Two waits of one name: the older token gets the signal, then the other; two
-- waits of two names in arms (C16).
select created from wiggle.register('{"name":"sw2","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","name":"a","activity":"sw2#a","queue":"sw2","next":"as"},{"id":"as","kind":"SIGNAL","name":"x","next":"j"},{"id":"b","kind":"TASK","name":"b","activity":"sw2#b","queue":"sw2","next":"bs"},{"id":"bs","kind":"SIGNAL","name":"y","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"sw2#c","queue":"sw2","next":"e","armNames":["a","b"]},{"id":"e","kind":"END","success":true}]}');
select wt.handle('c', 'c'), wt.start('arms', 'sw2', '{"v":0}'), wt.drain('{sw2}'), wiggle.signal(wt.id('arms'), 'y', '{"got":"y"}'), wt.show('arms'), wiggle.signal(wt.id('arms'), 'x', '{"got":"x","v":null}'), wt.drain('{sw2}'), wt.show('arms');
select wt.register('{"workflow":"sw3","version":1,"steps":[{"fork_each":{"over":"items","as":"it","combine":"all","body":[{"await_signal":"turn"}]}}]}');
select wt.handle('all', 'c->''__forEach__it'''), wt.start('items', 'sw3', '{"items":["a","b","c"]}');
select wiggle.signal(wt.id('items'), 'turn', '1'), wiggle.signal(wt.id('items'), 'turn', '{"two":2}'), wt.marks('items');
select wiggle.signal(wt.id('items'), 'turn'), wt.refusal(format('select wiggle.signal(%L, ''turn'')', wt.id('items')));
select wt.drain('{sw3}'), wt.show('items');

-- Behind the wait, or its escalation, a child is started; a child's own last wait
-- moves its parent. (The escalation's node is the first of the graph's.)
select wt.register('{"workflow":"sk","version":1,"steps":[{"await_signal":"last","timeout":"10s"}]}');
select created from wiggle.register('{"name":"sp","version":1,"startNode":"s","nodes":[{"id":"a","kind":"SUB_WORKFLOW","name":"late","activity":"sk","next":"e"},{"id":"s","kind":"SIGNAL","name":"call","sleepMillis":10000,"next":"n","altNext":"a"},{"id":"n","kind":"SUB_WORKFLOW","name":"kin","activity":"sk","next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.at(200);
select wt.start('sp1', 'sp'), wt.start('sp2', 'sp'), wiggle.signal(wt.id('sp1'), 'call'), wt.marks('sp1');
insert into wt.instance select 'sk1', instance_id from wiggle.pending_signals() where signal = 'last';
select wiggle.signal(wt.id('sk1'), 'last', '{"k":1}'), wt.show('sk1'), wt.show('sp1');
select wt.at(210);
select wt.await('exists (select from wiggle.pending_signals() where signal = ''last'')'), wt.marks('sp2');
select wt.at(220);
select wt.await('(select status from wiggle.instance(wt.id(''sp2''))) = ''FAILED'''), wt.show('sp2');

-- Only a wait for a signal takes one, no other token of that name.
select wt.register('{"workflow":"sn","version":1,"steps":[{"fork":{"a":[{"task":"knock"}],"b":[{"sub_workflow":{"name":"bell","workflow":"sg"}}],"c":[{"sleep":{"for":"1h","name":"nap"}}],"d":[{"gate":"shut"}]}}]}');
select wt.handle('shut', 'false'), wt.start('deaf', 'sn'), wt.drain('{sn}', 1), wt.claim('held', 'sn'), wt.marks('deaf');
select name, wt.refusal(format('select wiggle.signal(%L, %L)', wt.id('deaf'), name)) from unnest(array['knock', 'bell', 'nap', 'shut', 'join', 'fork']) name;
select wt.complete('held'), wt.refusal(format('select wiggle.signal(%L, ''knock'')', wt.id('deaf'))), wiggle.cancel(wt.id('deaf'));

-- In the caller's transaction: rolled back, it still waits.
select wt.start('back', 'sd');
begin;
select wiggle.signal(wt.id('back'), 'go', '{"x":1}'), wt.show('back');
rollback;
select wt.show('back'), wt.work('back');
-- Cancelled while it waits: no timer is left.
select wiggle.cancel(wt.id('back')), wt.marks('back'), wt.work('back'), wt.refusal(format('select wiggle.signal(%L, ''go'')', wt.id('back')));
-- A payload is big or has many keys: it merges all the same.
select wt.start('big', 'sd', '{"keep":1}'), wiggle.signal(wt.id('big'), 'go', (select jsonb_object_agg('k' || k, repeat('v', 100)) from generate_series(1, 2000) k));
select count(*), sum(length(value)), bool_or(key = 'keep') from wiggle.instance(wt.id('big')) i, jsonb_each_text(i.context);
-- Timers at the edge: a deadline in the far future, and one of a millisecond.
select created from (values (1, '2147483648'), (2, '1'), (3, '0')) v(n, ms), lateral wiggle.register(format('{"name":"sw4","version":%s,"startNode":"s","nodes":[{"id":"s","kind":"SIGNAL","name":"x","sleepMillis":%s,"next":"e"},{"id":"e","kind":"END","success":true}]}', n, ms)::jsonb);
select ms, wt.refusal(format('select created from wiggle.register(%L)', format('{"name":"sw4","version":9,"startNode":"s","nodes":[{"id":"s","kind":"SIGNAL","name":"x","sleepMillis":%s,"next":"e"},{"id":"e","kind":"END","success":true}]}', ms))) from unnest(array['-1', '9007199254740993', '9223372036854775807', '1e400', '1.5', '"x"']) ms;
select wt.start('e' || v, 'sw4', '{}', v), wt.work('e' || v) from generate_series(1, 3) v;
select * from wt.finish();
