-- Cancelling: what is live is cancelled with the instance, what is over stays.
select wt.register('{"workflow":"c","version":1,"steps":[{"task":"a","retry":{"max":9,"backoff":"1h"}},{"task":"b"}]}');
select wt.register('{"workflow":"c","version":2,"steps":[{"task":"a","retry":{"max":9,"backoff":"900ms"}}]}');
select wt.register('{"workflow":"c","version":3,"steps":[{"sleep":"1h"}]}');

-- Ready, leased, parked, parked shortly, asleep.
select wt.start('ready', 'c', '{}', 1);
select wiggle.cancel(wt.id('ready')), wt.show('ready'), wt.work('ready');
select * from wt.tokens('ready');
select count(*) from wiggle.poll('w', array['c']);
select wt.start('leased', 'c', '{}', 1), wt.claim('leased', 'c');
select wiggle.cancel(wt.id('leased'), 'customer left'), wt.show('leased'), wt.work('leased');
select * from wt.tokens('leased');
select wt.refusal('select wt.complete(''leased'', ''{"late":1}'')') as complete, wt.refusal('select wt.fail(''leased'', ''late'')') as fail,
	   wt.refusal('select wiggle.heartbeat(wt.task(''leased''), wt.owner(''leased''))') as heartbeat;
select wt.show('leased');
select wt.start('parked', 'c', '{}', 1), wt.claim('parked', 'c'), wt.fail('parked', 'x'), wt.work('parked');
select wiggle.cancel(wt.id('parked'), ''), wt.show('parked'), wt.work('parked');
select * from wt.tokens('parked');
select wiggle.test_set_clock('2030-01-01 00:00:00+00');
select wt.start('short', 'c', '{}', 2), wt.claim('short', 'c'), wt.fail('short', 'x'), wt.work('short');
select wiggle.cancel(wt.id('short')), wt.show('short'), wt.work('short');
select * from wt.tokens('short');
select wt.start('asleep', 'c', '{}', 3), wt.work('asleep');
select wiggle.cancel(wt.id('asleep')), wt.show('asleep'), wt.work('asleep');
select * from wt.tokens('asleep');
-- Nothing fires later.
select wiggle.test_set_clock('2030-01-01 02:00:00+00');
select wt.start('witness', 'c', '{}', 2), wt.claim('witness', 'c'), wt.fail('witness', 'x');
select wiggle.test_set_clock('2030-01-01 02:00:01+00'), wt.await_claim('witness', 'c');
select wt.show('asleep'), wt.show('short');
select wiggle.test_set_clock(null);

-- Half way: what was done stays done.
select wt.start('half', 'c', '{}', 1), wt.claim('half', 'c'), wt.complete('half', '{"a":1}');
select wiggle.cancel(wt.id('half')), wt.show('half');
select * from wt.tokens('half');

-- Again, and after the end: a success that changes nothing.
select updated_at as before from wiggle.instance(wt.id('half')) \gset
select wiggle.cancel(wt.id('half'), 'another reason'), wt.show('half'), updated_at = :'before' as untouched from wiggle.instance(wt.id('half'));
select wt.start('done', 'c', '{}', 2), wt.claim('done', 'c'), wt.complete('done');
select wiggle.cancel(wt.id('done')), wt.show('done');
select wt.start('failed', 'c', '{}', 2), wt.claim('failed', 'c'), wt.fail('failed', 'x', false);
select wiggle.cancel(wt.id('failed')), wt.show('failed');

-- In a transaction that rolls back, it goes on.
select wt.start('back', 'c', '{}', 1), wt.claim('back', 'c');
begin;
select wiggle.cancel(wt.id('back')), wt.show('back'), wt.work('back');
rollback;
select wt.show('back'), wt.work('back'), wt.complete('back', '{"went":"on"}');
begin;
savepoint s;
select wiggle.cancel(wt.id('back'));
rollback to s;
select wt.claim('back', 'c'), wt.complete('back', '{"finished":true}');
commit;
select wt.show('back');

-- Started, claimed and cancelled in one transaction.
begin;
select wt.start('brief', 'c', '{}', 1), wt.claim('brief', 'c'), wiggle.cancel(wt.id('brief')), wt.show('brief');
select * from wt.unsound();
commit;

select id, wt.refusal(format('select wiggle.cancel(%L)', id)) from unnest(array['', 'x', 'wfi_0123456789abcdefghjkmn', null]) id;
select wt.start('r', 'c', '{}', 1);
select wt.refusal(format('select wiggle.cancel(%L, %L)', wt.id('r'), repeat('r', 201))), wt.show('r');
select wiggle.cancel(wt.id('r'), repeat('ü', 200)), length(termination_reason) from wiggle.instance(wt.id('r'));
select length(termination_reason) from wiggle.instance(wt.id('r'));
select * from wt.finish();
