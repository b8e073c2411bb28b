-- Sub-workflows: a child of its own id and log, whose end moves its parent.
set timezone = 'UTC';
select wt.register('{"workflow":"kid","version":1,"steps":[{"task":"k"}]}');
select wt.register('{"workflow":"dad","version":1,"steps":[{"task":"d"},{"sub_workflow":{"name":"call","workflow":"kid"}},{"task":"after"}]}');
create function wt.child(label text, parent text) returns text language plpgsql
as $$
begin
	insert into wt.instance select label, c.id from wiggle.wf_instance p join wiggle.wf_token t on t.instance = p.no
		join wiggle.wf_instance c on c.parent_token_id = regexp_replace(p.id, '^wfi', 'tok') || '-' || t.n
	 where p.id = wt.id(parent) and not exists (select from wt.instance k where k.id = c.id) order by c.no limit 1;
	return wt.id(label) is not null;
end $$;
create function wt.family(label text) returns text language sql
as $$ select wt.mask(format('depth %s, correlation %s, parent %s', depth, correlation_id, parent_token_id)) from wiggle.wf_instance where id = wt.id(label) $$;

-- The child gets the parent's context; its result merges back (38).
select wt.handle('d', 'c || ''{"d":1,"x":"old"}'''), wt.handle('k', 'jsonb_build_object(''k'', c, ''x'', null::text, ''y'', 1)');
select wt.start('p', 'dad', '{"in":1}'), wt.drain('{dad}'), wt.child('c', 'p');
select wt.show('p'), wt.marks('p'), wt.show('c'), wt.family('c');
select node_id, kind, status, activity from wiggle.tokens(wt.id('p'));
select wt.drain('{kid}'), wt.show('c'), wt.show('p');
select wt.drain('{dad}'), wt.show('p'), wt.log('p'), wt.log('c');
select * from wt.unsound();
-- A result that is no object replaces the parent's view.
select wt.handle('k', '''[1]'''), wt.start('p2', 'dad'), wt.drain('{dad}'), wt.drain('{kid}'), wt.drain('{dad}'), wt.show('p2');

-- The child's failure is the parent's, with the child's error (39); so is a child
-- that is cancelled on its own.
select wt.handle('k', 'wt.oops(''sick'', true)'), wt.start('p3', 'dad'), wt.drain('{dad}'), wt.child('c3', 'p3'), wt.drain('{kid}'), wt.show('c3'), wt.show('p3'), wt.marks('p3'), wt.log('p3');
select wt.start('p4', 'dad'), wt.drain('{dad}'), wt.child('c4', 'p4'), wiggle.cancel(wt.id('c4'), 'child only'), wt.show('c4'), wt.show('p4');
-- A child that is not registered fails its parent (40), also when it is met first.
select wt.register('{"workflow":"orphanage","version":1,"steps":[{"sub_workflow":"nobody"}]}');
select wt.start('p5', 'orphanage'), wt.show('p5'), wt.marks('p5'), wt.log('p5');
-- The latest version at the time of the call is what runs.
select wt.handle('k', 'c'), wt.start('p6', 'dad'), wt.register('{"workflow":"kid","version":2,"defaultQueue":"kid2","steps":[{"task":"k2"}]}'), wt.drain('{dad}'), wt.drain('{kid}'), wt.handle('k2', 'c || ''{"by":2}'''), wt.drain('{kid2}'), wt.drain('{dad}'), wt.show('p6');

-- In an arm the child sees and changes the arm alone (42).
select wt.register('{"workflow":"arms","version":1,"steps":[{"fork":{"a":[{"task":"a"},{"sub_workflow":"kid"}],"b":[{"task":"b"}]},"combine":"m"}]}');
select wt.handle('a', 'c || ''{"a":1}'''), wt.handle('b', 'c || ''{"b":1}'''), wt.handle('m', 'c');
select wt.start('p7', 'arms', '{"v":0}'), wt.drain('{arms}'), wt.child('c7', 'p7'), wt.show('c7'), wt.drain('{kid2}'), wt.drain('{arms}'), wt.show('p7');
-- In items: one child each; in a combine's place nothing of what was staged.
select wt.register('{"workflow":"each","version":2,"defaultQueue":"each2","steps":[{"fork_each":{"over":"items","as":"it","combine":"all","body":[{"sub_workflow":"kid"}]}}]}');
select wt.handle('all', 'c->''__forEach__it'''), wt.handle('k2', 'jsonb_build_object(''was'', c)'), wt.start('p8', 'each', '{"items":[1,{"k":2}]}'), wt.drain('{kid2}'), wt.drain('{each2}'), wt.show('p8');
select * from wt.unsound();

-- A child that needs nobody ends in the same statement; three levels of it too.
select created from wiggle.register('{"name":"instant","version":1,"startNode":"e","nodes":[{"id":"e","kind":"END","success":true,"reason":"at once"}]}');
select wt.register('{"workflow":"mid","version":1,"steps":[{"sub_workflow":"instant"}]}'), wt.register('{"workflow":"top","version":1,"steps":[{"sub_workflow":"mid"}]}');
select wt.start('p9', 'top', '{"v":1}'), wt.show('p9'), wt.log('p9');
-- Whoever moved the parent there hears that it has ended with it.
select wt.register('{"workflow":"led","version":1,"steps":[{"task":"lead"},{"sub_workflow":"instant"}]}'), wt.start('p13', 'led'), wt.claim('p13', 'led'), wt.complete('p13'), wt.show('p13');
select b.code, b.status from wiggle.mint() m, lateral wiggle.batch(row(array[m], array['top'], array[null::int], array[null::text], array['{}'])::wiggle.batch_starts, null, null, null, null, null) b;
select created from wiggle.register('{"name":"failing","version":1,"startNode":"e","nodes":[{"id":"e","kind":"END","success":false,"reason":"on purpose"}]}');
select wt.register('{"workflow":"mid","version":2,"steps":[{"sub_workflow":"failing"}]}'), wt.start('p10', 'top'), wt.show('p10');
select i.workflow, i.status, i.error from wiggle.wf_instance i where i.workflow in ('mid', 'failing') and i.status = 'FAILED' order by i.no;

-- A workflow that starts itself, and two that start each other (C15): stopped at
-- wiggle.max_depth, with every level told, none left alive.
set wiggle.max_depth = 50;
select wt.register('{"workflow":"self","version":1,"steps":[{"sub_workflow":"self"}]}'), wt.start('s', 'self'), left(wt.show('s'), 120), length(wt.show('s')) < 1100 as short;
select status, count(*), max(depth) from wiggle.wf_instance where workflow = 'self' group by 1;
select error from wiggle.wf_instance where workflow = 'self' order by depth desc limit 2;
select wt.register('{"workflow":"ping","version":1,"steps":[{"sub_workflow":"pong"}]}'), wt.register('{"workflow":"pong","version":1,"steps":[{"sub_workflow":"ping"}]}'), wt.start('pp', 'ping'), left(wt.show('pp'), 90);
reset wiggle.max_depth;
select wt.start('deeper', 'self'), left(wt.show('deeper'), 60);
-- However deep it was, the root says what broke.
select right(error, 120) from wiggle.wf_instance where id = wt.id('deeper');
select status, count(*), max(depth) from wiggle.wf_instance where workflow = 'self' group by 1;
select * from wt.unsound();
-- Many children that end at once are not taken for a chain that never waits.
select created from wiggle.register('{"name":"nothing","version":1,"startNode":"e","nodes":[{"id":"e","kind":"END","success":true}]}');
select wt.register('{"workflow":"broad","version":1,"steps":[{"fork_each":{"over":"items","as":"i","combine":"all","body":[{"sub_workflow":"nothing"}]}},{"sleep":"1h"}]}');
select wt.start('broad', 'broad', (select jsonb_build_object('items', jsonb_agg(i)) from generate_series(1, 6000) i)), left(wt.show('broad'), 7), wt.claim('all', 'broad') like '%all of broad%' as combines;
select status, count(*) from wiggle.wf_instance where workflow = 'nothing' and parent_token_id like replace(wt.id('broad'), 'wfi', 'tok') || '-%' group by 1;
-- With a task on every level, and a cancel in the middle of it.
select wt.register('{"workflow":"tree","version":1,"steps":[{"task":"grow"},{"fork":{"l":[{"sub_workflow":{"name":"left","workflow":"tree"}}],"r":[{"sub_workflow":{"name":"right","workflow":"tree"}}]}}]}');
select wt.start('tree', 'tree'), wt.drain('{tree}', 7);
select count(*), max(depth) from wiggle.wf_instance where workflow = 'tree' and status = 'RUNNING';
select wiggle.cancel(wt.id('tree'), 'felled');
select wt.await('not exists (select from wiggle.wf_instance where workflow = ''tree'' and status = ''RUNNING'')');
select depth, status, termination_reason, count(*) from wiggle.wf_instance where workflow = 'tree' group by 1, 2, 3 order by 1;

-- Timers that a repair put there change nothing: a child that lives is not told of,
-- one that is waited for not given up, one that ended not ended again.
select wt.register('{"workflow":"calm","version":1,"steps":[{"task":"quiet"}]}'), wt.register('{"workflow":"calls","version":1,"steps":[{"sub_workflow":"calm"}]}');
select wt.start('p11', 'calls'), wt.child('c11', 'p11'), wt.start('p12', 'calls'), wt.child('c12', 'p12'), wiggle.cancel(wt.id('p12'));
select wt.await('not exists (select from wiggle.wf_timer)'), wt.show('c12');
insert into wiggle.wf_timer values (now(), wt.no('p11'), 1), (now(), wt.no('c11'), 0), (now(), wt.no('p12'), 1), (now(), wt.no('c12'), 0), (now(), wt.no('c11'), 99);
select wt.await('not exists (select from wiggle.wf_timer where n <> 99)');
select wt.show('p11'), wt.show('c11'), wt.show('p12'), wt.show('c12'), wt.drain('{calm}'), wt.show('p11');
delete from wiggle.wf_timer;

-- Ids: a child's form and shard follow its parent's.
select p.id ~ '^wfi_' = (c.id ~ '^wfi_') as same_form from wiggle.wf_instance c join wiggle.wf_instance p on p.id = regexp_replace(c.parent_token_id, '^tok(.*)-\d+$', 'wfi\1') group by 1;
select wt.await('not exists (select from wiggle.wf_timer)');
select * from wt.finish();
select wt.forget();
