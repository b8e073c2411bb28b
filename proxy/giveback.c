/*
 * giveback.c
 *	  Claimed tasks that cannot be delivered: released, or failed for good.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "giveback.h"
#include "log.h"
#include "router.h"
#include "shard.h"

struct giveback
{
	struct item item;
	char	   *task_id;
	char	   *owner;
	char	   *reason;			/* NULL: a release */
};

static int	on_their_way;

static void
forget(struct giveback *giveback)
{
	on_their_way--;
	free(giveback->task_id);
	free(giveback->owner);
	free(giveback->reason);
	free(giveback);
}

static void
done(struct item *item, const struct outcome *outcome)
{
	static struct log_gate gate;
	struct giveback *giveback = (struct giveback *) item;

	/* 404 and 409: someone else has settled it in the meantime */
	if (outcome->status != GRPC_OK && outcome->code != 404 && outcome->code != 409 &&
		log_gate_open(&gate))
		log_warn("poller", "task %s could not be given back and waits for its lease to end: %s",
				 giveback->task_id, outcome->message);
	forget(giveback);
}

static void
submit(struct shard *shard, struct giveback *giveback)
{
	static struct log_gate gate;

	on_their_way++;
	giveback->item.done = done;
	if (shard_submit(shard, &giveback->item,
					 router_hash(giveback->task_id, strlen(giveback->task_id))) == SUBMIT_OK)
		return;
	if (log_gate_open(&gate))
		log_warn("poller", "task %s could not be given back and waits for its lease to end",
				 giveback->task_id);
	forget(giveback);
}

static struct giveback *
create(const char *task_id, const char *owner)
{
	struct giveback *giveback = xcalloc(1, sizeof(*giveback));

	giveback->task_id = xstrdup(task_id);
	giveback->owner = xstrdup(owner);
	return giveback;
}

void
giveback_release(struct shard *shard, const char *task_id, const char *owner)
{
	struct giveback *giveback = create(task_id, owner);

	giveback->item.kind = ITEM_RELEASE;
	giveback->item.release.task_id = giveback->task_id;
	giveback->item.release.owner = giveback->owner;
	submit(shard, giveback);
}

void
giveback_fail(struct shard *shard, const char *task_id, const char *owner, const char *reason)
{
	struct giveback *giveback = create(task_id, owner);

	giveback->reason = xstrdup(reason);
	giveback->item.kind = ITEM_FAIL;
	giveback->item.fail.task_id = giveback->task_id;
	giveback->item.fail.owner = giveback->owner;
	giveback->item.fail.message = giveback->reason;
	giveback->item.fail.retryable = false;
	log_warn("poller", "task %s can never be delivered: %s", task_id, reason);
	submit(shard, giveback);
}

bool
giveback_idle(void)
{
	return on_their_way == 0;
}
