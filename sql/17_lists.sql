-- Looking: instance(), instances(), tokens(), workflows(), the views.
set timezone = 'UTC';
set datestyle = 'ISO';
select wt.register('{"workflow":"ls","version":1,"steps":[{"task":"a"}]}');
select wt.register('{"workflow":"ls2","version":1,"steps":[{"task":"a","retry":{"max":5,"backoff":"1h"}}]}');
select wt.at(86400);
-- Ten of two workflows, a second apart, correlated in twos.
create function wt.listed(k int) returns text language plpgsql
as $$
begin
	perform wt.at(86400 + k);
	insert into wt.instance values ('i' || k, wiggle.start(case when k % 2 = 0 then 'ls' else 'ls2' end, jsonb_build_object('k', k), correlation_id => case when k < 9 then 'ls-' || k / 3 end));
	return 'i' || k;
end $$;
select wt.listed(k) from generate_series(1, 10) k;
create function wt.names(ids text[]) returns text language sql as $$ select string_agg(wt.mask(id), ' ' order by o) from unnest(ids) with ordinality u(id, o) $$;

select wt.names(array(select id from wiggle.instances() limit 12)) ~ '^i10 i9 i8 i7 i6 i5 i4 i3 i2 i1 ' as newest_first;
select wt.names(array(select id from wiggle.instances(max => 3)));
select wt.names(array(select id from wiggle.instances('ls'))), wt.names(array(select id from wiggle.instances('ls2', max => 2)));
select wt.names(array(select id from wiggle.instances('nobody')));
select wiggle.cancel(wt.id('i4')), wt.claim('i', 'ls'), wt.complete('i');
select wt.names(array(select id from wiggle.instances('ls', 'RUNNING'))), wt.names(array(select id from wiggle.instances('ls', 'completed'))), wt.names(array(select id from wiggle.instances('ls', 'Cancelled')));
select count(*) from wiggle.instances('ls', 'FAILED');
select status, wt.refusal(format('select count(*) from wiggle.instances(status => %L)', status)) from unnest(array['', 'DONE', 'running ', 'COMPENSATING', 'compensation_failed', 'FAILED''; --']) status;

-- Page by page: those whose number is less than that of the last one.
select wt.names(array(select id from wiggle.instances('ls', max => 2))), wt.names(array(select id from wiggle.instances('ls', max => 2, before => wt.no('i8')))),
	   wt.names(array(select id from wiggle.instances('ls', max => 2, before => wt.no('i4'))));
select count(*) from wiggle.instances('ls', before => wt.no('i2'));
select wt.names(array(select id from wiggle.instances(status => 'running', max => 2, before => wt.no('i6'))));
select wt.names(array(select id from wiggle.instances(correlation_id => 'ls-2', before => wt.no('i8')))), wt.names(array(select id from wiggle.instances(correlation_id => 'ls-2', before => wt.no('i6'))));

-- A correlation id makes the other filters irrelevant; the empty one is one too.
select wt.names(array(select id from wiggle.instances(correlation_id => 'ls-1')));
select wt.names(array(select id from wiggle.instances('nobody', 'no status', 'ls-1')));
select wt.names(array(select id from wiggle.instances(correlation_id => 'ls-1', max => 2)));
select count(*) from wiggle.instances(correlation_id => '');
insert into wt.instance select 'empty', wiggle.start('ls', correlation_id => '');
select wt.names(array(select id from wiggle.instances(correlation_id => '')));
select count(*) from wiggle.instances(correlation_id => 'ls-9');

-- max: fifty when nothing sensible is asked for.
select count(wiggle.start('ls')) from generate_series(1, 60);
select (select count(*) from wiggle.instances('ls')) as by_default, (select count(*) from wiggle.instances('ls', max => 0)) as zero,
	   (select count(*) from wiggle.instances('ls', max => -1)) as negative, (select count(*) from wiggle.instances('ls', max => null)) as null,
	   (select count(*) from wiggle.instances('ls', max => 60)) as sixty, (select count(*) from wiggle.instances('ls', max => 2147483647)) as all;

-- One: all columns; updated_at follows what happened.
select wt.at(86500), wt.at(86500);
select wt.start('one', 'ls2', '{"n":1}');
select created_at, updated_at, created_at = updated_at as fresh from wiggle.instance(wt.id('one'));
select wt.clear();
select wt.at(86501), wt.start('two', 'ls2', '{"n":1}');
select wt.at(86502), wt.claim('two', 'ls2');
select created_at, updated_at from wiggle.instance(wt.id('two'));
select wt.at(86503), wt.complete('two', '{"n":2}');
select wt.mask(id), workflow, version, status, termination_reason, error, correlation_id, context, created_at, updated_at from wiggle.instance(wt.id('two'));
select wt.mask(id), node_id, kind, status, activity, attempt, available_at, lease_owner, last_error, started_at, finished_at, created_at from wiggle.tokens(wt.id('two'));
select id, wt.refusal(format('select wiggle.instance(%L)', id)), wt.refusal(format('select wiggle.tokens(%L)', id)) from unnest(array['', 'x', 'wfi_0123456789abcdefghjkmn', null]) id;

-- The views
select wt.clear();
select workflow, count(*) from wiggle.running group by 1;
select wiggle.test_set_clock(null);
select wt.start('v1', 'ls', '{}'), wt.start('v2', 'ls2', '{}'), wt.start('v3', 'ls2', '{}');
select wt.mask(id), workflow, version from wiggle.running order by created_at, id;
select wt.claim('v2', 'ls2'), wt.fail('v2', 'out of paper', false);
select wt.mask(id), workflow, version, error, updated_at >= created_at as ordered from wiggle.failed where id = wt.id('v2');
select count(*) from wiggle.stuck;
-- Stuck is what nobody moves, by the wall clock: the engine's stands an hour back.
select wt.clear();
select wiggle.test_set_clock(now() - interval '1 hour');
select wt.start('held', 'ls', '{}'), wt.claim('held', 'ls'), wt.start('parked', 'ls2', '{}'), wt.claim('parked', 'ls2'), wiggle.fail(wt.task('parked'), wt.owner('parked'), 'x'), wt.start('old', 'ls', '{}');
select wt.mask(id), workflow, version, reason, node, now() - since between '-1 min' and '61 min' as an_hour from wiggle.stuck order by 1, 2;
-- A timer due over a minute ago
select wiggle.test_set_clock(now() - interval '2 hours');
select wt.clear();
select wt.start('parked2', 'ls2', '{}'), wt.claim('parked2', 'ls2'), wt.fail('parked2', 'x');
begin;
update wiggle.wf_timer set due_at = due_at - interval '5 minutes' where instance = (select wt.no('parked2'));
select wt.mask(id), reason, node from wiggle.stuck;
rollback;
select * from wt.finish();

-- What a person sees: the protocol's words, and below them what was asked for
\set SHOW_CONTEXT never
select wiggle.instance('wfi_nowhere');
select wiggle.tokens('wfi_nowhere');
select wiggle.cancel('wfi_nowhere');
select wiggle.complete('tok_nowhere-1', 'me');
select wiggle.instances(status => 'done');
