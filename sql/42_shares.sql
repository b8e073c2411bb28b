-- wiggle.batch() with shares: polls that take from some buckets of a queue only.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.at(0);
select wt.register('{"workflow":"share","version":1,"steps":[{"task":"a"},{"task":"b","queue":"share-b"}]}');
select wt.register('{"workflow":"share","version":2,"steps":[{"task":"a"}]}');
-- Instances whose tasks' buckets are known, others in each round.
create sequence wt.sh_round;
create function wt.sh(k int) returns text language sql as $$ select substr(wiggle.mint(), 1, length(wiggle.mint()) - 22) || lpad(currval('wt.sh_round')::text, 20, '0') || lpad(k::text, 2, '0') $$;
create function wt.sh_start(ks int[], version int default 1) returns bigint language sql
as $$
	select nextval('wt.sh_round');
	select count(*) filter (where code = 0) from wiggle.batch(row(array(select wt.sh(k) from unnest(ks) k), array(select 'share' from unnest(ks)), array(select version from unnest(ks)),
		array(select null::text from unnest(ks)), array(select '{}'::text from unnest(ks)))::wiggle.batch_starts, null, null, null, null, null)
$$;
-- One poll of these queues (none: all), within these shares; what it takes as queue:instance:bucket.
create function wt.sh_poll(queues text[], most int, shares wiggle.batch_shares, versions int[] default null) returns text language sql
as $$
	select coalesce(string_agg(right(instance_id, 2) || case when node_id <> 'n1' then node_id else '' end, ' ' order by instance_id, node_id), 'nothing')
	  from wiggle.batch(null, null, null, null, null, row('{w#0000000000001}', array[most], '{0}', array(select 0 from unnest(queues)), queues,
		array(select 0 from unnest(versions)), array(select 'share' from unnest(versions)), versions)::wiggle.batch_polls, null, shares)
$$;
-- IEEE 802.3, one bit after the other.
create function wt.crc32(t text) returns bigint language plpgsql
as $$
declare
	crc bigint := 4294967295;
begin
	for i in 0 .. octet_length(t) - 1 loop
		crc := crc # get_byte(convert_to(t, 'UTF8'), i);
		for bit in 1 .. 8 loop
			crc := (crc >> 1) # case when crc & 1 = 1 then 3988292384 else 0 end;
		end loop;
	end loop;
	return crc # 4294967295;
end $$;
select to_hex(wt.crc32('123456789'));
select wt.sh_start(array(select generate_series(0, 9)));
select right(i.id, 2) as instance, r.n, r.bucket, r.bucket = wt.crc32(replace(i.id, 'wfi', 'tok') || '-' || r.n) % 1000 as crc32
  from wiggle.wf_ready r join wiggle.wf_instance i on i.no = r.instance order by 1;

-- A range is half open; what is not in it stays for others, oldest first.
select wt.sh_poll('{share}', 9, row('{0}', '{share}', array[(select min(bucket) from wiggle.wf_ready)], array[(select max(bucket) from wiggle.wf_ready)])) as all_but_the_highest;
select wt.sh_poll('{share}', 9, row('{0}', '{share}', array[0], array[(select max(bucket) from wiggle.wf_ready)])) as nothing_left;
select wt.sh_poll('{share}', 9, row('{0}', '{share}', '{0}', '{1000}')) as the_highest;
select wt.clear();
select wt.sh_start(array(select generate_series(0, 9)));
select wt.sh_poll('{share}', 2, row('{0}', '{share}', '{0}', '{500}')) as two_of_the_lower_half, wt.sh_poll('{share}', 9, row('{0}', '{share}', '{500}', '{1000}')) as upper_half;
select wt.sh_poll('{share}', 9, row('{0}', '{share}', '{500}', '{500}')) as empty_range, wt.sh_poll('{share}', 9, null) as the_rest;

-- Shares are by queue: others are not bound by them, nor are polls that are not listed.
select wt.clear();
select wt.sh_start(array(select generate_series(0, 5)));
select wt.sh_poll('{share}', 9, row('{0}', '{other}', '{0}', '{1}')) as all_of_it;
select wt.clear();
select wt.sh_start(array(select generate_series(0, 5)));
select wt.sh_poll('{share}', 9, row('{}', '{share}', '{0}', '{0}')) as not_bound;
-- A poll that names no queue: the one without a name is for those that are not listed.
select wt.clear();
select wt.sh_start(array(select generate_series(0, 5)));
select wt.sh_poll(null, 9, row('{0}', '{null,share}', '{0,0}', '{1000,0}')) as listed, wt.sh_poll(null, 9, row('{0}', '{null}', '{0}', '{0}')) as not_listed;
select wt.sh_poll('{share}', 9, row('{0}', '{null}', '{0}', '{0}')) as it_names_one;
-- Versions count beside shares.
select wt.clear();
select wt.sh_start(array(select generate_series(0, 9)));
select wt.sh_start(array(select generate_series(10, 19)), 2);
select wt.sh_poll('{share}', 9, row('{0}', '{share}', '{0}', '{500}'), '{2}') as lower_half_of_version_2;
select wt.sh_poll('{share}', 9, row('{0}', '{share}', '{500}', '{1000}'), '{2}') as upper_half_of_version_2, wt.sh_poll('{share}', 9, null) as version_1;

-- What the batch itself mints is handed over whatever its bucket.
select wt.clear();
select nextval('wt.sh_round') > 0 as round;
select right(instance_id, 2) as minted from wiggle.batch(row(array[wt.sh(1)], '{share}', '{1}', '{null}', '{"{}"}')::wiggle.batch_starts, null, null, null, null,
	row('{w#0000000000001}', '{9}', '{0}', '{0}', '{share}', null, null, null)::wiggle.batch_polls, null, row('{0}', '{share}', '{0}', '{0}')) where op = 't';

-- A poll in its share and one beyond it in one batch.
select wt.clear();
select wt.sh_start(array(select generate_series(0, 9)));
select item, string_agg(right(instance_id, 2), ' ' order by instance_id) from wiggle.batch(null, null, null, null, null,
	row('{w#0000000000001,w#0000000000002}', '{9,9}', '{0,0}', '{0,1}', '{share,share}', null, null, null)::wiggle.batch_polls, null, row('{0}', '{share}', '{500}', '{1000}'))
 group by 1 order by 1;

-- What one has looked at and left another takes, and the first then comes back for: by a trigger as well, which
-- counts as a command of its own.
create table wt.sh_gone (n int);
create function wt.sh_note() returns trigger language plpgsql security definer as $$ begin insert into wt.sh_gone values (old.n); return null; end $$;
create trigger wt_gone after delete on wiggle.wf_ready for each row execute function wt.sh_note();
create function wt.sh_three() returns text language sql
as $$
	select string_agg(item || ':' || node_id, ' ' order by item) from wiggle.batch(null, null, null, null, null,
		row('{w#0000000000001,w#0000000000002,w#0000000000003}', '{1,1,9}', '{0,0,0}', '{0,0,1,2,2}', '{share,share-b,share,share,share-b}', null, null, null)::wiggle.batch_polls, null,
		row('{0,2}', '{share,share-b}', '{0,0}', '{999,999}'))
$$;
select wt.clear();
select wt.sh_start('{1}');
select count(wiggle.complete(task_id, lease_owner)) from wiggle.poll('w', '{share}', 1);
select wt.sh_start('{2}');
select wt.sh_three();
drop trigger wt_gone on wiggle.wf_ready;
select wt.clear();
select wt.sh_start('{1}');
select count(wiggle.complete(task_id, lease_owner)) from wiggle.poll('w', '{share}', 1);
select wt.sh_start('{2}');
select wt.sh_three();

-- The owners of what stands in front lag behind: after 256 of theirs in a row a poll takes what comes.
select wt.clear();
select count(wiggle.start('share', version => 1)) from generate_series(1, 300);
select count(*) from wiggle.batch(null, null, null, null, null, row('{w#0000000000001}', '{100}', '{0}', '{0}', '{share}', null, null, null)::wiggle.batch_polls, null, row('{0}', '{share}', '{0}', '{0}'));
select count(*) from wiggle.batch(null, null, null, null, null, row('{w#0000000000001}', '{100}', '{0}', '{0}', '{share}', null, null, null)::wiggle.batch_polls, null, row('{0}', '{share}', '{0}', '{0}'));
select count(*) from wiggle.wf_ready;
-- The mark did not pass what was left: it is found.
select count(*) from wiggle.poll('w', '{share}', 1000);
select wt.clear();

-- Shares that are none.
create function wt.sh_refusal(shares text) returns text language sql
as $$ select wt.refusal('select count(*) from wiggle.batch(null, null, null, null, null, row(''{w#0000000000001}'', ''{1}'', ''{0}'', ''{0}'', ''{share}'', null, null, null)::wiggle.batch_polls, null, ' || shares || ')') $$;
select wt.sh_refusal($$row('{0}', '{share}', '{0}', '{}')$$);
select wt.sh_refusal($$row('{1}', '{share}', '{0}', '{9}')$$);
select wt.sh_refusal($$row('{-1}', '{share}', '{0}', '{9}')$$);
select wt.sh_refusal($$row('{0}', '{share}', '{-1}', '{9}')$$);
select wt.sh_refusal($$row('{0}', '{share}', '{9}', '{8}')$$);
select wt.sh_refusal($$row('{0}', '{share}', '{9}', '{1001}')$$);

-- Members: one name, one member, while it is heard from within 60 s.
select wt.at(1000);
select * from wiggle.node_beat('n1', 'same', 1, '[]', true);
select * from wiggle.node_beat('n2', 'same', 1, '[]', true);
select * from wiggle.node_beat('n3', 'same', 1, '[]', false);
select * from wiggle.node_beat('n4', 'other', 1, '[]', true);
select id, name, alive, leader, partition, member from wiggle.nodes();
select wt.at(1030), wiggle.node_beat('n1', 'same', 1, '[]', true), wiggle.node_beat('n2', 'same', 1, '[]', true);
select wt.at(1089), wiggle.node_beat('n2', 'same', 1, '[]', true);
select id, alive, partition, member from wiggle.nodes() order by id;
select wt.at(1091), wiggle.node_beat('n2', 'same', 1, '[]', true);
select id, alive, partition, member from wiggle.nodes() order by id;
-- One that comes back after a long silence has lost its name; those that died are forgotten when another comes.
select wt.at(1092), wiggle.node_beat('n1', 'same', 1, '[]', true);
select id, alive, partition, member from wiggle.nodes() order by id;
select wt.at(1100), wiggle.node_beat('n4', 'other', 1, '[]', true);
select wt.at(4690), wiggle.node_beat('n4', 'other', 1, '[]', true);
select wiggle.node_beat('n5', 'another', 1, '[]', true);
select id, alive, partition, member from wiggle.nodes() order by id;
-- The clock is set back: who is not heard from since is taken for dead, whatever its row says, and forgotten like the others.
select wt.at(4000);
select id, alive, leader, member from wiggle.nodes() order by id;
select wiggle.node_beat('n5', 'another', 1, '[]', true);
select id, alive, leader, member from wiggle.nodes() order by id;
select wt.at(1000), wiggle.node_beat('n6', 'another', 1, '[]', true);
select id, alive, leader, member from wiggle.nodes() order by id;
select wiggle.node_leave(id) from wiggle.nodes();
select count(*) from wiggle.nodes();

select wiggle.test_set_clock(null);
select * from wt.finish();
