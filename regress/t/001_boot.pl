# Boot: with and without the library preloaded.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use WiggleTest;

my $bare = wiggle_cluster('bare', preload => 0);
my ($rc, $out, $err);

# A database where nothing could run does not get the extension.
($rc, $out, $err) = $bare->psql('postgres', 'create extension wiggle');
isnt($rc, 0, 'without preload, CREATE EXTENSION is refused');
like($err, qr/wiggle must be loaded via shared_preload_libraries/, 'the message says why');
like($err, qr/HINT: +Add wiggle to shared_preload_libraries and restart the server/,
	'and the hint what to do');
is($bare->safe_psql('postgres',
		q{select count(*) from pg_extension where extname = 'wiggle'
		  union all select count(*) from pg_namespace where nspname = 'wiggle'}),
	"0\n0", 'nothing of it is left');

$bare->append_conf('postgresql.conf', "shared_preload_libraries = 'wiggle'");
$bare->restart;
$bare->safe_psql('postgres', 'create extension wiggle');
register_flow($bare, 'postgres', '{"workflow":"w","version":1,"steps":[{"task":"a"}]}');
my ($id) = start_work($bare, 'postgres', 'w', 1);
like($id, qr/^wfi[_.]/, 'after a restart with preload it works');
ok(wait_until('a clock worker starts', sub { clock_worker_pid($bare, 'postgres') }),
	'a clock worker serves the database');

# A server that lost the setting keeps the rows and refuses the calls.
$bare->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$bare->restart;
($rc, $out, $err) = $bare->psql('postgres', q{select wiggle.start('w')});
isnt($rc, 0, 'without preload, starting is refused');
like($err, qr/shared_preload_libraries/, 'and the message says which setting');
is($bare->safe_psql('postgres', 'select count(*) from wiggle.wf_instance'), '1',
	'the rows are there');
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
