# A dumped and restored database goes on: definitions, contexts, ready and leased
# tasks, sleeps and parked retries, in whatever order the restore brings them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Test::More;
use WiggleTest;

my $node = wiggle_cluster('dump', conf => ["wiggle.retry_park = '1ms'"]);
my $dump = "$PostgreSQL::Test::Utils::tmp_check/wiggle.dump";

wiggle_database($node, 'source');
register_flow($node, 'source',
	'{"workflow":"rest","version":1,"steps":[{"sleep":"10s"},{"task":"after"}]}');
register_flow($node, 'source',
	'{"workflow":"again","version":1,"steps":[{"task":"x","retry":{"max":5,"backoff":"10s"}}]}');
start_work($node, 'source', 'rest', 5);
start_work($node, 'source', 'again', 4);

# One parked retry, one lease that runs out, two that stay ready.
my ($task, $owner) = poll_one($node, 'source', queue => 'again');
$node->safe_psql('source', "select wiggle.fail('$task', '$owner', 'not yet')");
my ($leased) = poll_one($node, 'source', queue => 'again', lease => '10s');

$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('source') ], 'dump');

# What the archive holds, in three lists: timers may come long before their instances.
my (@before, @timers, @rest);
for (split /\n/, `pg_restore -l '$dump'`)
{
	push @{ /TABLE DATA wiggle wf_timer / ? \@timers : / TABLE DATA / ? \@rest : \@before }, "$_\n";
}

sub restore
{
	my ($name, $part, @lines) = @_;
	my $list = "$PostgreSQL::Test::Utils::tmp_check/$part.list";

	append_to_file($list, join('', @lines));
	$node->command_ok([ 'pg_restore', '-L', $list, '-d', $node->connstr($name), $dump ], "$name restore: $part");
}

sub timers_first
{
	my ($name) = @_;
	my $passes = "select passes from wiggle.clock_stats() where duty = 'timers'";

	restore($name, 'before', @before);
	restore($name, 'timers', @timers);
	my $seen = $node->safe_psql($name, $passes);
	$node->safe_psql($name, "insert into wiggle.wf_timer select '-infinity', 1, 0 where false");
	ok($node->poll_query_until($name, "select ($passes) > $seen"), "$name: the clock worker has looked at them");
	is($node->safe_psql($name, 'select count(*) > 0 from wiggle.wf_timer'), 't', "$name: they stay");
	restore($name, 'rest', @rest);
}

for my $case ([ 'plain', [] ], [ 'parallel', [ '-j', '2' ] ], ['stepwise'])
{
	my ($name, $options) = @$case;

	$node->safe_psql('postgres', "create database $name");
	if ($options)
	{
		$node->command_ok(
			[ 'pg_restore', @$options, '-d', $node->connstr($name), $dump ], "$name restore");
	}
	else
	{
		timers_first($name);
	}
	ok( $node->poll_query_until($name,
			"select count(*) = 9 from wiggle.wf_ready"),
		"$name: sleeps fired, the retry came due, the lease ran out");
	is($node->safe_psql($name, 'select count(*) from wiggle.wf_timer'), '0', "$name: no timer is left");
	is($node->safe_psql($name, "select attempt from wiggle.tokens((select id from wiggle.wf_instance"
				. " where no = (select instance from wiggle.wf_token where attempt = 1 limit 1))) limit 1"),
		'1', "$name: attempts are kept");
	is($node->safe_psql($name, "select count(*) from wiggle.poll('w', max => 100)"),
		'9', "$name: everything can be claimed");
}

log_is_sound($node);
$node->stop;
done_testing();
