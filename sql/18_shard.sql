-- Becoming a shard: once, with a number; ids bear it from then on.
select shard_id, system_id = (select system_identifier::text from pg_control_system()) as system,
	   database = (select oid from pg_database where datname = current_database()) as database, library_version, catalog_version,
	   now between now() - interval '1 minute' and now() + interval '1 minute' as now from wiggle.shard();
select n, wt.refusal(format('select wiggle.shard_claim(%L)', n)) from unnest(array[null, '-1', '1000000000', '2147483648']) n;
-- A database that holds instances without a shard can only be shard 0, where such ids are looked for.
select count(*) > 0 as holds_instances from wiggle.wf_instance;
select wt.refusal('select wiggle.shard_claim(3)');
begin;
select wiggle.shard_claim(0);
select shard_id from wiggle.shard();
select wt.refusal('select wiggle.shard_claim(1)');
rollback;
select shard_id from wiggle.shard();
select wt.register('{"workflow":"sh","version":1,"steps":[{"task":"a"}]}');
select wt.start('bare', 'sh');
select wiggle.shard_claim(0), wiggle.shard_claim(0);
select wt.refusal('select wiggle.shard_claim(1)');
select shard_id from wiggle.shard();
select count(*), bool_and(claimed_at is not null) from wiggle.wf_shard;

-- Ids name the shard; the bare one from before is still this shard's.
select wt.start('sharded', 'sh'), wt.id('bare') ~ '^wfi_' as bare, wt.id('sharded') ~ '^wfi\.s0\.[0-9a-z]{22}$' as sharded;
select count(*), bool_and(id ~ '^wfi\.s0\.') from wiggle.mint(10) id;
select wt.claim('bare', 'sh'), wt.complete('bare', '{"bare":true}'), wt.show('bare');
select wt.claim('sharded', 'sh'), wt.task('sharded') ~ '^tok\.s0\.[0-9a-z]{22}-1$' as task, wt.complete('sharded', '{"sharded":true}'), wt.show('sharded');
select wt.refusal('select wiggle.start(''sh'', id => ''wfi.s1.0123456789abcdefghjkmn'')');
select wt.refusal('select wiggle.start(''sh'', id => ''wfi_0123456789abcdefghjkmn'')');
insert into wt.instance select 'minted', wiggle.mint();
select wiggle.start('sh', id => wt.id('minted')) = wt.id('minted') as same, wiggle.start('sh', id => wt.id('minted')) = wt.id('minted') as again;
-- Tasks of other shards are simply not here.
select wt.refusal('select wiggle.complete(''tok.s1.0123456789abcdefghjkmn-1'', ''w#0000000000000'')'), wt.refusal('select wiggle.cancel(''wfi.s1.0123456789abcdefghjkmn'')');
select * from wt.finish();
