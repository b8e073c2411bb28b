-- Everything that registration refuses, and what it says; and what it reads
-- loosely, as Wiggle does: text from numbers, numbers from nothing else.
-- An accepted one is rolled back, so that the next is judged by itself.
create function wt.refused(definition text) returns text language plpgsql
as $$
declare
	answer text := wt.refusal(format('select wiggle.register(%L)', definition));
begin
	if answer like 'accepted%' then
		raise exception using errcode = 'WT000', message = answer;
	end if;
	return answer;
exception when sqlstate 'WT000' then
	return answer;
end $$;
-- A definition of these nodes.
create function wt.nodes(nodes text, rest text default '') returns text language sql
as $$ select wt.refused(format('{"name":"w","version":1,"startNode":"a","nodes":[%s]%s}', nodes, rest)) $$;
\set end '{"id":"e","kind":"END","success":true}'
\set task '{"id":"a","kind":"TASK","name":"a","activity":"w#a","next":"e"}'
\pset tuples_only on
\pset format unaligned

-- The top
select wt.refusal('select wiggle.register(null)');
select wt.refused('[]'), wt.refused('"w"'), wt.refused('{}');
select wt.refused('{"name":" "}');
select wt.refused('{"name":"w"}');
select wt.refused('{"name":"w","version":0}');
select wt.refused('{"name":"w","version":-1}');
select wt.refused('{"name":"w","version":2147483648}');
select wt.refused('{"name":"w","version":"1"}');
select wt.refused('{"name":"w","version":1}');
select wt.refused('{"name":"w","version":1,"startNode":"a"}');
select wt.refused('{"name":"w","version":1,"startNode":"a","nodes":{}}');
select wt.refused('{"name":"w","version":1,"startNode":"a","nodes":[]}');
select wt.refused('{"name":"w","version":1,"startNode":"a","nodes":[1]}');
select wt.refused('{"name":"w","version":1,"startNode":"z","nodes":[' || :'task' || ',' || :'end' || ']}');
select wt.refused(format('{"name":"%s","version":1,"startNode":"a","nodes":[]}', repeat('w', 201)));
select wt.nodes(:'task' || ',' || :'end', ',"executionMode":"OBSERVED"');
select wt.nodes(:'task' || ',' || :'end', ',"executionMode":"SOMETIMES"');
select wt.nodes(:'task' || ',' || :'end', ',"checkpoints":["z"]');
select wt.nodes(:'task' || ',' || :'end', ',"checkpoints":1');
select wt.nodes(:'task' || ',' || :'end', ',"queues":1');

-- Nodes
select wt.nodes('{"kind":"TASK"}');
select wt.nodes('{"id":"a"}');
select wt.nodes('{"id":"a","kind":"LOOP"}');
select wt.nodes('{"id":"a","kind":"TASK","activity":"w#a","next":"z"},' || :'end');
select wt.nodes('{"id":"a","kind":"TASK","activity":"w#a"},' || :'end');
select wt.nodes('{"id":"a","kind":"TASK","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"PREDICATE","activity":"w#a","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"SIGNAL","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"SIGNAL","name":"s","next":"e","altNext":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"SUB_WORKFLOW","name":"s","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":["e"]},' || :'end');
select wt.nodes('{"id":"a","kind":"DYN_FORK","branches":["e","e"]},' || :'end');
select wt.nodes('{"id":"a","kind":"DYN_FORK","branches":["e"]},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":[null,"e"]},' || :'end');
select wt.nodes(format('{"id":"%s","kind":"TASK","activity":"w#a","next":"e"},%s', repeat('a', 65), :'end'));
select wt.nodes(format('{"id":"a","kind":"TASK","activity":"w#a","next":"e","queue":"%s"},%s', repeat('q', 201), :'end'));
select wt.nodes('{"id":"a","kind":"TASK","activity":7,"next":"e"},' || :'end');

-- Numbers
select wt.nodes('{"id":"a","kind":"SLEEP","sleepMillis":' || ms || ',"next":"e"},' || :'end')
  from unnest(array['-1', '9223372036854775807', '9223372036854775808', '3155760000001', '1e400', '0.5', '"1s"']) ms;
select wt.nodes('{"id":"a","kind":"TASK","activity":"w#a","next":"e","retry":' || retry || '},' || :'end')
  from unnest(array['7', '{"maxAttempts":0}', '{"maxAttempts":2147483648}', '{"initialBackoffMillis":-1}',
					'{"initialBackoffMillis":9223372036854775807}', '{"multiplier":0.5}', '{"multiplier":1e400}',
					'{"jitter":1.5}', '{"jitter":-0.1}', '{"maxBackoffMillis":1e30}']) retry;
select wt.nodes('{"id":"a","kind":"PREDICATE","activity":"w#a","next":"e","altNext":"e","loopBudget":' || budget || '},' || :'end')
  from unnest(array['-2', '2147483648']) budget;

-- The graph
select wt.nodes(:'task' || ',' || :'end' || ',{"id":"lost","kind":"END"}');
select wt.nodes('{"id":"a","kind":"TASK","name":"a","activity":"w#a","next":"b"},{"id":"b","kind":"TASK","name":"a","activity":"w#a","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"TASK","activity":"w#a","next":"b"},{"id":"b","kind":"TASK","activity":"w#b","next":"a"}');
select wt.nodes('{"id":"a","kind":"JOIN","expected":2,"next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":["b","c"]},{"id":"b","kind":"TASK","activity":"w#b","next":"e"},{"id":"c","kind":"TASK","activity":"w#c","next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":["b","c"]},{"id":"b","kind":"TASK","activity":"w#b","next":"j"},{"id":"c","kind":"TASK","activity":"w#c","next":"j"},{"id":"j","kind":"JOIN","expected":3,"next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":["b","c"]},{"id":"b","kind":"TASK","activity":"w#b","next":"j"},{"id":"c","kind":"TASK","activity":"w#c","next":"k"},{"id":"j","kind":"JOIN","expected":2,"next":"e"},{"id":"k","kind":"JOIN","expected":2,"next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"FORK","branches":["b","c"]},{"id":"b","kind":"TASK","activity":"w#b","next":"j"},{"id":"c","kind":"TASK","activity":"w#c","next":"j"},{"id":"j","kind":"JOIN","expected":2,"next":"m"},{"id":"m","kind":"TASK","activity":"w#m","armNames":["b"],"next":"e"},' || :'end');
select wt.nodes('{"id":"a","kind":"TASK","activity":"w#a","itemsKey":"[","next":"e"},' || :'end');
select wt.nodes(:'task' || ',' || :'task' || ',' || :'end');

-- The shorthand
select wt.refused(definition) from unnest(array[
	'{"steps":[]}', '{"workflow":"w","steps":[]}', '{"workflow":"w","steps":{}}', '{"workflow":"w","steps":["a"]}',
	'{"workflow":"w","steps":[{"tsk":"a"}]}', '{"workflow":"w","steps":[{"task":"a","gate":"b"}]}',
	'{"workflow":"w","steps":[{"task":"a"},{"task":"a"}]}', '{"workflow":"w","version":0,"steps":[{"task":"a"}]}',
	'{"workflow":"w","steps":[{"sleep":"1 day"}]}', '{"workflow":"w","steps":[{"task":"a","retry":"sometimes"}]}',
	'{"workflow":"w","steps":[{"task":"a","retry":{"max":3}}]}', '{"workflow":"w","steps":[{"fork":{"one":[{"task":"a"}]}}]}',
	'{"workflow":"w","steps":[{"do_while":{"while":"g","body":[]}}]}', '{"workflow":"w","steps":[{"task":""}]}',
	'{"workflo":"w","steps":[{"task":"a"}]}', '{"workflow":"w","steps":[{"task":"a"},{"task":"greet","retyr":"none"}]}']) definition;

-- Steps that create branches while they run, outside of forks and in an arm
select wt.refused('{"name":"w","version":1,"startNode":"p","nodes":[{"id":"p","kind":"TASK","name":"plan","activity":"w#p","next":"j"},{"id":"j","kind":"JOIN","next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"w#c","collectKey":"__spawn__plan","next":"e"},{"id":"e","kind":"END","success":true}]}');
select wt.refused('{"name":"w","version":1,"startNode":"f","nodes":[{"id":"f","kind":"FORK","branches":["p","fj"]},{"id":"p","kind":"TASK","name":"plan","activity":"w#p","next":"j"},{"id":"j","kind":"JOIN","next":"c"},{"id":"c","kind":"TASK","name":"c","activity":"w#c","collectKey":"__spawn__plan","next":"fj"},{"id":"fj","kind":"JOIN","expected":2,"next":"e"},{"id":"e","kind":"END","success":true}]}');

-- Text that no client could read back
select wt.refused('{"workflow":"w\u0000","steps":[{"task":"a"}]}'), wt.refused('{"workflow":"\ud83e","steps":[{"task":"a"}]}');
-- Depth
select wt.refused(repeat('[', n) || repeat(']', n)) from unnest(array[100, 10000]) n;
select wt.refused('{"name":"w","version":1,"startNode":"a","nodes":[' || :'task' || ',' || :'end' || '],"x":' || repeat('[', n) || repeat(']', n) || '}') from unnest(array[30, 100, 5000]) n;
select wt.refused(repeat('[', 20000)) like '%stack depth limit%' as by_the_server;

\pset tuples_only off
\pset format aligned
select count(*) as registered from wiggle.wf_definition where name = 'w';
select * from wt.finish();
