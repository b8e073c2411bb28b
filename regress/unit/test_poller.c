/*
 * test_poller.c
 *	  Parked polls with two shards, calls and a clock made of nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../proxy/poll_place.c"
#include "../../proxy/poll_wake.c"
#include "../../proxy/poller.c"

/* ---- what the poller stands on ---- */

struct call
{
	call_cancel_fn cancelled;
	void	   *arg;
	bool		room;
	int			answers;
	size_t		reply_len;
	uint8_t		reply[256];
	enum grpc_status status;
};

static struct topology_shard entries[2] = {{.id = 0}, {.id = 1}};
static struct shard shard_store[2] = {{.entry = &entries[0], .slot = 0}, {.entry = &entries[1], .slot = 1}};
static bool shard_answers[2];
static bool draining;
static int	releases;
static char last_release[64];

struct shard *
shard_by_slot(int slot)
{
	return &shard_store[slot];
}

int
shard_slots(void)
{
	return 2;
}

bool
shards_crowded(void)
{
	return false;
}

bool
pressure_sheds(void)
{
	return false;
}

int64_t
pressure_pause(int64_t base_ms)
{
	return base_ms;
}

bool
shard_claims(const struct shard *shard)
{
	return shard_answers[shard->slot];
}

bool
drain_started(void)
{
	return draining;
}

void
drain_register(const struct drain_hook *hook)
{
	(void) hook;
}

uint64_t
random_u64(void)
{
	static uint64_t next = 1;

	return next++;
}

void
giveback_release(struct shard *shard, const char *task_id, const char *owner)
{
	(void) shard;
	(void) owner;
	releases++;
	snprintf(last_release, sizeof(last_release), "%s", task_id);
}

void
giveback_fail(struct shard *shard, const char *task_id, const char *owner, const char *reason)
{
	(void) reason;
	giveback_release(shard, task_id, owner);
}

bool
giveback_idle(void)
{
	return true;
}

void
call_on_cancel(struct call *call, call_cancel_fn cancelled_fn, void *arg)
{
	call->cancelled = cancelled_fn;
	call->arg = arg;
}

bool
call_has_room(const struct call *call, size_t bytes)
{
	(void) bytes;
	return call->room;
}

enum value_form
message_values(const struct call *call)
{
	(void) call;
	return VALUE_WIRE;
}

void
message_reply_packed(struct call *call, const ProtobufCMessageDescriptor *type, uint8_t *message, size_t len)
{
	assert_ptr_equal(type, &com__wiggle__proto__task_list__descriptor);
	call->answers++;
	call->status = GRPC_OK;
	call->reply_len = len;
	memcpy(call->reply, message + CALL_PREFIX, len < sizeof(call->reply) ? len : sizeof(call->reply));
	free(message);
}

void
call_fail(struct call *call, enum grpc_status status, const char *fmt,...)
{
	(void) fmt;
	call->answers++;
	call->status = status;
}

/* ---- the tests' own ---- */

static const char *const mail[] = {"mail"};
static const char *const orders[] = {"orders"};

static void
ask(struct call *call, const char *const *queues, int64_t wait_ms)
{
	struct poll_request request = {.worker_id = "w", .max = 1, .wait_ms = wait_ms, .queues = queues,
	.nqueues = queues != NULL};

	memset(call, 0, sizeof(*call));
	call->room = true;
	poller_add(call, &request);
}

/* The batch of a shard comes back; the first `with` of its polls have one task each. */
static void
come_back(struct item **items, int n, int with)
{
	for (int i = 0; i < n; i++)
	{
		char		id[16];
		struct batch_row row = {.op = 't', .lease_owner = items[i]->poll.owner, .kind = "TASK",
		.context = "{}", .context_len = 2, .task_id = id};
		struct outcome outcome = {.message = "", .tasks = &row, .ntasks = i < with};

		snprintf(id, sizeof(id), "t%d", i);
		items[i]->done(items[i], &outcome);
	}
}

static int
go(int slot, struct item **items, int minting)
{
	return poller_collect(slot, items, 64, minting);
}

/* Through both shards without finding anything: parked. */
static void
park_call(struct call *call, const char *const *queues)
{
	struct item *items[64];

	ask(call, queues, 10000);
	for (int i = 0; i < 2; i++)
	{
		for (int slot = 0; slot < 2; slot++)
			come_back(items, go(slot, items, 0), 0);
	}
	assert_int_equal(call->answers, 0);
	assert_false(poller_wants(0));
	assert_false(poller_wants(1));
}

static void
end_call(struct call *call)
{
	if (call->answers == 0)
		call->cancelled(call, call->arg);
}

static int
fresh(void **state)
{
	(void) state;
	shard_answers[0] = shard_answers[1] = true;
	draining = false;
	releases = 0;
	return 0;
}

static int
nothing_left(void **state)
{
	(void) state;
	assert_int_equal(total, 0);
	assert_int_equal(places.riding, 0);
	assert_int_equal(places.ring_size, 0);
	assert_int_equal(places.wanting[0], 0);
	assert_int_equal(places.wanting[1], 0);
	assert_null(places.sated.first);
	return 0;
}

static void
a_new_poll_asks_every_shard_once_then_parks(void **state)
{
	struct call call;
	struct item *items[64];
	int			slot;

	(void) state;
	ask(&call, mail, 10000);
	slot = poller_wants(0) ? 0 : 1;
	assert_int_equal(go(1 - slot, items, 0), 0);
	assert_int_equal(go(slot, items, 0), 1);
	assert_int_equal(go(1 - slot, items, 0), 0);
	come_back(items, 1, 0);
	assert_int_equal(go(slot, items, 0), 0);
	assert_int_equal(go(1 - slot, items, 0), 1);
	come_back(items, 1, 0);
	assert_false(poller_wants(0) || poller_wants(1));
	assert_int_equal(places.ring_size, 1);
	end_call(&call);
}

static void
a_poll_that_does_not_wait_is_answered_when_all_have_been_asked(void **state)
{
	struct call call;
	struct item *items[64];

	(void) state;
	ask(&call, mail, 0);
	for (int rides = 0; rides < 2; rides++)
	{
		int			slot = poller_wants(0) ? 0 : 1;

		assert_int_equal(call.answers, 0);
		assert_int_equal(go(slot, items, 0), 1);
		come_back(items, 1, 0);
	}
	assert_int_equal(call.answers, 1);
	assert_int_equal(call.status, GRPC_OK);
	assert_int_equal(call.reply_len, 0);
}

static void
without_any_shard_it_is_unavailable(void **state)
{
	struct call call;

	(void) state;
	shard_answers[0] = shard_answers[1] = false;
	ask(&call, mail, 0);
	assert_int_equal(call.answers, 1);
	assert_int_equal(call.status, GRPC_UNAVAILABLE);
}

static void
a_poll_that_is_not_answered_takes_its_worker_off_the_roster(void **state)
{
	struct call calls[2];
	struct item *items[64];
	struct subscription *subscription = subscription_get(mail, 1, NULL, 0);
	int			n;

	(void) state;
	park_call(&calls[0], mail);
	park_call(&calls[1], mail);
	assert_int_equal(subscription->pollers, 1);
	end_call(&calls[0]);
	assert_int_equal(subscription->pollers, 1);
	poller_wake(0, "[[\"mail\"]]");
	n = go(0, items, 0);
	assert_int_equal(n, 1);
	end_call(&calls[1]);
	assert_int_equal(subscription->pollers, 0);
	come_back(items, n, 0);

	ask(&calls[0], mail, 10000);
	n = go(poller_wants(0) ? 0 : 1, items, 0);
	come_back(items, n, n);
	assert_int_equal(calls[0].answers, 1);
	assert_int_equal(subscription->pollers, 1);
	subscription_unref(subscription);
}

static int	beats;

static void
beat(void)
{
	beats++;
}

/* This proxy is the first of two whose workers poll "mail": it takes [0, 500). */
static void
divide(bool on)
{
	struct fleet_node me = {.id = (char *) "node_a", .name = (char *) "a", .partition = true, .member = true};
	struct fleet_node other = {.id = (char *) "node_b", .name = (char *) "b", .partition = true, .member = true};

	fleet_start(on, beat);
	fleet_list_begin();
	fleet_list_add(&me, "[{\"queues\":[\"mail\"]}]");
	fleet_list_add(&other, "[{\"queues\":[\"mail\"]}]");
	fleet_list_end("node_a");
}

static void
a_wake_up_concerns_whose_share_it_is(void **state)
{
	struct call one;
	struct call two;
	struct item *items[64];

	(void) state;
	divide(true);
	beats = 0;
	park_call(&one, mail);
	assert_int_equal(beats, 0);
	park_call(&two, orders);
	assert_true(beats > 0);
	poller_wake(0, "[[\"mail\",500,999],[\"else\",1]]");
	assert_false(poller_wants(0));
	poller_wake(0, "[[\"mail\",999,499]]");
	assert_int_equal(go(0, items, 0), 1);
	assert_true(items[0]->poll.narrow);
	come_back(items, 1, 0);
	/* a queue without a share is everybody's */
	poller_wake(0, "[[\"orders\",999]]");
	assert_int_equal(go(0, items, 0), 1);
	assert_false(items[0]->poll.narrow);
	come_back(items, 1, 0);
	poller_wake(0, "[\"mail\"]");
	assert_int_equal(go(0, items, 0), 1);
	assert_true(items[0]->poll.narrow);
	come_back(items, 1, 0);
	divide(false);
	poller_wake(0, "[[\"mail\",999]]");
	assert_int_equal(go(0, items, 0), 1);
	assert_false(items[0]->poll.narrow);
	come_back(items, 1, 0);
	end_call(&one);
	end_call(&two);
}

/* While looks beyond the share come back full the next one is beyond it too. */
static void
what_is_left_over_is_looked_for_everywhere(void **state)
{
	struct call calls[40];
	struct item *items[64];
	int			n;

	(void) state;
	divide(true);
	for (int i = 0; i < 40; i++)
		park_call(&calls[i], mail);
	poller_wake(1, "[[\"mail\"]]");
	n = go(1, items, 0);
	assert_int_equal(n, BURST_FIRST);
	for (int i = 0; i < n; i++)
		assert_false(items[i]->poll.narrow);
	come_back(items, n, n);
	n = go(1, items, 0);
	assert_true(n > 0);
	assert_false(items[0]->poll.narrow);
	come_back(items, n, 0);
	poller_wake(1, "[\"mail\"]");
	n = go(1, items, 0);
	assert_true(n > 0);
	assert_true(items[0]->poll.narrow);
	come_back(items, n, 0);
	for (int i = 0; i < 40; i++)
		end_call(&calls[i]);
	divide(false);
}

static void
a_poll_that_hardly_waits_looks_everywhere(void **state)
{
	struct call call;
	struct item *items[64];

	(void) state;
	divide(true);
	ask(&call, mail, 100);
	assert_int_equal(go(0, items, 0) + go(1, items, 0), 1);
	assert_false(items[0]->poll.narrow);
	end_call(&call);
	come_back(items, 1, 0);
	divide(false);
}

static void
a_wake_up_concerns_its_queue_and_shard(void **state)
{
	struct call one;
	struct call two;
	struct item *items[64];

	(void) state;
	park_call(&one, mail);
	park_call(&two, orders);
	poller_wake(1, "[\"mail\",\"else\"]");
	assert_false(poller_wants(0));
	assert_int_equal(go(1, items, 0), 1);
	come_back(items, 1, 1);
	assert_int_equal(one.answers, 1);
	assert_int_equal(two.answers, 0);
	poller_wake(0, "*");
	assert_int_equal(go(0, items, 0), 1);
	come_back(items, 1, 0);
	poller_wake(0, "not json");
	assert_int_equal(go(0, items, 0), 1);
	come_back(items, 1, 0);
	assert_false(poller_wants(0));
	end_call(&two);
}

static void
a_herd_is_not_sent_for_one_token(void **state)
{
	static struct call calls[100];
	struct item *items[64];
	int			served = 0;

	(void) state;
	for (int i = 0; i < 100; i++)
		park_call(&calls[i], mail);
	poller_wake(0, "[\"mail\"]");
	assert_int_equal(go(0, items, 0), 16);

	/* one burst at a time */
	assert_false(poller_wants(0));
	come_back(items, 16, 16);
	assert_int_equal(go(0, items, 0), 64);
	come_back(items, 64, 5);
	assert_false(poller_wants(0));
	for (int i = 0; i < 100; i++)
	{
		served += calls[i].answers;
		end_call(&calls[i]);
	}
	assert_int_equal(served, 21);
}

static void
a_wake_up_during_the_ride_is_not_forgotten(void **state)
{
	struct call call;
	struct item *items[64];

	(void) state;
	park_call(&call, mail);
	poller_wake(0, "[\"mail\"]");
	assert_int_equal(go(0, items, 0), 1);
	poller_wake(0, "[\"mail\"]");
	come_back(items, 1, 0);
	assert_int_equal(go(0, items, 0), 1);
	come_back(items, 1, 0);
	assert_false(poller_wants(0));
	end_call(&call);
}

static void
a_minting_batch_takes_one_of_each_subscription(void **state)
{
	static struct call calls[20];
	struct item *items[64];
	int			n;
	int			first = 0;

	(void) state;
	for (int i = 0; i < 19; i++)
		park_call(&calls[i], mail);
	park_call(&calls[19], orders);
	assert_int_equal(go(0, items, 0), 0);
	n = go(0, items, 1);
	assert_int_equal(n, 1 + HANDOFF_EXTRA);
	for (int i = 0; i < n; i++)
		first += strcmp(items[i]->poll.queues[0], "orders") == 0;
	assert_int_equal(first, 1);

	/* in one batch at a time */
	assert_int_equal(go(1, items + n, 64), 20 - n);
	come_back(items, 20, 0);
	for (int i = 0; i < 20; i++)
		end_call(&calls[i]);
}

static void
what_a_gone_call_claimed_is_given_back(void **state)
{
	struct call call;
	struct item *items[64];

	(void) state;
	park_call(&call, mail);
	assert_int_equal(go(0, items, 1), 1);
	end_call(&call);
	come_back(items, 1, 1);
	assert_int_equal(releases, 1);
	assert_string_equal(last_release, "t0");
}

static void
a_slow_batch_lets_its_polls_go(void **state)
{
	struct call call;
	struct item *slow_items[64];
	struct item *items[64];

	(void) state;
	park_call(&call, mail);
	assert_int_equal(go(0, slow_items, 1), 1);
	shard_answers[0] = false;
	poller_detach(slow_items[0]);
	assert_int_equal(places.ring_size, 1);

	/* it rides elsewhere, is not answered twice, and what comes late is given back */
	assert_int_equal(go(1, items, 1), 1);
	come_back(slow_items, 1, 1);
	assert_int_equal(releases, 1);
	assert_int_equal(call.answers, 0);
	come_back(items, 1, 1);
	assert_int_equal(call.answers, 1);

	/* what comes late while the call waits is its own */
	shard_answers[0] = true;
	park_call(&call, mail);
	assert_int_equal(go(0, slow_items, 1), 1);
	poller_detach(slow_items[0]);
	come_back(slow_items, 1, 1);
	assert_int_equal(call.answers, 1);
	assert_int_equal(releases, 1);

	/* and nobody's when the call has gone */
	park_call(&call, mail);
	assert_int_equal(go(0, slow_items, 1), 1);
	poller_detach(slow_items[0]);
	end_call(&call);
	come_back(slow_items, 1, 1);
	assert_int_equal(releases, 2);
}

static void
every_ride_has_an_owner_of_its_own(void **state)
{
	struct call call;
	struct item *items[64];
	struct outcome lost = {.status = GRPC_UNAVAILABLE, .lost = true, .message = ""};
	char		owner[64];

	(void) state;
	park_call(&call, mail);
	assert_int_equal(go(0, items, 1), 1);
	snprintf(owner, sizeof(owner), "%s", items[0]->poll.owner);
	assert_int_equal(strlen(owner), 1 + 1 + WIG_NONCE_LEN);
	assert_memory_equal(owner, "w#", 2);
	items[0]->done(items[0], &lost);
	assert_int_equal(go(0, items, 0) + go(1, items, 0), 1);
	assert_string_not_equal(items[0]->poll.owner, owner);
	come_back(items, 1, 1);
	assert_int_equal(call.answers, 1);
}

static void
a_connection_without_room_gets_no_claim(void **state)
{
	struct call call;
	struct item *items[64];

	(void) state;
	ask(&call, mail, 10000);
	call.room = false;
	assert_int_equal(go(0, items, 0) + go(1, items, 0), 0);
	assert_non_null(places.sated.first);
	call.room = true;
	retry_sated(&sated_retry);
	assert_int_equal(go(0, items, 0) + go(1, items, 0), 1);
	come_back(items, 1, 1);
	assert_int_equal(call.answers, 1);

	park_call(&call, mail);
	call.room = false;
	assert_int_equal(go(0, items, 1), 0);
	poller_wake(0, "*");
	assert_int_equal(go(0, items, 0), 0);
	assert_false(poller_wants(0));
	end_call(&call);
}

static void
too_many_are_asked_to_come_again(void **state)
{
	struct call calls[2];
	struct call shed_call;

	(void) state;
	config.max_parked_polls = 2;
	config.poll_retry_ms = 300;
	ask(&calls[0], mail, 10000);
	ask(&calls[1], mail, 10000);
	ask(&shed_call, mail, 10000);
	assert_int_equal(shed_call.answers, 1);
	assert_int_equal(shed_call.reply_len, 3);
	assert_memory_equal(shed_call.reply, "\x10\xac\x02", 3);
	config.max_parked_polls = 10000;
	end_call(&calls[0]);
	end_call(&calls[1]);
}

static void
a_drain_answers_everyone(void **state)
{
	struct call parked;
	struct call in_line;
	struct call on_the_way;
	struct item *items[64];

	(void) state;
	park_call(&on_the_way, mail);
	assert_int_equal(go(0, items, 1), 1);
	park_call(&parked, orders);
	ask(&in_line, mail, 10000);
	draining = true;
	begin_drain();
	assert_int_equal(parked.answers, 1);
	assert_int_equal(in_line.answers, 1);
	assert_int_equal(on_the_way.answers, 0);
	assert_false(drained());
	come_back(items, 1, 0);
	assert_int_equal(on_the_way.answers, 1);
	assert_true(drained());
	ask(&parked, mail, 10000);
	assert_int_equal(parked.answers, 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fresh, nothing_left)
	const struct CMUnitTest tests[] = {
		T(a_poll_that_is_not_answered_takes_its_worker_off_the_roster),
		T(a_new_poll_asks_every_shard_once_then_parks),
		T(a_poll_that_does_not_wait_is_answered_when_all_have_been_asked),
		T(without_any_shard_it_is_unavailable),
		T(a_wake_up_concerns_its_queue_and_shard),
		T(a_wake_up_concerns_whose_share_it_is),
		T(what_is_left_over_is_looked_for_everywhere),
		T(a_poll_that_hardly_waits_looks_everywhere),
		T(a_herd_is_not_sent_for_one_token),
		T(a_wake_up_during_the_ride_is_not_forgotten),
		T(a_minting_batch_takes_one_of_each_subscription),
		T(what_a_gone_call_claimed_is_given_back),
		T(a_slow_batch_lets_its_polls_go),
		T(every_ride_has_an_owner_of_its_own),
		T(a_connection_without_room_gets_no_claim),
		T(too_many_are_asked_to_come_again),
		T(a_drain_answers_everyone),
	};
	int			failed;

	loop_open();
	config.max_parked_polls = 10000;
	poller_start();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	stop();
	loop_close();
	return failed;
}
