/*
 * errors.c
 *	  Refusals: made once, carried as rows or raised.
 */
#include "wiggle.h"

#include "errors.h"

bool
wig_refuse(WigRefusal *refusal, int code, const char *fmt,...)
{
	va_list		args;
	char		buf[1024];

	va_start(args, fmt);
	vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);

	refusal->code = code;
	refusal->message = pstrdup(buf);
	return false;
}

void
wig_raise(const WigRefusal *refusal)
{
	int			sqlstate;

	switch (refusal->code)
	{
		case 400:
			sqlstate = ERRCODE_WIG_INVALID;
			break;
		case 404:
			sqlstate = ERRCODE_WIG_NOT_FOUND;
			break;
		case 409:
			sqlstate = ERRCODE_WIG_CONFLICT;
			break;
		default:
			sqlstate = ERRCODE_INTERNAL_ERROR;
			break;
	}
	ereport(ERROR, (errcode(sqlstate), errmsg("%s", refusal->message)));
}
