-- Cron expressions at the SQL door: UTC whatever the session says, Sundays, leap days.
set timezone = 'UTC';
set datestyle = 'ISO, YMD';
select wt.register('{"workflow":"cron","version":1,"steps":[{"task":"t"}]}');
-- The next fires of an expression from an instant, by asking anew at each.
create function wt.fires(expression text, from_when timestamptz, n int default 4) returns text language plpgsql
as $$
declare
	at timestamptz := from_when;
	told text[] := '{}';
begin
	for k in 1 .. n loop
		perform wiggle.test_set_clock(at);
		at := (wiggle.schedule('cron', null, expression)).next_fire_at;
		told := told || to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI');
	end loop;
	return array_to_string(told, ', ');
exception when others then
	return sqlstate || ': ' || sqlerrm;
end $$;
-- The clock worker must not fire while the clock jumps: all in one transaction.
begin;
-- Day of week 7, ranges through Sunday, stepped ranges (C01).
select expression, wt.fires(expression, '2026-01-01 00:00+00') from unnest(array['15 10,12 * * 1,7', '0 1 * * 7', '0 1 * * 0', '0 0 * * 5-7', '0 0 * * 5-7/2', '0 0 * * 6-7/2', '0 0 * * 0-7', '0 0 * * 7,7,0', '0 0 * * 8', '0 0 * * 7-1', '0 0 * * 0-8']) expression;
-- Lists, ranges, steps, N/step; both day fields: OR, also for */2 (79).
select expression, wt.fires(expression, '2026-01-01 00:00+00') from unnest(array['*/20 * * * *', '5/25 * * * *', '1,2,3 4 * * *', '10-30/10 0 * * *', '0 0 13 * 5', '0 0 */15 * 1', '0 0 1 * */3', '0 0 31 * *', '0 12 1 2/4 *', '59 23 31 12 *', '1, * * * *', ',1 * * * *', '1,,2 * * * *', '+1 * * * *', ' 1  2	* * * ', '00 01 * * *', '1-2-3 * * * *', '*/1 * */1 * 1', '*/99 * * * *', '-1 * * * *', '0x1 * * * *', '٣ * * * *', '? * * * *', '0 0 L * *', '@daily']) expression;
-- Leap days, across 2100 and never (C03).
select wt.fires('0 9 29 2 *', '2028-02-29 09:00+00', 2), wt.fires('0 0 29 2 *', '2097-01-01 00:00+00', 1), wt.fires('0 2 29 2 0', '2027-12-31 00:00+00', 5);
select expression, wt.fires(expression, '2026-01-01 00:00+00') from unnest(array['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 31 2 1']) expression;
-- Strictly after: asked within the minute, and on it.
select wt.fires('30 1 * * *', '2026-03-08 01:29:59.999999+00', 1), wt.fires('30 1 * * *', '2026-03-08 01:30+00', 1), wt.fires('30 1 * * *', '2026-03-08 01:30:00.000001+00', 1);
rollback;

-- Time zones of session, role and database do not matter: daylight saving comes
-- and goes, each UTC slot fires once (C03).
alter database :DBNAME set timezone = 'Europe/Berlin';
set timezone = 'America/New_York';
select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'wiggle clock worker' and datname = current_database();
select wt.register(format('{"workflow":"tz%s","version":1,"defaultQueue":"tz","steps":[{"task":"t"}]}', k)) from generate_series(1, 3) k;
select wiggle.test_set_clock('2026-03-07 22:00+00');
select workflow, (wiggle.schedule(workflow, null, expression)).next_fire_at at time zone 'UTC' from (values ('tz1', '30 1 * * *'), ('tz2', '30 2 * * *'), ('tz3', '*/15 * * * *')) v(workflow, expression);
create procedure wt.pass(from_when timestamptz, until timestamptz, step interval) language plpgsql
as $$
declare
	at timestamptz := from_when;
begin
	while at <= until loop
		perform wiggle.test_set_clock(at);
		commit;
		if wt.await('not exists (select from wiggle.wf_schedule where next_fire_at <= (wiggle.version()).now)') <> 'came true' then
			raise exception 'a schedule that is due was not fired';
		end if;
		at := at + step;
	end loop;
end $$;
call wt.pass('2026-03-07 22:00+00', '2026-03-08 12:00+00', '5 minutes');
select workflow, count(*), count(distinct created_at), min(created_at at time zone 'UTC'), max(created_at at time zone 'UTC') from wiggle.wf_instance where workflow like 'tz_' group by 1 order by 1;
select workflow, next_fire_at at time zone 'UTC' from wiggle.wf_schedule order by 1;
select wiggle.test_set_clock('2026-10-31 22:00+00');
select wt.await('not exists (select from wiggle.wf_schedule where next_fire_at <= (wiggle.version()).now)');
call wt.pass('2026-10-31 22:00+00', '2026-11-01 12:00+00', '5 minutes');
select workflow, count(*), count(distinct created_at) from wiggle.wf_instance where workflow like 'tz_' and created_at > '2026-10-31 22:00+00' group by 1 order by 1;
alter database :DBNAME reset timezone;
select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'wiggle clock worker' and datname = current_database();
select wiggle.unschedule(id) from wiggle.schedules();
select wiggle.test_set_clock(null);
-- No due time ever lies in the past of its creation.
select * from wt.finish();
select wt.forget();
