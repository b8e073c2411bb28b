-- Savepoints and exception blocks: what is rolled back is undone, all of it and
-- nothing more, and what was claimed is to be had again.
select wt.register('{"workflow":"st","version":1,"steps":[{"task":"a","retry":{"max":5,"backoff":"1h"}},{"sleep":"1h"},{"task":"b"}]}');
create function wt.claimed(n int) returns text language sql
as $$ select coalesce(string_agg(context->>'k', ' ' order by (context->>'k')::int), 'none') from wiggle.poll('w', array['st'], n) $$;
create function wt.ten() returns text language sql
as $$ select count(wt.start('s' || k, 'st', jsonb_build_object('k', k))) || ' started' from generate_series(1, 10) k $$;
select wt.ten();

-- Claims in a savepoint come back in the same transaction, oldest first.
begin;
select wt.claimed(2);
savepoint a;
select wt.claimed(3);
savepoint b;
select wt.claimed(2);
rollback to b;
select wt.claimed(1);
rollback to a;
select wt.claimed(4);
release a;
select * from wt.unsound();
commit;
select wt.claimed(10);
select * from wt.finish();

-- And to others, once the whole is aborted.
select wt.ten();
begin;
select wt.claimed(4);
savepoint a;
select wt.claimed(4);
release a;
rollback;
select wt.claimed(10);
select * from wt.finish();

-- An error takes back a claim that it had no part in, and leaves the earlier one.
select wt.ten();
begin;
select wt.claimed(1);
do $$ begin perform wt.claimed(3); perform 1/0; exception when division_by_zero then null; end $$;
select wt.claimed(2);
commit;
select wt.claimed(10);
select * from wt.finish();

-- Every move, undone by a savepoint: the state is what it was, and it can be made again.
select wt.start('m', 'st', '{"k":0}');
create function wt.state() returns text language sql
as $$ select wt.show('m') || ' | ' || (select string_agg(n || status || attempt, ' ' order by n::int) from wt.tokens('m')) || ' | ' || wt.work('m') $$;
begin;
savepoint s;
select wt.claim('m', 'st'), wt.state();
rollback to s;
select wt.state();
commit;
select wt.claim('m', 'st'), wt.state();
begin;
savepoint s;
select wt.fail('m', 'x'), wt.state();
rollback to s;
select wt.state();
savepoint s2;
select wt.fail('m', 'x', false), wt.state();
rollback to s2;
select wt.state();
savepoint s3;
select wiggle.cancel(wt.id('m')), wt.state();
rollback to s3;
select wt.state();
savepoint s4;
select wt.complete('m', '{"k":1}'), wt.state();
rollback to s4;
select wt.state(), wt.complete('m', '{"k":2}'), wt.state();
commit;
select wt.state();
select * from wt.finish();

-- A move, then its opposite in an inner block that fails, many times in one transaction.
select wt.start('many', 'st', '{"k":0}');
do $$
begin
	for i in 1 .. 200 loop
		begin
			perform wt.claim('many', 'st');
			perform wt.complete('many', '{}');
			raise exception 'no';
		exception when raise_exception then null;
		end;
	end loop;
end $$;
select wt.show('many'), wt.work('many'), wt.claim('many', 'st');
select * from wt.finish();

-- Numbers of instances rise although starts between them are undone.
begin;
select count(wiggle.start('st')) from generate_series(1, 5);
savepoint a;
select count(wiggle.start('st')) from generate_series(1, 5);
rollback to a;
select count(wiggle.start('st', '{"k":7}')) from generate_series(1, 5);
commit;
select count(*), count(distinct no) from wiggle.wf_instance where workflow = 'st' and status = 'RUNNING';
select * from wt.finish();

-- Deep: 60 nested savepoints, each with a claim; half of them go.
select count(wt.start('d' || k, 'st', jsonb_build_object('k', k))) from generate_series(1, 60) k;
create function wt.deep(level int) returns void language plpgsql as $$
begin
	if level > 0 then
		begin
			perform wt.claimed(1);
			perform wt.deep(level - 1);
			if level = 30 then
				raise exception 'half of them';
			end if;
		exception when raise_exception then null;
		end;
	end if;
end $$;
select wt.deep(60);
select count(*) from wiggle.wf_lease;
select wt.claimed(2);
drop function wt.deep(int);
select * from wt.finish();
