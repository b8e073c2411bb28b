-- What errors tell a person beside their message: whose an id is, and what to do.
create function wt.told(statement text) returns text language plpgsql
as $$
declare
	detail text;
	hint text;
begin
	execute statement;
	return 'accepted';
exception when others then
	get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
	return wt.mask(concat_ws(E'\n', sqlstate || ': ' || sqlerrm, '  ' || nullif(detail, ''), '  ' || nullif(hint, '')));
end $$;
select wt.register('{"workflow":"ms","version":1,"steps":[{"gate":"g"},{"task":"a","retry":{"max":3,"backoff":"1h"}},{"await_signal":"go"}]}');
select wt.start('i', 'ms');

-- Workflows and versions.
select wt.told(s) from unnest(array[
	'select wiggle.start(''no such'')', 'select wiggle.start(''ms'', version => 9)',
	'select wiggle.definition(''no such'')', 'select wiggle.definition(''ms'', 9)', 'select wiggle.definition(null)',
	'select wiggle.step_stats(''no such'')', 'select wiggle.step_stats(''ms'', 9)']) s;

-- Ids: of nobody, of another shard, of another workflow.
select wt.told(format(s, id)) from unnest(array['select wiggle.instance(%L)', 'select wiggle.tokens(%L)', 'select wiggle.cancel(%L)', 'select wiggle.signal(%L, ''go'')']) s,
	unnest(array['wfi.s1.0123456789abcdefghjkmn', 'wfi.s0.0123456789abcdefghjkmn', 'x', null]) id;
select wt.told(format('select wiggle.complete(%L, ''w'')', id)) from unnest(array['tok.s1.0123456789abcdefghjkmn-1', 'tok.s0.0123456789abcdefghjkmn-1']) id;
select wt.told(format('select wiggle.start(''ms'', id => %L)', id)) from unnest(array['x', 'wfi.s1.0123456789abcdefghjkmn']) id;
select wt.register('{"workflow":"ms2","version":1,"steps":[{"task":"a"}]}'), wt.told(format('select wiggle.start(''ms2'', id => %L)', wt.id('i')));

-- Tasks: a gate that is completed, one that was failed, one of somebody else, one that is done; and signals.
select wt.claim('i', 'ms'), wt.told(format('select wiggle.complete(%L, %L)', wt.task('i'), wt.owner('i')));
select wt.told(format('select wiggle.complete(%L, ''else'')', wt.task('i')));
select wiggle.decide(wt.task('i'), wt.owner('i'), true) is not null as decided, wt.told(format('select wiggle.decide(%L, %L, true)', wt.task('i'), wt.owner('i')));
select wt.claim('i', 'ms'), wt.fail('i', 'x'), wt.told(format('select wiggle.complete(%L, %L)', wt.task('i'), wt.owner('i')));
select wt.told(format('select wiggle.signal(%L, ''aproval'')', wt.id('i')));

-- Schedules.
select wt.told('select wiggle.schedule(''ms''' || s || ')') from unnest(array['', ', ''1h'', ''* * * * *''', ', ''-1h''', ', cron => ''x''', ', cron => ''* * * * 8''', ', cron => ''0 0 30 2 *''']) s;
select wt.told('select wiggle.schedule(''no such'', ''1h'')');

-- A shard that knows another one as home has no schedules.
begin;
select wiggle.shard_home(0), wt.told('select wiggle.schedule(''ms'', ''1h'')');
select wiggle.shard_home(7), wt.told('select wiggle.schedule(''ms'', ''1h'')');
rollback;
select wt.told('select wiggle.shard_claim(5)');
select * from wt.finish();
