/*
 * durable.c
 *	  How long a commit waits: for the log's flush, for synchronous standbys.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "replication/message.h"
#include "utils/guc.h"

#include "compat.h"
#include "durable.h"

void
wig_commit_lazily(void)
{
	/* For the session alone: the reset value goes on following the configuration. */
	SetConfigOption("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION);
}

void
wig_commit_durably(void)
{
	(void) set_config_option("synchronous_commit", GetConfigOptionResetString("synchronous_commit"),
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	/* Whatever it says, not less than a flush. */
	ForceSyncCommit();
}

void
wig_commit_confirms(void)
{
	/* Only one that has an id and has written something waits. The least that can be written. */
	(void) wig_log_message("wiggle", "", 0);
}
