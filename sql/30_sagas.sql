-- Sagas: completed compensable steps are undone, newest first, when an instance fails.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"trip","version":1,"steps":[{"task":"flight","compensable":true},{"task":"hotel","compensable":true,"queue":"hotels"},{"task":"plain"},{"task":"car","compensable":true,"retry":{"max":3,"backoff":"0ms"}},{"task":"pay","retry":"none"}]}');
select wt.handle('flight', 'c || ''{"flight":1,"gone":null}'''), wt.handle('hotel', 'c || ''{"hotel":2}'''), wt.handle('car', 'null'), wt.handle('pay', 'wt.oops(''card declined'')');

-- What is recorded while it goes well: input and result of each, numbered; nothing
-- is undone of an instance that completes.
select wt.handle('pay', 'c'), wt.start('ok', 'trip', '{"v":0}'), wt.drain('{trip,hotels}'), wt.show('ok');
select seq, node, compensated, input, result from wiggle.wf_comp_log where instance = (select wt.no('ok')) order by 1;

-- Newest first, on the step's queue, as #compensate with {input, result} (93, 100).
select wt.handle('pay', 'wt.oops(''card declined'')'), wt.start('s', 'trip', '{"v":0}'), wt.drain('{trip,hotels}', 5);
select wt.show('s'), wt.work('s'), wt.marks('s'), wt.log('s');
select * from wt.unsound();
-- Meanwhile it can be neither cancelled nor signalled, and is not running (98).
select wiggle.cancel(wt.id('s'), 'stop it'), wt.show('s'), wt.refusal(format('select wiggle.signal(%L, ''x'')', wt.id('s')));
select op, step_name, activity, kind, attempt, mode, context, base_context, node_id from wt.poll_one('{trip}');
select wt.hold('s');
-- Its report: one step, of its node; a decision or a result is ignored.
select wt.mask(coalesce(b.message, b.status)) from wiggle.batch(null, row(array[wt.task('s')], array[wt.owner('s')], array[1], array[0, 0], array['n4', 'n5'], array[1, 1], array['{}', '{}'], array[0, 0]::int8[], array[0, 0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select wt.mask(coalesce(b.message, b.status)) from wiggle.batch(null, row(array[wt.task('s')], array[wt.owner('s')], array[1], array[0], array['n5'], array[1], array['{}'], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select wt.mask(coalesce(b.message, b.status)) from wiggle.batch(null, row(array[wt.task('s')], array['w#' || wt.nonce()], array[1], array[0], array['n4'], array[1], array['{}'], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
-- In a group it is told the status and left alone (49).
select wt.mask(coalesce(b.message, b.status)) from wiggle.batch(null, row(array[wt.task('s')], array[wt.owner('s')], array[9], array[0], array['n4'], array[1], array['{}'], array[0]::int8[], array[0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select wt.work('s');
select wt.complete('s', '{"ignored":true}'), wt.show('s');
select wt.drain('{hotels}'), wt.show('s');
select wt.drain('{trip}'), wt.show('s'), wt.log('s');
select node_id, kind, status, activity, attempt from wiggle.tokens(wt.id('s'));
select seq, compensated from wiggle.wf_comp_log where instance = (select wt.no('s')) order by 1;
select * from wt.unsound();
select wt.refusal('select wt.complete(''s'')');

-- Nothing recorded: it just fails (95).
select wt.handle('flight', 'wt.oops(''sold out'', true)'), wt.start('n', 'trip'), wt.drain('{trip}'), wt.show('n'), wt.log('n');

-- A compensator is retried by its step's policy, then the instance says what
-- could not be undone (94).
select wt.handle('flight', 'c || ''{"flight":1}'''), wt.handle('trip#car#compensate', 'wt.oops(''garage closed '' || attempt)'), wt.start('f', 'trip'), wt.drain('{trip,hotels}'), wt.show('f'), wt.log('f');
select seq, compensated from wiggle.wf_comp_log where instance = (select wt.no('f')) order by 1;
select node_id, status, attempt, last_error from wiggle.tokens(wt.id('f')) where status = 'FAILED';
select wt.handle('trip#car#compensate', 'case when attempt < 3 then wt.oops(''try again'') end'), wt.start('r', 'trip'), wt.drain('{trip,hotels}', 7, quiet => true), wt.show('r'), wt.drain('{trip,hotels}'), wt.show('r');
-- With messages of its own: a permanent failure is not retried; its lease expires.
select wt.handle('trip#car#compensate', 'wt.oops(''never'', true)'), wt.start('p', 'trip'), wt.drain('{trip,hotels}', quiet => true), wt.show('p');
select wt.at(0);
delete from wt.handler where step = 'trip#car#compensate';
select wt.start('x', 'trip'), wt.drain('{trip,hotels}', 5, quiet => true), wt.claim('x', 'trip', 'w', '10 s');
select wt.at(10);
select wt.at(11), wt.await_claim('x', 'trip'), wt.show('x'), wt.complete('x'), wt.drain('{trip,hotels}'), wt.show('x');
select wiggle.test_set_clock(null);

-- In arms: what an arm did is undone with the arm's views (96); tokens of others
-- are cancelled, those that are leased too.
select wt.register('{"workflow":"armed","version":1,"steps":[{"task":"root","compensable":true},{"fork":{"a":[{"task":"in a","compensable":true},{"task":"more a"}],"b":[{"task":"in b","compensable":true},{"task":"break b","retry":"none"}]},"combine":"mm"}]}');
select wt.handle('root', '''{"r":1}'''), wt.handle('in a', 'c || ''{"a":1}'''), wt.handle('in b', 'c || ''{"b":1}'''), wt.handle('break b', 'wt.oops(''b broke'')');
select wt.start('arm', 'armed'), wt.drain('{armed}', 3), wt.claim('held', 'armed'), wt.claim('lost', 'armed'), wt.marks('arm');
select wt.handle('mm', 'c'), wt.fail('held', 'b broke'), wt.show('arm'), wt.marks('arm'), wt.refusal('select wt.complete(''held'')'), wt.refusal('select wt.complete(''lost'')'), wt.refusal('select wt.fail(''lost'', ''late'')');
select seq, node, input, result from wiggle.wf_comp_log where instance = (select wt.no('arm')) order by 1;
select wt.drain('{armed}'), wt.show('arm');
select * from wt.unsound();
-- In a loop: once a round.
select wt.register('{"workflow":"rounds","version":1,"steps":[{"do_while":{"while":"on","maxIterations":2,"body":[{"task":"turn","compensable":true}]}}]}');
select wt.handle('turn', 'jsonb_build_object(''n'', coalesce((c->>''n'')::int, 0) + 1)'), wt.start('loop', 'rounds'), wt.drain('{rounds}'), wt.show('loop');
-- In a run of several steps, and a checkpointed whole in one report.
select wt.register('{"workflow":"steps2","version":1,"steps":[{"task":"s1","compensable":true},{"task":"s2","compensable":true},{"task":"s3","retry":"none"}]}');
select wt.start('run', 'steps2', '{"in":1}'), wt.claim('run', 'steps2');
select wt.mask(coalesce(b.message, b.status)) from wiggle.batch(null, row(array[wt.task('run')], array[wt.owner('run')], array[1], array[0, 0], array['n1', 'n2'], array[1, 0], array['{"one":1}', null], array[0, 0]::int8[], array[0, 0]::int8[])::wiggle.batch_runs, null, null, null, null) b;
select seq, node, input, result from wiggle.wf_comp_log where instance = (select wt.no('run')) order by 1;
select wt.handle('s3', 'wt.oops(''no'')'), wt.drain('{steps2}'), wt.show('run');

-- A child saga lands before its parent is told (97); its failure then undoes the
-- parent's own steps; a parent that waits meanwhile is running.
select wt.register('{"workflow":"booking","version":1,"steps":[{"task":"reserve","compensable":true},{"task":"confirm","retry":"none"}]}');
select wt.register('{"workflow":"whole","version":1,"steps":[{"task":"open","compensable":true},{"sub_workflow":"booking"},{"task":"close"}]}');
select wt.handle('confirm', 'wt.oops(''no room'')'), wt.start('w', 'whole'), wt.drain('{whole,booking}', 3), wt.child('wc', 'w'), wt.show('w'), wt.show('wc');
select * from wt.unsound();
select wt.drain('{booking}'), wt.show('wc'), wt.show('w'), wt.drain('{whole}'), wt.show('w'), wt.log('w'), wt.log('wc');
-- A parent that is cancelled while its child undoes: the child goes on undoing.
select wt.start('v', 'whole'), wt.drain('{whole,booking}', 3), wt.child('vc', 'v'), wiggle.cancel(wt.id('v')), wt.show('vc');
select wt.await('not exists (select from wiggle.wf_timer)'), wt.show('vc'), wt.drain('{booking}'), wt.show('vc'), wt.show('v');
-- Cancelling never undoes (98).
select wt.start('c', 'trip'), wt.drain('{trip,hotels}', 2), wiggle.cancel(wt.id('c')), wt.show('c'), wt.work('c');
-- A saga whose loop budget, deadline or forEach fails it.
select wt.register('{"workflow":"toolate","version":1,"steps":[{"task":"prep","compensable":true},{"await_signal":"never","timeout":"1ms"}]}');
select wt.start('l', 'toolate'), wt.drain('{toolate}', 1);
select wt.await('(select status from wiggle.instance(wt.id(''l''))) = ''COMPENSATING'''), wt.drain('{toolate}'), wt.show('l');
select wt.register('{"workflow":"odd","version":1,"steps":[{"task":"prep2","compensable":true},{"fork_each":{"over":"x","as":"y","body":[{"task":"z"}]}}]}');
select wt.handle('prep2', '''{"x":1}'''), wt.start('o', 'odd'), wt.drain('{odd}'), wt.show('o');
-- Refused where nothing can be undone.
select wt.refusal('select wt.register(''{"workflow":"g","version":1,"steps":[{"gate":"x","compensable":true}]}'')');
-- An administrator's queries find them by their words.
select i.status, count(*) from wiggle.instances(status => 'compensated') i group by 1;
select i.status, count(*) from wiggle.instances(status => 'COMPENSATION_FAILED') i group by 1;
select * from wt.finish();
