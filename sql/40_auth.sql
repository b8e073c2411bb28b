-- Roles and credentials of the proxies' clients.
select name, permissions, builtin from wiggle.auth_roles();
select wiggle.auth_put_role('worker', '{read:order,task.poll:eu.*,event.read}', 'test');
select wiggle.auth_put_role('worker', array['read', 'task.poll:a queue: with ''all'' kinds'], 'test');
select name, permissions, builtin from wiggle.auth_roles();
select p, wt.refusal(format('select wiggle.auth_put_role(''r'', array[%L])', p))
  from unnest(array['fly', 'read:', 'read:*', 'event.read:x', 'user.manage:x', '*:x', ':x', '', E'read:a\nb', null]) p;
select wt.refusal('select wiggle.auth_put_role(''r'', ''{}'')');
select n, wt.refusal(format('select wiggle.auth_put_role(%L, ''{read}'')', n)) from unnest(array['', 'a b', '.a', repeat('n', 65), null]) n;
select wt.refusal('select wiggle.auth_put_role(''admin'', ''{read}'')'), wt.refusal('select wiggle.auth_drop_role(''viewer'')');

-- A key is shown once; what stays is its SHA-256 and its first characters.
create temp table made as select wiggle.auth_create_key('k', 'worker', actor => 'test') as key;
select key ~ '^wgk_[A-Za-z0-9_-]{43}$' as form, c.key_hash = sha256(convert_to(key, 'UTF8')) as hash, c.key_prefix = left(key, 12) as prefix,
	   length(c.key_prefix), c.role, c.subject, c.expires_at
  from made, wiggle.wf_auth_credential c where c.id = 'k';
select id, permissions, expires_at from made, wiggle.auth_find(sha256(convert_to(key, 'UTF8')), null);
select count(*) from wiggle.auth_find(sha256('another'), null);
select count(*) from wiggle.auth_find(null, null);
select count(distinct wiggle.auth_create_key('many' || n, 'viewer', actor => 'test')) from generate_series(1, 100) n;
select wiggle.auth_add_certificate('c', ' CN=worker,O=Acme ', 'viewer', '2999-01-01', 'test');
select id, permissions, expires_at = '2999-01-01' as expires from wiggle.auth_find(null, 'CN=worker,O=Acme');
select wt.refusal('select wiggle.auth_create_key(''k'', ''worker'')'), wt.refusal('select wiggle.auth_create_key(''l'', ''nobody'')'),
	   wt.refusal('select wiggle.auth_create_key(''l'', ''worker'', now() - interval ''1 s'')'),
	   wt.refusal('select wiggle.auth_add_certificate(''d'', ''CN=worker,O=Acme'', ''viewer'')'),
	   wt.refusal('select wiggle.auth_add_certificate(''d'', '' '', ''viewer'')');

-- Other roles, and the end.
select wt.refusal('select wiggle.auth_drop_role(''worker'')');
select wiggle.auth_grant('k', 'viewer', 'test');
select permissions from made, wiggle.auth_find(sha256(convert_to(key, 'UTF8')), null);
select wt.refusal('select wiggle.auth_grant(''x'', ''viewer'')'), wt.refusal('select wiggle.auth_grant(''k'', ''x'')');
select wiggle.auth_drop_role('worker', 'test');
select wt.refusal('select wiggle.auth_drop_role(''worker'')');
select wiggle.auth_revoke('k', 'test');
select count(*) from made, wiggle.auth_find(sha256(convert_to(key, 'UTF8')), null);
select wt.refusal('select wiggle.auth_revoke(''k'')');

-- Every change is on record, refused ones are not, and the end of the record moves.
select action, target, regexp_replace(detail, 'wgk_\S+', 'wgk_…') as detail from wiggle.wf_auth_audit where actor = 'test' and target !~ '^many' order by seq;
select wiggle.auth_head() = (select max(seq) from wiggle.wf_auth_audit) as head, (select count(*) from wiggle.wf_auth_audit) = wiggle.auth_head() as gapless;
select bool_or(a::text like '%' || m.key || '%') from wiggle.wf_auth_audit a, made m;

-- Readers see nothing of it.
set role wiggle_reader;
select * from wiggle.wf_auth_credential;
select * from wiggle.auth_credentials();
reset role;
set role wiggle_client;
select wiggle.auth_create_key('mine', 'admin');
reset role;
delete from wiggle.wf_auth_credential;
select * from wt.finish();
