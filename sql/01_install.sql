-- What CREATE EXTENSION makes, who may use it, and that all of it is documented.
select extname, extversion, nspname, extrelocatable
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'wiggle';
select library, catalog, now between now() and clock_timestamp() as now from wiggle.version();

select c.relkind, string_agg(c.relname, ' ' order by c.relname) as relations
  from pg_class c where c.relnamespace = 'wiggle'::regnamespace and c.relkind in ('r', 'v')
 group by 1 order by 1;
select string_agg(t.typname, ' ' order by t.typname) as row_types
  from pg_type t join pg_class c on c.oid = t.typrelid
 where t.typnamespace = 'wiggle'::regnamespace and c.relkind = 'c';
select p.oid::regprocedure as function, p.provolatile as volatile, p.proparallel as parallel, p.prosecdef as definer
  from pg_proc p where p.pronamespace = 'wiggle'::regnamespace order by p.oid::regprocedure::text collate "C";

-- Everything belongs to the extension.
select c.oid::regclass from pg_class c
 where c.relnamespace = 'wiggle'::regnamespace and c.relkind in ('r', 'v')
   and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e');

-- No function, table or view is without a comment, and the comments of the
-- functions that refuse say with which SQLSTATE.
select p.oid::regprocedure as undocumented from pg_proc p
 where p.pronamespace = 'wiggle'::regnamespace and obj_description(p.oid, 'pg_proc') is null;
select c.oid::regclass as undocumented from pg_class c
 where c.relnamespace = 'wiggle'::regnamespace and c.relkind in ('r', 'v') and obj_description(c.oid, 'pg_class') is null;
select p.proname as names_no_sqlstate from pg_proc p
 where p.pronamespace = 'wiggle'::regnamespace
   and p.proname in ('register', 'definition', 'start', 'cancel', 'instance', 'instances', 'tokens',
					 'complete', 'decide', 'shard_claim')
   and obj_description(p.oid, 'pg_proc') !~ 'WG4\d\d';

-- Every table that holds state is dumped with its rows.
select string_agg(c.relname, ' ' order by c.relname) as not_dumped
  from pg_class c, pg_extension e
 where c.relnamespace = 'wiggle'::regnamespace and c.relkind = 'r' and e.extname = 'wiggle'
   and not c.oid = any (e.extconfig);

-- The roles exist, cannot log in, and are nobody's members by themselves.
select rolname, rolcanlogin, rolsuper, rolcreaterole, rolbypassrls from pg_roles where rolname like 'wiggle\_%' order by 1;

-- PUBLIC may do nothing.
select p.oid::regprocedure as public_may_call from pg_proc p
 where p.pronamespace = 'wiggle'::regnamespace and has_function_privilege('public', p.oid, 'execute');
select c.oid::regclass as public_may_touch from pg_class c
 where c.relnamespace = 'wiggle'::regnamespace and c.relkind in ('r', 'v')
   and (has_table_privilege('public', c.oid, 'select, insert, update, delete, truncate, references, trigger')
		or has_any_column_privilege('public', c.oid, 'select, insert, update, references'));
select has_schema_privilege('public', 'wiggle', 'usage') as usage, has_schema_privilege('public', 'wiggle', 'create') as "create";

-- Nobody but the owner may write a table.
select c.oid::regclass, r.rolname from pg_class c, pg_roles r
 where c.relnamespace = 'wiggle'::regnamespace and c.relkind in ('r', 'v') and r.rolname like 'wiggle\_%'
   and has_table_privilege(r.oid, c.oid, 'insert, update, delete, truncate, trigger');

-- Who may call what.
select p.proname || '(' || p.pronargs || ')' as function,
	   has_function_privilege('wiggle_reader', p.oid, 'execute') as reader,
	   has_function_privilege('wiggle_worker', p.oid, 'execute') as worker,
	   has_function_privilege('wiggle_client', p.oid, 'execute') as client,
	   has_function_privilege('wiggle_server', p.oid, 'execute') as server,
	   has_function_privilege('wiggle_admin', p.oid, 'execute') as admin
  from pg_proc p where p.pronamespace = 'wiggle'::regnamespace
 order by p.proname collate "C";

-- The privileges at work: each role does its part without any right on a table.
create role wt_client login in role wiggle_client;
create role wt_worker login in role wiggle_worker;
create role wt_reader login in role wiggle_reader;
create role wt_server login in role wiggle_server;
create role wt_admin login in role wiggle_admin;
create role wt_nobody login;

set role wt_admin;
select name, created from wiggle.register('{"workflow":"roles","version":1,"steps":[{"task":"a"},{"gate":"g"}]}');
reset role;

set role wt_client;
select wiggle.start('roles', '{"n":1}') ~ '^wfi' as started;
select status, context from wiggle.instances('roles');
select count(*) from wiggle.instances('roles') i, lateral wiggle.tokens(i.id);
reset role;
set role wt_worker;
select instance_status from wiggle.poll('w', array['roles']) t, lateral wiggle.complete(t.task_id, t.lease_owner, '{"n":2}');
reset role;
set role wt_reader;
select status, context from wiggle.instances('roles');
select workflow from wiggle.running;
select count(*) > 0 as reads_tables from wiggle.wf_token;
reset role;
set role wt_admin;
select count(wiggle.cancel(id)) from wiggle.instances('roles', 'running');
select count(*) from wiggle.mint(2);
reset role;

-- And nobody does another's.
set role wt_client;
select wiggle.poll('w');
select wiggle.register('{}');
select count(*) from wiggle.wf_instance;
reset role;
set role wt_worker;
select wiggle.start('roles');
select wiggle.cancel('wfi_0');
select wiggle.instance('wfi_0');
reset role;
set role wt_reader;
select wiggle.start('roles');
select wiggle.poll('w');
delete from wiggle.wf_ready;
reset role;
set role wt_server;
select wiggle.shard_adopt();
select wiggle.shard_write_off(1);
select wiggle.test_set_clock(now());
select count(*) from wiggle.wf_instance;
reset role;
set role wt_nobody;
select wiggle.version();
select * from wiggle.running;
reset role;

drop role wt_client, wt_worker, wt_reader, wt_server, wt_admin, wt_nobody;

-- Security-definer functions do not follow the caller's search_path.
select p.oid::regprocedure as follows_search_path from pg_proc p
 where p.pronamespace = 'wiggle'::regnamespace and p.prosecdef
   and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false);

select * from wt.finish();
