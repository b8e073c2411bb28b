-- Forks without a combine, as clients of Wiggle 0.1.1 register them: the branches
-- share one context, and the last to write a key wins.
set timezone = 'UTC';
select created from wiggle.register('{"name":"s1","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","name":"fork","branches":["a","b"]},{"id":"a","kind":"TASK","name":"a","activity":"s1#a","queue":"sa","next":"a2"},{"id":"a2","kind":"TASK","name":"a2","activity":"s1#a2","queue":"sa","next":"j"},{"id":"b","kind":"TASK","name":"b","activity":"s1#b","queue":"sb","next":"j"},{"id":"j","kind":"JOIN","name":"join","expected":2,"next":"z"},{"id":"z","kind":"TASK","name":"z","activity":"s1#z","queue":"sa","next":"e"},{"id":"e","kind":"END","success":true}]}');

-- Diffs, as CompleteTask carries them: each merges into what all see.
select wt.start('one', 's1', '{"n":0,"keep":true}');
select wt.claim('a', 'sa'), wt.claim('b', 'sb');
select wt.complete_task('a', '{"a":1,"n":1}'), wt.show('one');
select wt.complete_task('b', '{"b":1,"n":2}'), wt.show('one');
select wt.claim('a', 'sa'), wt.complete_task('a', '{"a2":1,"n":null}'), wt.show('one');
select wt.claim('a', 'sa'), wt.complete_task('a'), wt.show('one'), wt.marks('one');
-- Whole contexts, as reports carry them: the last to write a key wins, and what
-- others wrote meanwhile stays.
select wt.handle('a', 'c || ''{"a":1}'''), wt.handle('a2', 'c || ''{"a2":1}'''), wt.handle('b', 'c || ''{"b":1}''');
select wt.start('two', 's1', '{}'), wt.drain('{sa,sb}'), wt.show('two');
select wt.start('meanwhile', 's1', '{"n":0,"gone":1}'), wt.claim('a', 'sa'), wt.claim('b', 'sb');
select wt.complete('a', '{"n":1,"gone":null,"a":1}'), wt.complete('b', '{"n":2,"b":1}'), wt.show('meanwhile'), wt.drain('{sa,sb}');
select * from wt.unsound();

-- forEach: the element lies over the context under its key, its place beside it.
select created from wiggle.register('{"name":"s2","version":1,"startNode":"f","nodes":[{"id":"f","kind":"DYN_FORK","name":"each","itemsKey":"boxes","itemKey":"box","branches":["t"],"next":"j"},{"id":"t","kind":"TASK","name":"t","activity":"s2#t","queue":"s2","next":"u"},{"id":"u","kind":"TASK","name":"u","activity":"s2#u","queue":"s2","next":"j"},{"id":"j","kind":"JOIN","name":"join","next":"z"},{"id":"z","kind":"TASK","name":"z2","activity":"s2#z","queue":"s2","next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('each', 's2', '{"boxes":[{"w":1},7,null],"sum":0}');
-- Handlers see the element; their diff leaves it out and adds to the shared rest.
select wt.claim('x' || k, 's2') from generate_series(1, 3) k;
select wt.complete_task('x1', '{"seen2":true}'), wt.complete_task('x3', '{"seen0":true}'), wt.show('each');
select wt.complete_task('x2', '{"seen1":true,"sum":5}'), wt.show('each');
select wt.claim('x' || k, 's2') from generate_series(1, 3) k;
select wt.complete_task('x1'), wt.complete_task('x2'), wt.complete_task('x3'), wt.claim('z', 's2');
select wt.complete_task('z'), wt.show('each');
-- Empty and absent go on behind the join; what is no collection fails.
select wt.start(l, 's2', c::jsonb), wt.drain('{s2}'), wt.show(l) from (values ('empty', '{"boxes":[]}'), ('absent', '{}'), ('text', '{"boxes":"b"}')) v(l, c);
-- A map's elements come without their keys, as lists do.
select wt.start('map', 's2', '{"boxes":{"p":1,"q":2}}'), wt.drain('{s2}'), wt.show('map');

-- Nested in a shared arm, and an isolated fork inside a shared one.
select wt.register('{"workflow":"s3","version":1,"steps":[{"fork_each":{"over":"rows","as":"row","body":[{"fork":{"l":[{"task":"l"}],"r":[{"task":"r"}]},"combine":"lr"}]}},{"task":"end"}]}');
select wt.handle('l', '''"L"'''), wt.handle('r', '''"R"'''), wt.handle('lr', '(c - ''__arm__l'' - ''__arm__r'') || jsonb_build_object(''lr'' || (c->>''rowIndex''), (c->>''__arm__l'') || (c->>''row'') || (c->>''__arm__r''))');
select wt.start('mixed', 's3', '{"rows":["x","y"]}'), wt.drain('{s3}'), wt.show('mixed');
-- A shared fork inside an isolated arm: the writes stay in the arm until its combine.
select created from wiggle.register('{"name":"s4","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["g","b"]},{"id":"g","kind":"FORK","branches":["g1","g2"]},{"id":"g1","kind":"TASK","name":"g1","activity":"s4#g1","queue":"s4","next":"gj"},{"id":"g2","kind":"TASK","name":"g2","activity":"s4#g2","queue":"s4","next":"gj"},{"id":"gj","kind":"JOIN","expected":2,"next":"gz"},{"id":"gz","kind":"TASK","name":"gz","activity":"s4#gz","queue":"s4","next":"j"},{"id":"b","kind":"TASK","name":"b4","activity":"s4#b","queue":"s4","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"c"},{"id":"c","kind":"TASK","name":"c4","activity":"s4#c","queue":"s4","next":"e","armNames":["g","b"]},{"id":"e","kind":"END","success":true}]}');
select wt.handle('g1', 'c || ''{"g1":1}'''), wt.handle('g2', 'c || ''{"g2":1}'''), wt.handle('c4', 'c'), wt.start('inner', 's4', '{}'), wt.drain('{s4}'), wt.show('inner');
-- A signal and a sub-workflow in a shared branch merge into what all see.
select wt.register('{"workflow":"s5c","version":1,"defaultQueue":"s5","steps":[{"task":"child"}]}');
select created from wiggle.register('{"name":"s5","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["s","w"]},{"id":"s","kind":"SIGNAL","name":"ping","next":"j"},{"id":"w","kind":"SUB_WORKFLOW","name":"sub","activity":"s5c","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.handle('child', 'c || ''{"child":1}'''), wt.start('both', 's5', '{"v":1}'), wiggle.signal(wt.id('both'), 'ping', '{"ping":1}'), wt.drain('{s5}'), wt.show('both');
select * from wt.finish();
