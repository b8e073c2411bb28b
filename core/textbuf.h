/*
 * textbuf.h
 *	  Text that grows while it is written, and canonical JSON pieces for it.
 *
 * A write that finds no memory sets failed and every later write does nothing,
 * so that a writer checks once, when it takes the text.
 */
#ifndef WIGGLE_CORE_TEXTBUF_H
#define WIGGLE_CORE_TEXTBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wig_text
{
	char	   *data;			/* malloc; NULL while empty */
	size_t		len;
	size_t		size;
	bool		failed;
};

extern void wig_text_put(struct wig_text *text, const char *bytes, size_t len);
extern void wig_text_puts(struct wig_text *text, const char *string);
extern void wig_text_put_int(struct wig_text *text, int64_t value);

/*
 * A double as the shortest decimal that reads back as the same number, without
 * an exponent and without superfluous zeros: 1, 0.2, 2.5. The value is finite.
 */
extern void wig_text_put_double(struct wig_text *text, double value);

/* A JSON string with quotes; NULL is written as null. Escapes only what must be. */
extern void wig_text_put_string(struct wig_text *text, const char *string);

/*
 * The terminated text (caller frees), or NULL when memory ran out. Either way
 * the buffer is empty afterwards.
 */
extern char *wig_text_take(struct wig_text *text);

extern void wig_text_free(struct wig_text *text);

#endif							/* WIGGLE_CORE_TEXTBUF_H */
