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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activation.h"
#include "buf.h"
#include "config.h"
#include "drain.h"
#include "fleet.h"
#include "giveback.h"
#include "ids.h"
#include "loop.h"
#include "message.h"
#include "metrics.h"
#include "poll_place.h"
#include "poller.h"
#include "pressure.h"
#include "random.h"
#include "roster.h"
#include "shard.h"
#include "subscription.h"
#include "wiggle.pb-c.h"

/* A claim takes at most so many tasks; a poll may be given fewer than it asked for. */
#define CLAIM_MAX			256

/* Claimed contexts should fill an answer, not overflow it. */
#define CLAIM_BYTES			((size_t) 3 * 1024 * 1024)

/* And those of a batch bound what libpq holds of its answer. */
#define BATCH_CLAIM_BYTES	((size_t) 16 * 1024 * 1024)

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

/* What others leave over is told after two pauses of WIG_LEFTOVER_PAUSE_USECS at the most. */
#define HASTY_MS			250

#define SATED_LOOK			16

static int	total;				/* polls whose call is waiting */
static unsigned cursor;			/* rotates over the shards */
static struct deadline safety;
static struct deadline sated_retry;
static struct metric *claimed;
static struct metric *released;
static struct metric *empty_claims;
static struct metric *shed;
static struct metric *divided;
static struct metric *beyond;
static struct metric *undivided[FLEET_STATES];

static void ride_ended(struct item *item, const struct outcome *outcome);

static uint64_t
all_shards(void)
{
	return shard_slots() >= 64 ? UINT64_MAX : BIT(shard_slots()) - 1;
}

/* ---- the end of a poll ---- */

static void
free_poll(struct poll *poll)
{
	if (poll->heir != NULL)
		poll->heir->ancestor = NULL;
	if (poll->ancestor != NULL)
		poll->ancestor->heir = NULL;
	deadline_clear(&poll->deadline);
	subscription_unref(poll->subscription);
	free(poll);
}

/* The call is answered, or is gone. */
static void
forget_call(struct poll *poll, bool answered)
{
	roster_end(poll->owner, poll->worker_len, poll->subscription, answered);
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
	message_reply_packed(call, &com__wiggle__proto__task_list__descriptor, data, len - CALL_PREFIX);
}

/* The wait is over and nothing has come. */
static void
answer_empty(struct poll *poll)
{
	struct call *call = poll->call;
	struct refusal refusal;
	bool		tried = poll->tried || drain_started();

	forget_call(poll, true);
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
	forget_call(poll, false);
	if (poll->place == RIDING)
		return;
	place_leave(poll);
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
	place_leave(poll);
	free_poll(poll);
}

/* ---- where a poll goes next ---- */

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
		place_in_line(poll, slot);
		return;
	}
	if (drain_started() || loop_now() >= poll->wait_until)
	{
		answer_empty(poll);
		free_poll(poll);
		return;
	}
	place_parked(poll);
}

/* An empty connection again? Try once more where it stood. */
static void
retry_sated(struct deadline *deadline)
{
	struct line waiting = places.sated;

	(void) deadline;
	places.sated = (struct line) {NULL, NULL};
	while (waiting.first != NULL)
	{
		struct poll *poll = waiting.first;

		line_remove(&waiting, poll);
		place_poll(poll, poll->slot + shard_slots() - 1);
	}
}

static void
set_sated(struct poll *poll)
{
	place_sated(poll);
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

/* The polls that one batch takes along. */
struct coach
{
	int			slot;			/* the batch's shard */
	struct item **items;
	int			n;
	int			max;
	size_t		bytes;			/* that they may claim, by experience */
};

static bool
has_seat(const struct coach *coach)
{
	return coach->n < coach->max && coach->bytes < BATCH_CLAIM_BYTES;
}

/* Does the ride take this proxy's share alone? */
static void
choose_share(struct poll *poll, int slot)
{
	enum fleet_state state = fleet_divides(poll->item.poll.queues, poll->item.poll.nqueues);
	bool		all = poll->hasty || poll->subscription->beyond & BIT(slot);

	poll->item.poll.narrow = state == FLEET_DIVIDES && !all;
	metric_add(state != FLEET_DIVIDES ? undivided[state] : all ? beyond : divided, 1);
}

/* A poll that stands nowhere gets on; its owner is new for every ride. */
static void
get_on(struct coach *coach, struct poll *poll, bool looking)
{
	place_riding(poll, coach->slot);
	poll->looking = looking;
	poll->wakes = poll->subscription->wakes;
	write_owner(poll);
	choose_share(poll, coach->slot);
	poll->item.poll.max = claim_size(poll);
	coach->bytes += (size_t) poll->item.poll.max * poll->subscription->task_bytes;
	coach->items[coach->n++] = &poll->item;
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
		struct poll *poll = subscription->line.first;

		if (call_has_room(poll->call, ROOM_BYTES))
		{
			place_leave(poll);
			return poll;
		}
		place_rotate(subscription);
	}
	return NULL;
}

static void
collect_line(struct coach *coach)
{
	struct line *line = &places.lines[coach->slot];

	while (has_seat(coach) && line->first != NULL)
	{
		struct poll *poll = line->first;

		place_leave(poll);
		if (call_has_room(poll->call, ROOM_BYTES))
			get_on(coach, poll, false);
		else
			set_sated(poll);
	}
}

/* A burst of the subscription's polls goes to look what its wake-up was about. */
static void
send_burst(struct coach *coach, struct subscription *subscription)
{
	struct poll *poll = take_parked(subscription);

	if (poll == NULL)
	{
		/* nobody has room: the safety look comes back to it */
		subscription->ready &= ~BIT(coach->slot);
		place_recount(subscription);
		return;
	}
	subscription->asking |= BIT(coach->slot);
	place_recount(subscription);
	get_on(coach, poll, true);
	for (int i = 1; i < subscription->burst && has_seat(coach); i++)
	{
		poll = take_parked(subscription);
		if (poll == NULL)
			break;
		get_on(coach, poll, true);
	}
	subscription->beyond &= ~BIT(coach->slot);
}

/* Polls of subscriptions that were told that this shard has something. */
static void
collect_woken(struct coach *coach)
{
	for (int rounds = places.ring_size; rounds > 0 && has_seat(coach) && places.wanting[coach->slot] > 0;
		 rounds--)
	{
		struct subscription *subscription = places.ring;

		places.ring = places.ring->ring_next;
		if (subscription->wanted & BIT(coach->slot))
			send_burst(coach, subscription);
	}
}

/* One poll of each subscription in turn, for the tokens that the batch will mint. */
static void
collect_handoff(struct coach *coach, int quota)
{
	int			without = 0;

	while (quota > 0 && has_seat(coach) && places.ring_size > 0 && without < places.ring_size)
	{
		struct subscription *subscription = places.ring;
		struct poll *poll = take_parked(subscription);

		if (poll == NULL)
		{
			places.ring = places.ring->ring_next;
			without++;
			continue;
		}
		without = 0;
		if (places.ring == subscription)
			places.ring = places.ring->ring_next;
		get_on(coach, poll, false);
		quota--;
	}
}

bool
poller_wants(int slot)
{
	return places.lines[slot].first != NULL || places.wanting[slot] > 0;
}

int
poller_collect(int slot, struct item **items, int max, int minting)
{
	struct coach coach = {.slot = slot, .items = items, .max = max};
	int			quota = minting + HANDOFF_EXTRA;

	collect_line(&coach);
	collect_woken(&coach);
	if (minting > 0)
		collect_handoff(&coach, quota < HANDOFF_MAX ? quota : HANDOFF_MAX);
	return coach.n;
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
	packed = activation_pack(rows, n, CALL_PREFIX, message_values(call), &message, fates, &why);
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
	forget_call(poll, true);
	data = buf_detach(&message, &len);
	message_reply_packed(call, &com__wiggle__proto__task_list__descriptor, data, len - CALL_PREFIX);
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
	else if (answered && poll->looking)
	{
		if (subscription->burst < BURST_MAX)
			subscription->burst *= 2;
		if (!poll->item.poll.narrow)
			subscription->beyond |= BIT(poll->slot);	/* there may be more of the same */
	}
	place_recount(subscription);
}

/*
 * The call has left this poll. What it has claimed goes to the poll that took the
 * call over, if that one waits somewhere; else it is given back.
 */
static void
bequeath(struct poll *poll, const struct outcome *outcome)
{
	struct poll *heir = poll->heir;

	while (heir != NULL && heir->call == NULL)
		heir = heir->heir;
	if (outcome->ntasks > 0 && heir != NULL && heir->place != RIDING)
	{
		place_leave(heir);
		heir->slot = poll->slot;
		heir->tried = true;
		deliver(heir, outcome->tasks, outcome->ntasks);
	}
	else
		release_all(shard_by_slot(poll->slot), outcome->tasks, outcome->ntasks);
	free_poll(poll);
}

static void
ride_ended(struct item *item, const struct outcome *outcome)
{
	struct poll *poll = (struct poll *) item;

	place_leave(poll);
	learn(poll, outcome);
	if (outcome->status == GRPC_OK)
	{
		poll->tried = true;
		poll->untried &= ~BIT(poll->slot);
	}
	if (poll->call == NULL)
		bequeath(poll, outcome);
	else if (outcome->status != GRPC_OK && !outcome->lost)
	{
		struct call *call = poll->call;

		forget_call(poll, true);
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

/* A poll for the call that stands nowhere yet; owns a reference of the subscription. */
static struct poll *
create_poll(struct call *call, struct subscription *subscription, const char *worker_id,
			size_t worker_len)
{
	struct poll *poll = xcalloc(1, sizeof(*poll) + worker_len + 1 + WIG_NONCE_LEN + 1);

	memcpy(poll->owner, worker_id, worker_len);
	poll->worker_len = worker_len;
	poll->call = call;
	poll->subscription = subscription;
	poll->item.kind = ITEM_POLL;
	poll->item.done = ride_ended;
	poll->item.poll.owner = poll->owner;
	poll->item.poll.queues = subscription->queues;
	poll->item.poll.nqueues = subscription->nqueues;
	poll->item.poll.versions = subscription->versions;
	poll->item.poll.nversions = subscription->nversions;
	call_on_cancel(call, cancelled, poll);
	return poll;
}

void
poller_detach(struct item *item)
{
	struct poll *ghost = (struct poll *) item;
	struct poll *poll;

	if (ghost->call == NULL)
		return;
	ghost->subscription->refs++;
	poll = create_poll(ghost->call, ghost->subscription, ghost->owner, ghost->worker_len);
	poll->max = ghost->max;
	poll->hasty = ghost->hasty;
	poll->item.poll.lease_ms = ghost->item.poll.lease_ms;
	poll->untried = ghost->untried & ~BIT(ghost->slot);
	poll->tried = ghost->tried;
	poll->wait_until = ghost->wait_until;
	deadline_set(&poll->deadline, ghost->deadline.when, overdue);
	deadline_clear(&ghost->deadline);
	ghost->call = NULL;
	ghost->heir = poll;
	poll->ancestor = ghost;
	place_poll(poll, ghost->slot);
}

void
poller_add(struct call *call, const struct poll_request *request)
{
	struct subscription *subscription;
	struct poll *poll;
	uint64_t	now = loop_now();
	uint64_t	first_answer = now + RIDE_GRACE_MS;

	if (drain_started())
	{
		reply_empty(call, 0);
		return;
	}
	if (pressure_sheds())
	{
		metric_add(shed, 1);
		reply_empty(call, pressure_pause(config.memory_retry_ms));
		return;
	}
	if (total >= config.max_parked_polls || shards_crowded())
	{
		metric_add(shed, 1);
		reply_empty(call, pressure_pause(config.poll_retry_ms));
		return;
	}
	subscription = subscription_get(request->queues, request->nqueues, request->versions,
									request->nversions);
	if (subscription->burst == 0)
		subscription->burst = BURST_FIRST;
	poll = create_poll(call, subscription, request->worker_id, strlen(request->worker_id));
	poll->item.poll.lease_ms = request->lease_ms;
	poll->untried = all_shards();
	poll->max = request->max;
	poll->hasty = request->wait_ms < HASTY_MS;
	poll->wait_until = now + (uint64_t) request->wait_ms;
	roster_note(request->worker_id, subscription, request->wait_ms);
	total++;
	deadline_set(&poll->deadline, poll->wait_until > first_answer ? poll->wait_until : first_answer,
				 overdue);
	place_poll(poll, (int) (cursor++ % (unsigned) shard_slots()));
}

void
poller_shard_down(int slot)
{
	struct line line = places.lines[slot];

	places.lines[slot] = (struct line) {NULL, NULL};
	while (line.first != NULL)
	{
		struct poll *poll = line.first;

		line_remove(&line, poll);
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

		place_leave(poll);
		answer_empty(poll);
		free_poll(poll);
	}
}

static void
begin_drain(void)
{
	for (int slot = 0; slot < shard_slots(); slot++)
		drain_line(&places.lines[slot]);
	drain_line(&places.sated);
	while (places.ring != NULL)
	{
		struct poll *poll = places.ring->line.first;

		place_leave(poll);
		answer_empty(poll);
		free_poll(poll);
	}
}

static bool
drained(void)
{
	return total == 0 && places.riding == 0 && giveback_idle();
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

	places.gauge = metric_gauge("wiggle_proxy_parked_polls", NULL, "Polls that wait for a wake-up.");
	claimed = metric_counter("wiggle_proxy_delivered_tasks_total", NULL, "Tasks delivered to polls.");
	released = metric_counter("wiggle_proxy_released_tasks_total", NULL,
							  "Tasks claimed and given back, because they could not be delivered.");
	empty_claims = metric_counter("wiggle_proxy_empty_claims_total", NULL,
								  "Claims that found nothing, by poll and shard.");
	shed = metric_counter("wiggle_proxy_shed_polls_total", NULL,
						  "Polls answered empty at once: too many are parked, memory is short, or calls queue up at every shard.");
	divided = metric_counter("wiggle_proxy_partitioned_claims_total", NULL,
							 "Polls that looked in this server's share of their queues.");
	beyond = metric_counter("wiggle_proxy_partition_beyond_total", NULL,
							"Polls that looked beyond the share for what others left over.");
	for (int state = 0; state < FLEET_STATES; state++)
	{
		char		label[40];

		snprintf(label, sizeof(label), "reason=\"%s\"", fleet_state_name((enum fleet_state) state));
		if (state != FLEET_DIVIDES)
			undivided[state] = metric_counter("wiggle_proxy_partition_fallbacks_total", label,
											  "Polls that looked in whole queues, because there was no share.");
	}
	drain_register(&hook);
	deadline_set(&safety, loop_now() + SAFETY_MS, look_again);
}
