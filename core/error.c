/*
 * error.c
 *	  Filling in a refusal.
 */
#include <stdio.h>

#include "error.h"

/*
 * Cut an incomplete UTF-8 sequence off the end of a message that did not fit:
 * whoever shows it may have to refuse broken text.
 */
static void
trim_message(char *message, size_t len)
{
	size_t		start = len;

	while (start > 0 && ((unsigned char) message[start - 1] & 0xC0) == 0x80)
		start--;
	if (start > 0 && (unsigned char) message[start - 1] >= 0xC0)
		message[start - 1] = '\0';
}

static void
fill(struct wig_error *err, const char *fmt, va_list args)
{
	int			needed = vsnprintf(err->message, sizeof(err->message), fmt, args);

	if (needed >= (int) sizeof(err->message))
		trim_message(err->message, sizeof(err->message) - 1);
}

bool
wig_fail(struct wig_error *err, const char *fmt,...)
{
	va_list		args;

	if (err == NULL)
		return false;
	err->line = 0;
	err->column = 0;
	err->place[0] = '\0';
	va_start(args, fmt);
	fill(err, fmt, args);
	va_end(args);
	return false;
}

bool
wig_fail_at(struct wig_error *err, int line, int column, const char *fmt,...)
{
	va_list		args;

	if (err == NULL)
		return false;
	err->line = line;
	err->column = column;
	err->place[0] = '\0';
	va_start(args, fmt);
	fill(err, fmt, args);
	va_end(args);
	return false;
}
