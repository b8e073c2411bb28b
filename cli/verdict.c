/*
 * verdict.c
 *	  What the end of a step's process says about the step.
 *
 * Pure: texts and numbers in, a verdict out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"
#include "value.h"
#include "verdict.h"

#define MAX_MESSAGE_BYTES 1000

/* Append text with everything that is not UTF-8 as '?', up to the bound. */
static void
append_clean(struct buf *out, const char *text)
{
	const uint8_t *p = (const uint8_t *) text;
	size_t		left = strlen(text);

	while (left > 0 && out->len < MAX_MESSAGE_BYTES)
	{
		size_t		n = utf8_sequence(p, left);

		if (out->len + n > MAX_MESSAGE_BYTES)
			return;
		if (n == 0)
		{
			buf_byte(out, '?');
			n = 1;
		}
		else
			buf_append(out, p, n);
		p += n;
		left -= n;
	}
}

static void
fail(struct verdict *verdict, enum verdict_kind kind, const char *what, const char *last_words)
{
	verdict->kind = kind;
	append_clean(&verdict->message, what);
	if (last_words[0] != '\0')
	{
		append_clean(&verdict->message, ": ");
		append_clean(&verdict->message, last_words);
	}
	buf_cstr(&verdict->message);
}

/* Standard output of a task that is done: nothing, or the next context. */
static void
take_output(const struct step_result *result, struct verdict *verdict)
{
	struct wig_error err;
	struct buf	what = BUF_INIT;
	bool		blank = true;

	verdict->kind = VERDICT_DONE;
	for (size_t i = 0; i < result->output_len && blank; i++)
		blank = memchr(" \t\r\n", result->output[i], 4) != NULL;
	if (blank || json_to_value(result->output, result->output_len, &verdict->value, &err))
		return;
	/* Not what it is: the message is logged, and an output may be a context all the same. */
	buf_printf(&what, "its output is no context: %s", err.message);
	fail(verdict, VERDICT_FAILED_FOR_GOOD, buf_cstr(&what), "");
	buf_free(&what);
}

/* The process ended by itself with a status other than the ones for success. */
static void
take_status(const struct step_result *result, struct verdict *verdict)
{
	char		what[40];

	/* What the command said is the message; its status only when it said nothing. */
	snprintf(what, sizeof(what), "exit status %d", result->exit_status);
	fail(verdict, result->exit_status == EXIT_PERMANENT ? VERDICT_FAILED_FOR_GOOD : VERDICT_FAILED,
		 result->last_words[0] != '\0' ? result->last_words : what, "");
}

void
verdict_judge(const struct step_result *result, enum step_role role, int64_t timeout_ms,
			  struct verdict *verdict)
{
	char		what[160];

	memset(verdict, 0, sizeof(*verdict));
	if (result->spawn_error != NULL)
	{
		snprintf(what, sizeof(what), "the command cannot be run: %s", result->spawn_error);
		fail(verdict, VERDICT_FAILED, what, result->program == NULL ? "" : result->program);
	}
	else if (result->timed_out)
	{
		snprintf(what, sizeof(what), "not done within %" PRId64 " ms", timeout_ms);
		fail(verdict, VERDICT_FAILED, what, result->last_words);
	}
	else if (result->output_too_large)
	{
		snprintf(what, sizeof(what), "more than %u bytes of output", STEP_MAX_OUTPUT);
		fail(verdict, VERDICT_FAILED_FOR_GOOD, what, "");
	}
	else if (result->killed)
		fail(verdict, VERDICT_FAILED, "the worker was stopped", "");
	else if (result->term_signal != 0)
	{
		snprintf(what, sizeof(what), "killed by signal %d", result->term_signal);
		fail(verdict, VERDICT_FAILED, what, result->last_words);
	}
	else if (role == ROLE_GATE && result->exit_status <= 1)
	{
		verdict->kind = VERDICT_DECIDED;
		verdict->decision = result->exit_status == 0;
	}
	else if (result->exit_status != 0)
		take_status(result, verdict);
	else if (role == ROLE_COMPENSATOR)
		verdict->kind = VERDICT_DONE;
	else
		take_output(result, verdict);
}

void
verdict_free(struct verdict *verdict)
{
	buf_free(&verdict->value);
	buf_free(&verdict->message);
}
