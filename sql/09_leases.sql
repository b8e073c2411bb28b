-- Leases by a stopped clock: who may act on a task, and until when.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"l","version":1,"steps":[{"task":"a","retry":{"max":3,"backoff":"0ms"}},{"task":"b"}]}');
select wt.at(0);

-- A lease that ends gives the task to the next, the attempt spent.
select wt.start('i', 'l'), wt.claim('w1', 'l', 'w1', '500 ms');
select n, status, attempt, owner from wt.tokens('i');
select wt.at(0.499);
select wt.claim('w2', 'l', 'w2');
select wt.at(0.5), wt.await_claim('w2', 'l', 'w2');
select * from wt.tokens('i');

-- The first owner can do nothing any more, the second all of it (C06).
select wt.refusal('select wt.complete(''w1'', ''{"by":1}'')'), wt.refusal('select wt.fail(''w1'', ''late'')'),
	   wt.refusal('select wiggle.heartbeat(wt.task(''w1''), wt.owner(''w1''))');
select wt.refusal('select wiggle.complete(wt.task(''w2''), wt.owner(''w1''), ''{"by":1}'')');
select * from wt.tokens('i');
select wt.complete('w2', '{"by":2}'), wt.show('i');
select count(*) as done from wt.tokens('i') where status = 'DONE' and node = 'n1';
select wt.refusal('select wiggle.heartbeat(wt.task(''w2''), wt.owner(''w2''))'), wt.refusal('select wt.complete(''w2'')'), wt.refusal('select wt.fail(''w2'', ''x'')');
select wt.work('i');
select * from wt.tokens('i');

-- An expired lease that nobody has reclaimed is still good: who holds the
-- instance's lock decides, not the clock.
select wt.register(format('{"workflow":"%s","version":1,"steps":[{"task":"a","retry":{"max":3,"backoff":"0ms"}}]}', w))
  from unnest(array['late', 'spent', 'beat', 'kept', 'zeroed', 'edge']) w;
select wt.at(10);
select wt.start('late', 'late'), wt.claim('late', 'late', 'w', '1 s');
begin;
select status from wiggle.wf_instance where no = (select wt.no('late')) for update;
select wt.at(12);
select wt.complete('late', '{"late":true}');
commit;
select wt.show('late');

-- Every attempt spent by expiry: the instance fails and says why.
select wt.at(100);
select wt.start('x', 'spent'), wt.claim('x', 'spent', 'w', '1 s');
select wt.at(101), wt.await_claim('x', 'spent');
select wt.at(131), wt.await_claim('x', 'spent');
select wt.at(160.999);
select status, attempt from wt.tokens('x');
select wt.at(161), wt.await('(wiggle.instance(wt.id(''x''))).status = ''FAILED'''), wt.show('x');
select * from wt.tokens('x');

-- Heartbeats: from now, as long as asked for, shorter too; without a length the default.
select wt.at(200);
select wt.start('h', 'beat'), wt.claim('h', 'beat', 'w', '10 s');
select wiggle.heartbeat(wt.task('h'), wt.owner('h'), '60 s'), wiggle.heartbeat(wt.task('h'), wt.owner('h'), '5 s'), wiggle.heartbeat(wt.task('h'), wt.owner('h'));
select expires_at, claimed_at from wiggle.wf_lease where instance = (select wt.no('h'));
set wiggle.default_lease = '2 min';
select wiggle.heartbeat(wt.task('h'), wt.owner('h'));
select lease_expires_at from wiggle.complete(wt.task('h'), wt.owner('h'));
select wt.start('h2', 'beat'), wt.claim('h2', 'beat');
select expires_at from wiggle.wf_lease where instance = (select wt.no('h2'));
reset wiggle.default_lease;
-- They keep a step longer than its lease.
select wt.start('k', 'kept'), wt.claim('k', 'kept', 'w', '10 s');
select wt.at(209), wiggle.heartbeat(wt.task('k'), wt.owner('k'), '10 s');
select wt.at(218), wiggle.heartbeat(wt.task('k'), wt.owner('k'), '10 s');
-- Another lease that ends shows that the clock worker has looked.
select wt.start('k2', 'kept'), wt.claim('k2', 'kept', 'w', '1 s');
select wt.at(227), wt.await_claim('k2', 'kept');
select attempt, status from wt.tokens('k');
select wt.complete('k', '{"kept":true}'), wt.show('k');

-- Zero: it is over at once.
select wt.start('zero', 'zeroed'), wt.claim('zero', 'zeroed');
select wiggle.heartbeat(wt.task('zero'), wt.owner('zero'), '0');
select wt.await_claim('zero2', 'zeroed');
select wt.refusal('select wt.complete(''zero'')'), wt.complete('zero2');

-- Extremes: one hundred years at most, and never an error of the arithmetic.
select wt.at(300);
select wt.start('e', 'edge'), wt.claim('e', 'edge', 'w', '1 s');
select extend, wt.refusal(format('select wiggle.heartbeat(wt.task(''e''), wt.owner(''e''), %L)', extend))
  from unnest(array['-1 ms', '1 ms', '1 us', '36525 days', '36526 days', '178000000 years', '-178000000 years', '9223372036 s']) extend;
select wt.start('el', 'edge');
select lease, wt.refusal(format('select lease_expires_at from wiggle.poll(''w'', array[''edge''], 1, %L)', lease))
  from unnest(array['-1 ms', '36526 days', '178000000 years', '36525 days']) lease;
-- A poll with no lease, and with zero: the default.
select wt.start('ez', 'edge'), wt.start('en', 'edge');
select lease_expires_at from wiggle.poll('w', array['edge'], 1, '0');
select lease_expires_at from wiggle.poll('w', array['edge'], 1, null);
select * from wt.unsound();

-- Every lease has an owner of its own, none is a worker's plain name.
select count(*) = count(distinct owner) as unique, bool_and(owner ~ '^w#[0-9a-z]{13}$') as nonce from wiggle.wf_lease;
select * from wt.finish();
