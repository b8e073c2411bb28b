-- Forks: arms in views of their own, a join that goes on once, and the combine,
-- whose result is the whole context.
set timezone = 'UTC';

-- Both arms' writes reach the combine; neither sees the other's (3, 22).
select wt.register('{"workflow":"f2","version":1,"steps":[{"task":"before"},{"fork":{"slow":[{"task":"s1"},{"task":"s2"}],"fast":[{"task":"q"}]},"combine":"merge"},{"task":"after"}]}');
select wt.handle('before', 'c || ''{"n":1}'''), wt.handle('s1', 'c || ''{"s1":true}'''), wt.handle('s2', 'c || ''{"s2":true,"n":2}'''), wt.handle('q', 'c || ''{"q":true,"n":3}''');
select wt.handle('merge', 'jsonb_build_object(''both'', jsonb_build_array(c->''__arm__slow'', c->''__arm__fast''), ''kept'', c->''n'')');
select wt.start('f', 'f2', '{"gone":1}');
select wt.drain('{f2}');
select wt.show('f'), wt.marks('f');
select * from wt.tokens('f');
select count(*) as scopes from wiggle.wf_scope where instance = (select wt.no('f'));
select wt.log('f');

-- While it runs: the arms' views are not the instance's context.
select wt.start('g', 'f2'), wt.drain('{f2}', 3);
select wt.show('g'), wt.marks('g'), wt.work('g');
select scope, parent, idx, "group", arrived, kind, context from wiggle.wf_scope where instance = (select wt.no('g')) order by scope;
select * from wt.unsound();
select wt.drain('{f2}'), wt.show('g');

-- What a combine leaves out is gone; a null or absent result leaves all as it was,
-- the staged views aside (23). Top-level nulls are dropped from what it returns.
select wt.register('{"workflow":"f3","version":1,"steps":[{"fork":{"a":[{"task":"a"}],"b":[{"task":"b"}]},"combine":"m"},{"task":"z"}]}');
select wt.handle('a', '''"text"'''), wt.handle('b', '''[1,2]''');
select wt.handle('m', '''{"x":null,"y":{"z":null}}''') as nulls, wt.start('n', 'f3', '{"old":1}'), wt.drain('{f3}'), wt.show('n');
select wt.handle('m', '''null''') as a_null, wt.start('o', 'f3', '{"old":1}'), wt.drain('{f3}'), wt.show('o');
delete from wt.handler where step = 'm';
select wt.start('p', 'f3', '{"old":1}'), wt.drain('{f3}'), wt.show('p');
-- A combine may return what is no object, and staged views lie over nothing then.
select wt.handle('m', '''7''') as a_number, wt.start('q', 'f3', '[1]'), wt.drain('{f3}'), wt.show('q');

-- The join of three arms goes on once, in any order of arrival (4).
select wt.register('{"workflow":"f4","version":1,"steps":[{"fork":{"a":[{"task":"ta","queue":"qa"}],"b":[{"task":"tb","queue":"qb"}],"c":[{"task":"tc","queue":"qc"}]},"combine":"m4"}]}');
select wt.handle('ta', '''{"a":1}'''), wt.handle('tb', '''{"b":1}'''), wt.handle('tc', '''{"c":1}''');
select wt.start(a || b || c, 'f4'), wt.drain(array[a], 1), wt.drain(array[b], 1), wt.drain(array[c], 1), (select wt.work(a || b || c))
  from (values ('qa'), ('qb'), ('qc')) x(a), (values ('qa'), ('qb'), ('qc')) y(b), (values ('qa'), ('qb'), ('qc')) z(c) where a <> b and b <> c and a <> c order by 1;
select * from wt.unsound();
select wt.drain('{f4}');
select distinct context from wiggle.instances('f4');
select count(*) as combines from wiggle.wf_token t join wt.graph g on g.no = t.instance where g.workflow = 'f4' and t.node in (select n.node from wt.node n where n.definition = g.definition and n.queue = 'f4');

-- Nested: the inner join goes back to the outer barrier; every key arrives (5).
select wt.register('{"workflow":"f5","version":1,"steps":[{"fork":{"left":[{"fork":{"l1":[{"task":"l1"}],"l2":[{"task":"l2"}]},"combine":"inner"},{"task":"l3"}],"right":[{"task":"r"}]},"combine":"outer"},{"task":"last"}]}');
select wt.handle('l1', 'c || ''{"l1":1}'''), wt.handle('l2', 'c || ''{"l2":1}'''), wt.handle('l3', 'c || ''{"l3":1}'''), wt.handle('r', 'c || ''{"r":1}''');
select wt.handle('inner', '(c->''__arm__l1'') || (c->''__arm__l2'')'), wt.handle('outer', '(c->''__arm__left'') || (c->''__arm__right'')');
select wt.start('deep', 'f5', '{"in":0}'), wt.drain('{f5}'), wt.show('deep');
select wt.marks('deep');

-- A gate in an arm leads to its join; the sibling is not stranded (6). Nor is what
-- follows: the reason of the gate is not the instance's.
select wt.register('{"workflow":"f6","version":1,"steps":[{"fork":{"gated":[{"gate":"g"},{"task":"never"}],"open":[{"task":"o"}]},"combine":"m6"}]}');
select wt.handle('g', 'false'), wt.handle('m6', 'c'), wt.start('gated', 'f6', '{"v":1}'), wt.drain('{f6}'), wt.show('gated');

-- An arm that fails takes the instance with it: its siblings are cancelled, those
-- ready, those joined, those asleep and those that wait.
select wt.register('{"workflow":"f7","version":1,"steps":[{"fork":{"bad":[{"task":"bad","retry":"none","queue":"bad"}],"joined":[{"task":"j","queue":"j"}],"ready":[{"task":"r7"}],"asleep":[{"sleep":"1h"}],"awaits":[{"await_signal":"s7"}],"until":[{"await_signal":"u7","timeout":"1h"}]}}]}');
select wt.handle('bad', 'wt.oops(''broken'')'), wt.start('bad', 'f7'), wt.drain('{j}'), wt.marks('bad'), wt.work('bad');
select wt.drain('{bad}'), wt.show('bad'), wt.marks('bad'), wt.work('bad');
select * from wt.unsound();
-- Cancelled half way likewise.
select wt.start('cut', 'f7'), wt.drain('{j}'), wiggle.cancel(wt.id('cut')), wt.show('cut'), wt.marks('cut'), wt.work('cut');
-- A failing end in an arm.
select created from wiggle.register('{"name":"f8","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","name":"fork","branches":["a","b"]},{"id":"a","kind":"TASK","name":"a8","activity":"f8#a","next":"j"},{"id":"b","kind":"PREDICATE","name":"b8","activity":"f8#b","next":"bad","altNext":"j"},{"id":"j","kind":"JOIN","name":"join","expected":2,"next":"c"},{"id":"c","kind":"TASK","name":"c8","activity":"f8#c","next":"e","armNames":["x","y"]},{"id":"e","kind":"END","success":true},{"id":"bad","kind":"END","success":false,"reason":"b said so"}]}');
select wt.start('end', 'f8'), wt.drain('{""}'), wt.show('end'), wt.marks('end');
select wt.handle('b8', 'false'), wt.start('end2', 'f8'), wt.drain('{""}'), wt.show('end2');

-- The encodings of a combine: arm names as an array in itemsKey come from Go and
-- Python, whose combines look for the bare names; both are shown (30).
\set legacy '{"name":"f9","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","name":"a9","activity":"f9#a","next":"j"},{"id":"b","kind":"TASK","name":"b9","activity":"f9#b","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"c"},{"id":"c","kind":"TASK","name":"c9","activity":"f9#c","next":"e","itemsKey":"[\\"one\\",\\"two\\"]"},{"id":"e","kind":"END","success":true}]}'
select created from wiggle.register(:'legacy');
select n->'armNames' as arm_names, n->'itemsKey' as items_key, n->'collectKey' as collect_key from jsonb_array_elements(wiggle.definition('f9')->'nodes') n where n->>'id' = 'c';
select wt.handle('a9', 'c || ''{"a":1}'''), wt.handle('b9', 'c || ''{"b":1}'''), wt.handle('c9', '(c->''one'') || (c->''two'')');
select wt.start('legacy', 'f9', '{"v":1}'), wt.drain('{""}'), wt.show('legacy');
-- The same graph with typed names has the same fingerprint, and what is staged
-- follows what was registered first.
select created from wiggle.register(jsonb_set(:'legacy', '{nodes,4}', '{"id":"c","kind":"TASK","name":"c9","activity":"f9#c","next":"e","armNames":["one","two"]}'));
select created from wiggle.register(wiggle.definition('f9'));
select wt.start('echoed', 'f9', '{"v":2}'), wt.drain('{""}'), wt.show('echoed');
select created from wiggle.register(jsonb_set(jsonb_set(:'legacy', '{nodes,4}', '{"id":"c","kind":"TASK","name":"c9","activity":"f9#c","next":"e","armNames":["one","two"]}'), '{version}', '2'));
select wt.handle('c9', '(c->''__arm__one'') || (c->''__arm__two'')'), wt.start('typed', 'f9', '{"v":3}'), wt.drain('{""}'), wt.show('typed');

-- CompleteTask of a combine replaces, of a task merges; wiggle.complete() replaces.
select wt.start('c1', 'f2', '{"a":1}');
select wt.claim('c1', 'f2'), wt.complete_task('c1', '{"b":2,"n":1}');
select wt.claim('c1', 'f2'), wt.complete_task('c1', '{"s":1,"a":null}');
select wt.claim('c2', 'f2'), wt.complete('c2', '{"q":1}');
select wt.claim('c1', 'f2'), wt.complete_task('c1'), wt.claim('c1', 'f2'), wt.complete_task('c1', '{"only":1,"this":null}');
select wt.show('c1');
select wt.claim('c1', 'f2'), wt.complete_task('c1', '{"and":2}'), wt.show('c1');

-- What the graph forbids at registration (C13).
select title, wt.refusal(format('select created from wiggle.register(%L)', replace(graph, '@', '{"id":"e","kind":"END","success":true}')::jsonb)) from (values
	('one branch', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a"]},{"id":"a","kind":"TASK","activity":"x#a","next":"j"},{"id":"j","kind":"JOIN","expected":1,"next":"e"},@]}'),
	('join too wide', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","activity":"x#a","next":"j"},{"id":"b","kind":"TASK","activity":"x#b","next":"j"},{"id":"j","kind":"JOIN","expected":3,"next":"e"},@]}'),
	('branch past its join', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","activity":"x#a","next":"j"},{"id":"b","kind":"TASK","activity":"x#b","next":"e"},{"id":"j","kind":"JOIN","expected":2,"next":"e"},@]}'),
	('arms of another number', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","activity":"x#a","next":"j"},{"id":"b","kind":"TASK","activity":"x#b","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"c"},{"id":"c","kind":"TASK","activity":"x#c","armNames":["a"],"next":"e"},@]}'),
	('collects instead', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","activity":"x#a","next":"j"},{"id":"b","kind":"TASK","activity":"x#b","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"c"},{"id":"c","kind":"TASK","activity":"x#c","collectKey":"k","next":"e"},@]}'),
	('loop that never joins', '{"name":"x","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["a","b"]},{"id":"a","kind":"TASK","activity":"x#a","next":"a"},{"id":"b","kind":"TASK","activity":"x#b","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"e"},@]}'),
	('itemsKey that is no JSON', '{"name":"x","version":1,"startNode":"c","nodes":[{"id":"c","kind":"TASK","activity":"x#c","itemsKey":"[one","next":"e"},@]}')
) v(title, graph);
select * from wt.finish();
