-- Steps one after the other: sequences, gates, results, and what a report says.
select wt.register('{"workflow":"seq","version":1,"steps":[{"task":"a"},{"task":"b"},{"task":"c"}]}');
select wt.start('p', 'seq', '{"start":true}');
select wt.claim('p', 'seq'), wt.complete('p', '{"start":true,"a":1}');
select wt.claim('p', 'seq'), wt.complete('p', '{"start":true,"a":1,"b":2}');
select wt.show('p');
select wt.claim('p', 'seq'), wt.complete('p', '{"start":true,"a":1,"b":2,"c":3}');
select wt.show('p');
select * from wt.tokens('p');
select bool_and(t.finished_at >= t.started_at and t.started_at >= t.created_at) as times_in_order, max(t.finished_at) = max(i.updated_at) as updated
  from wiggle.instance(wt.id('p')) i, wiggle.tokens(i.id) t where t.kind <> 'END';

-- What a task carries.
select wt.start('t', 'seq');
insert into wt.claim select 't', task_id, lease_owner from wiggle.poll('worker 7', array['seq'], lease => '45 s');
select wt.mask(wt.task('t')) as task_id, wt.mask(wt.owner('t')) as lease_owner, length(wt.owner('t')) as length;
select wt.mask(task_id), instance_status, lease_expires_at - now() between '29 s' and '31 s' as default_lease, next_task_id, error_status, error
  from wiggle.complete(wt.task('t'), wt.owner('t'));
select wt.mask(task_id), wt.mask(instance_id), workflow, version, node_id, step_name, activity, kind, attempt, wt.mask(lease_owner),
	   lease_expires_at - now() between '9 s' and '11 s' as lease, execution_mode, context
  from wiggle.poll('worker 7', array['seq'], 1, '10 s');

-- A result replaces the context; a null result leaves it; top-level nulls go, nested ones stay.
select wt.start('n', 'seq', '{"kept":null,"a":1}');
select wt.claim('n', 'seq'), wt.complete('n', null), wt.show('n');
select wt.claim('n', 'seq'), wt.complete('n', 'null'), wt.show('n');
select wt.claim('n', 'seq'), wt.complete('n', '{"x":null,"y":{"z":null},"w":[null],"v":0,"u":null}'), wt.show('n');
select wt.start('v', 'seq', '{"a":1}');
select wt.claim('v', 'seq'), wt.complete('v', '[null,1]'), wt.show('v');
select wt.claim('v', 'seq'), wt.complete('v', '"text"'), wt.show('v');
select wt.claim('v', 'seq'), wt.complete('v', '{"n":null}'), wt.show('v');

-- A gate that says no completes the instance and names itself; what follows never runs.
select wt.register('{"workflow":"gated","version":1,"steps":[{"task":"a"},{"gate":"paid"},{"task":"b"}]}');
select wt.start('no', 'gated'), wt.start('yes', 'gated');
select wt.claim('no', 'gated'), wt.complete('no', '{"n":1}');
select wt.claim('no', 'gated'), wt.decide('no', false), wt.show('no');
select * from wt.tokens('no');
select wt.claim('yes', 'gated'), wt.complete('yes', '{"n":2}');
select wt.claim('yes', 'gated'), wt.decide('yes', true), wt.show('yes');
select wt.claim('yes', 'gated'), wt.complete('yes', '{"n":3}'), wt.show('yes');
select * from wt.tokens('yes');

-- A predicate takes a boolean, a task does not; a refused report changes nothing.
select wt.start('g', 'gated', '{"n":0}');
select wt.claim('g', 'gated'), wt.refusal('select wt.decide(''g'', true)');
select wt.show('g');
select * from wt.tokens('g');
select wt.complete('g'), wt.claim('g', 'gated'), wt.refusal('select wt.complete(''g'', ''{"value":true}'')'), wt.refusal('select wt.complete(''g'', ''true'')'),
	   wt.refusal('select wt.complete(''g'')'), wt.refusal('select wt.decide(''g'', null)');
select * from wt.tokens('g');
select wt.decide('g', true);

-- An END that fails, with a reason and without; a start that ends at once.
select created from wiggle.register('{"name":"bad","version":1,"startNode":"a","nodes":[{"id":"a","kind":"PREDICATE","activity":"bad#a","queue":"bad","next":"e","altNext":"f"},{"id":"e","kind":"END","success":false,"reason":"out of stock"},{"id":"f","kind":"END"}]}');
select wt.start('reason', 'bad'), wt.claim('reason', 'bad'), wt.decide('reason', true), wt.show('reason');
select wt.start('none', 'bad'), wt.claim('none', 'bad'), wt.decide('none', false), wt.show('none');
select * from wt.tokens('none');
select created from wiggle.register('{"name":"empty","version":1,"startNode":"e","nodes":[{"id":"e","kind":"END","success":true,"reason":"nothing to do"}]}');
select wt.start('empty', 'empty', '{"a":1}'), wt.show('empty');
select * from wt.tokens('empty');

-- Unknown tasks, other owners, things done twice.
select wt.start('r', 'seq'), wt.claim('r', 'seq');
select task, wt.refusal(format('select wiggle.complete(%L, ''w#0000000000000'')', task))
  from unnest(array['', 'x', 'tok_0123456789abcdefghjkmn-1', 'tok_0123456789abcdefghjkmn', 'tok_0123456789abcdefghjkmn-0', 'tok_0123456789abcdefghjkmn-01', null]) task;
select wt.refusal('select wiggle.complete(null, null)');
select wt.refusal(format('select wiggle.complete(%L, %L)', wt.id('r'), wt.owner('r'))) as an_instance_id;
select wt.refusal(format('select wiggle.complete(%L, %L)', regexp_replace(wt.task('r'), '1$', '2'), wt.owner('r'))) as a_later_token;
select wt.refusal(format('select wiggle.complete(%L, %L)', wt.task('r'), owner)) from unnest(array['w', 'w#0000000000000', 'somebody else', '', null]) owner;
select wt.complete('r', '{"mine":1}');
select wt.refusal('select wt.complete(''r'', ''{"mine":2}'')'), wt.refusal('select wt.fail(''r'', ''late'')'),
	   wt.refusal('select wiggle.heartbeat(wt.task(''r''), wt.owner(''r''))');
select wt.show('r');
select wt.refusal(format('select wiggle.complete(%L, %L)', regexp_replace(wt.task('r'), '1$', '2'), wt.owner('r'))) as not_claimed;
select * from wt.finish();
