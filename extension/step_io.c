/*
 * step_io.c
 *	  Recording a step's input and output on its token.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/json.h"

#include "step_io.h"

#define RECORD_MAX_CHARS	65536
#define RECORD_HEAD_CHARS	4096

static char *
recorded(const char *value, size_t len)
{
	StringInfoData out;
	int			chars;

	/* Characters are never more than bytes. */
	if (len <= RECORD_MAX_CHARS ||
		(chars = pg_mbstrlen_with_len(value, (int) len)) <= RECORD_MAX_CHARS)
		return pnstrdup(value, len);
	initStringInfo(&out);
	appendStringInfo(&out, "{\"$truncated\":%d,\"head\":", chars);
	escape_json(&out, pnstrdup(value, pg_mbcharcliplen(value, (int) len, RECORD_HEAD_CHARS)));
	appendStringInfoChar(&out, '}');
	return out.data;
}

void
wig_step_io_record(WigToken *token, const text *input, const char *output, size_t output_len)
{
	token->input = recorded(VARDATA_ANY(input), VARSIZE_ANY_EXHDR(input));
	token->output = output == NULL ? NULL : recorded(output, output_len);
}
