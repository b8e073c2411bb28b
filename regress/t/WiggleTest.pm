# WiggleTest: clusters with the extension for TAP tests, on PostgreSQL::Test.
#
# Every test file owns its clusters. Waits poll a condition with a deadline
# (poll_query_until, wait_until); nothing sleeps for a fixed time.
package WiggleTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(wiggle_cluster wiggle_database register_flow clock_worker_pid
  wait_until log_is_sound start_work poll_one complete_one work_through);

# A started cluster with the library preloaded (preload => 0: without). Settings
# are lines for postgresql.conf.
sub wiggle_cluster
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%{ $options{init} // {} });
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'wiggle'")
	  if $options{preload} // 1;
	# A stock cluster restarts itself after a crash; the harness turns that off.
	$node->append_conf('postgresql.conf', "restart_after_crash = on");
	$node->append_conf('postgresql.conf', $_) for @{ $options{conf} // [] };
	$node->start;
	return $node;
}

# A database with the extension, ready to be typed in as the tutorial does.
sub wiggle_database
{
	my ($node, $database) = @_;

	$node->safe_psql('postgres', "create database $database");
	$node->safe_psql($database, 'create extension wiggle');
	$node->safe_psql('postgres',
		qq{alter database $database set search_path = "\$user", public, wiggle});
}

# Register a workflow in the authoring shorthand, as JSON.
sub register_flow
{
	my ($node, $database, $shorthand) = @_;

	$node->safe_psql($database, "select wiggle.register('$shorthand'::jsonb)");
}

# The clock worker of a database, '' when there is none.
sub clock_worker_pid
{
	my ($node, $database) = @_;

	return $node->safe_psql('postgres',
		"select pid from pg_stat_activity
		 where datname = '$database' and backend_type like 'wiggle%'");
}

# Poll a Perl condition until it is true; its value, or a failed test.
sub wait_until
{
	my ($what, $condition, $seconds) = @_;
	my $deadline = time() + ($seconds // $PostgreSQL::Test::Utils::timeout_default);

	while (1)
	{
		my $value = eval { $condition->() };
		return $value if $value;
		if (time() > $deadline)
		{
			fail("$what did not come true");
			return;
		}
		usleep(20_000);
	}
}

# Nothing in a server's log may tell of a crash that the test did not cause.
sub log_is_sound
{
	my ($node, %expected) = @_;
	my $log = slurp_file($node->logfile);
	my @bad = grep { /PANIC|TRAP:|terminated by signal/ } split /\n/, $log;

	@bad = grep { !/signal 9/ } @bad if $expected{killed};
	is(join("\n", @bad), '', $node->name . ': no crash in the log');
}

sub start_work
{
	my ($node, $database, $workflow, $count) = @_;

	return split /\n/, $node->safe_psql($database,
		"select wiggle.start('$workflow') from generate_series(1, $count)");
}

# One claimed task as (task id, lease owner, step name), or ().
sub poll_one
{
	my ($node, $database, %options) = @_;
	my $queue = $options{queue} ? "array['$options{queue}']" : 'null';
	my $lease = $options{lease} ? "interval '$options{lease}'" : 'null';

	return split /\|/, $node->safe_psql($database,
		"select task_id, lease_owner, step_name
		 from wiggle.poll('tap', queues => $queue, lease => $lease)");
}

sub complete_one
{
	my ($node, $database, $task, $owner) = @_;

	return $node->psql($database, "select wiggle.complete('$task', '$owner', '{}')");
}

# Claim and complete until every instance of the database has ended.
sub work_through
{
	my ($node, $database, $seconds) = @_;

	return wait_until(
		'all instances end',
		sub {
			while (my ($task, $owner) = poll_one($node, $database))
			{
				complete_one($node, $database, $task, $owner);
			}
			return $node->safe_psql($database,
				"select count(*) = 0 from wiggle.wf_instance where status = 'RUNNING'") eq 't';
		},
		$seconds);
}

1;
