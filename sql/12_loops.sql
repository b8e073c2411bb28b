-- Loop guards: counted when they say yes, up to a budget.
select wt.register('{"workflow":"loop","version":1,"steps":[{"do_while":{"while":"more","body":[{"task":"body"}]}},{"task":"after"}]}');
select n->>'id' as id, n->>'kind' as kind, n->>'name' as name, n->>'next' as next, n->>'altNext' as alt, n->>'loopBudget' as budget
  from jsonb_array_elements(wiggle.definition('loop')->'nodes') n;

create function wt.turn(label text, again boolean, queue text default 'loop') returns text language plpgsql
as $$
begin
	if wt.claim(label, queue) !~ '^body' or wt.complete(label) <> 'RUNNING' or wt.claim(label, queue) !~ '^more' then
		return 'something else came';
	end if;
	return wt.decide(label, again);
end $$;
create function wt.counts(label text) returns setof text language sql
as $$ select format('%s %s %s', n, node, loops) from wiggle.wf_token where instance = (select wt.no(label)) order by n $$;

-- Three turns and out.
select wt.start('l', 'loop');
select wt.turn('l', true), wt.turn('l', true), wt.turn('l', false);
select wt.counts('l');
select wt.claim('l', 'loop'), wt.complete('l', '{"done":true}'), wt.show('l');

-- A budget of its own: the third yes is one too many.
select created from wiggle.register('{"name":"tight","version":1,"startNode":"b","nodes":[{"id":"b","kind":"TASK","name":"body","activity":"tight#body","queue":"tight","next":"g"},{"id":"g","kind":"PREDICATE","name":"more","activity":"tight#more","queue":"tight","next":"b","altNext":"e","loopBudget":2},{"id":"e","kind":"END","success":true}]}');
select wt.start('t', 'tight');
select wt.turn('t', true, 'tight'), wt.turn('t', true, 'tight'), wt.turn('t', true, 'tight'), wt.show('t');
select * from wt.tokens('t');
-- A no at the edge is no overrun.
select wt.start('t2', 'tight');
select wt.turn('t2', true, 'tight'), wt.turn('t2', true, 'tight'), wt.turn('t2', false, 'tight'), wt.show('t2');

-- Without one, the setting; changed, it counts from then on.
set wiggle.loop_max_iterations = 1;
select wt.start('d', 'loop');
select wt.turn('d', true), wt.turn('d', true), wt.show('d');
reset wiggle.loop_max_iterations;

-- A nameless guard is named by its id.
select created from wiggle.register('{"name":"anon","version":1,"startNode":"g","nodes":[{"id":"g","kind":"PREDICATE","activity":"anon#g","queue":"anon","next":"g","altNext":"e","loopBudget":1},{"id":"e","kind":"END","success":true}]}');
select wt.start('a', 'anon');
select wt.claim('a', 'anon'), wt.decide('a', true), wt.claim('a', 'anon'), wt.decide('a', true), wt.show('a');

-- A plain predicate that leads back is never counted.
select created from wiggle.register('{"name":"plain","version":1,"startNode":"g","nodes":[{"id":"g","kind":"PREDICATE","activity":"plain#g","queue":"plain","next":"g","altNext":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.start('p', 'plain');
set wiggle.loop_max_iterations = 1;
select count(wt.claim('p', 'plain') || wt.decide('p', true)) from generate_series(1, 20);
reset wiggle.loop_max_iterations;
select wt.show('p'), (select count(*) from wiggle.wf_token where instance = (select wt.no('p')) and loops is not null) as counted;

-- A loop in a loop: the inner count goes on over turns of the outer, as in Wiggle.
select wt.register('{"workflow":"nest","version":1,"steps":[{"do_while":{"while":"outer","body":[{"do_while":{"while":"inner","body":[{"task":"x"}]}}]}}]}');
select wt.start('n', 'nest');
create function wt.next(label text, queue text, value boolean default null) returns text language sql
as $$ select wt.claim(label, queue) || case when value is null then ' done ' || wt.complete(label) else ' ' || value || ' ' || wt.decide(label, value) end $$;
select wt.next('n', 'nest'), wt.next('n', 'nest', true), wt.next('n', 'nest'), wt.next('n', 'nest', false), wt.next('n', 'nest', true);
select wt.next('n', 'nest'), wt.next('n', 'nest', true);
select wt.counts('n');
select wt.next('n', 'nest'), wt.next('n', 'nest', false), wt.next('n', 'nest', false), wt.show('n');

-- A failed attempt of the body keeps the count.
select wt.start('f', 'loop');
select wt.turn('f', true);
select wt.claim('f', 'loop'), wt.fail('f', 'x');
select wt.counts('f');

-- Whatever the body goes through, the count is kept: each of these turns once, and
-- its second turn is over the budget.
create procedure wt.turn_over(label text) language plpgsql
as $$
begin
	for k in 1 .. 12 loop
		perform wt.at(100 + 2 * k);
		commit;
		perform wt.await('not exists (select from wiggle.wf_timer where due_at <= (wiggle.version()).now)');
		perform wt.drain(array['kept']);
		perform wiggle.signal(instance_id, signal) from wiggle.pending_signals() where signal = 'ping';
		commit;
		exit when (wiggle.instance(wt.id(label))).status <> 'RUNNING';
	end loop;
end $$;
select wt.register('{"workflow":"kept_child","version":1,"defaultQueue":"kept","steps":[{"task":"kc"}]}');
select wt.register(jsonb_build_object('workflow', 'kept_' || what, 'version', 1, 'defaultQueue', 'kept', 'steps', jsonb_build_array(
		jsonb_build_object('do_while', jsonb_build_object('while', what || '_more', 'maxIterations', 1, 'body', jsonb_build_array(body)))))::text)
  from (values ('sleep', '{"sleep":"1s"}'::jsonb), ('signal', '{"await_signal":"ping","timeout":"1h"}'), ('timeout', '{"await_signal":"never","timeout":"1s","escalation":[{"task":"late"}]}'),
	('sub', '{"sub_workflow":"kept_child"}'), ('fork', '{"fork":{"x":[{"sleep":"1s"}],"y":[{"task":"y"}]},"combine":"m"}'), ('each', '{"fork_each":{"over":"items","as":"i","combine":"m","body":[{"task":"e"}]}}'),
	('none', '{"fork_each":{"over":"nothing","as":"i","combine":"m","body":[{"task":"e"}]}}'), ('shared', '{"fork_each":{"over":"items","as":"i","body":[{"task":"e"}]}}'), ('alone', '{"fork_each":{"over":"nothing","as":"i","body":[{"task":"e"}]}}'),
	('case', '{"choose":[{"when":"p","then":[{"task":"e"}]}]}'), ('retried', '{"task":"r","retry":{"max":2,"backoff":"1s"}}')) v(what, body);
select wt.handle('m', 'c'), wt.handle('p', 'false'), wt.handle('r', 'case when attempt = 1 then wt.oops(''again'') end');
create table wt.kept as select distinct substr(name, 6) as what from wiggle.workflows() where name like 'kept\_%' and name <> 'kept_child';
select wt.at(100);
select count(wt.start(what, 'kept_' || what, '{"items":[1,2]}')) from wt.kept;
select format('call wt.turn_over(%L)', what) from wt.kept order by 1 \gexec
select what, left((wiggle.instance(wt.id(what))).error, 52) as error from wt.kept order by 1;

select * from wt.finish();
