/*
 * textbuf.c
 *	  A growing text and canonical JSON pieces.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "textbuf.h"

#define FIRST_SIZE		512
#define MAX_DIGITS		17		/* that identify any double */

void
wig_text_put(struct wig_text *text, const char *bytes, size_t len)
{
	if (text->failed || len == 0)
		return;
	if (text->size - text->len < len)
	{
		size_t		size = text->size == 0 ? FIRST_SIZE : text->size;
		char	   *data;

		while (size - text->len < len && size <= SIZE_MAX / 2)
			size *= 2;
		data = size - text->len < len ? NULL : realloc(text->data, size);
		if (data == NULL)
		{
			text->failed = true;
			return;
		}
		text->data = data;
		text->size = size;
	}
	memcpy(text->data + text->len, bytes, len);
	text->len += len;
}

void
wig_text_puts(struct wig_text *text, const char *string)
{
	wig_text_put(text, string, strlen(string));
}

void
wig_text_put_int(struct wig_text *text, int64_t value)
{
	char		digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	wig_text_puts(text, digits);
}

/*
 * Digits of a finite number >= 0 and the power of ten of the first one, taken
 * from "d.ddde±xx". The radix character is skipped, whatever the locale's is.
 */
static int
shortest_digits(double value, char digits[MAX_DIGITS + 1], int *exponent)
{
	char		printed[MAX_DIGITS + 16];
	const char *p;
	int			n = 0;

	for (int precision = 0; precision < MAX_DIGITS; precision++)
	{
		snprintf(printed, sizeof(printed), "%.*e", precision, value);
		if (strtod(printed, NULL) == value)
			break;
	}
	for (p = printed; *p != '\0' && *p != 'e'; p++)
	{
		if (*p >= '0' && *p <= '9')
			digits[n++] = *p;
	}
	*exponent = *p == 'e' ? (int) strtol(p + 1, NULL, 10) : 0;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	return n;
}

static void
put_zeros(struct wig_text *text, int n)
{
	for (; n > 0; n--)
		wig_text_put(text, "0", 1);
}

void
wig_text_put_double(struct wig_text *text, double value)
{
	char		digits[MAX_DIGITS + 1];
	int			exponent;
	int			n;

	if (value == 0)
	{
		wig_text_put(text, "0", 1);
		return;
	}
	if (value < 0)
	{
		wig_text_put(text, "-", 1);
		value = -value;
	}
	n = shortest_digits(value, digits, &exponent);
	if (exponent < 0)
	{
		wig_text_put(text, "0.", 2);
		put_zeros(text, -exponent - 1);
		wig_text_put(text, digits, (size_t) n);
	}
	else if (n <= exponent + 1)
	{
		wig_text_put(text, digits, (size_t) n);
		put_zeros(text, exponent + 1 - n);
	}
	else
	{
		wig_text_put(text, digits, (size_t) exponent + 1);
		wig_text_put(text, ".", 1);
		wig_text_put(text, digits + exponent + 1, (size_t) (n - exponent - 1));
	}
}

/* The escape of a byte that may not stand in a JSON string as it is. */
static const char *
escape(unsigned char c, char out[8])
{
	switch (c)
	{
		case '"':
			return "\\\"";
		case '\\':
			return "\\\\";
		case '\n':
			return "\\n";
		case '\r':
			return "\\r";
		case '\t':
			return "\\t";
		case '\b':
			return "\\b";
		case '\f':
			return "\\f";
		default:
			snprintf(out, 8, "\\u%04x", c);
			return out;
	}
}

void
wig_text_put_string(struct wig_text *text, const char *string)
{
	const char *plain = string;
	const char *p;
	char		code[8];

	if (string == NULL)
	{
		wig_text_puts(text, "null");
		return;
	}
	wig_text_put(text, "\"", 1);
	for (p = string; *p != '\0'; p++)
	{
		unsigned char c = (unsigned char) *p;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		wig_text_put(text, plain, (size_t) (p - plain));
		wig_text_puts(text, escape(c, code));
		plain = p + 1;
	}
	wig_text_put(text, plain, (size_t) (p - plain));
	wig_text_put(text, "\"", 1);
}

char *
wig_text_take(struct wig_text *text)
{
	char	   *result;

	wig_text_put(text, "", 1);
	if (text->failed)
	{
		wig_text_free(text);
		return NULL;
	}
	result = text->data;
	memset(text, 0, sizeof(*text));
	return result;
}

void
wig_text_free(struct wig_text *text)
{
	free(text->data);
	memset(text, 0, sizeof(*text));
}
