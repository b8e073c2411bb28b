-- The state tables, as they are: what a status may become.
\pset format unaligned
select * from wiggle.transitions();
\pset format aligned
-- Sound as tables: no status leads nowhere but the terminal ones, none into NONE, no rule twice.
select machine, string_agg(distinct from_status, ' ' order by from_status) as left from wiggle.transitions() group by machine order by machine;
select machine, string_agg(distinct to_status, ' ' order by to_status) as terminal from wiggle.transitions() t
 where not exists (select from wiggle.transitions() n where n.machine = t.machine and n.from_status = t.to_status) group by machine order by machine;
select count(*) as twice from (select from wiggle.transitions() group by machine, from_status, to_status having count(*) > 1) d;
select count(*) as from_nothing_to_nothing from wiggle.transitions() where to_status = '';

-- No table row can be moved against them: the engine stops at a state that is not its own.
select wt.register('{"workflow":"tr","version":1,"steps":[{"task":"a"}]}');
select wt.start('t', 'tr'), wt.claim('t', 'tr');
begin;
update wiggle.wf_token set status = 'D' where instance = (select wt.no('t'));
select wt.refusal('select wt.complete(''t'')');
rollback;
begin;
update wiggle.wf_instance set status = 'COMPLETED' where no = (select wt.no('t'));
select wt.refusal('select wt.fail(''t'', ''x'', false)');
rollback;
begin;
update wiggle.wf_instance set status = 'SLEEPING' where no = (select wt.no('t'));
select wt.refusal('select wt.complete(''t'')');
rollback;
begin;
update wiggle.wf_token set node = 'nowhere' where instance = (select wt.no('t'));
select wt.refusal('select wt.complete(''t'')');
rollback;
begin;
delete from wiggle.wf_definition where name = 'tr';
select wt.refusal('select wiggle.start(''tr'')');
rollback;
select wt.complete('t');
select * from wt.finish();
