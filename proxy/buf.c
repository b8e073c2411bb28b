/*
 * buf.c
 *	  A growing byte buffer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "buf.h"
#include "log.h"

#define BUF_FIRST	64

static void *
checked(void *ptr, size_t size)
{
	if (ptr == NULL && size > 0)
	{
		log_error("memory", "out of memory (%zu bytes wanted)", size);
		abort();
	}
	return ptr;
}

void *
xmalloc(size_t size)
{
	return checked(malloc(size), size);
}

void *
xcalloc(size_t count, size_t size)
{
	return checked(calloc(count, size), count > 0 && size > 0);
}

void *
xrealloc(void *ptr, size_t size)
{
	return checked(realloc(ptr, size), size);
}

char *
xstrdup(const char *text)
{
	return xstrndup(text, strlen(text));
}

char *
xstrndup(const char *text, size_t len)
{
	char	   *copy = xmalloc(len + 1);

	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

void
buf_free(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf) BUF_INIT;
}

void
buf_grow(struct buf *buf, size_t more)
{
	size_t		need;
	size_t		cap = buf->cap > 0 ? buf->cap : BUF_FIRST;

	if (__builtin_add_overflow(buf->len, more, &need) || need > SIZE_MAX / 2)
		checked(NULL, more);
	while (cap < need)
		cap *= 2;
	buf->data = xrealloc(buf->data, cap);
	buf->cap = cap;
}

void
buf_printf(struct buf *buf, const char *fmt,...)
{
	for (;;)
	{
		size_t		room = buf->cap - buf->len;
		va_list		args;
		int			n;

		va_start(args, fmt);
		n = vsnprintf(room > 0 ? (char *) buf->data + buf->len : NULL, room, fmt, args);
		va_end(args);
		if (n < 0)
			return;
		if ((size_t) n < room)
		{
			buf->len += (size_t) n;
			return;
		}
		buf_reserve(buf, (size_t) n + 1);
	}
}

void
buf_json(struct buf *buf, const char *text)
{
	buf_byte(buf, '"');
	for (; *text != '\0'; text++)
	{
		unsigned char c = (unsigned char) *text;

		if (c == '"' || c == '\\')
			buf_byte(buf, '\\');
		if (c < 0x20)
			buf_printf(buf, "\\u%04x", c);
		else
			buf_byte(buf, c);
	}
	buf_byte(buf, '"');
}

const char *
buf_cstr(struct buf *buf)
{
	buf_reserve(buf, 1);
	buf->data[buf->len] = '\0';
	return (const char *) buf->data;
}

uint8_t *
buf_detach(struct buf *buf, size_t *len)
{
	uint8_t    *data = buf->data;

	if (len != NULL)
		*len = buf->len;
	*buf = (struct buf) BUF_INIT;
	return data;
}
