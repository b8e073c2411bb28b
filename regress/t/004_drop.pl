# DROP and CREATE of the extension and of databases while everything runs.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

my $node = wiggle_cluster('drop');
my $flow = '{"workflow":"w","version":1,"steps":[{"task":"a"},{"sleep":"200ms"},{"task":"b"}]}';

wiggle_database($node, 'app');
wait_until('the clock worker starts', sub { clock_worker_pid($node, 'app') });
register_flow($node, 'app', $flow);
start_work($node, 'app', 'w', 20);
poll_one($node, 'app') for 1 .. 3;

# One session keeps its caches over DROP and CREATE.
my $old = $node->background_psql('app');
$old->query_safe("select wiggle.start('w')");

$node->safe_psql('app', 'drop extension wiggle cascade');
is($node->safe_psql('app', q{select to_regclass('wiggle.wf_instance') is null}), 't', 'the tables are gone');
$node->safe_psql('app', 'create extension wiggle');
register_flow($node, 'app', $flow);
my ($id) = start_work($node, 'app', 'w', 1);
is($node->safe_psql('app', 'select count(*) from wf_instance'), '1', 'a new extension starts empty');
like($old->query_safe("select wiggle.start('w')"), qr/^wfi/, 'a session of before works with the new tables');
is($node->safe_psql('app', 'select count(*) from wf_instance'), '2', 'and writes into them');
$old->quit;
ok(work_through($node, 'app', 60), 'the clock worker serves the new extension');

# A database with everything attached is dropped without FORCE.
start_work($node, 'app', 'w', 5);
my ($rc, $out, $err) = $node->psql('postgres', 'drop database app');
is($rc, 0, "DROP DATABASE succeeds: $err");
is(clock_worker_pid($node, 'app'), '', 'whose worker is gone');

wiggle_database($node, 'app');
register_flow($node, 'app', $flow);
start_work($node, 'app', 'w', 3);
ok(work_through($node, 'app', 60), 'a database of the same name gets a worker of its own');

# Renamed: still served. Used as a template: not blocked for long.
$node->safe_psql('postgres', 'alter database app rename to moved');
$node->safe_psql('postgres', 'alter database moved set search_path = "$user", public, wiggle');
start_work($node, 'moved', 'w', 3);
ok(work_through($node, 'moved', 60), 'a renamed database is still served');
($rc, $out, $err) = $node->psql('postgres', 'create database copy template moved');
is($rc, 0, "a database with the extension can be a template: $err");

log_is_sound($node);
$node->stop('fast');
done_testing();
