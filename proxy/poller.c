/*
 * poller.c
 *	  Parked polls: who waits for what, and which of them a lane's batch carries.
 *
 * Where a poll stands is its place: in line at one shard (IN_LINE), with its
 * subscription (PARKED), waiting for its connection to drain (SATED) or in a
 * batch (RIDING). It leaves a batch only through ride_ended().
 *
 * Wake-ups are kept with subscriptions, not polls: when a shard tells that a
 * queue became ready, a few polls of each subscription concerned go and look.
 * While all of them come back full, twice as many go; the first that does not
 * ends it, unless another wake-up has come since its batch was formed.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "activation.h"
#include "buf.h"
#include "config.h"
#include "drain.h"
#include "giveback.h"
#include "ids.h"
#include "loop.h"
#include "metrics.h"
#include "poller.h"
#include "random.h"
#include "shard.h"
#include "subscription.h"

/* A claim takes at most so many tasks; a poll may be given fewer than it asked for. */
#define CLAIM_MAX			256

/* Claimed contexts should fill an answer, not overflow it. */
#define CLAIM_BYTES			((size_t) 3 * 1024 * 1024)

/* Room that a connection must have for unsent bytes before a claim is made for it. */
#define ROOM_BYTES			((size_t) 64 * 1024)

/* Polls that go and look at a wake-up, at first and at most. */
#define BURST_FIRST			16
#define BURST_MAX			256

/* Parked polls that a batch with starts or runs takes along. */
#define HANDOFF_EXTRA		8
#define HANDOFF_MAX			64

/* How long a poll that does not wait, or whose wait is over, may stay in a batch. */
#define RIDE_GRACE_MS		2000

/* Every subscription looks again so often, whatever the wake-ups say. */
#define SAFETY_MS			10000

#define SATED_RETRY_MS		25
#define SATED_LOOK			16

enum poll_place
{
	IN_LINE,
	PARKED,
	SATED,
	RIDING
};

struct poll
{
	struct item item;			/* first: the lane hands it back */
	struct call *call;			/* NULL: gone, its claims are given back */
	struct subscription *subscription;
	struct poll *prev;
	struct poll *next;
	enum poll_place place;
	int			slot;			/* where it stands in line or rides */
	uint64_t	untried;		/* shards that have not been asked yet */
	bool		tried;			/* any has answered */
	bool		looking;		/* rides because of a wake-up */
	uint32_t	wakes;			/* the subscription's when the ride began */
	int32_t		max;
	uint64_t	wait_until;		/* loop time */
	struct deadline deadline;
	size_t		worker_len;
	char		owner[];		/* worker id, '#', nonce, terminator */
};

struct line
{
	struct poll *first;
	struct poll *last;
};

static struct line lines[TOPOLOGY_MAX_SHARDS];
static struct line sated;
static struct subscription *ring;	/* those with parked polls; next one to be served */
static int	ring_size;
static int	wanting[TOPOLOGY_MAX_SHARDS];	/* subscriptions that should look there */
static int	total;				/* polls whose call is waiting */
static int	riding;				/* in batches, with or without a call */
static unsigned cursor;			/* rotates over the shards */
static struct deadline safety;
static struct deadline sated_retry;
static struct metric *parked_gauge;
static struct metric *claimed;
static struct metric *released;
static struct metric *empty_claims;
static struct metric *shed;

static void ride_ended(struct item *item, const struct outcome *outcome);

#define BIT(slot) (UINT64_C(1) << (slot))

static uint64_t
all_shards(void)
{
	return shard_slots() >= 64 ? UINT64_MAX : BIT(shard_slots()) - 1;
}

/* ---- lists ---- */

static void
list_append(struct poll **first, struct poll **last, struct poll *poll)
{
	poll->next = NULL;
	poll->prev = *last;
	if (*last != NULL)
		(*last)->next = poll;
	else
		*first = poll;
	*last = poll;
}

static void
list_remove(struct poll **first, struct poll **last, struct poll *poll)
{
	if (poll->prev != NULL)
		poll->prev->next = poll->next;
	else
		*first = poll->next;
	if (poll->next != NULL)
		poll->next->prev = poll->prev;
	else
		*last = poll->prev;
	poll->prev = poll->next = NULL;
}

static void
ring_join(struct subscription *subscription)
{
	if (ring == NULL)
	{
		ring = subscription->ring_next = subscription->ring_prev = subscription;
	}
	else
	{
		subscription->ring_next = ring;
		subscription->ring_prev = ring->ring_prev;
		ring->ring_prev->ring_next = subscription;
		ring->ring_prev = subscription;
	}
	ring_size++;
}

static void
ring_leave(struct subscription *subscription)
{
	ring_size--;
	if (ring_size == 0)
		ring = NULL;
	else
	{
		subscription->ring_prev->ring_next = subscription->ring_next;
		subscription->ring_next->ring_prev = subscription->ring_prev;
		if (ring == subscription)
			ring = subscription->ring_next;
	}
	subscription->ring_next = subscription->ring_prev = NULL;
}

/* Keep the totals true after parked, ready or asking have changed. */
static void
recount(struct subscription *subscription)
{
	uint64_t	now = subscription->parked > 0 ? subscription->ready & ~subscription->asking : 0;
	uint64_t	changed = now ^ subscription->wanted;

	for (int slot = 0; changed != 0; slot++, changed >>= 1)
	{
		if (changed & 1)
			wanting[slot] += now & BIT(slot) ? 1 : -1;
	}
	subscription->wanted = now;
}

/* Take the poll from where it stands; it stands nowhere then. */
static void
leave_place(struct poll *poll)
{
	struct subscription *subscription = poll->subscription;

	switch (poll->place)
	{
		case IN_LINE:
			list_remove(&lines[poll->slot].first, &lines[poll->slot].last, poll);
			break;
		case SATED:
			list_remove(&sated.first, &sated.last, poll);
			break;
		case PARKED:
			list_remove(&subscription->first, &subscription->last, poll);
			metric_add(parked_gauge, -1);
			if (--subscription->parked == 0)
				ring_leave(subscription);
			recount(subscription);
			break;
		case RIDING:
			riding--;
			break;
	}
}

static void
park(struct poll *poll)
{
	struct subscription *subscription = poll->subscription;

	poll->place = PARKED;
	list_append(&subscription->first, &subscription->last, poll);
	metric_add(parked_gauge, 1);
	if (subscription->parked++ == 0)
		ring_join(subscription);
	recount(subscription);
}

/* ---- the end of a poll ---- */

static void
free_poll(struct poll *poll)
{
	deadline_clear(&poll->deadline);
	subscription_unref(poll->subscription);
	free(poll);
}

/* The call has been answered or is gone. */
static void
forget_call(struct poll *poll)
{
	poll->call = NULL;
	total--;
	deadline_clear(&poll->deadline);
}

static void
reply_empty(struct call *call, int64_t retry_after_ms)
{
	struct buf	message = BUF_INIT;
	size_t		len;
	uint8_t    *data;

	buf_append(&message, "\0\0\0\0\0", CALL_PREFIX);
	activation_empty(&message, retry_after_ms);
	data = buf_detach(&message, &len);
	call_reply(call, data, len - CALL_PREFIX);
}

/* The wait is over and nothing has come. */
static void
answer_empty(struct poll *poll)
{
	struct call *call = poll->call;
	struct refusal refusal;
	bool		tried = poll->tried || drain_started();

	forget_call(poll);
	if (tried)
	{
		reply_empty(call, 0);
		return;
	}
	refusal_unavailable(&refusal, shard_by_slot(0)->entry->id, "", "no shard could be asked for tasks");
	call_fail(call, refusal.status, "%s", refusal.message);
}

static void
cancelled(struct call *call, void *arg)
{
	struct poll *poll = arg;

	(void) call;
	forget_call(poll);
	if (poll->place == RIDING)
		return;
	leave_place(poll);
	free_poll(poll);
}

static void
overdue(struct deadline *deadline)
{
	struct poll *poll = deadline_owner(deadline, struct poll, deadline);

	if (poll->place == RIDING && loop_now() < poll->wait_until + RIDE_GRACE_MS)
	{
		/* the batch is on its way back: what it has claimed is worth waiting for */
		deadline_set(&poll->deadline, poll->wait_until + RIDE_GRACE_MS, overdue);
		return;
	}
	answer_empty(poll);
	if (poll->place == RIDING)
		return;
	leave_place(poll);
	free_poll(poll);
}

/* ---- where a poll goes next ---- */

static void
stand_in_line(struct poll *poll, int slot)
{
	poll->place = IN_LINE;
	poll->slot = slot;
	list_append(&lines[slot].first, &lines[slot].last, poll);
}

/*
 * A poll that stands nowhere: to the next shard that has not been asked, else to
 * its subscription, else to its end.
 */
static void
place_poll(struct poll *poll, int after)
{
	int			n = shard_slots();

	if (drain_started())
		poll->untried = 0;
	for (int i = 1; i <= n && poll->untried != 0; i++)
	{
		int			slot = (after + i) % n;

		if ((poll->untried & BIT(slot)) == 0 || !shard_claims(shard_by_slot(slot)))
			continue;
		stand_in_line(poll, slot);
		return;
	}
	if (drain_started() || loop_now() >= poll->wait_until)
	{
		answer_empty(poll);
		free_poll(poll);
		return;
	}
	park(poll);
}

/* An empty connection again? Try once more where it stood. */
static void
retry_sated(struct deadline *deadline)
{
	struct line waiting = sated;

	(void) deadline;
	sated.first = sated.last = NULL;
	while (waiting.first != NULL)
	{
		struct poll *poll = waiting.first;

		list_remove(&waiting.first, &waiting.last, poll);
		place_poll(poll, poll->slot + shard_slots() - 1);
	}
}

static void
set_sated(struct poll *poll)
{
	poll->place = SATED;
	list_append(&sated.first, &sated.last, poll);
	if (sated_retry.slot == 0)
		deadline_set(&sated_retry, loop_now() + SATED_RETRY_MS, retry_sated);
}

/* ---- into batches ---- */

static void
write_owner(struct poll *poll)
{
	poll->owner[poll->worker_len] = '#';
	wig_nonce_encode(poll->owner + poll->worker_len + 1, random_u64());
	poll->owner[poll->worker_len + 1 + WIG_NONCE_LEN] = '\0';
}

static int32_t
claim_size(const struct poll *poll)
{
	size_t		most = poll->subscription->task_bytes > 0
		? CLAIM_BYTES / poll->subscription->task_bytes : CLAIM_MAX;

	if (most > CLAIM_MAX)
		most = CLAIM_MAX;
	if (most < 1)
		most = 1;
	return poll->max < (int32_t) most ? poll->max : (int32_t) most;
}

/* A poll that stands nowhere gets on; its owner is new for every ride. */
static struct item *
get_on(struct poll *poll, int slot, bool looking)
{
	poll->place = RIDING;
	poll->slot = slot;
	poll->looking = looking;
	poll->wakes = poll->subscription->wakes;
	riding++;
	write_owner(poll);
	poll->item.poll.max = claim_size(poll);
	return &poll->item;
}

/*
 * The longest parked poll whose connection has room, taken out. NULL when the first
 * few have none; they go to the end, so that the next look sees others.
 */
static struct poll *
take_parked(struct subscription *subscription)
{
	for (int i = 0; i < SATED_LOOK && i < subscription->parked; i++)
	{
		struct poll *poll = subscription->first;

		if (call_has_room(poll->call, ROOM_BYTES))
		{
			leave_place(poll);
			return poll;
		}
		list_remove(&subscription->first, &subscription->last, poll);
		list_append(&subscription->first, &subscription->last, poll);
	}
	return NULL;
}

static int
collect_line(int slot, struct item **items, int max)
{
	int			n = 0;

	while (n < max && lines[slot].first != NULL)
	{
		struct poll *poll = lines[slot].first;

		leave_place(poll);
		if (call_has_room(poll->call, ROOM_BYTES))
			items[n++] = get_on(poll, slot, false);
		else
			set_sated(poll);
	}
	return n;
}

/* Polls of subscriptions that were told that this shard has something. */
static int
collect_woken(int slot, struct item **items, int max)
{
	int			n = 0;

	for (int rounds = ring_size; rounds > 0 && n < max && wanting[slot] > 0; rounds--)
	{
		struct subscription *subscription = ring;

		ring = ring->ring_next;
		if ((subscription->wanted & BIT(slot)) == 0)
			continue;
		subscription->asking |= BIT(slot);
		recount(subscription);
		for (int i = 0; i < subscription->burst && n < max && subscription->parked > 0; i++)
		{
			struct poll *poll = take_parked(subscription);

			if (poll == NULL)
			{
				if (i == 0)
				{
					/* nobody has room: the safety look comes back to it */
					subscription->asking &= ~BIT(slot);
					subscription->ready &= ~BIT(slot);
					recount(subscription);
				}
				break;
			}
			items[n++] = get_on(poll, slot, true);
		}
	}
	return n;
}

/* One poll of each subscription in turn, for the tokens that the batch will mint. */
static int
collect_handoff(int slot, struct item **items, int max)
{
	int			n = 0;
	int			without = 0;

	while (n < max && ring_size > 0 && without < ring_size)
	{
		struct subscription *subscription = ring;
		struct poll *poll = take_parked(subscription);

		if (poll == NULL)
		{
			ring = ring->ring_next;
			without++;
			continue;
		}
		without = 0;
		if (ring == subscription)
			ring = ring->ring_next;
		items[n++] = get_on(poll, slot, false);
	}
	return n;
}

bool
poller_wants(int slot)
{
	return lines[slot].first != NULL || wanting[slot] > 0;
}

int
poller_collect(int slot, struct item **items, int max, int minting)
{
	int			n = collect_line(slot, items, max);

	n += collect_woken(slot, items + n, max - n);
	if (minting > 0)
	{
		int			quota = minting + HANDOFF_EXTRA;

		if (quota > HANDOFF_MAX)
			quota = HANDOFF_MAX;
		if (quota > max - n)
			quota = max - n;
		n += collect_handoff(slot, items + n, quota);
	}
	return n;
}

/* ---- out of batches ---- */

static void
release_all(struct shard *shard, const struct batch_row *rows, int n)
{
	for (int i = 0; i < n; i++)
		giveback_release(shard, rows[i].task_id, rows[i].lease_owner);
	metric_add(released, n);
}

static void
note_sizes(struct subscription *subscription, const struct batch_row *rows, int n)
{
	size_t		bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += 256 + rows[i].context_len + rows[i].base_context_len;
	bytes /= (size_t) n;
	subscription->task_bytes = subscription->task_bytes == 0 ? bytes
		: (subscription->task_bytes * 7 + bytes) / 8;
}

/* Answer with the tasks; what does not fit is given back, what never will is failed. */
static void
deliver(struct poll *poll, const struct batch_row *rows, int n)
{
	struct shard *shard = shard_by_slot(poll->slot);
	enum activation_fate fates[CLAIM_MAX];
	struct buf	message = BUF_INIT;
	struct wig_error why = {.message = ""};
	struct call *call = poll->call;
	uint8_t    *data;
	size_t		len;
	int			packed;

	if (n > CLAIM_MAX)
	{
		release_all(shard, rows + CLAIM_MAX, n - CLAIM_MAX);
		n = CLAIM_MAX;
	}
	note_sizes(poll->subscription, rows, n);
	buf_append(&message, "\0\0\0\0\0", CALL_PREFIX);
	packed = activation_pack(rows, n, CALL_PREFIX, &message, fates, &why);
	for (int i = 0; i < n; i++)
	{
		if (fates[i] == ACTIVATION_LATER)
			release_all(shard, &rows[i], 1);
		else if (fates[i] == ACTIVATION_NEVER)
			giveback_fail(shard, rows[i].task_id, rows[i].lease_owner, why.message);
	}
	if (packed == 0)
	{
		buf_free(&message);
		poll->untried |= BIT(poll->slot);
		place_poll(poll, poll->slot);
		return;
	}
	metric_add(claimed, packed);
	forget_call(poll);
	data = buf_detach(&message, &len);
	call_reply(call, data, len - CALL_PREFIX);
	free_poll(poll);
}

/* What the ride tells about the shard's queues. */
static void
learn(struct poll *poll, const struct outcome *outcome)
{
	struct subscription *subscription = poll->subscription;
	bool		answered = outcome->status == GRPC_OK;

	if (poll->looking)
		subscription->asking &= ~BIT(poll->slot);
	if (answered && outcome->ntasks < poll->item.poll.max)
	{
		if (poll->wakes == subscription->wakes)
			subscription->ready &= ~BIT(poll->slot);
		subscription->burst = BURST_FIRST;
	}
	else if (answered && poll->looking && subscription->burst < BURST_MAX)
		subscription->burst *= 2;
	recount(subscription);
}

static void
ride_ended(struct item *item, const struct outcome *outcome)
{
	struct poll *poll = (struct poll *) item;

	leave_place(poll);
	learn(poll, outcome);
	if (outcome->status == GRPC_OK)
	{
		poll->tried = true;
		poll->untried &= ~BIT(poll->slot);
	}
	if (poll->call == NULL)
	{
		release_all(shard_by_slot(poll->slot), outcome->tasks, outcome->ntasks);
		free_poll(poll);
	}
	else if (outcome->status != GRPC_OK && !outcome->lost)
	{
		struct call *call = poll->call;

		forget_call(poll);
		call_fail(call, outcome->status, "%s", outcome->message);
		free_poll(poll);
	}
	else if (outcome->ntasks > 0)
		deliver(poll, outcome->tasks, outcome->ntasks);
	else
	{
		if (outcome->status == GRPC_OK)
			metric_add(empty_claims, 1);
		else
			poll->untried |= BIT(poll->slot);
		place_poll(poll, poll->slot);
	}
}

/* ---- what the outside tells ---- */

void
poller_add(struct call *call, const struct poll_request *request)
{
	size_t		worker_len = strlen(request->worker_id);
	struct poll *poll;
	uint64_t	now = loop_now();
	uint64_t	first_answer;

	if (drain_started())
	{
		reply_empty(call, 0);
		return;
	}
	if (total >= config.max_parked_polls)
	{
		metric_add(shed, 1);
		reply_empty(call, config.poll_retry_ms);
		return;
	}
	poll = xcalloc(1, sizeof(*poll) + worker_len + 1 + WIG_NONCE_LEN + 1);
	memcpy(poll->owner, request->worker_id, worker_len);
	poll->worker_len = worker_len;
	poll->call = call;
	poll->subscription = subscription_get(request->queues, request->nqueues, request->versions,
										  request->nversions);
	if (poll->subscription->burst == 0)
		poll->subscription->burst = BURST_FIRST;
	poll->untried = all_shards();
	poll->max = request->max;
	poll->wait_until = now + (uint64_t) request->wait_ms;
	poll->item.kind = ITEM_POLL;
	poll->item.done = ride_ended;
	poll->item.poll.owner = poll->owner;
	poll->item.poll.lease_ms = request->lease_ms;
	poll->item.poll.queues = poll->subscription->queues;
	poll->item.poll.nqueues = poll->subscription->nqueues;
	poll->item.poll.versions = poll->subscription->versions;
	poll->item.poll.nversions = poll->subscription->nversions;
	total++;
	call_on_cancel(call, cancelled, poll);
	first_answer = now + RIDE_GRACE_MS;
	deadline_set(&poll->deadline, poll->wait_until > first_answer ? poll->wait_until : first_answer,
				 overdue);
	place_poll(poll, (int) (cursor++ % (unsigned) shard_slots()));
}

struct wake
{
	int			slot;
	json_t	   *queues;			/* NULL: all */
};

static void
wake_one(struct subscription *subscription, void *arg)
{
	const struct wake *wake = arg;
	bool		concerned = wake->queues == NULL;
	size_t		i;
	json_t	   *queue;

	json_array_foreach(wake->queues, i, queue)
		concerned = concerned || (json_is_string(queue) &&
								  subscription_concerns(subscription, json_string_value(queue)));
	if (!concerned)
		return;
	subscription->wakes++;
	subscription->ready |= BIT(wake->slot);
	recount(subscription);
}

void
poller_wake(int slot, const char *payload)
{
	struct wake wake = {.slot = slot};

	/* what cannot be read is taken for "everything": a wake-up is only a hint */
	if (strcmp(payload, "*") != 0)
		wake.queues = json_loads(payload, 0, NULL);
	subscription_each(wake_one, &wake);
	json_decref(wake.queues);
}

void
poller_wake_all(int slot)
{
	struct wake wake = {.slot = slot};

	subscription_each(wake_one, &wake);
}

void
poller_shard_down(int slot)
{
	struct line line = lines[slot];

	lines[slot].first = lines[slot].last = NULL;
	while (line.first != NULL)
	{
		struct poll *poll = line.first;

		list_remove(&line.first, &line.last, poll);
		place_poll(poll, slot);
	}
}

static void
look_again(struct deadline *deadline)
{
	for (int slot = 0; slot < shard_slots(); slot++)
		poller_wake_all(slot);
	deadline_set(deadline, loop_now() + SAFETY_MS, look_again);
}

/* ---- drain ---- */

static void
drain_line(struct line *line)
{
	while (line->first != NULL)
	{
		struct poll *poll = line->first;

		leave_place(poll);
		answer_empty(poll);
		free_poll(poll);
	}
}

static void
begin_drain(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
		drain_line(&lines[slot]);
	drain_line(&sated);
	while (ring != NULL)
	{
		struct poll *poll = ring->first;

		leave_place(poll);
		answer_empty(poll);
		free_poll(poll);
	}
}

static bool
drained(void)
{
	return total == 0 && riding == 0 && giveback_idle();
}

static void
stop(void)
{
	deadline_clear(&safety);
	deadline_clear(&sated_retry);
}

void
poller_start(void)
{
	static const struct drain_hook hook = {.name = "poller", .begin = begin_drain, .idle = drained,
	.stop = stop};

	parked_gauge = metric_gauge("wiggle_proxy_parked_polls", NULL, "Polls that wait for a wake-up.");
	claimed = metric_counter("wiggle_proxy_delivered_tasks_total", NULL, "Tasks delivered to polls.");
	released = metric_counter("wiggle_proxy_released_tasks_total", NULL,
							  "Tasks claimed and given back, because they could not be delivered.");
	empty_claims = metric_counter("wiggle_proxy_empty_claims_total", NULL,
								  "Claims that found nothing, by poll and shard.");
	shed = metric_counter("wiggle_proxy_shed_polls_total", NULL,
						  "Polls answered empty at once because too many are parked.");
	drain_register(&hook);
	deadline_set(&safety, loop_now() + SAFETY_MS, look_again);
}
