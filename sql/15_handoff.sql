-- Hand-off: what a batch mints and its own polls want is never written as ready.
-- Order of polls, of ages; asked again; releases.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.at(0);
select wt.register('{"workflow":"ho","version":1,"steps":[{"task":"a"},{"task":"b"},{"task":"c"}]}');
select wt.register('{"workflow":"ho","version":2,"steps":[{"task":"a","queue":"ho-a"},{"task":"b","queue":"ho-b"}]}');
-- Whatever is inserted into wf_ready is noted.
create table wt.inserted (instance bigint, n int, queue text);
create function wt.note() returns trigger language plpgsql security definer as $$ begin insert into wt.inserted values (new.instance, new.n, new.queue); return null; end $$;
create trigger note after insert on wiggle.wf_ready for each row execute function wt.note();
create function wt.written() returns text language sql
as $$ with gone as (delete from wt.inserted returning n, queue) select count(*) || coalesce(' ' || string_agg(queue || '/' || n, ' ' order by queue, n), '') from gone $$;
-- Without a poll: ready. With one: leased at once.
select wt.b(wt.starts('{a1}', '{ho}', null, '{1}')), wt.written();
select wt.b(p => wt.polls('{ho}', '{1}')), wt.written();
select wt.b(wt.starts('{a2}', '{ho}', null, '{1}'), p => wt.polls('{ho}', '{1}'));
select wt.written(), wt.work('a2');
-- A run hands its next step to the batch's poll.
select wt.hold('a1');
select wt.b(r => wt.runs('{a1}', '{n1}', '{1}', array['{"a":1}'], '{1}'), p => wt.polls('{ho}', '{1}'));
select wt.written(), wt.work('a1');
-- To a poll of another queue it does not.
select wt.hold('a1');
select wt.b(r => wt.runs('{a1}', '{n2}', '{1}', array['{"b":1}'], '{1}'), p => wt.polls('{elsewhere}', '{1}'));
select wt.written(), wt.work('a1');
-- Something older waits: that is taken, the new one is written.
select wt.clear();
select wt.b(wt.starts('{o1}', '{ho}', null, '{1}')), wt.written();
select wt.b(wt.starts('{o2}', '{ho}', null, '{1}'), p => wt.polls('{ho}', '{1}'));
select wt.written(), wt.work('o1'), wt.work('o2');
-- Something younger waits: a run of an older instance keeps its turn.
select wt.clear();
select wt.b(wt.starts('{y1}', '{ho}', null, '{1}'), p => wt.polls('{ho}', '{1}'));
select wt.b(wt.starts('{y2}', '{ho}', null, '{1}')), wt.hold('y1'), wt.written();
select wt.b(r => wt.runs('{y1}', '{n1}', '{0}', array[null], '{1}'), p => wt.polls('{ho}', '{1}'));
select wt.written(), wt.work('y1'), wt.work('y2');
-- Many at once: the polls in their order, each up to its max, oldest first.
select wt.clear();
select wt.b(wt.starts('{p1,p2,p3,p4,p5}', '{ho,ho,ho,ho,ho}', null, '{1,1,1,1,1}'), p => wt.polls('{ho,ho}', '{1,3}'));
select wt.written();
-- Versions and queues of the polls count here too.
select wt.clear();
select wt.b(wt.starts('{v1,v2}', '{ho,ho}', null, '{1,2}'), p => row('{w#0000000000001}', '{9}', '{0}', null, null, '{0}', '{ho}', '{2}')::wiggle.batch_polls);
select wt.written();
select wt.clear();
-- A failed task, a released one, are handed on as well.
select wt.b(wt.starts('{r1,r2}', '{bt,bt}', null, '{1,1}'), p => wt.polls('{bt}', '{2}'));
select wt.hold('r1'), wt.hold('r2'), wt.written();
select wt.b(f => wt.fails('{r1}', '{flaky}', '{t}'), d => wt.releases('{r2}'), p => wt.polls('{bt}', '{2}'));
select wt.written();
-- An instance that ends within the batch takes back what it had made.
select wt.clear();
select wt.b(wt.starts('{x1}', '{bt}', null, '{1}'), p => wt.polls('{bt}', '{1}')), wt.hold('x1');
select wt.b(f => wt.fails('{x1}', '{gone}', '{f}'), p => wt.polls('{bt}', '{1}')), wt.show('x1');
select * from wt.unsound();

-- A batch that is rolled back hands nothing over; the tasks it took are there again.
select wt.clear();
select wt.b(wt.starts('{k1}', '{ho}', null, '{1}')), wt.written();
begin;
select wt.b(wt.starts('{k2}', '{ho}', null, '{1}'), p => wt.polls('{ho}', '{2}'));
rollback;
select wt.b(p => wt.polls('{ho}', '{2}'));

-- Asked again after a lost answer: applied settles are answered as success, by
-- their owner alone; what was not applied is applied now.
select wt.clear();
select wt.b(wt.starts('{l1,l2,l3,l4}', '{ho,ho,ho,ho}', null, '{1,1,1,1}'), p => wt.polls('{ho}', '{9}'));
select wt.hold('l' || k) from generate_series(1, 4) k;
select wt.b(r => wt.runs('{l1}', '{n1}', '{1}', array['{"l":1}'], '{1}'), f => wt.fails('{l3}', '{"no luck"}', '{t}'));
select wt.b(r => wt.runs('{l1,l2}', '{n1,n1}', '{1,1}', array['{"l":1}', '{"l":2}'], '{1,1}'), f => wt.fails('{l3,l4}', '{"no luck",later}', '{t,t}'));
select wt.b(r => wt.runs('{l1,l2}', '{n1,n1}', '{1,1}', array['{"never":1}', '{"never":2}'], '{5,5}'), f => wt.fails('{l3,l4}', '{"no luck",later}', '{t,t}', '{4,4}'));
select wt.show('l1'), wt.show('l2');
select label, t.n, t.status, t.attempt, t.last_error from unnest(array['l1', 'l2', 'l3', 'l4']) label, lateral wt.tokens(label) t;
-- Another's claim since then: the owner is not mistaken for it.
select wt.clear();
select wt.b(wt.starts('{z1}', '{bt}', null, '{1}'), p => row('{first#000000000000a}', '{1}', '{0}', null, null, null, null, null)::wiggle.batch_polls), wt.hold('z1');
select wt.b(f => wt.fails('{z1}', '{x}', '{t}'), p => row('{second#000000000000b}', '{1}', '{0}', null, null, null, null, null)::wiggle.batch_polls);
select wt.b(f => wt.fails('{z1}', '{x}', '{t}', '{4}'));
select wt.b(r => wt.runs('{z1}', '{n1}', '{0}', array[null], '{5}'));
select attempt, status, owner from wt.tokens('z1');
select wt.hold('z1'), wt.b(r => wt.runs('{z1}', '{n1}', '{0}', array[null], '{5}'));
-- Instances that ended meanwhile answer with their status.
select wt.b(wt.starts('{e1}', '{bt}', null, '{2}'), p => row('{last#000000000000c}', '{9}', '{0}', null, null, '{0}', '{bt}', '{2}')::wiggle.batch_polls), wt.hold('e1');
select wt.b(r => wt.runs('{e1}', '{n1}', '{1}', array['{"e":1}'], '{3}'));
select wt.b(r => wt.runs('{e1}', '{n1}', '{1}', array['{"e":1}'], '{3}'));
select wt.b(r => wt.runs('{e1}', '{n1}', '{1}', array['{"e":1}'], '{7}'));
-- A step leased back is found again.
select wt.b(wt.starts('{lb}', '{loc}'), p => wt.polls('{loc}', '{1}')), wt.hold('lb');
select wt.task('lb') as task, wt.owner('lb') as owner \gset
select wt.b(r => wt.runs('{lb}', '{a}', '{0}', array[null], '{0}')) ~ 'tok:lb-2 RUNNING' as leased_back;
select wt.b(r => wt.runs('{lb}', '{a}', '{0}', array[null], '{4}')) ~ 'tok:lb-2 RUNNING' as found_again;

-- Releases give back unspent; an owner's whole claim at once after a lost poll.
select wt.clear();
select wt.b(wt.starts('{d1,d2,d3}', '{bt,bt,bt}', null, '{1,1,1}'), p => row('{lost#000000000000d,kept#000000000000e}', '{2,1}', '{0,0}', null, null, null, null, null)::wiggle.batch_polls);
select wiggle.release_owners(array['lost#000000000000d', 'never#000000000000f']);
select label, t.status, t.attempt, t.owner from unnest(array['d1', 'd2', 'd3']) label, lateral wt.tokens(label) t;
select wiggle.release_owners(array['lost#000000000000d']), wiggle.release_owners('{}'), wiggle.release_owners(null);
select count(*) from wiggle.poll('w', array['bt'], 9);
drop trigger note on wiggle.wf_ready;
select * from wt.finish();
