-- The event log: one entry for each transition, in its transaction, and what
-- handlers emit; cursors; the horizon; trimming.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"ev","version":1,"steps":[{"task":"a","retry":"none"}]}');
select wiggle.event_horizon() - 1 as before \gset

-- One entry a transition, with reason and error (83).
create function wt.entries(after bigint, consumer text default null) returns table (instance text, workflow text, version int, correlation text, type text, node text, payload jsonb) language sql
as $$ select wt.mask(e.instance_id), e.workflow, e.version, e.correlation_id, e.type, e.node_id, e.payload from wiggle.feed(after, 1000) e $$;
select wt.start('done', 'ev'), wt.drain('{ev}');
select wt.handle('a', 'wt.oops(''bad "luck"'')'), wt.start('failed', 'ev'), wt.drain('{ev}'), wt.start('cut', 'ev'), wiggle.cancel(wt.id('cut'), 'not needed');
insert into wt.instance values ('named', wiggle.start('ev', '{}', null, 'order-7'));
select * from wt.entries(:before);
select bool_and(seq > lag) as rising, bool_and(created_at <= now()) as past from (select seq, created_at, lag(seq, 1, 0) over (order by seq) from wiggle.feed(:before, 1000)) f;
-- Rolled back, there is none; a savepoint's are not either.
begin;
select wt.start('never', 'ev');
rollback;
begin;
savepoint s;
select wt.start('never', 'ev');
rollback to s;
select wt.start('yes', 'ev');
commit;
select count(*), count(*) filter (where instance_id = wt.id('yes')) as yes from wiggle.feed(:before, 1000);
-- Within the own transaction the log is not yet final.
begin;
select wiggle.event_horizon() - 1 as inside \gset
select wt.start('own', 'ev');
select count(*) from wiggle.feed(:inside, 10);
commit;
select count(*) from wiggle.feed(:inside, 10);
select wt.clear();

-- Emitted by handlers: between started and completed, with their node, in order (90).
create function wt.events(step int[], types text[], payloads text[]) returns wiggle.batch_events language sql as $$ select row(step, types, payloads)::wiggle.batch_events $$;
create function wt.emit(label text, events wiggle.batch_events, value text default null) returns text language sql
as $$ select wt.mask(concat_ws(' ', b.code, b.message, b.status)) from wiggle.batch(null, row(array[wt.task(label)], array[wt.owner(label)], array[1], array[0], array['n1'], array[1], array[value], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null, events) b $$;
select wt.start('e', 'ev'), wt.claim('e', 'ev');
select wt.emit('e', wt.events('{0,0,0}', '{order.paid,order.sent,x}', '{"{\"a\":1}","{}",NULL}')), wt.log('e');
-- In a run of steps each at its own node; LOCAL_ASYNC and LOCAL_SYNC alike.
select wt.refusal(format('select created from wiggle.register(%L)', format('{"name":"ev%s","version":1,"startNode":"n1","executionMode":"%s","nodes":[{"id":"n1","kind":"TASK","name":"a","activity":"e#a","queue":"evm","next":"n2"},{"id":"n2","kind":"TASK","name":"b","activity":"e#b","queue":"evm","next":"z"},{"id":"z","kind":"END","success":true}]}', n, mode)))
  from (values (1, 'SERVER'), (2, 'LOCAL_SYNC'), (3, 'LOCAL_ASYNC')) v(n, mode);
create function wt.emit_both(label text) returns text language sql
as $$ select b.status from wiggle.batch(null, row(array[wt.task(label)], array[wt.owner(label)], array[1], array[0, 0], array['n1', 'n2'], array[0, 0], array[null, null]::text[], array[0, 0]::int8[], array[0, 0]::int8[])::wiggle.batch_runs, null, null, null, null, wt.events('{0,1,1}', '{first,second,third}', '{"{\"n\":1}",NULL,NULL}')) b $$;
select wt.start('m' || n, 'ev' || n), wt.claim('m' || n, 'evm'), wt.emit_both('m' || n), wt.log('m' || n) from generate_series(1, 3) n;
-- A failed attempt leaves none, its retry's are fresh (91): a refused run neither.
select wt.register('{"workflow":"ev","version":2,"steps":[{"task":"a","retry":{"max":3,"backoff":"0ms"}}]}'), wt.start('re', 'ev'), wt.claim('re', 'ev'), wt.fail('re', 'once'), wt.claim('re', 'ev'), wt.emit('re', wt.events('{0}', '{late}', '{NULL}')), wt.log('re');
-- Refusals (92): nothing of the run is applied.
select wt.start('bad', 'ev'), wt.claim('bad', 'ev');
select type, left(payload, 30) as payload, wt.emit('bad', wt.events('{0,0}', array['good', type], array[null, payload]), '{"changed":1}') from (values
	('', null), (' ', null), (null, null), ('wf.started', null), ('wf.', '{}'), (repeat('t', 33), null), ('x', '[1]'), ('x', '"text"'), ('x', '7'), ('x', 'true'), ('x', 'null'), ('x', '{"a":'), ('x', '{"a":1e999}')) v(type, payload);
select wt.show('bad'), wt.log('bad'), wt.work('bad');
select wt.emit('bad', wt.events('{0}', array[repeat('é', 32)], array['{"wf.":1}'])), wt.log('bad');
select wt.refusal('select wt.emit(''bad'', wt.events(''{1}'', ''{x}'', ''{NULL}''))'), wt.refusal('select wt.emit(''bad'', wt.events(''{0}'', ''{x,y}'', ''{NULL}''))');
-- A compensator may emit.
select wt.register('{"workflow":"evs","version":1,"steps":[{"task":"c","compensable":true},{"task":"d","retry":"none"}]}'), wt.handle('d', 'wt.oops(''x'')'), wt.start('saga', 'evs'), wt.drain('{evs}', 2), wt.claim('saga', 'evs'), wt.emit('saga', wt.events('{0}', '{undone}', '{"{\"u\":1}"}')), wt.log('saga');

-- Consumers (84): from the earliest, from now, after a number; a batch that is not
-- acknowledged comes again; cursors are independent; max bounds.
select count(*) > 20 as all_of_them, min(seq) = (select min(seq) from wiggle.wf_event) as from_the_first from wiggle.events('early', 10000, -1);
select count(*) from wiggle.events('tail');
select count(*) from wiggle.events('after', 1000, :before);
select count(*), (select count(*) from wiggle.events('after', 1000, 0)) as start_from_is_ignored from wiggle.events('after', 1000, -1);
select wt.start('seen', 'ev'), wiggle.cancel(wt.id('seen'));
select type from wiggle.events('tail');
select type from wiggle.events('tail', 1);
select type from wiggle.events('tail', 0);
select count(wiggle.ack('tail', seq)) from wiggle.events('tail', 1);
select type from wiggle.events('tail');
-- Never backwards, never past the end, unknown consumers ignored.
select acked as at from wiggle.cursor_read('tail') \gset
select wiggle.ack('tail', 0), wiggle.ack('tail', -5), wiggle.ack('nobody', 5);
select acked = :at as unmoved from wiggle.cursor_read('tail');
select wiggle.ack('tail', 9223372036854775807);
select acked = wiggle.event_horizon() - 1 as at_head from wiggle.cursor_read('tail');
select count(*) from wiggle.events('tail'), wiggle.cursor_read('nobody');
select wt.start('next', 'ev'), (select count(*) from wiggle.events('tail')) as in_time;
select type from wiggle.events('tail');
select name, wt.refusal(format('select count(*) from wiggle.events(%L)', name)) from unnest(array['', '   ', null]) name;
-- Cursors of several shards, as proxies keep them here.
select wiggle.cursor_register('vector', '{0,3}', '{5,-7}'), wiggle.cursor_register('vector', '{3,4}', '{100,9}');
select * from wiggle.cursor_read('vector');
select wiggle.cursor_ack('vector', '{0,3,9}', '{4,12,7}');
select * from wiggle.cursor_read('vector');

-- Trimming keeps what the slowest consumer has not acknowledged (86); without
-- consumers age alone decides (87).
select wt.clear();
select wt.await('not exists (select from wiggle.wf_timer)');
delete from wiggle.wf_event_cursor;
-- Only entries of one age, which other tests' clocks did not make.
select wt.forget();
delete from wiggle.wf_event;
do $$ begin perform wiggle.cancel(wiggle.start('ev')) from generate_series(1, 20); end $$;
select wiggle.cursor_register('slow', '{0}', array[(select seq from wiggle.wf_event order by seq offset 10 limit 1)]), wiggle.cursor_register('quick', '{0}', array[(select max(seq) from wiggle.wf_event)]), wiggle.cursor_register('elsewhere', '{7}', '{0}');
alter system set wiggle.event_retention = '1d';
select pg_reload_conf();
select wiggle.test_set_clock(clock_timestamp() + interval '2 days');
select wt.await('(select count(*) from wiggle.wf_event) <= 29');
select count(*) from wiggle.wf_event;
select wiggle.ack('slow', (select max(seq) from wiggle.wf_event));
select wiggle.test_set_clock(clock_timestamp() + interval '3 days');
select wt.await('not exists (select from wiggle.wf_event)');
-- A consumer that is forgotten is a new one when it comes back, and holds nothing back.
select wiggle.forget_consumer('slow'), wiggle.forget_consumer('slow'), wiggle.forget_consumer(null), consumer from wiggle.wf_event_cursor order by consumer;
select wiggle.cursor_read('slow');
delete from wiggle.wf_event_cursor;
do $$ begin perform wiggle.cancel(wiggle.start('ev')); end $$;
select wiggle.test_set_clock(clock_timestamp() + interval '5 days');
select wt.await('not exists (select from wiggle.wf_event)');
-- Numbers still rise after a purge, however far the clock is set back.
select wiggle.test_set_clock(null);
select wiggle.event_horizon() - 1 as head \gset
do $$ begin perform wiggle.start('ev'); end $$;
select count(*), bool_and(seq > :head) as risen, bool_and(created_at < clock_timestamp()) as now from wiggle.wf_event;
alter system reset wiggle.event_retention;
select pg_reload_conf();
-- An old snapshot does not see what the horizon counts as settled: refused.
begin isolation level repeatable read;
select wt.refusal($$select * from wiggle.events('old')$$), wt.refusal($$select * from wiggle.feed(0)$$);
commit;
select wt.clear();
-- Their starts are gone from the log, so these go from the tables too.
select wt.forget();
select * from wt.finish();
