/*
 * test_message.c
 *	  Requests are checked before protobuf-c sees them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "buf.h"
#include "message.h"
#include "wiggle.pb-c.h"

/* message.c answers calls; here there is none to answer. */
const uint8_t *
call_request(const struct call *call, size_t *len)
{
	(void) call;
	*len = 0;
	return NULL;
}

enum call_format
call_format(const struct call *call)
{
	(void) call;
	return CALL_PROTOBUF;
}

void
call_reply(struct call *call, uint8_t *message, size_t len)
{
	(void) call;
	(void) len;
	free(message);
}

bool
call_send(struct call *call, uint8_t *message, size_t len)
{
	(void) call;
	(void) len;
	free(message);
	return true;
}

void
call_fail(struct call *call, enum grpc_status status, const char *fmt,...)
{
	(void) call;
	(void) status;
	(void) fmt;
}

static void
refused(const ProtobufCMessageDescriptor *type, const void *data, size_t len, const char *part)
{
	struct wig_error err;
	ProtobufCMessage *m = message_unpack(type, data, len, &err);

	assert_null(m);
	if (strstr(err.message, part) == NULL)
		fail_msg("\"%s\" does not mention \"%s\"", err.message, part);
}

static void
good_requests(void **state)
{
	struct wig_error err;
	Com__Wiggle__Proto__StartInstanceRequest *m;
	Com__Wiggle__Proto__ListInstancesRequest *list;

	(void) state;
	m = (void *) message_unpack(&com__wiggle__proto__start_instance_request__descriptor,
								(const uint8_t *) "\x0a\x05" "order" "\x12\x02\x20\x01\x18\x07\x22\x00\x7a\x01?", 18, &err);
	assert_non_null(m);
	assert_string_equal(m->workflow, "order");
	assert_int_equal(m->context.len, 2);
	assert_int_not_equal(m->has_version_case, 0);
	assert_int_equal(m->version, 7);
	assert_int_not_equal(m->has_correlation_id_case, 0);
	assert_string_equal(m->correlation_id, "");
	protobuf_c_message_free_unpacked(&m->base, NULL);

	list = (void *) message_unpack(&com__wiggle__proto__list_instances_request__descriptor, NULL, 0, &err);
	assert_non_null(list);
	assert_int_equal(list->has_workflow_case, 0);
	assert_int_equal(list->limit, 0);
	protobuf_c_message_free_unpacked(&list->base, NULL);
}

static void
text_is_checked_and_named(void **state)
{
	const ProtobufCMessageDescriptor *poll = &com__wiggle__proto__poll_request__descriptor;

	(void) state;
	refused(poll, "\x0a\x03w\x00x", 5, "PollRequest.worker_id holds the character U+0000");
	refused(poll, "\x12\x01\xff", 3, "PollRequest.queues is not valid UTF-8");
	refused(poll, "\x12\x03\xed\xa0\x80", 5, "PollRequest.queues is not valid UTF-8");
	refused(poll, "\x32\x03\x0a\x01\xff", 5, "WorkflowVersion.workflow is not valid UTF-8");
}

static void
malformed_bytes(void **state)
{
	const ProtobufCMessageDescriptor *poll = &com__wiggle__proto__poll_request__descriptor;

	(void) state;
	refused(poll, "\xff\xff\xff\xff", 4, "not a well-formed PollRequest");
	refused(poll, "\x0a\x05" "ab", 4, "not a well-formed");
	refused(poll, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "not a well-formed");
	refused(poll, "\x00\x01", 2, "not a well-formed");
	refused(poll, "\x0b", 1, "not a well-formed");	/* a group */
	refused(poll, "\x19\x01\x02", 3, "not a well-formed");	/* a cut fixed64 */
	refused(poll, "\x18", 1, "not a well-formed");
	refused(poll, "\x0d\x01\x02\x03\x04", 5, "not a well-formed");	/* a number for worker_id */
}

/* The text form is for our own use: a client's is refused wherever it stands. */
static void
values_as_text(void **state)
{
	(void) state;
	refused(&com__wiggle__proto__start_instance_request__descriptor, "\x12\x03\x00{}", 5,
			"StartInstanceRequest.context is not a well-formed google.protobuf.Value");
	refused(&com__wiggle__proto__report_steps_request__descriptor, "\x0a\x07\x1a\x05\x12\x03\x00{}", 9,
			"StepResult.merge is not a well-formed google.protobuf.Value");
}

/* steps.branches.steps.escalation.escalation…: protobuf-c would follow for ever. */
static void
deep_nesting(void **state)
{
	static uint8_t raw[4 << 20];

	(void) state;
	for (int levels = 10; levels <= 500000; levels *= 5)
	{
		size_t		at = sizeof(raw);
		size_t		len = 0;
		struct wig_error err;
		ProtobufCMessage *m;

		for (int i = 0; i < levels; i++)
		{
			uint8_t		head[6] = {0x4a};	/* BranchStep.escalation */
			size_t		n = 1;
			size_t		v = len;

			for (; v >= 0x80; v >>= 7)
				head[n++] = (uint8_t) (v | 0x80);
			head[n++] = (uint8_t) v;
			at -= n;
			memcpy(raw + at, head, n);
			len += n;
		}
		if (levels < 64)
		{
			m = message_unpack(&com__wiggle__proto__branch_step__descriptor, raw + at, len, &err);
			assert_non_null(m);
			protobuf_c_message_free_unpacked(m, NULL);
		}
		else
			refused(&com__wiggle__proto__branch_step__descriptor, raw + at, len, "nests more than");
	}
}

/* Two bytes on the wire must not become a hundred in memory millions of times. */
static void
too_many_parts(void **state)
{
	struct buf	raw = BUF_INIT;

	(void) state;
	for (int i = 0; i < 300000; i++)
		buf_append(&raw, "\x0a\x00", 2);
	refused(&com__wiggle__proto__report_steps_request__descriptor, raw.data, raw.len, "more than 262144");
	buf_free(&raw);
}

static void
truncated_at_every_length(void **state)
{
	Com__Wiggle__Proto__ReportStepsRequest request = COM__WIGGLE__PROTO__REPORT_STEPS_REQUEST__INIT;
	Com__Wiggle__Proto__ReportedRun run = COM__WIGGLE__PROTO__REPORTED_RUN__INIT;
	Com__Wiggle__Proto__StepResult step = COM__WIGGLE__PROTO__STEP_RESULT__INIT;
	Com__Wiggle__Proto__ReportedRun *runs[] = {&run};
	Com__Wiggle__Proto__StepResult *steps[] = {&step};
	uint8_t		packed[256];
	size_t		len;
	int			accepted = 0;

	(void) state;
	run.task_id = (char *) "tok.s0.0123456789012345678901-1";
	run.lease_owner = (char *) "w1#0123456789abc";
	run.final = 1;
	step.node_id = (char *) "n1";
	step.started_at = 1234567890123;
	step.outcome_case = COM__WIGGLE__PROTO__STEP_RESULT__OUTCOME_PREDICATE_VALUE;
	step.predicate_value = 1;
	run.n_steps = 1;
	run.steps = steps;
	request.n_runs = 1;
	request.runs = runs;
	len = protobuf_c_message_pack(&request.base, packed);
	for (size_t n = 0; n <= len; n++)
	{
		struct wig_error err;
		uint8_t    *cut = malloc(n > 0 ? n : 1);
		ProtobufCMessage *m;

		memcpy(cut, packed, n);
		m = message_unpack(&com__wiggle__proto__report_steps_request__descriptor, cut, n, &err);
		free(cut);
		if (m != NULL)
		{
			accepted++;
			protobuf_c_message_free_unpacked(m, NULL);
		}
	}
	assert_int_equal(accepted, 2);	/* nothing, and all of it */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests),
		cmocka_unit_test(text_is_checked_and_named),
		cmocka_unit_test(malformed_bytes),
		cmocka_unit_test(values_as_text),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(too_many_parts),
		cmocka_unit_test(truncated_at_every_length),
	};

	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
