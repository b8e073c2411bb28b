-- What an administrator adds to the hot tables stays true: an index, a trigger,
-- a publication with a slot; and what he moves is found again.
select wt.register('{"workflow":"ad","version":1,"steps":[{"task":"a","retry":{"max":3,"backoff":"0ms"}},{"gate":"g"},{"task":"b"}]}');
create function wt.round_trip(label text) returns text language plpgsql
as $$
begin
	perform wt.start(label, 'ad', '{"n":1}');
	perform wt.claim(label, 'ad');
	perform wt.fail(label, 'once');
	perform wt.claim(label, 'ad');
	perform wiggle.heartbeat(wt.task(label), wt.owner(label));
	perform wt.complete(label, '{"n":2}');
	perform wt.claim(label, 'ad');
	perform wt.decide(label, true);
	perform wt.claim(label, 'ad');
	perform wt.complete(label, '{"n":3}');
	return wt.show(label);
end $$;

-- Indexes: plain, partial, on an expression, hash.
create index wt_ready on wiggle.wf_ready (definition, instance);
create index wt_lease on wiggle.wf_lease (owner);
create index wt_lease_expiry on wiggle.wf_lease (expires_at);
create index wt_token on wiggle.wf_token (node, status) where status in ('R', 'W');
create index wt_instance on wiggle.wf_instance (upper(workflow), status);
create index wt_instance_status on wiggle.wf_instance using hash (status);
create index wt_scope on wiggle.wf_scope ((context->>'n'));
create index wt_timer on wiggle.wf_timer (instance);
select wt.round_trip('indexed');
set enable_seqscan = off;
select i.status from wiggle.wf_instance i where upper(i.workflow) = 'AD' and i.status = 'COMPLETED';
select count(*) from wiggle.wf_instance where status = 'RUNNING';
select context from wiggle.wf_scope where context->>'n' = '3' and instance = (select wt.no('indexed'));
select count(*) from wiggle.wf_token where node = 'n1' and status in ('R', 'W') and instance = (select wt.no('indexed'));
reset enable_seqscan;

-- A unique index of theirs is kept: a violation fails the call, and only it.
create unique index wt_one on wiggle.wf_instance (correlation_id) where correlation_id like 'once-%';
select count(wiggle.start('ad', correlation_id => 'once-1'));
select wt.refusal('select wiggle.start(''ad'', correlation_id => ''once-1'')');
select count(*) from wiggle.instances(correlation_id => 'once-1');
drop index wiggle.wt_one;
select wt.clear();

-- Triggers fire for every kind of write, row and statement, before and after, and
-- what they do is in the same transaction.
create table wt.seen (tbl text, op text, level text);
create function wt.see() returns trigger language plpgsql as $$ begin insert into wt.seen values (tg_table_name, tg_op, tg_when || ' ' || tg_level); return coalesce(new, old); end $$;
do $$
declare
	t text;
begin
	foreach t in array array['wf_instance', 'wf_scope', 'wf_token', 'wf_ready', 'wf_lease', 'wf_timer'] loop
		execute format('create trigger wt_before before insert or update or delete on wiggle.%I for each row execute function wt.see()', t);
		execute format('create trigger wt_after after insert or update or delete on wiggle.%I for each row execute function wt.see()', t);
	end loop;
end $$;
select wt.round_trip('triggered');
select tbl, op, level, count(*) from wt.seen group by 1, 2, 3 order by 1, 2, 3;
select count(*) as before from wt.seen \gset
begin;
select wt.round_trip('undone');
select count(*) - :before as more from wt.seen;
rollback;
select count(*) - :before as more from wt.seen;
truncate wt.seen;
-- A trigger's refusal fails the call and nothing of it stays.
create function wt.forbid() returns trigger language plpgsql as $$ begin raise exception 'not on a Sunday'; end $$;
create trigger wt_no after insert on wiggle.wf_token for each row execute function wt.forbid();
select wt.refusal('select wiggle.start(''ad'')');
drop trigger wt_no on wiggle.wf_token;
drop function wt.forbid();
-- A deferred one at commit.
create function wt.late() returns trigger language plpgsql as $$ begin insert into wt.seen values (tg_table_name, 'deferred', new.status::text); return null; end $$;
create constraint trigger wt_late after update on wiggle.wf_instance deferrable initially deferred for each row execute function wt.late();
select wt.round_trip('deferred') is not null as done;
select op, level from wt.seen where op = 'deferred';
drop trigger wt_late on wiggle.wf_instance;
drop function wt.late();
do $$
declare
	t text;
begin
	foreach t in array array['wf_instance', 'wf_scope', 'wf_token', 'wf_ready', 'wf_lease', 'wf_timer'] loop
		execute format('drop trigger wt_before on wiggle.%I', t);
		execute format('drop trigger wt_after on wiggle.%I', t);
	end loop;
end $$;

-- A publication: every change is in the stream.
create publication wt_pub for table wiggle.wf_instance, wiggle.wf_token, wiggle.wf_ready, wiggle.wf_lease, wiggle.wf_timer, wiggle.wf_scope;
select 'slot' from pg_create_logical_replication_slot('wt_slot', 'test_decoding');
select wt.round_trip('published');
select kind, count(*) from (select substring(data from '^table (wiggle\.\w+: [A-Z]+)') as kind from pg_logical_slot_get_changes('wt_slot', null, null)) c
 where kind is not null group by 1 order by 1;
select pg_drop_replication_slot('wt_slot');
drop publication wt_pub;

-- VACUUM FULL, CLUSTER and REINDEX in between: the next call finds its way.
select wt.start('moved', 'ad', '{"n":1}');
vacuum full wiggle.wf_ready;
vacuum full wiggle.wf_token;
reindex table wiggle.wf_instance;
cluster wiggle.wf_scope using wf_scope_pkey;
select wt.claim('moved', 'ad');
vacuum full wiggle.wf_lease;
vacuum freeze wiggle.wf_instance, wiggle.wf_token, wiggle.wf_scope;
select wt.complete('moved', '{"n":2}'), wt.show('moved');
-- Columns of theirs the engine does not know how to fill: it refuses, and works
-- again without them.
begin;
alter table wiggle.wf_instance add column note text default 'theirs';
select wt.refusal('select wiggle.start(''ad'')');
rollback;
select wt.clear();
select wt.round_trip('as before');
drop index wiggle.wt_ready, wiggle.wt_lease, wiggle.wt_lease_expiry, wiggle.wt_token, wiggle.wt_instance, wiggle.wt_instance_status, wiggle.wt_scope, wiggle.wt_timer;
select wt.round_trip('plain');
select * from wt.finish();
