-- forEach: one item's view is the element, results come back in order.
set timezone = 'UTC';
select wt.register('{"workflow":"e1","version":1,"steps":[{"fork_each":{"over":"items","as":"item","name":"each","combine":"collect","body":[{"task":"item"}]}},{"task":"after"}]}');
select wt.handle('item', 'jsonb_build_object(''v'', c, ''i'', i)'), wt.handle('collect', 'jsonb_build_object(''all'', c->''__forEach__each'', ''steps'', c->''__steps____forEach__each'')');

-- Over a list, results in the list's order whatever the order of work (26).
select wt.start('list', 'e1', '{"items":["a",{"k":1},3,true],"other":1}'), wt.marks('list');
select scope, idx, kind, context from wiggle.wf_scope where instance = (select wt.no('list')) order by 1;
select wt.drain('{e1}'), wt.show('list');
select wt.marks('list');
-- Over a map, in its own order, with keys; results under the keys.
select wt.start('map', 'e1', '{"items":{"zeta":1,"al\"pha":{"x":[]},"":null}}'), wt.drain('{e1}'), wt.show('map');
-- Nulls are items; their view is an empty object, and so is an item's base the whole.
select wt.start('nulls', 'e1', '{"items":[null,null]}'), wt.drain('{e1}'), wt.show('nulls');
-- Items that end as what is no object.
select wt.handle('item', 'to_jsonb(i * 10)'), wt.start('scalars', 'e1', '{"items":[1,2,3]}'), wt.drain('{e1}'), wt.show('scalars');
delete from wt.handler where step = 'item';
select wt.start('untouched', 'e1', '{"items":[1.50,"x",null]}'), wt.drain('{e1}'), wt.show('untouched');

-- Nothing to do: the construct and its combine are skipped (C13).
select wt.start(label, 'e1', context::jsonb), wt.drain('{e1}'), wt.show(label), wt.marks(label)
  from (values ('empty', '{"items":[],"x":1}'), ('emptymap', '{"items":{}}'), ('absent', '{"x":1}'), ('null', '{"items":null}'), ('list itself', '[1]'), ('null context', 'null')) v(label, context);
-- What is no collection fails the instance and says what was found.
select wt.start('bad' || n, 'e1', context::jsonb), wt.show('bad' || n), wt.log('bad' || n)
  from (values (1, '{"items":"ab"}'), (2, '{"items":0}'), (3, '{"items":true}'), (4, '{"items":0.5}'), (5, '{"items":1e3}'), (6, '{"items":12345678901234567890123}')) v(n, context);
select wt.marks('bad1');
-- The last of duplicate keys counts, as jsonb has it; a key needs care when it is quoted.
select wt.register('{"workflow":"e2","version":1,"steps":[{"fork_each":{"over":"the \"items\"","as":"x","combine":"c2","body":[{"task":"t2"}]}}]}');
insert into wt.instance select 'twice', b.instance_id from wiggle.mint() m, lateral wiggle.batch(row(array[m], array['e1'], array[null::int], array[null::text], array['{"items":[1],"x":0,"items":[1,2]}'])::wiggle.batch_starts, null, null, null, null, null) b;
select wt.marks('twice');
select wiggle.cancel(wt.id('twice'));
select wt.start('quoted', 'e2', '{"the \"items\"":[1]}'), wt.drain('{e2}'), wt.show('quoted');

-- Nested forEach: base, place and key at each level, empty inner lists (24, C13).
select wt.register('{"workflow":"e3","version":1,"steps":[{"fork_each":{"over":"rows","as":"row","combine":"rows done","body":[{"task":"wrap"},{"fork_each":{"over":"cells","as":"cell","combine":"row done","body":[{"task":"one cell"}]}}]}}]}');
select wt.handle('wrap', 'jsonb_build_object(''cells'', c)'), wt.handle('one cell', 'to_jsonb(c::int + 100 * i)'), wt.handle('row done', 'c->''__forEach__cell'''), wt.handle('rows done', 'c->''__forEach__row''');
select wt.start('grid', 'e3', '{"rows":[[],[1],[2,3]]}'), wt.drain('{e3}'), wt.show('grid');
select * from wt.unsound();

-- A fork in a forEach in a loop (24).
select wt.register('{"workflow":"e4","version":1,"steps":[{"do_while":{"while":"again","body":[{"task":"count"},{"fork_each":{"over":"list","as":"it","combine":"sum","body":[{"fork":{"p":[{"task":"plus"}],"t":[{"task":"times"}]},"combine":"pair"}]}}]}}]}');
select wt.handle('count', 'c || jsonb_build_object(''n'', coalesce((c->>''n'')::int, 0) + 1)'), wt.handle('plus', 'to_jsonb(c::int + 1)'), wt.handle('times', 'to_jsonb(c::int * 2)');
select wt.handle('pair', 'jsonb_build_array(c->''__arm__p'', c->''__arm__t'', base, i)'), wt.handle('sum', '(c - ''__forEach__it'' - ''__steps____forEach__it'') || jsonb_build_object(''round'' || (c->>''n''), c->''__forEach__it'')'), wt.handle('again', '(c->>''n'')::int < 2');
select wt.start('looped', 'e4', '{"list":[5,6]}'), wt.drain('{e4}'), wt.show('looped');

-- Forty levels deep (25): one forEach in another, a single item each, whose first
-- step wraps it for the next.
create function wt.nested(depth int) returns jsonb language sql
as $$
	select jsonb_build_object('name', 'e5', 'version', 1, 'startNode', 'f1', 'nodes', jsonb_build_array(
			jsonb_build_object('id', 'bottom', 'kind', 'TASK', 'name', 'bottom', 'activity', 'e5#bottom', 'queue', 'e5', 'next', 'j' || depth),
			jsonb_build_object('id', 'e', 'kind', 'END', 'success', true)) || jsonb_agg(node))
	  from generate_series(1, depth) k, lateral (values
		(jsonb_build_object('id', 'f' || k, 'kind', 'DYN_FORK', 'name', 'each' || k, 'itemsKey', 'x', 'itemKey', 'i', 'branches', jsonb_build_array('w' || k))),
		(jsonb_build_object('id', 'w' || k, 'kind', 'TASK', 'name', 'w' || k, 'activity', 'e5#w' || k, 'queue', 'e5', 'next', case when k < depth then 'f' || k + 1 else 'bottom' end)),
		(jsonb_build_object('id', 'j' || k, 'kind', 'JOIN', 'next', 'c' || k)),
		(jsonb_build_object('id', 'c' || k, 'kind', 'TASK', 'name', 'c' || k, 'activity', 'e5#c' || k, 'queue', 'e5', 'collectKey', '__forEach__each' || k, 'next', case when k > 1 then 'j' || k - 1 else 'e' end))) v(node)
$$;
select * from wiggle.register(wt.nested(40));
select count(wt.handle('w' || k, 'jsonb_build_object(''x'', jsonb_build_array(c::int + 1))')), count(wt.handle('c' || k, 'c->''__forEach__each' || k || '''->0')) from generate_series(1, 40) k;
select wt.handle('bottom', 'jsonb_build_object(''found'', c->''x''->0)'), wt.start('deep', 'e5', '{"x":[0]}'), wt.drain('{e5}', 41, quiet => true);
select max(scope) as deepest, count(*) from wiggle.wf_scope where instance = (select wt.no('deep'));
select * from wt.unsound();
select wt.drain('{e5}', quiet => true), wt.show('deep'), (select count(*) from wiggle.wf_scope where instance = (select wt.no('deep'))) as scopes;
select count(*) as scopes from wiggle.wf_scope where instance = (select wt.no('deep'));

-- One item fails: the others are cancelled, and the instance says which step.
select wt.handle('item', 'case when i = 1 then wt.oops(''no good'', true) else c end'), wt.start('fails', 'e1', '{"items":[1,2,3]}'), wt.drain('{e1}'), wt.show('fails'), wt.marks('fails');

-- Legacy encodings: itemsKey of a TASK as a JSON string is the collect key, and a
-- forEach's own itemsKey stays plain text (30).
select created from wiggle.register('{"name":"e6","version":1,"startNode":"f","nodes":[{"id":"f","kind":"DYN_FORK","name":"ship","itemsKey":"boxes","itemKey":"box","branches":["t"],"next":"j"},{"id":"t","kind":"TASK","name":"t6","activity":"e6#t","next":"j"},{"id":"j","kind":"JOIN","next":"c"},{"id":"c","kind":"TASK","name":"c6","activity":"e6#c","next":"e","itemsKey":"\"ship\""},{"id":"e","kind":"END","success":true}]}');
select n->>'id' as id, n->'collectKey' as collect_key, n->'itemsKey' as items_key, n->'armNames' as arm_names from jsonb_array_elements(wiggle.definition('e6')->'nodes') n where n->>'id' in ('f', 'c') order by 1;
select wt.handle('c6', 'jsonb_build_object(''got'', c->''ship'')'), wt.start('legacy', 'e6', '{"boxes":[{"w":1},{"w":2}]}'), wt.drain('{""}'), wt.show('legacy');

-- 10,000 items: rows in proportion to the width, not to its square. Read from the
-- statistics of this transaction, which count every row touched.
select wt.register('{"workflow":"wide","version":1,"steps":[{"fork_each":{"over":"items","as":"w","combine":"c7","body":[{"task":"t7"}]}},{"task":"after7"}]}');
create function wt.touched() returns bigint language sql volatile
as $$ select sum(n_tup_ins + n_tup_upd + n_tup_del + coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint from pg_stat_xact_user_tables where schemaname = 'wiggle' $$;
create function wt.all_at_once(width int) returns bigint language plpgsql
as $$
declare
	before bigint := wt.touched();
	answers int;
	held wiggle.batch_runs;
begin
	perform wt.start('wide' || width, 'wide', jsonb_build_object('items', (select jsonb_agg(k) from generate_series(1, width) k)));
	select array_agg(t.task_id), array_agg(t.lease_owner), array_agg(1), array_agg(n::int - 1), array_agg(t.node_id), array_agg(1), array_agg('{"k":' || t.context || '}'), array_agg(0::int8), array_agg(0::int8)
	  into held from wiggle.batch(null, null, null, null, null, row(array['w#' || wt.nonce()], array[width], array[0::int8], array[0], array['wide'], null, null, null)::wiggle.batch_polls) with ordinality t(op, item, code, message, task_id, instance_id, status, expires_at, lease_owner, workflow, version, node_id, step_name, activity, kind, attempt, mode, context, base_context, item_index, item_map_key, collect_key, arm_names, n);
	select count(*) filter (where b.code = 0) into answers from wiggle.batch(null, held, null, null, null, null) b;
	if answers <> width then
		raise exception '% of % items were done', answers, width;
	end if;
	return wt.touched() - before;
end $$;
begin;
select wt.all_at_once(1000) as thousand \gset
select wt.handle('c7', 'jsonb_build_object(''n'', jsonb_array_length(c->''__forEach__w''), ''first'', c->''__forEach__w''->0, ''last'', c->''__forEach__w''->-1)'), wt.drain('{wide}', quiet => true);
select wt.all_at_once(10000) as ten_thousand \gset
select :ten_thousand / :thousand <= 11 as linear, :ten_thousand / 10000 < 100 as bounded;
select (select count(*) from wiggle.wf_scope where instance = (select wt.no('wide10000'))) as scopes, (select count(*) from wiggle.wf_token where instance = (select wt.no('wide10000'))) as tokens;
commit;
select * from wt.unsound();
select wt.drain('{wide}', quiet => true);
select wt.show('wide1000'), wt.show('wide10000');
select * from wt.finish();
select wt.forget();
