/*
 * claim.c
 *	  Serving polls from wf_ready and from what this unit just minted.
 */
#include "wiggle.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "claim.h"
#include "guc.h"
#include "ids.h"
#include "lease.h"
#include "ready.h"
#include "view.h"
#include "wake.h"

/*
 * After so many tasks of others in a row, for each member that there seems to be, a claim
 * takes what comes: the members whose they are lag behind, and walking over them, and over
 * what was taken between them, would cost more than it spares.
 */
#define OTHERS_A_MEMBER 16
#define MEMBERS_AT_MOST 16

/* One queue's cursor; polls of the same versions and of one share of it have it together. */
typedef struct Source
{
	const char *queue;
	const WigPoll *poll;		/* the first of them */
	int			start;			/* buckets that may be taken */
	int			end;
	int			most;			/* tasks of others that are passed in a row */
	int			in_a_row;		/* those since the last one of these */
	bool		others;			/* any was passed */
	WigReadyCursor *cursor;
} Source;

typedef struct Claim
{
	WigWork    *work;
	WigClaimedFn claimed;
	void	   *arg;
	List	   *sources;		/* of Source */
	List	   *every;			/* names of all queues, read when first needed */
	bool		every_known;
	MemoryContext row;			/* of one delivered task */
} Claim;

bool
wig_poll_check(const WigPoll *poll, WigRefusal *refusal)
{
	uint64		nonce;
	const char *hash;

	if (poll->owner == NULL || !wig_nonce_decode(poll->owner, strlen(poll->owner), &nonce))
		return wig_refuse(refusal, 400, "a lease owner is a worker id, '#' and a nonce");
	hash = strrchr(poll->owner, '#');
	if (hash - poll->owner > WIG_MAX_WORKER_ID)
		return wig_refuse(refusal, 400, "worker id is longer than %d bytes", WIG_MAX_WORKER_ID);
	if (poll->lease_ms > WIG_MAX_MILLIS)
		return wig_refuse(refusal, 400, "lease_millis must be at most " INT64_FORMAT ", got " INT64_FORMAT,
						  WIG_MAX_MILLIS, poll->lease_ms);
	return true;
}

char *
wig_make_owner(const char *worker_id)
{
	char		nonce_text[WIG_NONCE_LEN + 1] = {0};
	uint64		nonce = 0;

	/* Zero stands for "none" in wf_token.nonce. */
	while (nonce == 0)
		if (!pg_strong_random(&nonce, sizeof(nonce)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate a random nonce")));
	wig_nonce_encode(nonce_text, nonce);
	return psprintf("%s#%s", worker_id, nonce_text);
}

WigActivation
wig_activation(const WigInstance *inst, const WigToken *token)
{
	const struct wig_node *node = wig_graph_node(inst->graph, token->node);
	enum wig_mode mode = inst->graph->def->mode;
	WigActivation a = {node, node->name, node->activity, NULL};

	if (token->comp_seq != 0)
	{
		a.activity = a.step_name = psprintf("%s#compensate", node->activity);
		mode = WIG_MODE_SERVER;
	}
	a.mode = wig_mode_name(mode == WIG_MODE_DEFAULT ? WIG_MODE_SERVER : mode);
	return a;
}

Datum
wig_arm_names(const struct wig_node *node)
{
	Datum	   *names;

	if (node->narms == 0)
		return (Datum) 0;
	names = palloc(sizeof(Datum) * node->narms);
	for (int i = 0; i < node->narms; i++)
		names[i] = CStringGetTextDatum(node->arm_names[i]);
	return PointerGetDatum(construct_array(names, node->narms, TEXTOID, -1, false, TYPALIGN_INT));
}

/* The share of a queue that the poll may look in. */
static void
find_share(const WigPoll *poll, const char *queue, Source *s)
{
	s->queue = queue;
	s->start = 0;
	s->end = WIG_BUCKETS;

	/* What is left over in a queue that shared memory does not remember would not be noticed. */
	if (strlen(queue) > WIG_MAX_QUEUE)
		return;
	for (int i = 0; i < poll->nshares; i++)
	{
		const WigShare *share = &poll->shares[i];

		if (share->queue != NULL ? strcmp(share->queue, queue) != 0 : poll->nqueues > 0)
			continue;
		s->start = share->start;
		s->end = share->end;
		if (share->queue != NULL)
			return;
	}
}

static bool
same_versions(const WigPoll *a, const WigPoll *b)
{
	if (a->nversions != b->nversions)
		return false;
	for (int i = 0; i < a->nversions; i++)
		if (a->versions[i].version != b->versions[i].version ||
			strcmp(a->versions[i].workflow, b->versions[i].workflow) != 0)
			return false;
	return true;
}

/* The cursor over a queue of all polls that look for the same there. */
static Source *
source_for(Claim *claim, const WigPoll *poll, const char *queue)
{
	Source		wanted = {.poll = poll};
	Source	   *s;
	ListCell   *lc;

	find_share(poll, queue, &wanted);
	foreach(lc, claim->sources)
	{
		s = (Source *) lfirst(lc);
		if (s->start == wanted.start && s->end == wanted.end && strcmp(s->queue, queue) == 0 &&
			same_versions(s->poll, poll))
			return s;
	}
	s = palloc(sizeof(Source));
	*s = wanted;
	s->most = OTHERS_A_MEMBER * Min(MEMBERS_AT_MOST, WIG_BUCKETS / Max(s->end - s->start, 1));
	s->cursor = wig_ready_open(claim->work->store, queue, claim->work->now);
	claim->sources = lappend(claim->sources, s);
	return s;
}

static bool
wants_queue(const WigPoll *poll, const char *queue)
{
	if (poll->nqueues == 0)
		return true;
	for (int i = 0; i < poll->nqueues; i++)
		if (strcmp(poll->queues[i], queue) == 0)
			return true;
	return false;
}

/* The cursors that a poll looks at: one for each of its queues. */
static List *
sources_of(Claim *claim, const WigPoll *poll)
{
	List	   *sources = NIL;
	ListCell   *lc;

	if (poll->nqueues == 0 && !claim->every_known)
	{
		claim->every = wig_ready_queues(claim->work->store);
		claim->every_known = true;
	}
	if (poll->nqueues == 0)
		foreach(lc, claim->every)
			sources = lappend(sources, source_for(claim, poll, (char *) lfirst(lc)));
	for (int i = 0; i < poll->nqueues; i++)
		sources = list_append_unique_ptr(sources, source_for(claim, poll, poll->queues[i]));
	return sources;
}

/* The definitions that a poll's versions name; unknown ones match nothing. */
static int32 *
definitions_of(Claim *claim, const WigPoll *poll)
{
	int32	   *ids = palloc((poll->nversions + 1) * sizeof(int32));

	for (int i = 0; i < poll->nversions; i++)
	{
		const WigGraph *graph = wig_graph_get(claim->work->store, poll->versions[i].workflow,
											  poll->versions[i].version);

		ids[i] = graph == NULL ? 0 : graph->definition_id;
	}
	return ids;
}

static bool
wants_definition(const WigPoll *poll, const int32 *ids, int32 definition_id)
{
	for (int i = 0; i < poll->nversions; i++)
		if (ids[i] == definition_id)
			return true;
	return poll->nversions == 0;
}

/* Is the candidate one that the source may take? */
static bool
in_share(Source *s, int bucket)
{
	if (bucket >= s->start && bucket < s->end)
	{
		s->in_a_row = 0;
		return true;
	}
	if (s->in_a_row == s->most)
		return true;
	s->in_a_row++;
	s->others = true;
	return false;
}

/* The source whose candidate is the oldest that the poll wants, or NULL. */
static Source *
oldest_source(List *sources, const WigPoll *poll, const int32 *ids, WigKey *key)
{
	Source	   *best = NULL;
	ListCell   *lc;

	foreach(lc, sources)
	{
		Source	   *s = (Source *) lfirst(lc);
		WigCandidate candidate;

		while (wig_ready_peek(s->cursor, &candidate))
		{
			if (!wants_definition(poll, ids, candidate.definition_id) || !in_share(s, candidate.bucket))
			{
				wig_ready_pass(s->cursor);
				continue;
			}
			if (best == NULL || wig_key_cmp(candidate.key, *key) < 0)
			{
				best = s;
				*key = candidate.key;
			}
			break;
		}
	}
	return best;
}

static WigPending *
oldest_pending(Claim *claim, const WigPoll *poll, const int32 *ids)
{
	WigPending *best = NULL;

	for (int i = 0; i < claim->work->npending; i++)
	{
		WigPending *p = &claim->work->pending[i];

		if (!p->settled && wants_queue(poll, p->queue) &&
			wants_definition(poll, ids, p->inst.graph->definition_id) &&
			(best == NULL || wig_key_cmp(p->key, best->key) < 0))
			best = p;
	}
	return best;
}

static void
deliver(Claim *claim, int poll_index, const WigPoll *poll, const WigInstance *inst,
		const WigToken *token)
{
	WigWork    *work = claim->work;
	int64		lease_ms = poll->lease_ms > 0 ? poll->lease_ms : wig_default_lease;
	TimestampTz expires_at = TimestampTzPlusMilliseconds(work->now, lease_ms);
	MemoryContext old;

	wig_lease_insert(work->store, inst->no, token->n, poll->owner, work->now, expires_at);

	/* The receiver keeps a copy: many large contexts must not add up here. */
	old = MemoryContextSwitchTo(claim->row);
	claim->claimed(claim->arg, poll_index, inst, token,
				   wig_view_dispatched(work->store, token),
				   poll->owner, expires_at);
	MemoryContextSwitchTo(old);
	MemoryContextReset(claim->row);
}

/*
 * Lease the source's candidate. One that cannot be read is left where it is, so
 * that it does not keep the queue from everything behind it. False when nothing
 * was delivered.
 */
static bool
deliver_ready(Claim *claim, int poll_index, const WigPoll *poll, Source *s, WigKey key)
{
	WigInstance inst;
	WigToken	token;

	if (!wig_instance_read(claim->work->store, key.instance, &inst) ||
		!wig_token_peek(claim->work->store, &inst, key.n, &token))
	{
		wig_ready_pass(s->cursor);
		return false;
	}
	if (!wig_ready_take(s->cursor))
		return false;			/* somebody was faster */
	deliver(claim, poll_index, poll, &inst, &token);
	return true;
}

static void
serve(Claim *claim, int poll_index, const WigPoll *poll)
{
	List	   *sources = sources_of(claim, poll);
	int32	   *ids = definitions_of(claim, poll);
	int			left = Max(poll->max, 1);
	ListCell   *lc;

	while (left > 0)
	{
		WigKey		key = {0, 0};
		Source	   *s = oldest_source(sources, poll, ids, &key);
		WigPending *p = oldest_pending(claim, poll, ids);

		if (p != NULL && (s == NULL || wig_key_cmp(p->key, key) < 0))
		{
			p->settled = true;
			deliver(claim, poll_index, poll, &p->inst, &p->token);
		}
		else if (s == NULL)
			break;
		else if (!deliver_ready(claim, poll_index, poll, s, key))
			continue;
		left--;
	}

	/* It could have done more: should others not take theirs, everybody is told. */
	foreach(lc, sources)
		if (left > 0 && ((Source *) lfirst(lc))->others)
		{
			TimestampTz at = claim->work->now + WIG_LEFTOVER_PAUSE_USECS;

			wig_mark_watch(((Source *) lfirst(lc))->queue, at);
			wig_wake_at(WIG_DEADLINE_LEFTOVER, at);
		}
}

void
wig_claim(WigWork *work, const WigPoll *polls, const bool *skip, int npolls,
		  WigClaimedFn claimed, void *arg)
{
	Claim		claim = {.work = work, .claimed = claimed, .arg = arg};
	ListCell   *lc;

	claim.row = AllocSetContextCreate(CurrentMemoryContext, "wiggle claimed task",
									  ALLOCSET_DEFAULT_SIZES);
	wig_work_tick(work);
	for (int i = 0; i < npolls; i++)
		if (skip == NULL || !skip[i])
			serve(&claim, i, &polls[i]);
	foreach(lc, claim.sources)
		wig_ready_close(((Source *) lfirst(lc))->cursor);
	MemoryContextDelete(claim.row);
}
