/*
 * buf.h
 *	  A growing byte buffer; the only container that the proxy needs often.
 *
 * A struct buf is zero-initialised (= BUF_INIT) and owns its memory. Memory
 * exhaustion ends the process: a proxy holds no state that matters, and every
 * size that a peer chooses is bounded before it reaches a buffer.
 */
#ifndef WIGGLE_PROXY_BUF_H
#define WIGGLE_PROXY_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf
{
	uint8_t    *data;			/* NULL until the first byte */
	size_t		len;
	size_t		cap;
};

#define BUF_INIT {NULL, 0, 0}

/* malloc, realloc and strdup that log and abort instead of returning NULL. */
extern void *xmalloc(size_t size);
extern void *xcalloc(size_t count, size_t size);
extern void *xrealloc(void *ptr, size_t size);
extern char *xstrdup(const char *text);
extern char *xstrndup(const char *text, size_t len);

/* Free the memory; the buffer is empty and can be used again. */
extern void buf_free(struct buf *buf);

/* Forget the content, keep the memory. */
static inline void
buf_reset(struct buf *buf)
{
	buf->len = 0;
}

extern void buf_grow(struct buf *buf, size_t more);

/* Make room for `more` bytes behind len without changing len. */
static inline void
buf_reserve(struct buf *buf, size_t more)
{
	if (buf->cap - buf->len < more)
		buf_grow(buf, more);
}

static inline void
buf_append(struct buf *buf, const void *data, size_t len)
{
	if (len == 0)
		return;
	buf_reserve(buf, len);
	memcpy(buf->data + buf->len, data, len);
	buf->len += len;
}

static inline void
buf_byte(struct buf *buf, uint8_t byte)
{
	buf_reserve(buf, 1);
	buf->data[buf->len++] = byte;
}

static inline void
buf_text(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

/* Big-endian integers, as PostgreSQL's binary formats and HTTP/2 have them. */
static inline void
buf_u16(struct buf *buf, uint16_t v)
{
	uint8_t		b[2] = {(uint8_t) (v >> 8), (uint8_t) v};

	buf_append(buf, b, sizeof(b));
}

static inline void
buf_u32(struct buf *buf, uint32_t v)
{
	uint8_t		b[4] = {(uint8_t) (v >> 24), (uint8_t) (v >> 16), (uint8_t) (v >> 8), (uint8_t) v};

	buf_append(buf, b, sizeof(b));
}

static inline void
buf_u64(struct buf *buf, uint64_t v)
{
	buf_u32(buf, (uint32_t) (v >> 32));
	buf_u32(buf, (uint32_t) v);
}

extern void buf_printf(struct buf *buf, const char *fmt,...)
			__attribute__((format(printf, 2, 3)));

/* The text as a JSON string with its quotes; the text is UTF-8. */
extern void buf_json(struct buf *buf, const char *text);

/* Terminate with a NUL that is not counted in len; returns the text. */
extern const char *buf_cstr(struct buf *buf);

/* Hand the memory over to the caller (free()); the buffer is empty again. */
extern uint8_t *buf_detach(struct buf *buf, size_t *len);

#endif							/* WIGGLE_PROXY_BUF_H */
