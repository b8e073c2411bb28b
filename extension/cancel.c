/*
 * cancel.c
 *	  Cancelling instances.
 */
#include "wiggle.h"

#include "cancel.h"
#include "ending.h"
#include "subflow.h"

bool
wig_cancel(WigWork *work, const char *id, const char *reason, WigRefusal *refusal)
{
	WigInstance inst;

	if (reason == NULL || reason[0] == '\0')
		reason = "cancelled via API";
	if (wig_longer(reason, WIG_MAX_REASON))
		return wig_refuse(refusal, 400, "reason is longer than %d characters", WIG_MAX_REASON);
	if (id == NULL || !wig_instance_lock(work->store, id, false, &inst, NULL))
		return wig_refuse(refusal, 404, "instance not found");
	wig_work_tick(work);
	if (inst.status == WIG_INSTANCE_RUNNING)
	{
		wig_end_instance(work, &inst, WIG_INSTANCE_CANCELLED, reason, NULL);
		wig_run_errands(work, &inst);
	}
	return true;
}
