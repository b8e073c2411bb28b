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
	'{"workflow":"rest","version":1,"steps":[{"sleep":"1s"},{"task":"after"}]}');
register_flow($node, 'source',
	'{"workflow":"again","version":1,"steps":[{"task":"x","retry":{"max":5,"backoff":"1s"}}]}');
start_work($node, 'source', 'rest', 5);
start_work($node, 'source', 'again', 4);

# One parked retry, one lease that runs out, two that stay ready.
my ($task, $owner) = poll_one($node, 'source', queue => 'again');
$node->safe_psql('source', "select wiggle.fail('$task', '$owner', 'not yet')");
my ($leased) = poll_one($node, 'source', queue => 'again', lease => '1s');

$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('source') ], 'dump');

for my $case ([ 'plain', [] ], [ 'parallel', [ '-j', '2' ] ])
{
	my ($name, $options) = @$case;

	$node->safe_psql('postgres', "create database $name");
	$node->command_ok(
		[ 'pg_restore', @$options, '-d', $node->connstr($name), $dump ], "$name restore");
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
