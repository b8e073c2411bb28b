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

# Settings: a reload is obeyed, and so is what is set for this database alone.
sub unpurged
{
	my ($instance) = @_;

	return $node->safe_psql('app', "select count(*) from wiggle.wf_instance where id = '$instance'");
}

# Ends an instance, as if two minutes ago.
sub ended
{
	my ($instance) = start_work($node, 'app', 'night', 1);

	$node->safe_psql('app', "select wiggle.cancel('$instance')");
	$node->safe_psql('app', "update wiggle.wf_instance set updated_at = updated_at - interval '2 minutes' where id = '$instance'");
	return $instance;
}

my $kept = ended();
is(unpurged($kept), '1', 'an ended instance is kept for a day');
$node->append_conf('postgresql.conf', "wiggle.retention = '1min'\nwiggle.clock_batch = 7");
$node->reload;
ok(wait_until('the purge', sub { unpurged($kept) eq '0' }), 'a reload with a shorter retention purges it');
is($node->safe_psql('app', 'show wiggle.clock_batch'), '7', 'sessions see it too');
$pid = clock_worker_pid($node, 'app');
$node->safe_psql('app', q{alter database app set wiggle.retention = '1d'});
$kept = ended();
ok(wait_until('the worker with the database\'s settings', sub {
	my $now = clock_worker_pid($node, 'app');
	return $now && $now ne $pid && $node->safe_psql('app', "select passes > 0 from wiggle.clock_stats() where duty = 'retention' and running") eq 't';
}), 'the clock worker is there with the database\'s own settings');
is(unpurged($kept), '1', 'they win over the server\'s');
$node->safe_psql('app', q{alter database app reset wiggle.retention});
ok(wait_until('the purge', sub { unpurged($kept) eq '0' }), 'reset, the server\'s hold again, without a reload');
$node->safe_psql('app', q{alter database app set search_path = public, wiggle});
($rc, $out, $err) = $node->psql('app', q{set wiggle.retention = '10s'});
like($err, qr/invalid value for parameter "wiggle.retention"/, 'less than a minute is refused');

# What a proxy is given is set as far as its role may, else it is told how.
my $push = q{select name, problem, statement from wiggle.settings_push('{"wiggle.loop_max_iterations": "77", "wiggle.retention": "7200000ms"}', true)};
$node->safe_psql('app', 'create role mere login; grant wiggle_admin to mere; create role owning login');
like($node->safe_psql('app', "set role mere; $push"),
	qr/^wiggle.loop_max_iterations\|must be owner of database app\|alter database app set wiggle.loop_max_iterations = '77'\nwiggle.retention\|must be/,
	'a mere role is told the statements');
$node->safe_psql('app', 'alter database app owner to owning; grant wiggle_admin to owning; grant set on parameter wiggle.loop_max_iterations to owning');
my $answer = $node->safe_psql('app', "set role owning; $push");
like($answer, qr/^wiggle.loop_max_iterations\|\|/, 'the owner may set the parameters that it was granted');
like($answer, qr/^wiggle.retention\|permission denied to set parameter "wiggle.retention"\|alter database app set/m, 'and no others');
is($node->safe_psql('app', 'show wiggle.loop_max_iterations'), '77', 'new sessions have it');
like($node->safe_psql('app', $push), qr/^wiggle.retention\|\|alter database app set wiggle.retention = '7200000ms'$/, 'a superuser sets the rest');
is($node->safe_psql('app', $push), '', 'and then there is nothing left to do');
is($node->safe_psql('app', 'show wiggle.retention'), '2h', 'units are PostgreSQL\'s');

log_is_sound($node);
$node->stop('fast');
done_testing();
