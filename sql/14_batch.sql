-- wiggle.batch(): what a proxy's lane sends. Every family, every refusal as a row.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"bt","version":1,"steps":[{"task":"a","retry":{"max":3,"backoff":"0ms"}},{"gate":"g"},{"task":"b"}]}');
select wt.register('{"workflow":"bt","version":2,"defaultQueue":"bt2","steps":[{"task":"x"}]}');

-- Families as a lane writes them, and answers as text.
create function wt.b(s wiggle.batch_starts default null, r wiggle.batch_runs default null, f wiggle.batch_fails default null,
	h wiggle.batch_beats default null, d wiggle.batch_releases default null, p wiggle.batch_polls default null) returns setof text language sql
as $$
	select line from (
	select op, item, wt.mask(concat_ws(' ', op::text || item, code, message, task_id, instance_id, status, 'until=' || (expires_at / 1000)::text, lease_owner,
			   workflow || ':' || version, node_id, step_name, activity, kind, 'attempt=' || attempt, mode, context, base_context, item_index, item_map_key, collect_key, arm_names)) as line
	  from wiggle.batch(s, r, f, h, d, p)) a order by position(op::text in 'srfhdt'), item, line collate "C"
$$;
create function wt.starts(labels text[], workflows text[], contexts text[] default null, versions int[] default null, correlations text[] default null)
returns wiggle.batch_starts language plpgsql
as $$
begin
	insert into wt.instance select l, wiggle.mint() from unnest(labels) l on conflict do nothing;
	return row(array(select wt.id(l) from unnest(labels) l), workflows, coalesce(versions, array_fill(null::int, array[cardinality(labels)])),
			   coalesce(correlations, array_fill(null::text, array[cardinality(labels)])), coalesce(contexts, array_fill(null::text, array[cardinality(labels)])));
end $$;
-- Runs of one step each.
create function wt.runs(labels text[], nodes text[], kinds int[], vals text[], modes int[]) returns wiggle.batch_runs language sql
as $$
	select row(array(select wt.task(l) from unnest(labels) l), array(select wt.owner(l) from unnest(labels) l), modes,
			   array(select generate_series(0, cardinality(labels) - 1)), nodes, kinds, vals,
			   array_fill(0::int8, array[cardinality(labels)]), array_fill(0::int8, array[cardinality(labels)]))::wiggle.batch_runs
$$;
create function wt.fails(labels text[], messages text[], retryable bool[], modes int[] default null) returns wiggle.batch_fails language sql
as $$ select row(array(select wt.task(l) from unnest(labels) l), array(select wt.owner(l) from unnest(labels) l), messages, retryable,
				 coalesce(modes, array_fill(0, array[cardinality(labels)])))::wiggle.batch_fails $$;
create function wt.beats(labels text[], extends int8[]) returns wiggle.batch_beats language sql
as $$ select row(array(select wt.task(l) from unnest(labels) l), array(select wt.owner(l) from unnest(labels) l), extends)::wiggle.batch_beats $$;
create function wt.releases(labels text[]) returns wiggle.batch_releases language sql
as $$ select row(array(select wt.task(l) from unnest(labels) l), array(select wt.owner(l) from unnest(labels) l))::wiggle.batch_releases $$;
-- One poll a queue.
create function wt.polls(queues text[], maxes int[], leases int8[] default null) returns wiggle.batch_polls language sql
as $$ select row(array(select 'w' || k || '#000000000000' || k from generate_series(1, cardinality(queues)) k), maxes,
				 coalesce(leases, array_fill(0::int8, array[cardinality(queues)])),
				 array(select generate_series(0, cardinality(queues) - 1)), queues, null, null, null)::wiggle.batch_polls $$;
create function wt.hold(label text) returns text language plpgsql
as $$
begin
	insert into wt.claim select label, replace(wt.id(label), 'wfi', 'tok') || '-' || l.n, l.owner from wiggle.wf_lease l where l.instance = (select wt.no(label))
		on conflict on constraint claim_pkey do update set task_id = excluded.task_id, owner = excluded.owner;
	return label;
end $$;
select wt.at(0);

-- Nothing asked, nothing answered.
select wt.b();
select wt.b(row('{}', '{}', '{}', '{}', '{}')::wiggle.batch_starts);

-- Starts: a repeat is the same answer; refusals stand beside successes.
select wt.b(wt.starts('{s1,s2,s3}', '{bt,bt,bt}', array['{"n":1}', null, '[1]'], '{1,2,null}', '{c1,null,null}'));
select wt.b(wt.starts('{s1,s4}', '{bt,bt}', array['{"n":2}', '{}'], '{1,1}'));
select i.label, w.version, w.correlation_id, w.context from wt.instance i, lateral wiggle.instance(i.id) w order by 1;
select wt.b(wt.starts('{e1,e2,e3,e4,e5,e6,e7,e8,e9,s1}', '{nobody,bt,bt,bt,bt,bt,bt,NULL,forked,other}',
	array['{}', '{}', '{"a":', '{"a":"\u0000"}', '{"a":"\ud83e"}', '{"e":1e400}', '{"a":1} x', '{}', '{}', '{}'], '{1,9,1,1,1,1,1,1,null,1}'));
select wt.b(row('{null,x,wfi.s7.0123456789abcdefghjkmn}', '{bt,bt,bt}', '{2,2,2}', '{null,null,null}', '{"{}","{}","{}"}')::wiggle.batch_starts);
select wt.b(wt.starts('{e1}', '{bt}', array['""'], '{-1}')), wt.b(wt.starts('{e1}', '{bt}', array[wt.nest('[', ']', 49)], '{1}'));
select count(*) from wt.instance t join wiggle.wf_instance i on i.id = t.id where t.label like 'e%';

-- Polls take what is ready, oldest first, each under its own owner.
select wt.b(p => wt.polls('{bt,bt2,bt}', '{1,9,9}', '{0,5000,60000}'));
select wt.b(p => wt.polls('{bt}', '{9}'));
select wt.hold(label) from wt.instance where label ~ '^s';

-- Runs: a plain one, complete (merge), a bare boolean, node mismatch, lost lease, unknown.
select wt.b(r => wt.runs('{s1,s2,s3,s4}', '{n1,NULL,n9,NULL}', '{1,1,1,0}', array['{"m":1,"gone":null}', '{"c":2}', '{}', null], '{1,2,1,2}'));
select i.label, wt.show(i.label) from wt.instance i where label ~ '^s' order by 1;
select wt.b(r => row(array['x', null, wt.task('s1')], '{w,w,w}', '{1,1,1}', '{0,1,2}', '{n1,n1,n1}', '{0,0,0}', '{null,null,null}', '{0,0,0}', '{0,0,0}')::wiggle.batch_runs);
-- Without a step
select wt.b(r => row(array[wt.task('s1')], array[wt.owner('s1')], '{1}', '{}', '{}', '{}', '{}', '{}', '{}')::wiggle.batch_runs);
-- What is not JSON is that run's own trouble.
select wt.clear();
select wt.b(wt.starts('{j1,j2,j3}', '{bt,bt,bt}', null, '{1,1,1}'), p => wt.polls('{bt}', '{3}'));
select wt.hold(l) from unnest(array['j1', 'j2', 'j3']) l;
select wt.b(r => wt.runs('{j1,j2,j3}', '{n1,n1,n1}', '{1,1,1}', array['{"ok":1}', '{"a":"\u0000"}', '{"ok":3}'], '{1,1,1}'));
select wt.b(r => wt.runs('{j2}', '{n1}', '{1}', array['{"a":"\udc59\ud835"}'], '{1}')), wt.b(r => wt.runs('{j2}', '{n1}', '{1}', array['{"a"}'], '{1}'));
select wt.show('j1'), wt.show('j2'), wt.show('j3'), wt.work('j2');

-- Complete: an object merges (null deletes), anything else replaces, absent leaves.
select wt.clear();
select wt.b(wt.starts('{m1,m2,m3,m4,m5}', '{bt,bt,bt,bt,bt}', array['{"a":1,"b":2}', '{"a":1}', '{"a":1}', '[1]', '{"a":1}'], '{1,1,1,1,1}'), p => wt.polls('{bt}', '{9}'));
select wt.hold('m' || k) from generate_series(1, 5) k;
select wt.b(r => wt.runs('{m1,m2,m3,m4,m5}', '{NULL,NULL,NULL,NULL,NULL}', '{1,1,1,1,0}', array['{"b":null,"c":{"d":null}}', 'null', '"text"', '{"x":1,"y":null}', null], '{2,2,2,2,2}'));
select wt.show('m1'), wt.show('m2'), wt.show('m3'), wt.show('m4'), wt.show('m5');
-- A predicate by complete: {"value": b}, a bare boolean, the typed form; nothing else.
select count(*) from wt.b(p => wt.polls('{bt}', '{9}'));
select wt.hold('m' || k) from generate_series(1, 5) k;
select wt.b(r => wt.runs('{m1,m2,m3,m4,m5}', '{NULL,NULL,NULL,NULL,NULL}', '{1,1,2,1,1}', array['{"value":true}', 'false', 'true', '{"value":"yes"}', '{"verdict":true}'], '{2,2,2,2,2}'));
select wt.b(r => wt.runs('{m4,m5}', '{NULL,NULL}', '{1,0}', array['1', null], '{2,2}'));
select wt.show('m1'), wt.show('m2'), wt.show('m3'), wt.show('m4'), wt.show('m5');
-- A ReportSteps run takes none of these on a predicate.
select wt.b(r => wt.runs('{m4,m5}', '{n2,n2}', '{1,1}', array['{"value":true}', 'true'], '{1,1}'));

-- Fails, beats, releases.
select wt.clear();
select wt.b(wt.starts('{f1,f2,f3,f4,f5}', '{bt,bt,bt,bt,bt}', null, '{1,1,1,1,1}'), p => wt.polls('{bt}', '{9}'));
select wt.hold('f' || k) from generate_series(1, 5) k;
select wt.b(f => wt.fails('{f1,f2}', '{flaky,"for good"}', '{t,f}'), h => wt.beats('{f3,f4}', '{60000,0}'), d => wt.releases('{f5}'));
select wt.show('f1'), wt.show('f2');
select label, t.status, t.attempt, t.last_error from unnest(array['f1', 'f2', 'f3', 'f5']) label, lateral wt.tokens(label) t;
select wt.b(f => wt.fails('{f1,f2}', '{again,again}', '{t,t}'), h => wt.beats('{f1,f5}', '{1000,1000}'), d => wt.releases('{f2,f5}'));
select wt.b(f => row('{x,null}', '{w,null}', '{m,m}', '{t,t}', '{0,0}')::wiggle.batch_fails, h => row('{x,null}', '{w,w}', '{1,1}')::wiggle.batch_beats, d => row('{x,null}', '{w,w}')::wiggle.batch_releases);
select wt.b(h => wt.beats('{f3,f3,f3,f3}', '{-1,3155760000001,9223372036854775807,3155760000000}'));
select expires_at from wiggle.wf_lease where instance = (select wt.no('f3'));

-- One task in two families or twice in one: the first in the order of the ops
-- (fail, heartbeat, run) wins, the rest find what it left.
select wt.clear();
select wt.b(wt.starts('{t1,t2}', '{bt,bt}', null, '{1,1}'), p => wt.polls('{bt}', '{2}')), wt.hold('t1'), wt.hold('t2');
select wt.b(r => wt.runs('{t1,t1,t2}', '{n1,n1,n1}', '{1,1,1}', array['{"first":1}', '{"second":1}', '{"run":1}'], '{1,1,1}'), f => wt.fails('{t2}', '{failed}', '{t}'), h => wt.beats('{t1}', '{1000}'));
select wt.show('t1'), wt.show('t2'), wt.work('t1'), wt.work('t2');
select wt.clear();
select wt.b(wt.starts('{f9}', '{bt}', null, '{1}'), p => wt.polls('{bt}', '{1}')), wt.hold('f9');

-- Malformed calls are errors: nothing of them is applied.
create function wt.malformed(call text) returns text language sql as $$ select wt.refusal('select count(*) from wiggle.batch(' || call || ')') $$;
select wt.malformed($$row('{a}', '{}', '{}', '{}', '{}'), null, null, null, null, null$$);
select wt.malformed($$null, row('{a}', '{b}', '{1}', '{1}', '{n}', '{0}', '{null}', '{0}', '{0}'), null, null, null, null$$);
select wt.malformed($$null, row('{a}', '{b}', '{1}', '{-1}', '{n}', '{0}', '{null}', '{0}', '{0}'), null, null, null, null$$);
select wt.malformed($$null, row('{a,b}', '{b,b}', '{1,1}', '{1,0}', '{n,n}', '{0,0}', '{null,null}', '{0,0}', '{0,0}'), null, null, null, null$$);
select wt.malformed($$null, row('{a}', '{b}', '{1}', '{0}', '{n}', '{0}', '{}', '{0}', '{0}'), null, null, null, null$$);
select wt.malformed($$null, null, row('{a}', '{b}', '{m}', '{t}', '{}'), null, null, null$$);
select wt.malformed($$null, null, null, row('{a}', '{b}', '{}'), null, null$$);
select wt.malformed($$null, null, null, null, row('{a}', '{}'), null$$);
select wt.malformed($$null, null, null, null, null, row('{w#0000000000000}', '{1}', '{0}', '{1}', '{q}', '{}', '{}', '{}')$$);
select wt.malformed($$null, null, null, null, null, row('{w#0000000000000}', '{1}', '{0}', '{0}', '{q,r}', '{}', '{}', '{}')$$);
select wt.malformed($$null, null, null, null, null, row('{w#0000000000000}', '{1}', '{0}', '{}', '{}', '{0}', '{w}', '{}')$$);
-- An unknown kind of outcome is none.
select wt.b(r => wt.runs('{f9}', '{n1}', '{7}', array['{}'], '{1}'));
select wt.show('f9');

-- A poll that is not acceptable says why; the others are served.
select wt.clear();
select wt.b(wt.starts('{q1,q2}', '{bt,bt}', null, '{2,2}'));
select wt.b(p => row(array['w', 'w#short', repeat('w', 121) || '#0000000000000', null, 'w#0000000000001', 'w#0000000000002'], '{1,1,1,1,0,-3}', '{0,0,0,0,3155760000001,0}', null, null, null, null, null)::wiggle.batch_polls);
-- Versions of a poll
select wt.b(p => row('{w#0000000000003,w#0000000000004}', '{9,9}', '{0,0}', null, null, '{0,1,1}', '{bt,bt,nobody}', '{1,2,1}')::wiggle.batch_polls);

-- A lease that has run out is not settled by its owner: what that one asks again is refused.
select wt.clear();
select wt.b(wt.starts('{g1}', '{bt}', null, '{1}'), p => wt.polls('{bt}', '{1}', '{1000}')), wt.hold('g1');
select wt.at(1.5), wt.await('not exists (select from wiggle.wf_lease)');
select wt.b(r => wt.runs('{g1}', '{n1}', '{1}', array['{"by":1}'], '{5}'));
select wt.b(f => wt.fails('{g1}', '{late}', '{t}', '{4}'));
select attempt, status, last_error from wt.tokens('g1');
select wt.at(0);

-- What the batch as a whole is: all or nothing in its transaction.
begin;
select wt.b(wt.starts('{rb}', '{bt}', null, '{2}'), p => wt.polls('{bt2}', '{1}'));
rollback;
select count(*) from wiggle.wf_ready where queue = 'bt2';
select * from wt.finish();
