/*
 * event.c
 *	  Appending to wf_event, and the horizon below which it is final.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "durable.h"
#include "event.h"
#include "guc.h"
#include "shmem.h"
#include "wake.h"

enum
{
	EVENT_SEQ = 1,
	EVENT_CREATED_AT,
	EVENT_VERSION,
	EVENT_INSTANCE_ID,
	EVENT_WORKFLOW,
	EVENT_CORRELATION_ID,
	EVENT_TYPE,
	EVENT_NODE_ID,
	EVENT_PAYLOAD,
	EVENT_NATTS = EVENT_PAYLOAD
};

static bool published = false;

static int64
highest_seq(void *store)
{
	TupleTableSlot *row = wig_store_fetch_last(store, WIG_INDEX_EVENT, NULL, 0);
	bool		isnull;

	return row == NULL ? 0 : DatumGetInt64(slot_getattr(row, EVENT_SEQ, &isnull));
}

static void
set_text(Datum *values, bool *nulls, int attnum, const char *value)
{
	nulls[attnum - 1] = value == NULL;
	if (value != NULL)
		values[attnum - 1] = CStringGetTextDatum(value);
}

void
wig_event_append(WigWork *work, const WigInstance *inst, const char *type,
				 const char *payload, size_t payload_len, const char *node_id)
{
	Datum		values[EVENT_NATTS] = {0};
	bool		nulls[EVENT_NATTS] = {false};

	if (!published)
	{
		published = true;
		wig_event_publish();
		/* The clock worker commits lazily, but what the feed has told stays true
		 * across a crash or a failover. Applications have chosen for themselves. */
		if (wig_is_background_worker())
			wig_commit_durably();
	}
	values[EVENT_SEQ - 1] = Int64GetDatum(wig_next_event(highest_seq, work->store, work->now));
	values[EVENT_CREATED_AT - 1] = TimestampTzGetDatum(work->now);
	values[EVENT_VERSION - 1] = Int32GetDatum(inst->version);
	set_text(values, nulls, EVENT_INSTANCE_ID, inst->id);
	set_text(values, nulls, EVENT_WORKFLOW, inst->workflow);
	set_text(values, nulls, EVENT_CORRELATION_ID, inst->correlation_id);
	set_text(values, nulls, EVENT_TYPE, type);
	set_text(values, nulls, EVENT_NODE_ID, node_id);
	nulls[EVENT_PAYLOAD - 1] = payload == NULL;
	if (payload != NULL)
		values[EVENT_PAYLOAD - 1] = PointerGetDatum(cstring_to_text_with_len(payload, payload_len));
	wig_store_insert(work->store, WIG_TABLE_EVENT, EVENT_NATTS, values, nulls);
	wig_wake_event();
	if (wig_event_retention >= 0)
		wig_wake_at(WIG_DEADLINE_RETENTION,
					TimestampTzPlusMilliseconds(work->now, wig_event_retention * INT64CONST(60000)));
}

void
wig_event_lifecycle(WigWork *work, const WigInstance *inst, const char *type,
					const char *reason, const char *error)
{
	StringInfoData payload;

	if (reason == NULL && error == NULL)
	{
		wig_event_append(work, inst, type, NULL, 0, NULL);
		return;
	}
	initStringInfo(&payload);
	appendStringInfoChar(&payload, '{');
	if (reason != NULL)
	{
		appendStringInfoString(&payload, "\"reason\":");
		escape_json(&payload, reason);
	}
	if (error != NULL)
	{
		appendStringInfoString(&payload, reason != NULL ? ",\"error\":" : "\"error\":");
		escape_json(&payload, error);
	}
	appendStringInfoChar(&payload, '}');
	wig_event_append(work, inst, type, payload.data, payload.len, NULL);
}

int64
wig_event_horizon(void)
{
	/* After a restart the log itself says where it stands. */
	if (!wig_event_counter_known())
	{
		WigStore   *store = wig_store_open(false);

		wig_event_counter_init(highest_seq(store));
		wig_store_close(store);
	}
	return wig_lowest_open_event();
}

static void
xact_ended(XactEvent event, void *arg)
{
	if (!published)
		return;
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
	{
		published = false;
		wig_event_withdraw();
	}
}

void
wig_event_init(void)
{
	RegisterXactCallback(xact_ended, NULL);
}
