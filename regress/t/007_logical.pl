# A logical replica with the extension: it fires nothing and takes no work until its
# subscription is dropped; then it goes on where the original stood, and no number is
# given twice.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

my $from = wiggle_cluster('from', init => { allows_streaming => 'logical' });
my $to = wiggle_cluster('to', init => { allows_streaming => 'logical' });
wiggle_database($_, 'app') for $from, $to;
ok(wait_until('a clock worker', sub { clock_worker_pid($to, 'app') }), 'the later copy has a clock worker');
$from->safe_psql('app', 'select wiggle.shard_claim(3)');
register_flow($from, 'app', '{"workflow":"nap","version":1,"steps":[{"sleep":"10s"},{"task":"after"}]}');
register_flow($from, 'app', '{"workflow":"two","version":1,"steps":[{"task":"a"},{"task":"b"}]}');
my ($first) = start_work($from, 'app', 'two', 1);

# The first copy, then everything that the engine writes goes through it.
$from->safe_psql('app', 'create publication everything for all tables');
my $source = $from->connstr('app');
$to->safe_psql('app', "create subscription copied connection \$\$$source\$\$ publication everything");
$to->wait_for_subscription_sync($from, 'copied', 'app');
is($to->safe_psql('app', 'select shard_id, copied_by from wiggle.shard()'), '3|copied', 'a copy says what it is');
my ($task, $owner) = poll_one($from, 'app', queue => 'two', lease => '1 h');
complete_one($from, 'app', $task, $owner);
start_work($from, 'app', 'two', 5);
work_through($from, 'app', 60);

# What comes due when the original is gone.
my ($nap) = start_work($from, 'app', 'nap', 1);
my ($leased) = start_work($from, 'app', 'two', 1);
($task) = poll_one($from, 'app', queue => 'two', lease => '10 s');
$from->safe_psql('app', q{select wiggle.schedule('two', every => '1 h')});
$from->safe_psql('app', q{update wiggle.wf_schedule set next_fire_at = now() + interval '10 s'});
my $state = q{select (select count(*) from wf_timer), (select count(*) from wf_lease), (select count(*) from wf_ready),
	(select count(*) from wf_instance), (select max(seq) from wf_event)};
my $before = $from->safe_psql('app', $state);
like($before, qr/^1\|1\|0\|8\|\d+$/, 'a timer and a lease are out');
$from->wait_for_catchup('copied');
$from->stop('fast');

ok($to->poll_query_until('app', q{select now() > (select max(due_at) from wf_timer) + interval '1 s'
		and now() > (select max(next_fire_at) from wf_schedule) + interval '1 s'}), 'everything is due');
is($to->safe_psql('app', $state), $before, 'and nothing has moved in the copy');
is($to->safe_psql('app', "select status from wiggle.instance('$nap')"), 'RUNNING', 'which can be read');
for my $call ("start('two')", "poll('w')", "cancel('$nap')", 'event_horizon()')
{
	my ($rc, $out, $err) = $to->psql('app', "select wiggle.$call");

	like($err, qr/this database is a logical replica: the subscription "copied" writes the tables of wiggle.*drop the subscription/s,
		"$call is refused");
}
is(scalar(() = slurp_file($to->logfile) =~ /wiggle clock worker waits: this database is a logical replica/g), 1,
	'the clock worker says once that it waits');

# Switched over.
my ($numbers) = $to->safe_psql('app', 'select max(no) from wf_instance');
my ($last) = $before =~ /(\d+)$/;
$to->safe_psql('app', 'alter subscription copied disable');
$to->safe_psql('app', 'alter subscription copied set (slot_name = none)');
my ($rc, $out, $err) = $to->psql('app', "select wiggle.start('two')");
like($err, qr/logical replica/, 'a disabled subscription may be enabled again');
$to->safe_psql('app', 'drop subscription copied');
my ($new) = start_work($to, 'app', 'two', 1);
is($to->safe_psql('app', "select no > $numbers from wf_instance where id = '$new'"), 't', 'numbers go on behind the last');
is($to->safe_psql('app', "select min(seq) > $last from wf_event where instance_id = '$new'"), 't', 'those of events as well');
ok($to->poll_query_until('app', "select exists (select from wiggle.tokens('$nap') where status = 'READY')"), 'the timer fires');
ok($to->poll_query_until('app', q{select count(*) = 1 from wf_instance where correlation_id like 'schedule:%'}), 'the schedule too');
ok($to->poll_query_until('app', "select attempt = 1 from wiggle.tokens('$leased')"), 'the lease has run out');
ok(work_through($to, 'app', 60), 'everything ends');
is($to->safe_psql('app', q{select status, count(*) from wf_instance group by 1}), 'COMPLETED|10', 'and completed');
is($to->safe_psql('app', 'select count(distinct seq) = count(*) from wf_event'), 't', 'no event number is given twice');

log_is_sound($to);
$to->stop('fast');
done_testing();
