# Kill -9 of the clock worker, of a backend in the middle of a report, and of
# the postmaster: the cluster comes back by itself, and what was acknowledged is
# there while the rest is done again.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

sub kill9_and_start
{
	my ($cluster, @stopped) = @_;
	my $postmaster = $cluster->{_pid};

	$cluster->kill9;
	kill 'KILL', @stopped;
	wait_until('the postmaster to be gone', sub { !kill 0, $postmaster });
	# Its children notice; until the last one has, the data directory is not free.
	return wait_until('the cluster to start again', sub { $cluster->start(fail_ok => 1) }, 30);
}

# Nothing is flushed but by those who want it: the WAL writer stands still.
sub stop_wal_writer
{
	my ($cluster) = @_;
	my $pid = $cluster->safe_psql('postgres', q{select pid from pg_stat_activity where backend_type = 'walwriter'});

	kill 'STOP', $pid;
	return $pid;
}

my $node = wiggle_cluster('crash', conf => ['fsync = on']);
wiggle_database($node, 'app');
wait_until('the clock worker starts', sub { clock_worker_pid($node, 'app') });
register_flow($node, 'app', '{"workflow":"two","version":1,"steps":[{"task":"a"},{"task":"b"}]}');
register_flow($node, 'app', '{"workflow":"nap","version":1,"steps":[{"sleep":"1s"},{"task":"after"}]}');

# The clock worker, with a timer pending and a lease out.
my ($nap) = start_work($node, 'app', 'nap', 1);
my @ids = start_work($node, 'app', 'two', 5);
my ($task, $owner) = poll_one($node, 'app', queue => 'two', lease => '1 min');
my $pid = clock_worker_pid($node, 'app');
kill 'KILL', $pid;
ok(wait_until('a new clock worker', sub { my $now = clock_worker_pid($node, 'app'); $now && $now != $pid }),
	'a killed clock worker comes back after the restart');
is($node->safe_psql('app', 'select count(*) from wf_instance'), '6', 'every instance is still there');
ok($node->poll_query_until('app', "select exists (select from wiggle.tokens('$nap') where status = 'READY')"),
	'the timer of before fires');
is($node->safe_psql('app', "select (wiggle.complete('$task', '$owner', '{}')).instance_status"), 'RUNNING',
	'a lease of before the crash is honoured');

# A backend in the middle of a report: applied, not committed, gone.
($task, $owner) = poll_one($node, 'app', queue => 'two', lease => '1 min');
my $session = $node->background_psql('app');
$session->query_safe('begin');
is($session->query_safe("select (wiggle.complete('$task', '$owner', '{\"lost\": true}')).instance_status"),
	'COMPLETED', 'a report is applied, not committed');
kill 'KILL', $session->query_safe('select pg_backend_pid()');
# The session's psql notices by itself; how it ends is not the subject.
eval { $session->quit };
wait_until('the server to be back', sub { $node->safe_psql('app', 'select 1') eq '1' });
my ($instance) = $task =~ /^tok(.*)-\d+$/;
is($node->safe_psql('app', "select count(*) from wiggle.instance('wfi$instance') where context ? 'lost'"), '0',
	'an uncommitted report left nothing');
is($node->safe_psql('app', "select (wiggle.complete('$task', '$owner', '{\"kept\": true}')).instance_status"), 'COMPLETED',
	'and the same owner reports again');
is($node->safe_psql('app', "select count(*) from wiggle.instance('wfi$instance') where context ? 'kept'"), '1',
	'which counts');

# The postmaster, with instances in flight.
my $done = q{select count(*) from wiggle.instances(max => 1000) i, lateral wiggle.tokens(i.id) t where t.status = 'DONE'};
my $before = $node->safe_psql('app', $done);
cmp_ok($before, '>', 0, 'some steps are done');
ok(kill9_and_start($node), 'nobody outlives the postmaster');
is($node->safe_psql('app', $done), $before, 'committed reports survive the postmaster');
wait_until('the clock worker starts', sub { clock_worker_pid($node, 'app') });
ok(work_through($node, 'app', 60), 'all instances end after it');
is($node->safe_psql('app', "select string_agg(distinct status, ',') from wf_instance"), 'COMPLETED',
	'and completed');

# An orderly restart with everything in flight.
start_work($node, 'app', 'two', 10);
start_work($node, 'app', 'nap', 10);
poll_one($node, 'app', lease => '1 s') for 1 .. 3;
$node->restart('fast');
ok(work_through($node, 'app', 60), 'a restart with instances in flight loses none');
is($node->safe_psql('app', 'select count(*) from wf_instance'), '26', 'nor doubles one');
is($node->safe_psql('app', 'select (select count(*) from wf_ready) + (select count(*) from wf_lease)'), '0',
	'no row of work is left behind');

# The clock worker's commits are lazy, but not what others act upon: an end that
# the feed has told of, an instance that is to be started on another shard.
register_flow($node, 'app', '{"workflow":"brief","version":1,"steps":[{"sleep":"10ms"}]}');
register_flow($node, 'app', '{"workflow":"hourly","version":1,"steps":[{"task":"h"}]}');
$node->safe_psql('app', q{select wiggle.publish_placement('[{"id":1,"activeFrom":"2020-01-01T00:00:00Z","weights":{"7":1}}]')});
$node->safe_psql('app', q{select wiggle.schedule('hourly', every => '1 h')});
my $told = q{select string_agg(type, ' ' order by seq) from wiggle.feed(0, 1000) where workflow = 'brief'};
my $due = q{select count(*), min(id), (select min(next_fire_at) > now() from wiggle.wf_schedule) from wiggle.wf_outbox};
my $writer = stop_wal_writer($node);
start_work($node, 'app', 'brief', 1);
ok($node->poll_query_until('app', $told, 'wf.started wf.completed'), 'the feed tells of an end that time brought');
kill9_and_start($node, $writer);
is($node->safe_psql('app', $told), 'wf.started wf.completed', 'and still does after a crash');
$writer = stop_wal_writer($node);
$node->safe_psql('app', 'update wiggle.wf_schedule set next_fire_at = now()');
$node->poll_query_until('app', 'select exists (select from wiggle.wf_outbox)');
my $fired = $node->safe_psql('app', $due);
kill9_and_start($node, $writer);
is($node->safe_psql('app', $due), $fired, 'a firing that others may have seen is not repeated after a crash');

log_is_sound($node, killed => 1);
$node->stop('fast');
done_testing();
