/*
 * errors.c
 *	  Refusals: made once, carried as rows or raised.
 */
#include "wiggle.h"

#include "mb/pg_wchar.h"

#include "errors.h"

bool
wig_longer(const char *text, int characters)
{
	return pg_mbstrlen(text) > characters;
}

char *
wig_clip(const char *text, int characters)
{
	return pnstrdup(text, pg_mbcharcliplen(text, (int) strlen(text), characters));
}

bool
wig_refuse(WigRefusal *refusal, int code, const char *fmt,...)
{
	va_list		args;
	char		buf[1024];

	va_start(args, fmt);
	vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);

	refusal->code = code;
	/* What did not fit may have been cut within a character. */
	refusal->message = pnstrdup(buf, pg_mbcliplen(buf, (int) strlen(buf), sizeof(buf)));
	refusal->hint = NULL;
	return false;
}

bool
wig_hint(WigRefusal *refusal, const char *hint)
{
	refusal->hint = hint;
	return false;
}

static int
sqlstate_of(int code)
{
	switch (code)
	{
		case 400:
			return ERRCODE_WIG_INVALID;
		case 404:
			return ERRCODE_WIG_NOT_FOUND;
		case 409:
			return ERRCODE_WIG_CONFLICT;
		default:
			return ERRCODE_INTERNAL_ERROR;
	}
}

void
wig_raise(const WigRefusal *refusal, const char *detail)
{
	ereport(ERROR,
			(errcode(sqlstate_of(refusal->code)),
			 errmsg("%s", refusal->message),
			 detail != NULL ? errdetail("%s", detail) : 0,
			 refusal->hint != NULL ? errhint("%s", refusal->hint) : 0));
}
