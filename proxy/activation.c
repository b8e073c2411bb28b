/*
 * activation.c
 *	  Claimed tasks to the bytes of a TaskList.
 *
 * Written by hand rather than packed from structs: contexts go from the row's JSON
 * text into the message without a copy in between.
 */
#include <string.h>

#include "activation.h"
#include "wire.h"

/* Field numbers of TaskActivation and TaskList (proto/wiggle.proto). */
enum
{
	LIST_TASKS = 1, LIST_RETRY_AFTER = 2,
	TASK_TASK_ID = 1, TASK_INSTANCE_ID = 2, TASK_WORKFLOW = 3, TASK_VERSION = 4, TASK_NODE_ID = 5,
	TASK_STEP_NAME = 6, TASK_ACTIVITY = 7, TASK_KIND = 8, TASK_ATTEMPT = 9, TASK_EXPIRES_AT = 10,
	TASK_LEASE_OWNER = 11, TASK_CONTEXT = 12, TASK_MODE = 13, TASK_BASE_CONTEXT = 14,
	TASK_ITEM_INDEX = 15, TASK_MAP_KEY = 16, TASK_COLLECT_KEY = 17, TASK_ARM_NAMES = 18
};

/* Scratch memory above this is given back after use. */
#define SCRATCH_KEEP ((size_t) 1024 * 1024)

static struct buf task;
static struct buf value;

static void
put_bytes(struct buf *out, int field, const void *data, size_t len)
{
	wire_varint(out, (uint64_t) field << 3 | WIRE_BYTES);
	wire_varint(out, len);
	buf_append(out, data, len);
}

static void
put_text(struct buf *out, int field, const char *text)
{
	if (text != NULL && *text != '\0')
		put_bytes(out, field, text, strlen(text));
}

/* Negative numbers take ten bytes, as the format wants it for int32 too. */
static void
put_int(struct buf *out, int field, int64_t v)
{
	if (v == 0)
		return;
	wire_varint(out, (uint64_t) field << 3 | WIRE_VARINT);
	wire_varint(out, (uint64_t) v);
}

static bool
put_json(struct buf *out, int field, enum value_form form, const char *json, size_t len,
		 struct wig_error *why)
{
	buf_reset(&value);
	if (!(form == VALUE_TEXT ? json_to_text : json_to_value) (json, len, &value, why))
		return false;
	put_bytes(out, field, value.data, value.len);
	return true;
}

static bool
encode_task(const struct batch_row *row, enum value_form form, struct wig_error *why)
{
	size_t		pos = 0;
	const char *arm;
	size_t		arm_len;

	buf_reset(&task);
	put_text(&task, TASK_TASK_ID, row->task_id);
	put_text(&task, TASK_INSTANCE_ID, row->instance_id);
	put_text(&task, TASK_WORKFLOW, row->workflow);
	put_int(&task, TASK_VERSION, row->version);
	put_text(&task, TASK_NODE_ID, row->node_id);
	put_text(&task, TASK_STEP_NAME, row->step_name);
	put_text(&task, TASK_ACTIVITY, row->activity);
	put_text(&task, TASK_KIND, row->kind);
	put_int(&task, TASK_ATTEMPT, row->attempt);
	put_int(&task, TASK_EXPIRES_AT, row->expires_at);
	put_text(&task, TASK_LEASE_OWNER, row->lease_owner);
	if (row->context != NULL && !put_json(&task, TASK_CONTEXT, form, row->context, row->context_len, why))
		return false;
	put_text(&task, TASK_MODE, row->mode);
	if (row->base_context != NULL)
	{
		if (!put_json(&task, TASK_BASE_CONTEXT, form, row->base_context, row->base_context_len, why))
			return false;
		put_int(&task, TASK_ITEM_INDEX, row->item_index);
		put_text(&task, TASK_MAP_KEY, row->item_map_key);
	}
	put_text(&task, TASK_COLLECT_KEY, row->collect_key);
	while (text_array_next(row->arm_names, row->arm_names_len, &pos, &arm, &arm_len))
		put_bytes(&task, TASK_ARM_NAMES, arm, arm_len);
	return true;
}

int
activation_pack(const struct batch_row *rows, int n, size_t before, enum value_form form,
				struct buf *out, enum activation_fate *fates, struct wig_error *why)
{
	const size_t overhead = 6;	/* tag and length in front of a task */
	bool		full = false;
	int			packed = 0;

	for (int i = 0; i < n; i++)
	{
		if (full)
		{
			fates[i] = ACTIVATION_LATER;
			continue;
		}
		if (!encode_task(&rows[i], form, why))
		{
			fates[i] = ACTIVATION_NEVER;
			continue;
		}
		if (task.len + overhead > TASK_LIST_MAX_BYTES)
		{
			wig_fail(why, "the context needs %zu bytes on the wire; a poll's answer carries up to %zu",
					 task.len + overhead, TASK_LIST_MAX_BYTES);
			fates[i] = ACTIVATION_NEVER;
			continue;
		}
		full = out->len - before + task.len + overhead > TASK_LIST_MAX_BYTES;
		fates[i] = full ? ACTIVATION_LATER : ACTIVATION_PACKED;
		if (full)
			continue;
		put_bytes(out, LIST_TASKS, task.data, task.len);
		packed++;
	}
	if (task.cap > SCRATCH_KEEP)
		buf_free(&task);
	if (value.cap > SCRATCH_KEEP)
		buf_free(&value);
	return packed;
}

void
activation_empty(struct buf *out, int64_t retry_after_ms)
{
	put_int(out, LIST_RETRY_AFTER, retry_after_ms);
}
