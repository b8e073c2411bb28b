-- Which databases there are, by the registry on home: states move forward only, and
-- a database that is not the one that was known as a shard is refused.
begin;
create function wt.admit(entries text, whole boolean default false) returns setof text language sql
as $$ select a.shard || ': ' || regexp_replace(a.refusal, '\d{4}-\d\d-\d\dT[0-9:]+Z', '<when>') from wiggle.shard_admit(entries::jsonb, whole) a $$;
-- The whole topology, as home takes it over or not.
create function wt.take(entries text, generations text default '[]', withdraw boolean default false) returns setof text language sql
as $$ select regexp_replace(coalesce(a.refusal, 'notice: ' || a.notice), '\d{4}-\d\d-\d\dT[0-9:]+Z', '<when>')
	from wiggle.topology_admit(entries::jsonb, generations::jsonb, withdraw) a $$;
-- An entry as a proxy makes it.
create function wt.entry(id int, state text, identity int default null, timeline int default 1, wal text default '0/100', more text default '{}')
returns text language sql as $$
	select jsonb_build_object('id', id, 'state', state, 'place', format('host:%s/db', coalesce(identity, 0))) ||
		case when identity is null then '{}' else jsonb_build_object('facts', jsonb_build_object(
			'identity', lpad(identity::text, 32, '0'), 'system', '7' || identity, 'database', '5', 'timeline', timeline, 'wal', wal) || more::jsonb) end
$$;
select wt.admit('[' || wt.entry(0, 'ACTIVE', 1) || ',' || wt.entry(1, 'ACTIVE', 2) || ',' || wt.entry(9, 'RETIRED') || ']', true);
select shard_id, state, place, emptied, first_seen is not null as first, seen_at is not null as seen from wiggle.shards();
-- Later on the same timeline, and after a promotion also with less written.
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 1, '0/200') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/150') || ']');
select timeline, wal from wiggle.wf_shard_registry where shard_id = 1;
-- The former primary; a copy from before, with the position that it lies behind; another database.
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 1, '0/900') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/140') || ']');
select shard, wal from wiggle.shard_admit(('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/140') || ',' || wt.entry(0, 'ACTIVE', 9, 2, '0/140') || ']')::jsonb, false);
-- What proxies tell between starts: further only, of this identity and timeline only, and not more often than every few seconds.
create function wt.written(wal text, identity int default 2, timeline int default 2) returns pg_lsn language sql as $$
	select wiggle.shard_positions(jsonb_build_array(jsonb_build_object('id', 1, 'identity', lpad(identity::text, 32, '0'),
		'timeline', timeline, 'wal', wal)));
	select r.wal from wiggle.wf_shard_registry r where r.shard_id = 1
$$;
select wt.written('0/160') as soon;
update wiggle.wf_shard_registry set wal_at = clock_timestamp() - interval '10 s';
select wt.written('0/160', 3) as another, wt.written('0/160', timeline => 1) as former, wt.written('0/140') as behind, wt.written('0/160') as further;
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/150') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/160') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 3, 2, '0/150') || ']');
select place, timeline, wal from wiggle.wf_shard_registry where shard_id = 1;
-- One that was adopted takes its place, once; the original does not come back.
select wt.admit('[' || wt.entry(1, 'ACTIVE', 3, 1, '0/1', '{"adopted":"2026-01-02"}') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 2, 2, '0/300') || ']');
select wt.admit('[' || wt.entry(1, 'ACTIVE', 4, 9, '0/300', '{"adopted":"2026-01-01"}') || ']');
-- The extension was created anew in the same database.
select wt.admit('[' || wt.entry(1, 'ACTIVE', 5, 1, '0/2', '{"system":"73"}') || ']');
-- A shard that is left out, one that goes back, one that is not empty.
select wt.admit('[' || wt.entry(0, 'ACTIVE', 1) || ']', true);
select wt.admit('[' || wt.entry(1, 'RETIRED') || ']');
select wt.take('[' || wt.entry(0, 'ACTIVE') || ',' || wt.entry(1, 'RETIRED') || ',' || wt.entry(2, 'DRAINING') || ']');
select wt.take('[' || wt.entry(0, 'DRAINING') || ',' || wt.entry(2, 'ACTIVE') || ']');
-- A database that is admitted moves nothing, nor does a topology of which anything is refused; only one that is taken as a whole does.
select wt.admit('[' || wt.entry(0, 'ACTIVE', 1) || ',' || wt.entry(1, 'DRAINING', 5, 1, '0/3', '{"system":"73"}') || ']', true);
select shard_id, state from wiggle.shards();
select wt.take('[' || wt.entry(0, 'ACTIVE') || ',' || wt.entry(1, 'DRAINING') || ']');
select shard_id, state from wiggle.shards();
select wt.admit('[' || wt.entry(1, 'ACTIVE', 5, 1, '0/3', '{"system":"73"}') || ']');
select wt.admit('[' || wt.entry(1, 'RETIRED') || ']');
-- Emptied, as the shard itself says, unless something is due there.
insert into wiggle.wf_outbox values ('wfi.s1.x', 1, 'w', null, '{}', now());
select wt.admit('[' || wt.entry(1, 'DRAINING', 5, 1, '0/4', '{"system":"73","emptied":"2026-02-02"}') || ']');
select emptied from wiggle.shards() where shard_id = 1;
select wt.admit('[' || wt.entry(1, 'RETIRED') || ']');
select wt.refusal('select wiggle.shard_owed(1)'), wt.refusal('select wiggle.shard_owed(2)');
delete from wiggle.wf_outbox;
select wt.admit('[' || wt.entry(1, 'DRAINING', 5, 1, '0/4', '{"system":"73","emptied":"2026-02-02"}') || ']');
select emptied from wiggle.shards() where shard_id = 1;
select wt.take('[' || wt.entry(0, 'ACTIVE') || ',' || wt.entry(1, 'RETIRED') || ']');
select wt.admit('[' || wt.entry(1, 'DRAINING') || ']');
select shard_id, state from wiggle.shards();
-- A retired one may be left out or be listed.
select wt.admit('[' || wt.entry(0, 'ACTIVE', 1) || ']', true);
select wt.admit('[' || wt.entry(2, 'DRAINING', 6) || ']');
select wt.take('[' || wt.entry(0, 'ACTIVE') || ',' || wt.entry(2, 'DRAINING') || ']');
select wt.refusal('select wiggle.shard_write_off(0)'), wt.refusal('select wiggle.shard_write_off(7)');
insert into wiggle.wf_outbox values ('wfi.s2.x', 2, 'w', null, '{}', now()), ('wfi.s3.x', 3, 'w', null, '{}', now());
select wiggle.shard_write_off(2);
select id from wiggle.wf_outbox;
select wt.take('[' || wt.entry(0, 'ACTIVE') || ',' || wt.entry(2, 'RETIRED') || ']');
select shard_id, state from wiggle.shards();
-- Home's own position is not compared: it is in every copy.
select wt.admit('[' || wt.entry(0, 'ACTIVE', 1, 1, '0/1') || ']');
-- The keys and roles of clients stay where they were noted first, unless that is home and has none, or shard_auth() has said otherwise.
select wt.take('[{"id":0,"state":"ACTIVE","auth":true},{"id":3,"state":"ACTIVE"}]');
select wt.take('[{"id":0,"state":"ACTIVE"},{"id":3,"state":"ACTIVE","auth":true}]');
select wt.take('[{"id":0,"state":"ACTIVE","auth":true},{"id":3,"state":"ACTIVE"}]');
select wt.refusal('select wiggle.shard_auth(8)');
select wiggle.shard_auth(0);
select wt.take('[{"id":0,"state":"ACTIVE","auth":true},{"id":3,"state":"ACTIVE"}]');
select wiggle.auth_put_role('kept', '{read}', 'test');
select wt.take('[{"id":0,"state":"ACTIVE"},{"id":3,"state":"ACTIVE","auth":true}]');
select shard_id from wiggle.wf_shard_registry where auth;
-- One that was never reached may be taken back, unless something waits for it.
delete from wiggle.wf_outbox;
select wt.take('[{"id":0,"state":"ACTIVE"},{"id":3,"state":"ACTIVE"},{"id":4,"state":"ACTIVE"}]');
select wt.take('[{"id":0,"state":"ACTIVE"},{"id":3,"state":"ACTIVE"},{"id":4,"state":"RETIRED"}]');
select wt.take('[{"id":0,"state":"ACTIVE"}]');
select array_agg(shard_id order by shard_id) from wiggle.shards();
-- Of a generation that has begun there is one: it is neither another time nor other weights. One that has not may change, also without weight 0.
create function wt.one(generation int, active_from text, weights text) returns text language sql
as $$ select jsonb_build_array(jsonb_build_object('id', generation, 'activeFrom', active_from, 'weights', weights::jsonb))::text $$;
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(2, '2020-01-01T00:00:00Z', '{"0":1,"10":2}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(2, '2020-01-01T00:00:00Z', '{"9":0,"10":2,"0":1}'));
select wt.take('[{"id":0,"state":"ACTIVE"},{"id":5,"state":"ACTIVE"}]', wt.one(2, '2020-01-01T00:00:00Z', '{"0":1,"10":1}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(2, '2035-01-01T00:00:00.5Z', '{"0":1,"10":2}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(2, '2020-01-01T00:00:00.001Z', '{"0":3}'));
select count(*) from wiggle.shards() where shard_id = 5;
select * from wiggle.wf_placement order by 1, 3;
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(1, '2019-01-01T00:00:00Z', '{"0":3}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(4, '2050-01-01T00:00:00Z', '{"0":3}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(4, '2060-01-01T00:00:00Z', '{"0":2}'));
select wt.take('[{"id":0,"state":"ACTIVE"}]', wt.one(3, '2020-02-01T00:00:00Z', '{"0":4}'), true);
select * from wiggle.wf_placement order by 1, 3;
rollback;

-- What a shard has to do.
select l.live = (select count(*) from wiggle.wf_instance where status in ('RUNNING', 'COMPENSATING')) as live,
	   l.held = (select count(*) from wiggle.wf_instance) as held, l.lag_millis >= 0 as lag, l.extension, l.more from wiggle.shard_load() l;

-- What a shard knows of itself.
begin;
select s.identity = f.identity as identity, f.timeline > 0 as timeline, f.genuine, f.facts - '{identity,system,database,wal,timeline}'::text[] as others,
	   (f.facts->>'wal')::pg_lsn <= pg_current_wal_flush_lsn() as wal, f.facts->>'system' = h.system_id as system, f.facts->>'database' = h.database::text as database
  from wiggle.wf_shard s, wiggle.shard_facts() f, wiggle.shard() h;
update wiggle.wf_shard set system_id = '1';
select genuine from wiggle.shard_facts();
select wiggle.shard_adopt() as adopted \gset
select identity = :'adopted' as adopted from wiggle.wf_shard;
select genuine, facts->'adopted' is not null as adopted from wiggle.shard_facts();
delete from wiggle.wf_shard;
select wt.refusal('select wiggle.shard_adopt()');
rollback;

-- Retiring: a draining shard that holds nothing, neither instances nor events that somebody waits for.
begin;
select wt.refusal('select wiggle.shard_retire()');
select wiggle.shard_home(0, 'ACTIVE');
select wt.refusal('select wiggle.shard_retire()');
select wiggle.shard_home(0, 'DRAINING'), wiggle.shard_home(0, 'ACTIVE');
select state from wiggle.wf_shard;
select wt.register('{"workflow":"retire","version":1,"steps":[{"task":"a"}]}');
delete from wiggle.wf_instance;
delete from wiggle.wf_event;
delete from wiggle.wf_event_cursor;
select wt.start('last', 'retire'), wt.start('other', 'retire'), wiggle.cancel(wt.id('other')) is not null as cancelled;
select wt.refusal('select wiggle.shard_retire()');
delete from wiggle.wf_instance;
insert into wiggle.wf_event_cursor values ('slow', 0, 0, now());
select wt.refusal('select wiggle.shard_retire()');
delete from wiggle.wf_event_cursor;
-- Many are counted up to a bound, of the newest; one that is left is enough.
insert into wiggle.wf_instance (no, created_at, updated_at, version, depth, id, workflow, status)
select n, now(), now(), 1, 0, 'wfi.s0.' || n, 'retire', case when n % 3 = 0 then 'RUNNING' else 'COMPLETED' end from generate_series(1, 12000) n;
select live, held, more from wiggle.shard_load();
select wt.refusal('select wiggle.shard_retire()');
delete from wiggle.wf_instance where no > 10000;
select live, held, more from wiggle.shard_load();
select wt.refusal('select wiggle.shard_retire()');
delete from wiggle.wf_instance where no > 1;
select live, held, more from wiggle.shard_load();
select wt.refusal('select wiggle.shard_retire()');
delete from wiggle.wf_instance;
select wiggle.shard_retire();
select wiggle.shard_retire();
select facts->'emptied' is not null as emptied from wiggle.shard_facts();
select wt.refusal('select wiggle.start(''retire'')');
rollback;
select * from wt.finish();
