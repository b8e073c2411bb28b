-- choose and loops, outside and inside arms; budgets of loops and of drives.
set timezone = 'UTC';
select wt.register('{"workflow":"c1","version":1,"steps":[{"choose":[{"when":"p1","then":[{"task":"t1"}]},{"when":"p2","then":[{"task":"t2"},{"task":"t2b"}]},{"otherwise":{"then":[{"task":"else"}]}}]},{"task":"end"}]}');
select wt.register('{"workflow":"c2","version":1,"defaultQueue":"c1","steps":[{"choose":[{"when":"p1","then":[{"task":"t1"}]},{"when":"p2","then":[{"task":"t2"}]}]},{"task":"end"}]}');
-- The first true guard wins; otherwise; no match skips (31).
select wt.handle('p1', 'c->''p1'''), wt.handle('p2', 'c->''p2''');
create function wt.chosen(workflow text, p1 boolean, p2 boolean) returns text language plpgsql
as $$
declare
	label text := format('%s %s %s', workflow, p1, p2);
	steps text;
begin
	perform wt.start(label, workflow, jsonb_build_object('p1', p1, 'p2', p2));
	steps := (select string_agg(split_part(line, ' ', 1), ' ') from regexp_split_to_table(wt.drain('{c1}'), E'\n') line);
	return steps || ': ' || (wiggle.instance(wt.id(label))).status;
end $$;
select w, p1, p2, wt.chosen(w, p1, p2) from (values ('c1', true, true), ('c1', true, false), ('c1', false, true), ('c1', false, false),
	('c2', true, true), ('c2', true, false), ('c2', false, true), ('c2', false, false)) v(w, p1, p2);

-- The same in an arm of a fork: what no guard takes goes to the join.
select wt.register('{"workflow":"c3","version":1,"steps":[{"fork":{"choosing":[{"choose":[{"when":"p1","then":[{"task":"t1"}]}]}],"looping":[{"do_while":{"while":"more","maxIterations":3,"body":[{"task":"turn"}]}}]},"combine":"m"}]}');
select wt.handle('turn', 'c || jsonb_build_object(''n'', coalesce((c->>''n'')::int, 0) + 1)'), wt.handle('more', '(c->>''n'')::int < 3'), wt.handle('m', 'c');
select wt.start('none', 'c3', '{"p1":false}'), wt.drain('{c3}'), wt.show('none');
-- A loop in an arm counts there, and its budget fails the whole (32).
select wt.handle('more', 'true'), wt.start('over', 'c3', '{"p1":true}'), wt.drain('{c3}', quiet => true), wt.show('over'), wt.marks('over');
select loops from wiggle.wf_token where instance = (select wt.no('over')) and loops is not null order by n;
-- Counts of an arm end at its join; those from before the fork go on behind it.
select wt.register('{"workflow":"c4","version":1,"steps":[{"do_while":{"while":"outer","maxIterations":3,"body":[{"fork":{"x":[{"do_while":{"while":"inner","maxIterations":2,"body":[{"task":"in"}]}}],"y":[{"task":"other"}]},"combine":"mm"}]}}]}');
select wt.handle('mm', 'jsonb_build_object(''turn'', coalesce((c->>''turn'')::int, 0) + 1)'), wt.handle('outer', '(c->>''turn'')::int < 4');
select wt.handle('in', 'jsonb_build_object(''i'', coalesce((c->>''i'')::int, 0) + 1)'), wt.handle('inner', '(c->>''i'')::int < 3');
select wt.start('counts', 'c4'), wt.drain('{c4}', quiet => true), wt.show('counts');
select node, loops from wiggle.wf_token where instance = (select wt.no('counts')) and loops is not null order by n limit 8;
select wt.handle('outer', '(c->>''turn'')::int < 5'), wt.start('counts2', 'c4'), wt.drain('{c4}', quiet => true), wt.show('counts2');
select wt.handle('inner', '(c->>''i'')::int < 4'), wt.start('counts3', 'c4'), wt.drain('{c4}', quiet => true), wt.show('counts3');
-- A loop's body in the items of a forEach counts for each item alone.
select wt.register('{"workflow":"c5","version":1,"steps":[{"fork_each":{"over":"items","as":"it","combine":"all","body":[{"do_while":{"while":"less","maxIterations":2,"body":[{"task":"add"}]}}]}}]}');
select wt.handle('add', 'to_jsonb(c::int + 1)'), wt.handle('less', 'c::int < 3'), wt.handle('all', 'c->''__forEach__it'''), wt.start('items', 'c5', '{"items":[0,1,2]}'), wt.drain('{c5}', quiet => true), wt.show('items');

-- Chains that never wait: nodes that the server runs itself, without an end (C15).
-- One that cannot end is refused; one that could, and does not, fails soon.
select created from wiggle.register('{"name":"c6","version":1,"startNode":"d","nodes":[{"id":"d","kind":"DYN_FORK","name":"none","itemsKey":"x","itemKey":"i","branches":["t"],"next":"j"},{"id":"t","kind":"TASK","name":"t","activity":"c6#t","next":"j"},{"id":"j","kind":"JOIN","next":"d2"},{"id":"d2","kind":"DYN_FORK","name":"none2","itemsKey":"x","itemKey":"i","branches":["t2"],"next":"j2"},{"id":"t2","kind":"PREDICATE","name":"t2","activity":"c6#t2","next":"j2","altNext":"e"},{"id":"j2","kind":"JOIN","next":"d"},{"id":"e","kind":"END","success":false}]}');
select created from wiggle.register('{"name":"c6","version":1,"startNode":"d","nodes":[{"id":"d","kind":"DYN_FORK","name":"none","itemsKey":"x","itemKey":"i","branches":["t"],"next":"j"},{"id":"t","kind":"TASK","name":"t","activity":"c6#t","next":"j"},{"id":"j","kind":"JOIN","next":"d2"},{"id":"d2","kind":"DYN_FORK","name":"none2","itemsKey":"x","itemKey":"i","branches":["t2"],"next":"j2","altNext":"e"},{"id":"t2","kind":"TASK","name":"t2","activity":"c6#t2","next":"j2"},{"id":"j2","kind":"JOIN","next":"d"},{"id":"e","kind":"END","success":true}]}');
select wt.start('runaway', 'c6'), wt.show('runaway');
select count(*) as tokens from wiggle.wf_token where instance = (select wt.no('runaway'));
select wt.log('runaway');
-- Sleeps of no length are fired one pass at a time; others move meanwhile, and a
-- cancel finds them.
select created from wiggle.register('{"name":"c7","version":1,"startNode":"s","nodes":[{"id":"s","kind":"SLEEP","name":"s","next":"s","altNext":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.register('{"workflow":"c8","version":1,"steps":[{"sleep":"1ms"},{"task":"awake"}]}');
select wt.start('spins', 'c7');
select wt.start('sleeps', 'c8');
select wt.await_claim('sleeps', 'c8'), wt.complete('sleeps'), wt.show('sleeps');
select wiggle.cancel(wt.id('spins'), 'enough');
select wt.show('spins'), wt.work('spins');
select * from wt.finish();
