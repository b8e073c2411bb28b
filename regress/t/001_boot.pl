# Boot: with and without the library preloaded.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

my $bare = wiggle_cluster('bare', preload => 0);
my ($rc, $out, $err);

# The extension may be created either way; what needs shared memory says so.
$bare->psql('postgres', 'create extension wiggle');
($rc, $out, $err) = $bare->psql('postgres',
	q{select wiggle.register('{"workflow":"w","version":1,"steps":[{"task":"a"}]}');
	  select wiggle.start('w');});
isnt($rc, 0, 'without preload, starting is refused');
like($err, qr/shared_preload_libraries/, 'and the message says which setting');
is($bare->safe_psql('postgres', 'select 1'), '1', 'the server lives on');

$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'wiggle'");
$bare->restart;
$bare->psql('postgres', 'create extension if not exists wiggle');
register_flow($bare, 'postgres', '{"workflow":"w","version":1,"steps":[{"task":"a"}]}');
my ($id) = start_work($bare, 'postgres', 'w', 1);
like($id, qr/^wfi[_.]/, 'after a restart with preload it works');
ok(wait_until('a clock worker starts', sub { clock_worker_pid($bare, 'postgres') }),
	'a clock worker serves the database');
log_is_sound($bare);
$bare->stop;

my $node = wiggle_cluster('preloaded');
is($node->safe_psql('postgres', 'select count(*) from pg_stat_activity where backend_type like ' . q{'wiggle clock%'}),
	'0', 'no clock worker without an extension');
wiggle_database($node, 'one');
wiggle_database($node, 'two');
ok(wait_until("a worker for $_", sub { clock_worker_pid($node, $_) }), "$_ gets its clock worker")
  for qw(one two);
is($node->safe_psql('one', 'select count(*) from wf_instance'), '0',
	'the tutorial\'s query works as typed');

my $before = $node->safe_psql('one', 'select library_version from wiggle.shard()');
like($before, qr/^\d+\.\d+/, 'the library tells its version');
$node->stop('fast');
pass('a fast shutdown ends with clock workers attached');
log_is_sound($node);

done_testing();
