# A physical standby: reads work, writes are refused, nothing runs and nothing fills
# the log; after a promotion timers and schedules resume, once. With synchronous
# replication whatever others act on has reached the standby.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

my $primary = wiggle_cluster('primary', init => { allows_streaming => 1 });
wiggle_database($primary, 'app');
register_flow($primary, 'app', '{"workflow":"two","version":1,"steps":[{"task":"a"},{"task":"b"}]}');
register_flow($primary, 'app', '{"workflow":"nap","version":1,"steps":[{"sleep":"1s"},{"task":"after"}]}');
register_flow($primary, 'app', '{"workflow":"brief","version":1,"steps":[{"sleep":"10ms"}]}');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub caught_up { $primary->wait_for_catchup($standby, 'replay') }

# ---- while it is a standby

my ($id) = start_work($primary, 'app', 'two', 1);
my ($task, $owner) = poll_one($primary, 'app', queue => 'two', lease => '1 h');
caught_up();
is($standby->safe_psql('app', "select status, workflow from wiggle.instance('$id')"), 'RUNNING|two', 'an instance is read');
is($standby->safe_psql('app', 'select count(*) from wiggle.instances()'), '1', 'and listed');
is($standby->safe_psql('app', "select status from wiggle.tokens('$id')"), 'RUNNING', 'its tokens are');
is($standby->safe_psql('app', "select wiggle.definition('two') ->> 'name'"), 'two', 'a definition is');
is($standby->safe_psql('app', 'select count(*) from wiggle.workflows()'), '3', 'the workflows are');
is($standby->safe_psql('app', 'select count(*) from wiggle.backlog(10)'), '0', 'the backlog is');
is($standby->safe_psql('app', "select count(*) from wiggle.step_stats('two')"), '0', 'statistics are');
is($standby->safe_psql('app', 'select timeline is null, copied_by is null from wiggle.shard()'), 't|t',
	'it says that it writes no log');

for my $call ("start('two')", "poll('w')", "complete('$task', '$owner', '{}')", "cancel('$id')", "signal('$id', 's', '{}')",
	"register('{\"workflow\":\"x\",\"version\":1,\"steps\":[{\"task\":\"a\"}]}')", "schedule('two', every => '1 h')")
{
	my ($name) = $call =~ /^(\w+)/;
	my ($rc, $out, $err) = $standby->psql('app', "select wiggle.$call");

	like($err, qr/ERROR:  cannot execute wiggle\.$name\(\) in a read-only transaction/, "$name is refused by name");
}
my ($rc, $out, $err) = $standby->psql('app', 'select wiggle.event_horizon()');
like($err, qr/the event feed cannot be read on a standby.*Read the feed on the primary/s, 'so is the feed');

is($standby->safe_psql('postgres', "select count(*) from pg_stat_activity where backend_type like 'wiggle%'"), '0',
	'nothing of the engine runs');
is(scalar(grep { /(LOG|WARNING|FATAL):  (?!statement)/ && /wiggle/ } split /\n/, slurp_file($standby->logfile)), 0,
	'nor writes to the log');

# ---- synchronous: whom others are told of is on the standby

# Its receiver stands still: nothing is acknowledged until it goes on.
sub stop_receiver
{
	my $pid = $standby->safe_psql('postgres', 'select pid from pg_stat_wal_receiver');

	kill 'STOP', $pid;
	return $pid;
}

sub waiting
{
	my ($type) = @_;

	return $primary->safe_psql('postgres', "select pid from pg_stat_activity where wait_event = 'SyncRep'
		and backend_type = '$type' limit 1");
}

# An ordinary commit that has got through: from here on commits wait.
$primary->safe_psql('postgres', q{alter system set synchronous_standby_names = '*'});
$primary->reload;
ok($primary->poll_query_until('postgres', q{select exists (select from pg_stat_replication where sync_state = 'sync')}),
	'the standby is synchronous');
my $clock = clock_worker_pid($primary, 'app');

# What the clock worker does by itself: first without, then with somebody who is told.
my ($nap) = start_work($primary, 'app', 'nap', 1);
ok($primary->poll_query_until('app', "select exists (select from wiggle.tokens('$nap') where status = 'READY')"),
	'a timer fires');
my $brief = q{select count(*) from wiggle.wf_event where workflow = 'brief' and type = 'wf.completed'};
register_flow($primary, 'app', '{"workflow":"hourly","version":1,"steps":[{"task":"h"}]}');
$primary->safe_psql('app', q{select wiggle.publish_placement('[{"id":1,"activeFrom":"2020-01-01T00:00:00Z","weights":{"7":1}}]')});
$primary->safe_psql('app', q{select wiggle.schedule('hourly', every => '1 h')});

# The caller does not wait for the standby, the clock worker does.
my $receiver = stop_receiver();
$primary->safe_psql('app', q{set synchronous_commit = local; select wiggle.start('brief')});
ok(wait_until('the clock worker to wait for the standby', sub { waiting('wiggle clock worker') eq $clock }),
	'an end that the feed tells of waits for the standby');
is($primary->safe_psql('app', $brief), '0', 'and is not to be seen before');
kill 'CONT', $receiver;
ok($primary->poll_query_until('app', $brief, '1'), 'until the standby has it');

$receiver = stop_receiver();
$primary->safe_psql('app', q{set synchronous_commit = local; update wiggle.wf_schedule set next_fire_at = now()});
ok(wait_until('the clock worker to wait for the standby', sub { waiting('wiggle clock worker') eq $clock }),
	'an instance for another shard waits for the standby');
is($primary->safe_psql('app', 'select count(*) from wiggle.wf_outbox'), '0', 'and no proxy sees it before');
kill 'CONT', $receiver;
ok($primary->poll_query_until('app', 'select count(*) = 1 from wiggle.wf_outbox'), 'until the standby has it');

# A start whose wait is cut short is there, and nobody knows whether the standby has it.
# Who asks again is told so only when it does.
my $mint = $primary->safe_psql('app', 'select wiggle.mint()');
$receiver = stop_receiver();
for my $attempt (1, 2)
{
	my $session = $primary->background_psql('app', on_error_stop => 0);
	my $pid = $session->query('select pg_backend_pid()');

	$session->{stdin} .= "select wiggle.start('two', id => '$mint');\n";
	$session->{run}->pump_nb;
	ok(wait_until("start $attempt to wait for the standby", sub { waiting('client backend') eq $pid }),
		"start $attempt waits for the standby");
	if ($attempt == 1)
	{
		$primary->safe_psql('postgres', "select pg_terminate_backend($pid)");
		wait_until('its end', sub { waiting('client backend') eq '' });
		is($primary->safe_psql('app', "select count(*) from wf_instance where id = '$mint'"), '1',
			'cut short it is there');
		eval { $session->quit };
	}
	else
	{
		kill 'CONT', $receiver;
		ok(wait_until('the answer', sub { $session->{run}->pump_nb; $session->{stdout} =~ /\Q$mint/ }),
			'and is told when the standby has it');
		eval { $session->quit };
	}
}

# ---- promotion under way: everything goes on, once

$primary->safe_psql('app', 'select wiggle.unschedule(id) from wiggle.schedules()');
$primary->safe_psql('app', 'delete from wiggle.wf_outbox; delete from wiggle.wf_placement');
$primary->safe_psql('app', q{select wiggle.schedule('hourly', every => '1 h')});
my ($slept) = start_work($primary, 'app', 'nap', 1);
my @ids = start_work($primary, 'app', 'two', 20);
my $last = $primary->safe_psql('app', 'select max(seq) from wiggle.wf_event');
my $numbers = $primary->safe_psql('app', 'select max(no) from wiggle.wf_instance');
$primary->safe_psql('app', q{update wiggle.wf_schedule set next_fire_at = now() + interval '1 h'});
my $system = $primary->safe_psql('app', 'select system_id, timeline from wiggle.shard()');
$primary->kill9;
$standby->promote;
$standby->safe_psql('postgres', q{alter system set synchronous_standby_names = ''});
$standby->reload;
my ($identity) = $system =~ /^(\d+)\|1$/;
is($standby->safe_psql('app', 'select system_id, timeline from wiggle.shard()'), "$identity|2",
	'the same database on a timeline of its own');
ok(wait_until('a clock worker', sub { clock_worker_pid($standby, 'app') }), 'the clock worker starts by itself');
ok($standby->poll_query_until('app', "select exists (select from wiggle.tokens('$slept') where status = 'READY')"),
	'a timer of before fires');
$standby->safe_psql('app', 'update wiggle.wf_schedule set next_fire_at = now()');
ok($standby->poll_query_until('app', q{select count(*) = 1 from wf_instance where correlation_id like 'schedule:%'}),
	'a schedule of before fires');
is($standby->safe_psql('app', "select (wiggle.complete('$task', '$owner', '{}')).instance_status"), 'RUNNING',
	'a lease of before is honoured');
my ($new) = start_work($standby, 'app', 'two', 1);
is($standby->safe_psql('app', "select no > $numbers from wf_instance where id = '$new'"), 't', 'numbers go on behind the last');
is($standby->safe_psql('app', "select seq > $last from wf_event where instance_id = '$new'"), 't', 'those of events as well');
ok(work_through($standby, 'app', 60), 'everything ends');
is($standby->safe_psql('app', q{select string_agg(distinct status, ',') from wf_instance}), 'COMPLETED', 'and completed');
is($standby->safe_psql('app', q{select count(*) from wf_instance where correlation_id like 'schedule:%'}), '1',
	'the schedule has fired once');

log_is_sound($standby);
$standby->stop('fast');
done_testing();
