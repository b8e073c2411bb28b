/*
 * start.c
 *	  Validation of a start, minting its id and its first token.
 */
#include "wiggle.h"

#include "drive.h"
#include "durable.h"
#include "ids.h"
#include "jsontext.h"
#include "mint.h"
#include "scope.h"
#include "start.h"
#include "subflow.h"

static bool
check_id(const char *id, WigRefusal *refusal)
{
	int32		shard;
	int32		mine;

	if (!wig_instance_id_valid(id, strlen(id), &shard))
		return wig_refuse(refusal, 400, "'%s' is not an instance id; take one from wiggle.mint()",
						  wig_clip(id, WIG_ID_MAX));
	mine = wig_shard_id();
	if (shard == mine)
		return true;
	if (mine == WIG_NO_SHARD)
		return wig_refuse(refusal, 400, "instance id %s belongs to shard %d; this database is no shard yet",
						  id, shard);
	wig_refuse(refusal, 400, "instance id %s does not belong to this database, which is shard %d", id, mine);
	return wig_hint(refusal, "Start it in that shard's database, or take an id from wiggle.mint() of this one.");
}

static bool
check_start(WigWork *work, const WigStart *start, const WigGraph **graph, WigRefusal *refusal)
{
	int32		version = start->version;
	struct wig_json_info info;
	struct wig_error err;

	if (start->workflow == NULL || start->workflow[0] == '\0')
		return wig_refuse(refusal, 400, "workflow name is required");
	if (version < 0)
		return wig_refuse(refusal, 400, "version must be positive, got %d", version);
	if (start->correlation_id != NULL && wig_longer(start->correlation_id, WIG_MAX_CORRELATION))
		return wig_refuse(refusal, 400, "correlation id is longer than %d characters", WIG_MAX_CORRELATION);
	if (start->context != NULL &&
		!wig_json_check(start->context, start->context_len, &info, &err))
		return wig_refuse(refusal, 400, "context: %s", err.message);

	if (version == 0)
		version = wig_graph_latest(work->store, start->workflow);
	*graph = version == 0 ? NULL : wig_graph_get(work->store, start->workflow, version);
	if (*graph == NULL)
	{
		if (start->version == 0)
			wig_refuse(refusal, 404, "workflow '%s' not found", wig_clip(start->workflow, WIG_MAX_NAME));
		else
			wig_refuse(refusal, 404, "workflow '%s:%d' not found",
					   wig_clip(start->workflow, WIG_MAX_NAME), version);
		return wig_hint(refusal, WIG_HINT_WORKFLOWS);
	}
	return true;
}

/* Answer a start whose id is taken: the same start again is a success. */
static bool
answer_repeat(const WigStart *start, const WigInstance *inst, WigStarted *started,
			  WigRefusal *refusal)
{
	if (strcmp(inst->workflow, start->workflow ? start->workflow : "") != 0)
	{
		wig_refuse(refusal, 409, "instance %s runs workflow '%s', not '%s'", inst->id, inst->workflow,
				   wig_clip(start->workflow ? start->workflow : "", WIG_MAX_NAME));
		return wig_hint(refusal, "An id names one instance for ever: take another one from wiggle.mint().");
	}
	started->id = inst->id;
	started->status = inst->status;
	wig_commit_confirms();
	return true;
}

bool
wig_start(WigWork *work, const WigStart *start, WigStarted *started, WigRefusal *refusal)
{
	WigInstance inst = {0};
	WigInstance present;
	const WigGraph *graph = NULL;
	const char *context = start->context ? start->context : "{}";
	size_t		len = start->context ? start->context_len : 2;

	if (start->id != NULL)
	{
		if (!check_id(start->id, refusal))
			return false;
		if (wig_instance_exists(work->store, start->id, &present))
			return answer_repeat(start, &present, started, refusal);
	}
	if (!check_start(work, start, &graph, refusal))
		return false;

	inst.id = start->id ? pstrdup(start->id) : wig_mint_id(wig_shard_id());
	inst.graph = graph;
	inst.correlation_id = start->correlation_id ? pstrdup(start->correlation_id) : NULL;
	if (!wig_instance_new(work, &inst, context, len))
	{
		/* Somebody started it meanwhile, and has committed. */
		if (!wig_instance_exists(work->store, inst.id, &present))
			elog(ERROR, "instance %s exists and does not", inst.id);
		return answer_repeat(start, &present, started, refusal);
	}
	wig_drive(work, &inst, (WigArrival) {graph->def->start, WIG_ROOT_SCOPE, NULL, NULL});
	wig_run_errands(work, &inst);

	started->id = inst.id;
	started->status = inst.status;
	return true;
}
