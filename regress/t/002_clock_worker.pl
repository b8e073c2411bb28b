# The clock worker: timers, leases and retries move when they are due, by
# themselves, and an idle database costs nothing.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use WiggleTest;

my $node = wiggle_cluster('clock');
wiggle_database($node, 'app');
wait_until('the clock worker starts', sub { clock_worker_pid($node, 'app') });

register_flow($node, 'app', '{"workflow":"night","version":1,"steps":[{"sleep":"8h"},{"task":"after"}]}');
my ($id) = start_work($node, 'app', 'night', 1);
is($node->safe_psql('app', "select status from wiggle.tokens('$id')"), 'WAITING', 'a sleep waits');
is(join(',', poll_one($node, 'app')), '', 'and gives no worker anything to do');
$node->safe_psql('app', "select wiggle.cancel('$id')");

register_flow($node, 'app', '{"workflow":"nap","version":1,"steps":[{"sleep":"400ms"},{"task":"after"}]}');
my $begin = time();
($id) = start_work($node, 'app', 'nap', 1);
ok($node->poll_query_until('app', "select exists (select from wiggle.tokens('$id') where status = 'READY')"),
	'it goes on by itself');
cmp_ok(time() - $begin, '>=', 0.4, 'not before it was due');
work_through($node, 'app');

# An expired lease: the attempt is spent, the task is there again.
register_flow($node, 'app', '{"workflow":"held","version":1,"steps":[{"task":"a","retry":{"max":3,"backoff":"1ms"}}]}');
($id) = start_work($node, 'app', 'held', 1);
my ($task, $owner) = poll_one($node, 'app', lease => '200 ms');
ok($task, 'a task is leased');
ok($node->poll_query_until('app', "select attempt = 1 and status = 'READY' from wiggle.tokens('$id')"),
	'an expired lease returns the task and spends the attempt');
my ($rc, $out, $err) = $node->psql('app', "select wiggle.complete('$task', '$owner', '{}')");
isnt($rc, 0, 'the late owner is refused');
work_through($node, 'app');

# A long backoff parks; a shorter deadline that arrives later is not missed.
register_flow($node, 'app',
	'{"workflow":"parked","version":1,"steps":[{"task":"a","retry":{"max":2,"backoff":"8h"}}]}');
($id) = start_work($node, 'app', 'parked', 1);
($task, $owner) = poll_one($node, 'app');
$node->safe_psql('app', "select wiggle.fail('$task', '$owner', 'once')");
is($node->safe_psql('app', "select status from wiggle.tokens('$id')"), 'WAITING', 'a long backoff is parked');
my ($short) = start_work($node, 'app', 'nap', 1);
ok($node->poll_query_until('app', "select exists (select from wiggle.tokens('$short') where status = 'READY')"),
	'a nearer deadline set later comes first');
is($node->safe_psql('app', "select status from wiggle.tokens('$id')"), 'WAITING', 'before the parked retry is due');
$node->safe_psql('app', "select wiggle.cancel('$id')");
register_flow($node, 'app',
	'{"workflow":"soon","version":1,"steps":[{"task":"a","retry":{"max":2,"backoff":"1500ms"}}]}');
($id) = start_work($node, 'app', 'soon', 1);
($task, $owner) = poll_one($node, 'app', queue => 'soon');
$begin = time();
$node->safe_psql('app', "select wiggle.fail('$task', '$owner', 'once')");
ok($node->poll_query_until('app', "select status = 'READY' from wiggle.tokens('$id')"), 'a retry is promoted');
cmp_ok(time() - $begin, '>=', 1.5, 'when it is due');
work_through($node, 'app');

# Idle means idle: the worker's process uses no processor time while nothing is due.
my $pid = clock_worker_pid($node, 'app');
sub ticks
{
	my @fields = split / /, slurp_file("/proc/$pid/stat");
	return $fields[13] + $fields[14];
}
my $switches = sub {
	my ($n) = slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m;
	return $n;
};
wait_until('the worker to settle', sub {
	my $n = $switches->();
	$node->safe_psql('postgres', 'select pg_sleep(0.5)');
	return $switches->() == $n;
});
my $wakes = $switches->();
$node->safe_psql('postgres', 'select pg_sleep(3)');
cmp_ok($switches->() - $wakes, '<=', 3, 'an idle clock worker hardly wakes in three seconds');

# SIGHUP and a SIGTERM are obeyed; the launcher brings a terminated worker back.
$node->reload;
is(clock_worker_pid($node, 'app'), $pid, 'a reload keeps the worker');
$node->safe_psql('postgres', "select pg_terminate_backend($pid)");
ok(wait_until('another worker', sub { my $now = clock_worker_pid($node, 'app'); $now && $now != $pid }),
	'a terminated worker is replaced');
($id) = start_work($node, 'app', 'nap', 1);
ok($node->poll_query_until('app', "select exists (select from wiggle.tokens('$id') where status = 'READY')"),
	'and its successor fires timers');

log_is_sound($node);
$node->stop('fast');
done_testing();
