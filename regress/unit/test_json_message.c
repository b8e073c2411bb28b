/*
 * test_json_message.c
 *	  Messages of the protocol <-> JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_message.h"
#include "value.h"
#include "wiggle.pb-c.h"

static ProtobufCMessage *
parsed(const ProtobufCMessageDescriptor *type, const char *json)
{
	struct wig_error err = {.message = ""};
	struct buf	bytes = BUF_INIT;
	ProtobufCMessage *m;

	if (!json_to_message(json, strlen(json), type, &bytes, &err))
		fail_msg("%s: %s", json, err.message);
	m = protobuf_c_message_unpack(type, NULL, bytes.len, bytes.len > 0 ? bytes.data : (const uint8_t *) "");
	assert_non_null(m);
	buf_free(&bytes);
	return m;
}

/* JSON to a message and back. */
static void
becomes(const ProtobufCMessageDescriptor *type, const char *json, const char *expected)
{
	struct wig_error err = {.message = ""};
	struct buf	text = BUF_INIT;
	ProtobufCMessage *m = parsed(type, json);

	assert_true(message_to_json(m, &text, &err));
	assert_string_equal(buf_cstr(&text), expected);
	buf_free(&text);
	protobuf_c_message_free_unpacked(m, NULL);
}

static void
refused(const ProtobufCMessageDescriptor *type, const char *json, size_t len, const char *part)
{
	struct wig_error err = {.message = ""};
	struct buf	bytes = BUF_INIT;

	assert_false(json_to_message(json, len, type, &bytes, &err));
	if (strstr(err.message, part) == NULL)
		fail_msg("\"%s\" does not mention \"%s\"", err.message, part);
	buf_free(&bytes);
}

static void
every_kind_of_field(void **state)
{
	const ProtobufCMessageDescriptor *poll = &com__wiggle__proto__poll_request__descriptor;
	const ProtobufCMessageDescriptor *schedule = &com__wiggle__proto__create_schedule_request__descriptor;

	(void) state;
	becomes(poll, "{}", "{}");
	becomes(poll, "{\"workerId\":\"\",\"queues\":[],\"max\":0,\"leaseMillis\":\"0\",\"versions\":null}", "{}");
	becomes(poll, "{\"worker_id\":\"\\u00e4\\n\\\"\",\"queues\":[\"\",\"b\"],\"max\":-3,\"lease_millis\":9223372036854775807}",
			"{\"workerId\":\"\xc3\xa4\\u000a\\\"\",\"queues\":[\"\",\"b\"],\"max\":-3,\"leaseMillis\":\"9223372036854775807\"}");
	becomes(poll, "{\"versions\":[{},{\"workflow\":\"w\",\"version\":\"2\"}],\"leaseMillis\":\"-9223372036854775808\"}",
			"{\"leaseMillis\":\"-9223372036854775808\",\"versions\":[{},{\"workflow\":\"w\",\"version\":2}]}");
	becomes(schedule, "{\"everyMillis\":0}", "{\"everyMillis\":\"0\"}");
	becomes(schedule, "{\"cron\":\"\",\"everyMillis\":null}", "{\"cron\":\"\"}");
	becomes(&com__wiggle__proto__start_instance_request__descriptor,
			"{\"correlationId\":\"\",\"context\":{ \"a\" : 12345678901234567890 }}",
			"{\"context\":{ \"a\" : 12345678901234567890 },\"correlationId\":\"\"}");
	becomes(&com__wiggle__proto__start_instance_request__descriptor, "{\"context\":null}", "{\"context\":null}");
	becomes(&com__wiggle__proto__report_steps_request__descriptor,
			"{\"runs\":[{\"final\":true,\"steps\":[{\"predicateValue\":false}]}]}",
			"{\"runs\":[{\"steps\":[{\"predicateValue\":false}],\"final\":true}]}");
}

static void
integers(void **state)
{
	static const char *const three[] = {"3", "\"3\"", "3.0", "3e0", "\"30e-1\"", "0.3E+1"};
	static const char *const bad[] = {"3.5", "\"\"", "\"+3\"", "\" 3\"", "\"3x\"", "\"nan\"", "\"0x3\"", "[]", "{}", "false",
	"2147483648", "-2147483649", "1e300", "\"99999999999999999999\""};

	(void) state;
	for (size_t i = 0; i < sizeof(three) / sizeof(three[0]); i++)
	{
		struct buf	json = BUF_INIT;

		buf_printf(&json, "{\"max\":%s}", three[i]);
		becomes(&com__wiggle__proto__poll_request__descriptor, buf_cstr(&json), "{\"max\":3}");
		buf_free(&json);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		struct buf	json = BUF_INIT;

		buf_printf(&json, "{\"max\":%s}", bad[i]);
		refused(&com__wiggle__proto__poll_request__descriptor, buf_cstr(&json), json.len,
				"PollRequest.max is a whole number of 32 bits");
		buf_free(&json);
	}
}

static void
long_content_moves_its_length(void **state)
{
	static char json[300000];
	Com__Wiggle__Proto__ReportStepsRequest *m;

	(void) state;
	for (size_t n = 1; n < 250000; n = n * 3 + 100)
	{
		size_t		len = (size_t) sprintf(json, "{\"runs\":[{\"taskId\":\"t\",\"steps\":[{\"nodeId\":\"");

		memset(json + len, 'x', n);
		strcpy(json + len + n, "\",\"merge\":[1]}]}]}");
		m = (void *) parsed(&com__wiggle__proto__report_steps_request__descriptor, json);
		assert_int_equal(strlen(m->runs[0]->steps[0]->node_id), n);
		assert_memory_equal(m->runs[0]->steps[0]->merge.data, "\0[1]", 4);
		protobuf_c_message_free_unpacked(&m->base, NULL);
	}
}

/* Every prefix of a request is refused, and none is read beyond its end. */
static void
cut_off(void **state)
{
	static const char json[] =
		"{\"runs\":[{\"taskId\":\"t\\u00e4\",\"steps\":[{\"merge\":{\"a\":[1.5e3,true,null]},\"events\":[{\"type\":\"x\"}]}]}]}";

	(void) state;
	for (size_t n = 0; n < sizeof(json) - 1; n++)
	{
		char	   *cut = malloc(n > 0 ? n : 1);

		memcpy(cut, json, n);
		refused(&com__wiggle__proto__report_steps_request__descriptor, cut, n, "the request is not valid JSON");
		free(cut);
	}
}

static void
numbers_with_a_point(void **state)
{
	Com__Wiggle__Proto__NodeStats stats = COM__WIGGLE__PROTO__NODE_STATS__INIT;
	struct wig_error err = {.message = ""};
	struct buf	text = BUF_INIT;

	(void) state;
	stats.mean_millis = 0.1;
	assert_true(message_to_json(&stats.base, &text, &err));
	stats.mean_millis = -1.0 / 0.0;
	assert_true(message_to_json(&stats.base, &text, &err));
	assert_string_equal(buf_cstr(&text), "{\"meanMillis\":0.1}{\"meanMillis\":\"-Infinity\"}");
	buf_free(&text);
}

/* What the protocol grows by must have a form in JSON too. */
static void
every_field_has_a_form(const ProtobufCMessageDescriptor *type, bool request, int depth)
{
	assert_true(type->n_fields <= 64);
	for (unsigned i = 0; i < type->n_fields; i++)
	{
		const ProtobufCFieldDescriptor *field = &type->fields[i];

		assert_true(strlen(field->name) + 2 <= 64);
		if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		{
			if (depth < 8)
				every_field_has_a_form(field->descriptor, request, depth + 1);
		}
		else if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_INT32 &&
				 field->type != PROTOBUF_C_TYPE_INT64 && field->type != PROTOBUF_C_TYPE_BOOL &&
				 field->type != PROTOBUF_C_TYPE_BYTES && (request || field->type != PROTOBUF_C_TYPE_DOUBLE))
			fail_msg("%s.%s has a type that JSON is not prepared for", type->short_name, field->name);
	}
}

static void
whole_protocol(void **state)
{
	const ProtobufCServiceDescriptor *service = &com__wiggle__proto__wiggle_control_plane__descriptor;

	(void) state;
	for (unsigned i = 0; i < service->n_methods; i++)
	{
		every_field_has_a_form(service->methods[i].input, true, 0);
		every_field_has_a_form(service->methods[i].output, false, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field),
		cmocka_unit_test(integers),
		cmocka_unit_test(long_content_moves_its_length),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(numbers_with_a_point),
		cmocka_unit_test(whole_protocol),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
