/*
 * version.c
 *	  Which version the library is, and which SQL objects it runs with.
 *
 * The numbers come from the Makefile: the control file's, and those from which an
 * update script leads to it.
 */
#include "wiggle.h"

#include "version.h"

const char	wig_library_version[] = WIG_LIBRARY_VERSION;

static const char *const runs_with[] = {WIG_LIBRARY_VERSION, WIG_FORMER_VERSIONS};

bool
wig_runs_with(const char *catalog_version)
{
	for (int i = 0; catalog_version != NULL && i < (int) lengthof(runs_with); i++)
	{
		if (strcmp(catalog_version, runs_with[i]) == 0)
			return true;
	}
	return false;
}
