/*
 * utf8.h
 *	  One step of a UTF-8 check, and texts that are cut between characters.
 */
#ifndef WIGGLE_PROXY_UTF8_H
#define WIGGLE_PROXY_UTF8_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The length of the sequence that begins at p (1 for ASCII), 0 when it is not a
 * shortest-form encoding of a scalar value: surrogates (ED A0..BF) and anything
 * above U+10FFFF are not.
 */
static inline size_t
utf8_sequence(const uint8_t *p, size_t left)
{
	uint8_t		c = p[0];

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || left < 2 || (p[1] & 0xc0) != 0x80)
		return 0;
	if (c < 0xe0)
		return 2;
	if (left < 3 || (p[2] & 0xc0) != 0x80)
		return 0;
	if (c < 0xf0)
	{
		if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (c > 0xf4 || left < 4 || (p[3] & 0xc0) != 0x80)
		return 0;
	if ((c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
		return 0;
	return 4;
}

/*
 * How many bytes from p on are printable ASCII that JSON needs not escape, eight
 * at a time; may return less than there are.
 */
static inline size_t
utf8_plain_run(const uint8_t *p, size_t len)
{
	size_t		n = 0;

	while (len - n >= 8)
	{
		uint64_t	w;
		uint64_t	quote;
		uint64_t	slash;

		__builtin_memcpy(&w, p + n, 8);
		quote = w ^ UINT64_C(0x2222222222222222);
		slash = w ^ UINT64_C(0x5c5c5c5c5c5c5c5c);
		if (((w | (w - UINT64_C(0x2020202020202020)) |
			  (quote - UINT64_C(0x0101010101010101)) |
			  (slash - UINT64_C(0x0101010101010101))) & UINT64_C(0x8080808080808080)) != 0)
			break;
		n += 8;
	}
	while (n < len && p[n] >= 0x20 && p[n] < 0x80 && p[n] != '"' && p[n] != '\\')
		n++;
	return n;
}

/* As vsnprintf, but a text that does not fit is cut between characters; returns the bytes that there are. */
static inline size_t
utf8_vformat(char *out, size_t cap, const char *fmt, va_list args)
{
	int			n = vsnprintf(out, cap, fmt, args);
	size_t		len = cap - 1;
	size_t		start = len;

	if (n < 0)
		len = 0;
	else if ((size_t) n <= len)
		return (size_t) n;
	else
	{
		while (start > 0 && ((uint8_t) out[start - 1] & 0xc0) == 0x80)
			start--;
		if (start > 0 && (uint8_t) out[start - 1] >= 0xc0)
			len = start - 1;
	}
	out[len] = '\0';
	return len;
}

#endif							/* WIGGLE_PROXY_UTF8_H */
