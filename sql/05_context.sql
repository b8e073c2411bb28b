-- Contexts: any JSON value goes in and comes out exactly; what some client could
-- not decode is refused at every door alike.
select wt.register('{"workflow":"x","version":1,"steps":[{"task":"a"},{"task":"b"}]}');
\pset format unaligned
create function wt.round(context text) returns text language plpgsql
as $$
declare
	id text := wiggle.start('x', context::jsonb);
	t wiggle.task;
begin
	select * into t from wiggle.poll('w', array['x']);
	if t.instance_id <> id or t.context <> (wiggle.instance(id)).context or t.context <> context::jsonb then
		return 'it changed: ' || t.context;
	end if;
	perform wiggle.complete(t.task_id, t.lease_owner, context::jsonb);
	select * into t from wiggle.poll('w', array['x']);
	perform wiggle.cancel(id);
	return t.context;
end $$;
select wt.round(context) from unnest(array['{}', '{"a":1}', '[]', '[1,[2],{"b":null}]', '"text"', '""', '0', '-0.5', 'true', 'false',
	'{"k":{"nested":null,"deep":[null]}}', '{"id":9007199254740993,"big":12345678901234567890123,"one":1,"frac":1.50,"e":1e300,"small":1e-300}',
	'{"\ud83d\ude00":"\u00e9\u20ac","quote\"":"back\\slash\n"}', '{"":"empty key"}', '{" ":[]}']) context;
-- A null context is an empty object; a JSON null is a context like any other.
select wt.start('sql null', 'x', null), wt.start('json null', 'x', 'null'), wt.start('member', 'x', '{"kept":null}');
select i.label, w.context, w.context is null as absent from wt.instance i, lateral wiggle.instance(i.id) w order by 1;
select context from wiggle.poll('w', array['x'], 10);
select s.context from wiggle.wf_scope s join wiggle.wf_instance i on i.no = s.instance where i.workflow = 'x' and i.status = 'RUNNING' order by s.context::text collate "C";

-- NUL and half surrogates (the type refuses them before the engine sees them).
select context, wt.refusal(format('select wiggle.start(''x'', %L)', context))
  from unnest(array['{"a":"\u0000"}', '{"\u0000k":1}', '{"a":"\ud83e"}', '{"a":"\udc59\ud835"}', '{"a":NaN}', '{"a":01}', '{"a":1}x', '']) context;
-- Numbers that no double holds
select context, wt.refusal(format('select wiggle.start(''x'', %L)', context))
  from unnest(array['{"e":1e400}', '[-1e400]', '1e309', '{"e":1e131072}']) context;
select wt.refusal('select wiggle.start(''x'', ''{"e":1e308}'')'), wt.refusal('select wiggle.start(''x'', ''{"e":1e-400}'')');

-- Depth: 32 levels of objects or 48 of arrays, which every client can decode.
create function wt.nest(open text, close text, n int) returns text language sql
as $$ select repeat(open, n) || '1' || repeat(close, n) $$;
select n, left(wt.refusal(format('select wiggle.start(''x'', %L)', wt.nest('{"a":', '}', n))), 100) as objects,
	   left(wt.refusal(format('select wiggle.start(''x'', %L)', wt.nest('[', ']', n))), 100) as arrays
  from unnest(array[30, 31, 32, 33, 47, 48, 49, 50, 100, 101, 1000, 5000]) n;
-- Both in turns: three for an object, two for an array, 97 in all.
select n, left(wt.refusal(format('select wiggle.start(''x'', %L)', wt.nest('[{"a":', '}]', n))), 100) from unnest(array[19, 20]) n;

-- The same doors at the steps: a refused result leaves the task with its owner.
select count(wiggle.cancel(id)) > 0 from wiggle.instances('x', 'RUNNING', max => 1000);
select wt.start('r', 'x', '{"n":1}'), wt.claim('r', 'x');
select wt.refusal(format('select wt.complete(''r'', %L)', wt.nest('{"a":', '}', 33)));
select wt.refusal('select wt.complete(''r'', ''{"e":1e400}'')');
select status from wt.tokens('r');
select wt.complete('r', '{"n":2}'), wt.show('r');

-- A large context, past what fits a page.
select wt.start('large', 'x', jsonb_build_object('text', repeat('0123456789abcdef', 65536)));
select length(context->>'text') from wiggle.poll('w', array['x'], 10) where context ? 'text';
select * from wt.finish();
