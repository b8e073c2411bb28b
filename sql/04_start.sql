-- Starting: in the caller's transaction, with an id minted before, by version.
select wt.register('{"workflow":"s","version":1,"steps":[{"task":"a"}]}');
select wt.register('{"workflow":"s","version":3,"steps":[{"task":"c"}]}');

-- Ids: 22 characters, the first ten of the time, without a shard until one is claimed.
select count(*), count(distinct id), bool_and(id ~ '^wfi_[0-9abcdefghjkmnpqrstvwxyz]{22}$') as well_formed
  from wiggle.mint(1000) id;
select (select count(*) from wiggle.mint()) as by_default, (select count(*) from wiggle.mint(null)) as for_null, (select count(*) from wiggle.mint(0)) as for_zero;
select wt.refusal('select wiggle.mint(-1)');
select wiggle.test_set_clock('2030-01-01 00:00:00+00');
select count(distinct substr(id, 5, 10)) as instants, min(substr(id, 5, 10)) as instant from wiggle.mint(100) id;
select wiggle.test_set_clock('2030-01-01 00:00:00.001+00');
select min(substr(id, 5, 10)) as a_millisecond_later from wiggle.mint(1) id;
select wiggle.test_set_clock(null);

-- The highest version unless one is named.
select wt.start('latest', 's'), wt.start('named', 's', '{"v":1}', 1);
select i.label, w.version, w.status, w.context from wt.instance i, lateral wiggle.instance(i.id) w order by 1;
select n, node, kind, status, attempt from wt.tokens('latest');

-- The instance exists if and only if the transaction commits.
begin;
select wt.start('gone', 's');
select status from wiggle.instance(wt.id('gone'));
select wt.id('gone') as gone \gset
rollback;
select wt.refusal(format('select wiggle.instance(%L)', :'gone'));
select count(*) from wiggle.wf_instance where id = :'gone';
begin;
select wt.start('kept', 's');
savepoint sp;
select wt.start('undone', 's');
select wt.id('undone') as undone \gset
rollback to sp;
select wt.start('kept too', 's');
commit;
select label, status from wt.instance i, lateral wiggle.instance(i.id) where label like 'kept%' order by 1;
select count(*) from wiggle.wf_instance where id = :'undone';
select wt.unsound();
-- An aborted start leaves nothing to claim, and does not hide what is older or newer.
select count(*) from wiggle.poll('w', array['s'], 100);

-- A trigger of the application starts workflows with its rows.
create table wt.orders (id int primary key, instance text);
create function wt.order_placed() returns trigger language plpgsql
as $$ begin new.instance := wiggle.start('s', jsonb_build_object('order', new.id), correlation_id => 'order-' || new.id); return new; end $$;
create trigger placed before insert on wt.orders for each row execute function wt.order_placed();
insert into wt.orders select generate_series(1, 3);
insert into wt.orders values (4), (1);
select i.correlation_id, i.context from wt.orders o, lateral wiggle.instance(o.instance) i order by o.id;
select count(*) from wiggle.wf_instance where correlation_id like 'order-%';
drop table wt.orders;
drop function wt.order_placed();

-- With an id from mint() a repeat changes nothing, even after more has happened.
insert into wt.instance select 'minted', wiggle.mint();
select wiggle.start('s', '{"first":true}', correlation_id => 'c1', id => wt.id('minted')) = wt.id('minted') as same;
select wiggle.start('s', '{"second":true}', version => 1, correlation_id => 'c2', id => wt.id('minted')) = wt.id('minted') as same;
select version, correlation_id, context from wiggle.instance(wt.id('minted'));
select wt.claim('minted', 's') from generate_series(1, 4);
select wt.complete('minted', '{"done":true}');
select wiggle.start('s', '{"third":true}', id => wt.id('minted')) = wt.id('minted') as same;
select wt.show('minted');
select count(*) from wt.tokens('minted');
-- Twice in one transaction, and in one statement.
insert into wt.instance select 'twice', wiggle.mint();
begin;
select wiggle.start('s', id => wt.id('twice')) = wiggle.start('s', id => wt.id('twice')) as same;
select wiggle.start('s', id => wt.id('twice')) = wt.id('twice') as same;
commit;
select count(*) from wt.tokens('twice');

-- The id must be this database's, and an instance's; another workflow's is a conflict.
select wt.register('{"workflow":"t","version":1,"steps":[{"task":"a"}]}');
select wt.refusal(format('select wiggle.start(%L, id => %L)', 't', wt.id('minted')));
select id, wt.refusal(format('select wiggle.start(''s'', id => %L)', id)) from unnest(array['', 'x', 'wfi_', 'wfi_0123456789abcdefghjkm',
	'wfi_0123456789abcdefghjkli', 'tok_0123456789abcdefghjkmn-1', 'WFI_0123456789abcdefghjkmn',
	'wfi.s03.0123456789abcdefghjkmn', 'wfi.s1234567890.0123456789abcdefghjkmn', 'wfi.s4.0123456789abcdefghjkmn']) id;

-- What is unknown or unreasonable is refused, and says so.
select wt.refusal('select wiggle.start(''nobody'')'), wt.refusal('select wiggle.start(''s'', version => 2)');
select wt.refusal('select wiggle.start(null)'), wt.refusal('select wiggle.start('''')');
select wt.refusal('select wiggle.start(''s'', version => -1)');
select wt.refusal(format('select wiggle.start(%L)', repeat('n', 1000))) = 'WG404: workflow ''' || repeat('n', 200) || ''' not found' as shortened;
select wt.refusal(format('select wiggle.start(''s'', correlation_id => %L)', repeat('ü', 201))),
	   wt.refusal(format('select wiggle.start(''s'', correlation_id => %L)', repeat('ü', 200))) like 'accepted%' as at_the_limit;

-- Many at once rise in number, oldest first, in the order in which they were started.
select count(wiggle.start('t', jsonb_build_object('k', k))) from generate_series(1, 300) k;
select bool_and(no > before) as rising from (select i.no, lag(i.no) over (order by (s.context->>'k')::int) as before
  from wiggle.wf_instance i join wiggle.wf_scope s on s.instance = i.no where i.workflow = 't') n;
select array_agg(context->'k') as oldest from wiggle.poll('w', array['t'], 4);
select * from wt.finish();
