-- Failed attempts: the policy's arithmetic by a stopped clock, what is shown
-- while a retry waits, and how it ends.
set timezone = 'UTC';
set datestyle = 'ISO';
create function wt.at(seconds float) returns text language plpgsql
as $$ begin perform wiggle.test_set_clock('2030-01-01 00:00:00+00'::timestamptz + make_interval(secs => seconds)); return 'at ' || seconds; end $$;
create function wt.parked(label text) returns text language sql
as $$ select format('%s attempt %s available %s', t.status, t.attempt, t.available_at) from wiggle.tokens(wt.id(label)) t order by t.created_at desc, t.id desc limit 1 $$;

-- 1 s, 2 s, 4 s, then 5 s, the cap; the fifth failure is the last.
select wt.register('{"workflow":"flaky","version":1,"steps":[{"task":"a","retry":{"max":6,"backoff":"1s","multiplier":2,"maxBackoff":"5s"}}]}');
select wt.at(0);
select wt.start('f', 'flaky'), wt.claim('f', 'flaky'), wt.fail('f', 'no luck'), wt.parked('f'), wt.work('f');
select count(*) from wiggle.poll('w', array['flaky']);
select wt.at(0.999);
select wt.parked('f');
select wt.at(1), wt.await_claim('f', 'flaky'), wt.fail('f', 'no luck again'), wt.parked('f');
select wt.at(3), wt.await_claim('f', 'flaky'), wt.fail('f', 'still none'), wt.parked('f');
select wt.at(7), wt.await_claim('f', 'flaky'), wt.fail('f', 'none'), wt.parked('f');
select wt.at(12), wt.await_claim('f', 'flaky'), wt.fail('f', 'none at all'), wt.parked('f');
select * from wt.tokens('f');
select wt.at(17), wt.await_claim('f', 'flaky'), wt.fail('f', 'that was the last'), wt.show('f');
select * from wt.tokens('f');
select wt.work('f');

-- A flaky step that recovers: the failures leave no trace in the context.
select wt.at(100);
select wt.start('r', 'flaky', '{"n":1}'), wt.claim('r', 'flaky'), wt.fail('r', 'once'), wt.parked('r');
select wt.at(101), wt.await_claim('r', 'flaky'), wt.complete('r', '{"n":2}'), wt.show('r');
select * from wt.tokens('r');

-- A permanent failure does not wait for the policy.
select wt.start('p', 'flaky'), wt.claim('p', 'flaky'), wt.fail('p', 'card refused', false), wt.show('p');
select * from wt.tokens('p');

-- Without a backoff the task is ready at once; short of wiggle.retry_park it is
-- shown READY, and is not to be had before its time all the same.
select wt.register('{"workflow":"quick","version":1,"steps":[{"task":"a","retry":{"max":10,"backoff":"0ms"}}]}');
select wt.register('{"workflow":"quick","version":2,"steps":[{"task":"a","retry":{"max":10,"backoff":"999ms"}}]}');
select wt.start('z', 'quick', '{}', 1), wt.claim('z', 'quick'), wt.fail('z', 'x'), wt.parked('z'), wt.work('z'), wt.claim('z', 'quick');
select wt.start('s', 'quick', '{}', 2), wt.claim('s', 'quick'), wt.fail('s', 'x'), wt.parked('s'), wt.work('s'), wt.claim('s', 'quick');
select wt.at(101.999), wt.await_claim('s', 'quick'), wt.work('s');
set wiggle.retry_park = '100ms';
select wt.fail('s', 'x'), wt.parked('s');
reset wiggle.retry_park;

-- None: one attempt. No policy, or "forever": one second, ever again.
select wt.register('{"workflow":"once","version":1,"steps":[{"task":"a","retry":"none"}]}');
select wt.start('o', 'once'), wt.claim('o', 'once'), wt.fail('o', 'x'), wt.show('o');
select created from wiggle.register('{"name":"ever","version":1,"startNode":"a","nodes":[{"id":"a","kind":"TASK","activity":"ever#a","queue":"ever","next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.at(200);
select wt.start('e', 'ever'), wt.claim('e', 'ever'), wt.fail('e', 'x'), wt.parked('e');
update wiggle.wf_token set attempt = 2147483646 where instance = (select wt.no('e'));
select wt.at(201), wt.await_claim('e', 'ever'), wt.fail('e', 'the last of all'), wt.show('e');

-- Jitter stays within its share: here 500 ms to 1,500 ms.
select wt.register('{"workflow":"jitter","version":1,"steps":[{"task":"a","retry":{"max":100,"backoff":"1s","jitter":0.5}}]}');
select wt.at(300);
select count(wiggle.start('jitter')) from generate_series(1, 200);
select count(wiggle.fail(task_id, lease_owner, 'x')) from wiggle.poll('w', array['jitter'], 200);
select bool_and(due_at between '2030-01-01 00:05:00.5+00' and '2030-01-01 00:05:01.5+00') as within, count(distinct due_at) > 50 as spread,
	   min(due_at) < '2030-01-01 00:05:00.7+00' as low, max(due_at) > '2030-01-01 00:05:01.3+00' as high
  from wiggle.wf_timer m join wiggle.wf_instance i on i.no = m.instance where i.workflow = 'jitter';
-- Both sides of retry_park stand as the sound state demands.
select * from wt.unsound();

-- At the edges (C18): hundreds of failures, steep multipliers, the longest first
-- delay. The delay never shrinks, is never over a hundred years, and is no error.
create function wt.steep(v int, retry text) returns text language sql
as $$ select wt.refusal(format('select wiggle.register(%L)', format('{"name":"steep","version":%s,"startNode":"a","nodes":[{"id":"a","kind":"TASK","name":"a","activity":"steep#a","queue":"steep","next":"e","retry":%s},{"id":"e","kind":"END","success":true}]}', v, retry))) $$;
select wt.steep(1, '{"maxAttempts":10000,"initialBackoffMillis":1000,"multiplier":2,"maxBackoffMillis":0}'),
	   wt.steep(2, '{"maxAttempts":10000,"initialBackoffMillis":1000,"multiplier":1e308}'),
	   wt.steep(3, '{"maxAttempts":10000,"initialBackoffMillis":1000,"multiplier":2,"jitter":1.0,"maxBackoffMillis":60000}'),
	   wt.steep(4, '{"maxAttempts":10000,"initialBackoffMillis":3155760000000,"multiplier":1}');
-- The delay after so many failures, in milliseconds.
create function wt.delay(v int, failures int) returns bigint language plpgsql
as $$
declare
	label text := format('steep %s %s', v, failures);
	ms bigint;
begin
	perform wt.start(label, 'steep', '{}', v), wt.claim(label, 'steep');
	update wiggle.wf_token set attempt = failures - 1 where instance = (select wt.no(label));
	perform wt.fail(label, 'again');
	select extract(epoch from m.due_at - (wiggle.version()).now) * 1000 into ms from wiggle.wf_timer m where m.instance = (select wt.no(label));
	perform wiggle.cancel(wt.id(label));
	return coalesce(ms, 0);
end $$;
select wt.at(310);
select failures, wt.delay(1, failures) as doubling, wt.delay(2, failures) as steep, (select d between 0 and 120000 from (select wt.delay(3, failures) d) x) as jittered, wt.delay(4, failures) as longest
  from unnest(array[1, 2, 3, 11, 31, 32, 33, 63, 64, 65, 1023, 1024, 5000, 9999]) failures;

-- Messages: kept as they are, for people.
select wt.at(400);
select wt.start('m', 'once'), wt.claim('m', 'once'), wt.fail('m', null), wt.show('m');
select wt.start('m2', 'once'), wt.claim('m2', 'once'), wt.fail('m2', ''), wt.show('m2');
select wt.start('m3', 'once'), wt.claim('m3', 'once'), wt.fail('m3', E'line 1\nline 2 %s %d \u20ac'), wt.show('m3');
select wt.start('m4', 'once'), wt.claim('m4', 'once'), wt.fail('m4', repeat('long ', 20000));
select length(error) from wiggle.instance(wt.id('m4'));

-- Refusals as for complete().
select wt.refusal('select wiggle.fail(null, null, ''x'')'), wt.refusal('select wt.fail(''m'', ''x'')');
select wt.start('g', 'once'), wt.claim('g', 'once');
select wt.refusal('select wiggle.fail(wt.task(''g''), ''w#0000000000000'', ''x'')');
select * from wt.tokens('g');
select * from wt.finish();
