/*
 * wiggle.c
 *	  Loading of the library.
 */
#include "wiggle.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "event.h"
#include "guc.h"
#include "launcher.h"
#include "lifecycle.h"
#include "shmem.h"
#include "wake.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	wig_guc_define();
	wig_wake_init();
	wig_event_init();

	/* Loaded later, functions and CREATE EXTENSION refuse with a hint. */
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	wig_shmem_init();
	wig_lifecycle_init();
	wig_launcher_register();
}
