/*
 * test_topology_source.c
 *	  Which topology the settings name: a document, a file or one database.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conninfo.h"
#include "topology_source.h"

#define GOOD \
	"{\"shards\":[{\"id\":4,\"state\":\"active\",\"roles\":[\"home\",\"instances\"],\"primary\":" \
	"{\"url\":\"postgresql://h/d\",\"user\":\"${WHO}\"}}],\"generations\":[{\"id\":1," \
	"\"activeFrom\":\"2026-10-01T00:00:00Z\",\"weights\":{\"4\":1}}]}"

static const char *
variable(const char *name)
{
	return strcmp(name, "WHO") == 0 ? "ada" : NULL;
}

static struct topology *
reads(const struct topology_source *source)
{
	struct wig_error err = {.message = ""};
	struct topology_source with = *source;
	struct topology *topology;

	with.parameters = conninfo_parameters();
	topology = topology_read(&with, &err);
	if (topology == NULL)
		fail_msg("refused: %s", err.message);
	return topology;
}

static void
one_database(void **state)
{
	struct topology_source source = {.url = "jdbc:postgresql://h:1/d", .user = "u", .password = "", .document = ""};
	struct topology *t = reads(&source);

	(void) state;
	assert_true(t->single);
	assert_int_equal(t->nshards, 1);
	assert_int_equal(t->shards[0].id, 0);
	assert_int_equal(t->shards[0].roles, ROLE_INSTANCES | ROLE_HOME | ROLE_AUTH);
	assert_string_equal(t->shards[0].url, "postgresql://h:1/d");
	assert_string_equal(t->shards[0].user, "u");
	assert_null(t->shards[0].password);
	assert_int_equal(t->shards[0].pool, 10);
	assert_int_equal(t->shards[0].nreplicas, 0);
	assert_true(t->shards[0].max_replica_lag_ms == 5000);
	topology_free(t);
}

static void
one_database_with_replicas(void **state)
{
	struct topology_source source = {
		.url = "postgresql://h/d", .user = "u", .password = "p", .pool = 5,
		.replica_urls = " jdbc:postgresql://r1/d , postgresql://a,postgres-b:5433/d?connect_timeout=3,",
		.replica_pool = 7, .max_replica_lag_ms = 100, .replica_fallback = FALLBACK_FAIL, .replica_settings = true
	};
	struct topology *t = reads(&source);
	const struct topology_shard *shard = t->shards;

	(void) state;
	assert_int_equal(shard->pool, 5);
	assert_int_equal(shard->nreplicas, 2);
	assert_string_equal(shard->replicas[0].url, "postgresql://r1/d");
	assert_string_equal(shard->replicas[1].url, "postgresql://a,postgres-b:5433/d?connect_timeout=3");
	assert_string_equal(shard->replicas[1].user, "u");
	assert_string_equal(shard->replicas[1].password, "p");
	assert_int_equal(shard->replicas[1].pool, 7);
	assert_true(shard->max_replica_lag_ms == 100);
	assert_int_equal(shard->replica_fallback, FALLBACK_FAIL);
	topology_free(t);
}

static void
a_document_inline(void **state)
{
	struct topology_source source = {.document = " \n" GOOD, .user = "nobody", .variable = variable};
	struct topology *t = reads(&source);

	(void) state;
	assert_false(t->single);
	assert_int_equal(t->shards[0].id, 4);
	assert_string_equal(t->shards[0].user, "ada");
	topology_free(t);
}

/* As Kubernetes mounts a ConfigMap: the name is a link through a link. */
static void
a_document_behind_links(void **state)
{
	char		folder[] = "/tmp/wig-topology-XXXXXX";
	char		path[3][64];
	struct topology_source source = {.document = path[2], .variable = variable};
	struct topology *t;
	FILE	   *file;

	(void) state;
	assert_non_null(mkdtemp(folder));
	snprintf(path[0], sizeof(path[0]), "%s/1.json", folder);
	snprintf(path[1], sizeof(path[1]), "%s/..data", folder);
	snprintf(path[2], sizeof(path[2]), "%s/topology.json", folder);
	file = fopen(path[0], "w");
	assert_non_null(file);
	fputs(GOOD "\n", file);
	fclose(file);
	assert_int_equal(symlink("1.json", path[1]), 0);
	assert_int_equal(symlink("..data", path[2]), 0);
	t = reads(&source);
	assert_int_equal(t->shards[0].id, 4);
	topology_free(t);
	for (int i = 0; i < 3; i++)
		unlink(path[i]);
	rmdir(folder);
}

static const struct
{
	struct topology_source source;
	const char *message;
}			refusals[] = {
	{{.document = "{}", .url = "postgresql://h/d"},
	"both WIGGLE_STORAGE_TOPOLOGY and WIGGLE_JDBC_URL are set; the topology names every database, so unset WIGGLE_JDBC_URL"},
	{{.document = "{}", .replica_urls = "postgresql://h/d"},
	"WIGGLE_JDBC_REPLICA_* is set alongside WIGGLE_STORAGE_TOPOLOGY; the topology lists each shard's replicas, so unset WIGGLE_JDBC_REPLICA_*"},
	{{.document = "{}", .replica_settings = true},
	"WIGGLE_JDBC_REPLICA_* is set alongside WIGGLE_STORAGE_TOPOLOGY; the topology lists each shard's replicas, so unset WIGGLE_JDBC_REPLICA_*"},
	{{.replica_urls = "postgresql://h/d"},
	"WIGGLE_JDBC_REPLICA_* is set without WIGGLE_JDBC_URL, the primary of the replicas"},
	{{.replica_settings = true},
	"WIGGLE_JDBC_REPLICA_* is set without WIGGLE_JDBC_URL, the primary of the replicas"},
	{{.url = "postgresql://h/d", .replica_settings = true},
	"a WIGGLE_JDBC_REPLICA_* setting is set without WIGGLE_JDBC_REPLICA_URLS; set it to the replicas' URLs, or unset the others"},
	{{.document = "", .url = ""},
	"no database is named; set WIGGLE_STORAGE_TOPOLOGY to a topology document or WIGGLE_JDBC_URL to the URL of one database"},
	{{.document = "/nonexistent/topology.json"},
	"WIGGLE_STORAGE_TOPOLOGY names the file /nonexistent/topology.json, which cannot be read: No such file or directory"},
	{{.document = "/"},
	"WIGGLE_STORAGE_TOPOLOGY names the file /, which cannot be read: Is a directory"},
	{{.document = "'{\"defaults\":{\"password\":\"hunter2\"}}'"},
	"WIGGLE_STORAGE_TOPOLOGY is neither the path of a file nor a JSON document, which begins with '{'"},
	{{.document = "\xef\xbb\xbf{\"defaults\":{\"password\":\"hunter2\"}}"},
	"WIGGLE_STORAGE_TOPOLOGY is neither the path of a file nor a JSON document, which begins with '{'"},
	{{.document = "  {\"shards\":3}"}, "shards must be an array of objects, got a number"},
	{{.url = "mysql://u:hunter2@h/d"},
	"WIGGLE_JDBC_URL must begin with postgresql:// or jdbc:postgresql://, not with mysql://"},
	{{.url = "postgresql://h/d", .replica_urls = "postgresql://r/d,r2/d,mysql://u:hunter2@x/d"},
	"WIGGLE_JDBC_REPLICA_URLS, replica 1, names no single database; begin every URL behind a comma with postgresql://"},
	{{.url = "postgresql://h/d", .replica_urls = "postgresql://r/d,postgresql://h/d?options=x"},
	"WIGGLE_JDBC_REPLICA_URLS, replica 2, sets the parameter 'options', which the proxy decides itself; remove it"},
	{{.url = "postgresql://h/d", .replica_urls = "postgresql://r/d,jdbc:postgresql://h/d"},
	"WIGGLE_JDBC_REPLICA_URLS, replica 2, has the same url as WIGGLE_JDBC_URL"},
	{{.url = "postgresql://h/d", .replica_urls = "postgresql://r/d,jdbc:postgresql://r/d"},
	"WIGGLE_JDBC_REPLICA_URLS, replica 2, has the same url as one before it"},
};

static void
every_refusal_says_exactly(void **state)
{
	int			wrong = 0;

	(void) state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		struct wig_error err = {.message = "accepted"};
		struct topology_source source = refusals[i].source;
		struct topology *topology;

		source.parameters = conninfo_parameters();
		topology = topology_read(&source, &err);
		if (topology == NULL && strcmp(err.message, refusals[i].message) == 0)
			continue;
		print_error("%zu\n  expected: %s\n       got: %s\n", i, refusals[i].message, err.message);
		topology_free(topology);
		wrong++;
	}
	if (wrong > 0)
		fail_msg("%d refusals are not as expected", wrong);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_database),
		cmocka_unit_test(one_database_with_replicas),
		cmocka_unit_test(a_document_inline),
		cmocka_unit_test(a_document_behind_links),
		cmocka_unit_test(every_refusal_says_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
