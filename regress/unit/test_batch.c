/*
 * test_batch.c
 *	  Batches: to the database's binary form, back from its rows, split and answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet.h"
#include "lane_batch.h"
#include "loop.h"
#include "statement.h"

/* ---- a reader of what batch_encode writes, written from PostgreSQL's format ---- */

struct reader
{
	const uint8_t *p;
	const uint8_t *end;
};

static uint32_t
u32(struct reader *r)
{
	uint32_t	v;

	assert_true(r->end - r->p >= 4);
	v = (uint32_t) r->p[0] << 24 | (uint32_t) r->p[1] << 16 | (uint32_t) r->p[2] << 8 | r->p[3];
	r->p += 4;
	return v;
}

/* The next column as one line: "oid:element,element"; NULL elements are "~". */
static void
column(struct reader *r, char *out, size_t cap)
{
	uint32_t	oid = u32(r);
	uint32_t	len = u32(r);
	const uint8_t *end = r->p + len;
	uint32_t	ndim;
	uint32_t	element;
	uint32_t	n = 0;
	size_t		used = (size_t) snprintf(out, cap, "%u:", oid);

	assert_true(end <= r->end);
	ndim = u32(r);
	u32(r);
	element = u32(r);
	if (ndim == 1)
	{
		n = u32(r);
		assert_int_equal(u32(r), 1);
	}
	else
		assert_int_equal(ndim, 0);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	size = u32(r);

		if (i > 0)
			out[used++] = ',';
		if (size == UINT32_MAX)
			used += (size_t) snprintf(out + used, cap - used, "~");
		else if (element == 25)
			used += (size_t) snprintf(out + used, cap - used, "%.*s", (int) size, (const char *) r->p);
		else
		{
			uint64_t	v = 0;

			for (uint32_t j = 0; j < size; j++)
				v = v << 8 | r->p[j];
			used += (size_t) snprintf(out + used, cap - used, "%lld",
									  size == 4 ? (long long) (int32_t) v : (long long) v);
		}
		if (size != UINT32_MAX)
			r->p += size;
	}
	assert_ptr_equal(r->p, end);
}

static void
columns(const struct batch_params *params, enum item_kind kind, const char *const *wanted)
{
	struct reader r = {params->family[kind].data, params->family[kind].data + params->family[kind].len};
	char		line[512];
	uint32_t	n = u32(&r);

	assert_ptr_equal(params->values[kind], params->family[kind].data);
	assert_int_equal(params->lengths[kind], params->family[kind].len);
	assert_int_equal(params->formats[kind], 1);
	for (uint32_t i = 0; i < n; i++)
	{
		assert_non_null(wanted[i]);
		column(&r, line, sizeof(line));
		assert_string_equal(line, wanted[i]);
	}
	assert_null(wanted[n]);
	assert_ptr_equal(r.p, r.end);
}

static void
every_kind_is_encoded(void **state)
{
	static const char *const queues[] = {"orders", "mail"};
	static const struct item_version versions[] = {{"order", 3}};
	struct item_step steps[] = {
		{"n1", STEP_MERGE, "{\"a\":1}", 7, 5, 6, NULL, 0},
		{"n2", STEP_PREDICATE, "true", 4, 0, 0},
		{NULL, STEP_UNTOUCHED, NULL, 0, 0, 0},
	};
	struct item items[] = {
		{.kind = ITEM_POLL, .poll = {.owner = "w#1", .max = 2, .lease_ms = 0, .queues = queues, .nqueues = 2}},
		{.kind = ITEM_RUN, .mode = ITEM_FINAL, .run = {"t1", "o1", &steps[0], 2}},
		{.kind = ITEM_START, .start = {.id = "i1", .workflow = "w", .context = "{}", .context_len = 2}},
		{.kind = ITEM_RUN, .mode = ITEM_FINAL | ITEM_COMPLETE | ITEM_ASKED_AGAIN, .run = {"t2", "o2", &steps[2], 1}},
		{.kind = ITEM_START, .start = {.id = "i2", .workflow = "v", .correlation_id = "c", .context = "[1]",
		.context_len = 3, .has_version = true, .version = 7}},
		{.kind = ITEM_FAIL, .fail = {"t3", "o3", "boom", true}},
		{.kind = ITEM_BEAT, .beat = {"t4", "o4", INT64_C(90000000000)}},
		{.kind = ITEM_RELEASE, .release = {"t5", "o5"}},
		{.kind = ITEM_POLL, .poll = {.owner = "w#2", .max = 1, .lease_ms = 5, .versions = versions, .nversions = 1}},
	};
	struct item *list[9];
	struct batch_params params;

	(void) state;
	memset(&params, 0, sizeof(params));
	for (int i = 0; i < 9; i++)
		list[i] = &items[i];
	batch_encode(&params, list, 9);
	columns(&params, ITEM_START, (const char *[]) {"1009:i1,i2", "1009:w,v", "1007:~,7", "1009:~,c", "1009:{},[1]", NULL});
	columns(&params, ITEM_RUN, (const char *[]) {"1009:t1,t2", "1009:o1,o2", "1007:1,7", "1007:0,0,1",
		"1009:n1,n2,~", "1007:1,2,0", "1009:{\"a\":1},true,~", "1016:5,0,0", "1016:6,0,0", NULL});
	columns(&params, ITEM_FAIL, (const char *[]) {"1009:t3", "1009:o3", "1009:boom", "1000:1", "1007:0", NULL});
	columns(&params, ITEM_BEAT, (const char *[]) {"1009:t4", "1009:o4", "1016:90000000000", NULL});
	columns(&params, ITEM_RELEASE, (const char *[]) {"1009:t5", "1009:o5", NULL});
	columns(&params, ITEM_POLL, (const char *[]) {"1009:w#1,w#2", "1007:2,1", "1016:0,5", "1007:0,0", "1009:orders,mail",
		"1007:1", "1009:order", "1007:3", NULL});

	batch_encode(&params, list, 1);
	assert_null(params.values[ITEM_START]);
	assert_null(params.values[ITEM_RUN]);
	columns(&params, ITEM_POLL, (const char *[]) {"1009:w#1", "1007:2", "1016:0", "1007:0,0", "1009:orders,mail",
		"1007:", "1009:", "1007:", NULL});
	batch_params_free(&params);
}

/* Polls that look in shares alone are listed, and the shares of what they name, each once. */
static void
shares_are_those_of_narrow_polls(void **state)
{
	static const char *const first[] = {"mail", "orders"};
	static const char *const second[] = {"orders", "unknown"};
	struct fleet_node node = {.id = (char *) "node_a", .name = (char *) "a", .partition = true, .member = true};
	struct fleet_node other = {.id = (char *) "node_b", .name = (char *) "b", .partition = true, .member = true};
	struct item items[] = {
		{.kind = ITEM_POLL, .poll = {.owner = "w#1", .queues = first, .nqueues = 2, .narrow = true}},
		{.kind = ITEM_POLL, .poll = {.owner = "w#2", .queues = first, .nqueues = 2}},
		{.kind = ITEM_BEAT, .beat = {"t4", "o4", 1}},
		{.kind = ITEM_POLL, .poll = {.owner = "w#3", .queues = second, .nqueues = 2, .narrow = true}},
		{.kind = ITEM_POLL, .poll = {.owner = "w#4", .narrow = true}},
	};
	struct item *list[] = {&items[0], &items[1], &items[2], &items[3], &items[4]};
	struct batch_params params;

	(void) state;
	memset(&params, 0, sizeof(params));
	fleet_list_begin();
	fleet_list_add(&node, "[{\"queues\":[\"mail\",\"orders\"]}]");
	fleet_list_add(&other, "[{\"queues\":[\"mail\",\"unknown\"]}]");
	fleet_list_end("node_a");
	batch_encode(&params, list, 4);
	columns(&params, (enum item_kind) BATCH_SHARES, (const char *[]) {"1007:0,2", "1009:mail,orders",
		"1007:0,0", "1007:500,1000", NULL});
	batch_encode(&params, &list[1], 2);
	assert_null(params.values[BATCH_SHARES]);

	fleet_list_begin();
	fleet_list_add(&node, "[{\"queues\":[]}]");
	fleet_list_add(&other, "[{\"queues\":[\"mail\"]}]");
	fleet_list_end("node_a");
	batch_encode(&params, &list[4], 1);
	columns(&params, (enum item_kind) BATCH_SHARES, (const char *[]) {"1007:0", "1009:mail,~",
		"1007:0,0", "1007:500,1000", NULL});
	fleet_list_begin();
	fleet_list_end("node_a");
	batch_params_free(&params);
}

/* Events name their step among the steps of all runs of the batch. */
static void
emitted_events_follow_their_steps(void **state)
{
	static const struct item_event first[] = {{"a.one", "{\"n\":1}", 7}, {"a.two", NULL, 0}};
	static const struct item_event last[] = {{"b.one", "{}", 2}};
	struct item_step steps[] = {
		{.node_id = "n1"},
		{.node_id = "n2", .events = first, .nevents = 2},
		{.node_id = "n3"},
		{.node_id = "n4", .events = last, .nevents = 1},
	};
	struct item items[] = {
		{.kind = ITEM_RUN, .mode = ITEM_GROUPED, .run = {"t1", "o1", &steps[0], 2}},
		{.kind = ITEM_BEAT, .beat = {"t4", "o4", 1}},
		{.kind = ITEM_RUN, .run = {"t2", "o2", &steps[2], 2}},
	};
	struct item *list[] = {&items[0], &items[1], &items[2]};
	struct batch_params params;
	size_t		bare;

	(void) state;
	memset(&params, 0, sizeof(params));
	batch_encode(&params, list, 3);
	columns(&params, (enum item_kind) BATCH_EVENTS, (const char *[]) {"1007:1,1,3", "1009:a.one,a.two,b.one",
		"1009:{\"n\":1},~,{}", NULL});
	bare = item_measure(&items[0]);
	steps[1].nevents = 0;
	assert_true(item_measure(&items[0]) + 17 <= bare);
	steps[3].nevents = 0;
	batch_encode(&params, list, 3);
	assert_null(params.values[BATCH_EVENTS]);
	assert_int_equal(params.lengths[BATCH_EVENTS], 0);
	batch_params_free(&params);
}

/* ---- results as libpq gives them ---- */

static const char *const column_names[] = {
	"op", "item", "code", "message", "task_id", "instance_id", "status", "expires_at", "lease_owner",
	"workflow", "version", "node_id", "step_name", "activity", "kind", "attempt", "mode", "context",
	"base_context", "item_index", "item_map_key", "collect_key", "arm_names"
};
#define COLUMNS 23

static PGresult *
new_result(int format)
{
	PGresult   *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc attributes[COLUMNS];

	memset(attributes, 0, sizeof(attributes));
	for (int i = 0; i < COLUMNS; i++)
	{
		attributes[i].name = (char *) column_names[i];
		attributes[i].format = format;
	}
	assert_true(PQsetResultAttrs(result, COLUMNS, attributes));
	return result;
}

static int
column_number(const char *name)
{
	for (int i = 0; i < COLUMNS; i++)
	{
		if (strcmp(column_names[i], name) == 0)
			return i;
	}
	fail_msg("no column %s", name);
	return -1;
}

static void
set_text(PGresult *result, int row, const char *name, const char *text)
{
	assert_true(PQsetvalue(result, row, column_number(name), (char *) text, (int) strlen(text)));
}

static void
set_int(PGresult *result, int row, const char *name, int64_t value, int size)
{
	char		bytes[8];

	for (int i = 0; i < size; i++)
		bytes[i] = (char) (value >> (8 * (size - 1 - i)));
	assert_true(PQsetvalue(result, row, column_number(name), bytes, size));
}

static void
add_row(PGresult *result, char op, int item, int code, const char *message)
{
	int			row = PQntuples(result);
	char		ops[2] = {op, '\0'};

	for (int i = 0; i < COLUMNS; i++)
		assert_true(PQsetvalue(result, row, i, NULL, -1));
	set_text(result, row, "op", ops);
	set_int(result, row, "item", item, 4);
	set_int(result, row, "code", code, 4);
	if (message != NULL)
		set_text(result, row, "message", message);
}

static void
rows_are_decoded(void **state)
{
	PGresult   *result = new_result(1);
	static const char arms[] = "\0\0\0\1\0\0\0\1\0\0\0\31\0\0\0\3\0\0\0\1\0\0\0\1a\377\377\377\377\0\0\0\2bc";
	struct batch_row row;
	struct wig_error err;
	const char *text;
	size_t		len;
	size_t		pos = 0;

	(void) state;
	add_row(result, 't', 4, 0, NULL);
	set_text(result, 0, "context", "{\"a\":1}");
	set_int(result, 0, "expires_at", INT64_C(1790812800000), 8);
	set_int(result, 0, "version", -2, 4);
	assert_true(PQsetvalue(result, 0, column_number("arm_names"), (char *) arms, sizeof(arms) - 1));
	assert_true(batch_result_valid(result, &err));
	assert_true(batch_row_decode(result, 0, &row));
	assert_int_equal(row.op, 't');
	assert_int_equal(row.item, 4);
	assert_int_equal(row.version, -2);
	assert_true(row.expires_at == INT64_C(1790812800000));
	assert_string_equal(row.context, "{\"a\":1}");
	assert_int_equal(row.context_len, 7);
	assert_null(row.message);
	assert_null(row.base_context);
	assert_true(text_array_next(row.arm_names, row.arm_names_len, &pos, &text, &len));
	assert_int_equal(len, 1);
	assert_memory_equal(text, "a", 1);
	assert_true(text_array_next(row.arm_names, row.arm_names_len, &pos, &text, &len));
	assert_memory_equal(text, "bc", 2);
	assert_false(text_array_next(row.arm_names, row.arm_names_len, &pos, &text, &len));

	/* cut anywhere, the walk ends within the bytes */
	for (size_t cut = 0; cut < sizeof(arms) - 1; cut++)
	{
		uint8_t    *copy = malloc(cut + 1);
		int			n = 0;

		memcpy(copy, arms, cut);
		for (pos = 0; text_array_next(copy, cut, &pos, &text, &len); n++)
			assert_true((const uint8_t *) text + len <= copy + cut);
		assert_in_range(n, 0, 1);
		free(copy);
	}
	pos = 0;
	assert_false(text_array_next(NULL, 0, &pos, &text, &len));
	set_int(result, 0, "item", 4, 8);
	assert_false(batch_row_decode(result, 0, &row));
	PQclear(result);

	result = new_result(0);
	assert_false(batch_result_valid(result, &err));
	PQclear(result);
}

/* ---- batches ---- */

struct probe
{
	struct item item;
	int			calls;
	enum grpc_status status;
	int			code;
	int			ntasks;
	bool		lost;
	char		text[64];
};

static void
probe_done(struct item *item, const struct outcome *outcome)
{
	struct probe *probe = (struct probe *) item;

	probe->calls++;
	probe->status = outcome->status;
	probe->code = outcome->code;
	probe->ntasks = outcome->ntasks;
	probe->lost = outcome->lost;
	snprintf(probe->text, sizeof(probe->text), "%s", outcome->message);
	for (int i = 0; i < outcome->ntasks; i++)
		assert_int_equal(outcome->tasks[i].code, 100 * outcome->tasks[i].item + i);
}

static struct batch *
new_batch(struct probe *probes, const enum item_kind *kinds, int n)
{
	struct batch *batch = batch_create(n);

	memset(probes, 0, sizeof(*probes) * (size_t) n);
	for (int i = 0; i < n; i++)
	{
		probes[i].item.kind = kinds[i];
		probes[i].item.done = probe_done;
		if (kinds[i] == ITEM_POLL)
			probes[i].item.poll.owner = "w#1";
		batch->items[i] = &probes[i].item;
	}
	batch->nitems = n;
	return batch;
}

static void
rows_reach_their_items_in_any_order(void **state)
{
	static const enum item_kind kinds[] = {ITEM_RUN, ITEM_START, ITEM_RUN, ITEM_POLL, ITEM_POLL, ITEM_FAIL};
	struct probe probes[6];
	struct batch *batch = new_batch(probes, kinds, 6);
	PGresult   *result = new_result(1);

	(void) state;
	add_row(result, 't', 1, 100, NULL);
	add_row(result, 'r', 1, 409, "lost");
	add_row(result, 't', 0, 0, NULL);
	add_row(result, 's', 0, 404, "workflow 'x' not found");
	add_row(result, 't', 1, 101, NULL);
	add_row(result, 'f', 0, 0, NULL);
	add_row(result, 'r', 0, 0, NULL);
	add_row(result, 't', 1, 102, NULL);
	batch_deliver(batch, result, 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(probes[i].calls, 1);
	assert_int_equal(probes[0].status, GRPC_OK);
	assert_int_equal(probes[1].status, GRPC_NOT_FOUND);
	assert_string_equal(probes[1].text, "workflow 'x' not found");
	assert_int_equal(probes[2].status, GRPC_FAILED_PRECONDITION);
	assert_int_equal(probes[2].code, 409);
	assert_int_equal(probes[3].ntasks, 1);
	assert_int_equal(probes[4].ntasks, 3);
	assert_int_equal(probes[5].status, GRPC_OK);
	PQclear(result);
}

static void
a_missing_or_foreign_row_is_internal(void **state)
{
	static const enum item_kind kinds[] = {ITEM_BEAT, ITEM_RELEASE};
	struct probe probes[2];
	struct batch *batch = new_batch(probes, kinds, 2);
	PGresult   *result = new_result(1);

	(void) state;
	add_row(result, 'h', 0, 0, NULL);
	batch_deliver(batch, result, 0);
	assert_int_equal(probes[0].status, GRPC_OK);
	assert_int_equal(probes[1].status, GRPC_INTERNAL);
	assert_non_null(strstr(probes[1].text, "internal error (ref "));

	batch = new_batch(probes, kinds, 2);
	add_row(result, 'd', 1, 0, NULL);
	batch_deliver(batch, result, 0);
	assert_int_equal(probes[0].status, GRPC_INTERNAL);
	assert_int_equal(probes[1].status, GRPC_INTERNAL);

	batch = new_batch(probes, kinds, 2);
	batch_deliver(batch, NULL, 0);
	assert_int_equal(probes[0].calls, 1);
	assert_int_equal(probes[1].status, GRPC_INTERNAL);
	PQclear(result);
}

static void
halves_lose_nobody(void **state)
{
	static const enum item_kind kinds[] = {ITEM_RUN, ITEM_RUN, ITEM_FAIL, ITEM_POLL, ITEM_START};
	struct refusal refusal = {.status = GRPC_UNAVAILABLE, .code = 500, .storage = true, .message = "no"};
	struct probe probes[5];
	struct batch *first = new_batch(probes, kinds, 5);
	struct batch *second = batch_split(first);

	(void) state;
	assert_int_equal(first->nitems, 2);
	assert_int_equal(second->nitems, 3);
	batch_mark_unknown(second);
	assert_int_equal(probes[1].item.mode, 0);
	assert_int_equal(probes[2].item.mode, ITEM_ASKED_AGAIN);
	assert_int_equal(probes[4].item.mode, 0);
	batch_drop_polls(second);
	assert_int_equal(second->nitems, 2);
	assert_true(probes[3].lost);
	batch_refuse(first, &refusal);
	batch_refuse(second, &refusal);
	for (int i = 0; i < 5; i++)
		assert_int_equal(probes[i].calls, 1);
}

static void
what_is_abandoned_says_whether_it_may_have_happened(void **state)
{
	static const enum item_kind kinds[] = {ITEM_RUN, ITEM_RUN, ITEM_START};
	struct probe probes[3];
	struct batch *batch = new_batch(probes, kinds, 3);

	(void) state;
	probes[1].item.unknown = true;
	probes[0].item.next = &probes[1].item;
	probes[1].item.next = &probes[2].item;
	batch_abandon(&probes[0].item, 0, "down");
	batch_free(batch);
	assert_int_equal(probes[0].status, GRPC_UNAVAILABLE);
	assert_int_equal(probes[1].status, GRPC_INTERNAL);
	assert_int_equal(probes[2].status, GRPC_UNAVAILABLE);
	assert_string_equal(probes[0].text, probes[2].text);
	assert_non_null(strstr(probes[0].text, "storage temporarily unavailable (ref "));
}

static void
sqlstates_have_classes(void **state)
{
	struct refusal refusal;

	(void) state;
	assert_int_equal(error_classify("WG409"), ERROR_ENGINE);
	assert_int_equal(error_classify("42501"), ERROR_ENGINE);
	assert_int_equal(error_classify("40P01"), ERROR_RETRY);
	assert_int_equal(error_classify("57P01"), ERROR_CONNECTION);
	assert_int_equal(error_classify("57014"), ERROR_BUSY);
	assert_int_equal(error_classify("53300"), ERROR_CONNECTION);
	assert_int_equal(error_classify("53100"), ERROR_BUSY);
	assert_int_equal(error_classify("25006"), ERROR_CONNECTION);
	assert_int_equal(error_classify("26000"), ERROR_PLAN);
	assert_int_equal(error_classify("42883"), ERROR_SCHEMA);
	assert_int_equal(error_classify("XX000"), ERROR_DEFECT);
	assert_int_equal(error_classify(""), ERROR_CONNECTION);
	assert_int_equal(error_classify(NULL), ERROR_CONNECTION);
	refusal_from_error(&refusal, 0, "WG404", "workflow not found");
	assert_int_equal(refusal.status, GRPC_NOT_FOUND);
	assert_int_equal(refusal.code, 404);
	assert_string_equal(refusal.message, "workflow not found");
	refusal_from_error(&refusal, 0, "XX000", "secret 42");
	assert_int_equal(refusal.status, GRPC_INTERNAL);
	assert_null(strstr(refusal.message, "secret"));
	refusal_from_error(&refusal, 0, "42501", "permission denied for function batch");
	assert_int_equal(refusal.status, GRPC_PERMISSION_DENIED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_encoded),
		cmocka_unit_test(emitted_events_follow_their_steps),
		cmocka_unit_test(shares_are_those_of_narrow_polls),
		cmocka_unit_test(rows_are_decoded),
		cmocka_unit_test(rows_reach_their_items_in_any_order),
		cmocka_unit_test(a_missing_or_foreign_row_is_internal),
		cmocka_unit_test(halves_lose_nobody),
		cmocka_unit_test(what_is_abandoned_says_whether_it_may_have_happened),
		cmocka_unit_test(sqlstates_have_classes),
	};
	int			failed;

	loop_open();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	loop_close();
	return failed;
}
