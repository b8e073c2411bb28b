/*
 * value_encode.c
 *	  JSON text -> protobuf Value and Struct bytes, in one pass over the text.
 */
#include <math.h>
#include <stdlib.h>

#include "jsontext.h"
#include "utf8.h"
#include "value.h"
#include "wire.h"

#define OBJECT_COST		3
#define ARRAY_COST		2

#define TAG_NULL		0x08	/* Value */
#define TAG_NUMBER		0x11
#define TAG_STRING		0x1a
#define TAG_BOOL		0x20
#define TAG_STRUCT		0x2a
#define TAG_LIST		0x32
#define TAG_FIELDS		0x0a	/* Struct: a map entry; ListValue: a value */
#define TAG_KEY			0x0a	/* of a map entry */
#define TAG_VALUE		0x12

#define EXACT_POWER		22		/* 10^22 is the last power that a double holds */
#define EXACT_MANTISSA	(UINT64_C(1) << 53)

struct reader
{
	const uint8_t *p;
	const uint8_t *end;
	const uint8_t *start;
	struct buf *out;
	struct wig_error *err;
	int			nesting;
};

static bool read_value(struct reader *r);

static bool
refuse(struct reader *r, const char *what)
{
	return wig_fail(r->err, "the JSON text is refused at byte %zu: %s",
					(size_t) (r->p - r->start) + 1, what);
}

static void
skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

static bool
expect(struct reader *r, uint8_t c, const char *what)
{
	skip_space(r);
	if (r->p == r->end || *r->p != c)
		return refuse(r, what);
	r->p++;
	return true;
}

static bool
read_hex4(struct reader *r, uint32_t *unit)
{
	uint32_t	v = 0;

	if (r->end - r->p < 4)
		return refuse(r, "a \\u escape needs four hexadecimal digits");
	for (int i = 0; i < 4; i++)
	{
		uint8_t		c = r->p[i];
		uint8_t		lower = c | 0x20;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t) (c - '0');
		else if (lower >= 'a' && lower <= 'f')
			v = v << 4 | (uint32_t) (lower - 'a' + 10);
		else
			return refuse(r, "a \\u escape needs four hexadecimal digits");
	}
	r->p += 4;
	*unit = v;
	return true;
}

static bool
read_unicode(struct reader *r)
{
	uint32_t	c = 0;
	uint32_t	low = 0;
	uint8_t		u[4];
	size_t		n;

	if (!read_hex4(r, &c))
		return false;
	if (c == 0)
		return refuse(r, "the character U+0000 cannot be stored");
	if (c >= 0xd800 && c < 0xe000)
	{
		if (c >= 0xdc00 || r->end - r->p < 6 || r->p[0] != '\\' || r->p[1] != 'u')
			return refuse(r, "half of a surrogate pair stands alone");
		r->p += 2;
		if (!read_hex4(r, &low))
			return false;
		if (low < 0xdc00 || low > 0xdfff)
			return refuse(r, "half of a surrogate pair stands alone");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (c < 0x80)
	{
		u[0] = (uint8_t) c;
		n = 1;
	}
	else if (c < 0x800)
	{
		u[0] = (uint8_t) (0xc0 | c >> 6);
		u[1] = (uint8_t) (0x80 | (c & 0x3f));
		n = 2;
	}
	else if (c < 0x10000)
	{
		u[0] = (uint8_t) (0xe0 | c >> 12);
		u[1] = (uint8_t) (0x80 | (c >> 6 & 0x3f));
		u[2] = (uint8_t) (0x80 | (c & 0x3f));
		n = 3;
	}
	else
	{
		u[0] = (uint8_t) (0xf0 | c >> 18);
		u[1] = (uint8_t) (0x80 | (c >> 12 & 0x3f));
		u[2] = (uint8_t) (0x80 | (c >> 6 & 0x3f));
		u[3] = (uint8_t) (0x80 | (c & 0x3f));
		n = 4;
	}
	buf_append(r->out, u, n);
	return true;
}

static bool
read_escape(struct reader *r)
{
	uint8_t		c;

	if (r->p == r->end)
		return refuse(r, "a string does not end");
	c = *r->p++;
	switch (c)
	{
		case '"':
		case '\\':
		case '/':
			break;
		case 'b':
			c = '\b';
			break;
		case 'f':
			c = '\f';
			break;
		case 'n':
			c = '\n';
			break;
		case 'r':
			c = '\r';
			break;
		case 't':
			c = '\t';
			break;
		case 'u':
			return read_unicode(r);
		default:
			return refuse(r, "a string holds an unknown escape");
	}
	buf_byte(r->out, c);
	return true;
}

/* A string as a length-delimited field; r->p is at its opening quote. */
static bool
read_string(struct reader *r, uint8_t tag)
{
	size_t		content = wire_open(r->out, tag);

	for (r->p++;;)
	{
		size_t		left = (size_t) (r->end - r->p);
		size_t		n = utf8_plain_run(r->p, left);

		buf_append(r->out, r->p, n);
		r->p += n;
		if (n == left)
			return refuse(r, "a string does not end");
		if (*r->p == '"')
			break;
		if (*r->p >= 0x80)
		{
			n = utf8_sequence(r->p, left - n);
			if (n == 0)
				return refuse(r, "a string is not valid UTF-8");
			buf_append(r->out, r->p, n);
			r->p += n;
		}
		else if (*r->p == '\\')
		{
			r->p++;
			if (!read_escape(r))
				return false;
		}
		else
			return refuse(r, "a string holds a raw control character");
	}
	r->p++;
	wire_close(r->out, content);
	return true;
}

/* What the short cut cannot decide exactly. text is not terminated. */
static double
slow_double(const uint8_t *text, size_t len)
{
	char		small[64];
	char	   *copy = len < sizeof(small) ? small : xmalloc(len + 1);
	double		d;

	memcpy(copy, text, len);
	copy[len] = '\0';
	d = strtod(copy, NULL);
	if (copy != small)
		free(copy);
	return d;
}

struct decimal
{
	uint64_t	mantissa;
	int			scale;			/* value = mantissa * 10^scale */
	bool		exact;			/* the mantissa holds all digits */
};

static size_t
read_digits(struct reader *r, struct decimal *d, int scale_step)
{
	const uint8_t *from = r->p;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
	{
		unsigned	digit = *r->p++ - '0';

		if (d->mantissa > (UINT64_MAX - 9) / 10)
			d->exact = false;
		else
			d->mantissa = d->mantissa * 10 + digit;
		if (d->scale > -100000)
			d->scale += scale_step;
	}
	return (size_t) (r->p - from);
}

static bool
read_exponent(struct reader *r, struct decimal *d)
{
	struct decimal e = {.exact = true};
	bool		negative = false;

	r->p++;
	if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
		negative = *r->p++ == '-';
	if (read_digits(r, &e, 0) == 0)
		return refuse(r, "a number needs digits in its exponent");
	if (!e.exact || e.mantissa > 100000)
		d->exact = false;
	else
		d->scale += negative ? -(int) e.mantissa : (int) e.mantissa;
	return true;
}

static bool
read_double(struct reader *r, double *value)
{
	static const double power[EXACT_POWER + 1] = {
		1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
	};
	const uint8_t *from = r->p;
	struct decimal d = {.exact = true};
	bool		negative = *r->p == '-';

	if (negative)
		r->p++;
	if (r->p < r->end && *r->p == '0')
	{
		r->p++;
		if (r->p < r->end && *r->p >= '0' && *r->p <= '9')
			return refuse(r, "a number has a leading zero");
	}
	else if (read_digits(r, &d, 0) == 0)
		return refuse(r, "a value is expected");
	if (r->p < r->end && *r->p == '.')
	{
		r->p++;
		if (read_digits(r, &d, -1) == 0)
			return refuse(r, "a number needs digits behind its point");
	}
	if (r->p < r->end && (*r->p | 0x20) == 'e' && !read_exponent(r, &d))
		return false;

	if (d.exact && d.scale == 0)
		*value = (double) d.mantissa;
	else if (d.exact && d.mantissa <= EXACT_MANTISSA && d.scale >= -EXACT_POWER && d.scale <= EXACT_POWER)
		*value = d.scale < 0 ? (double) d.mantissa / power[-d.scale] : (double) d.mantissa * power[d.scale];
	else
	{
		*value = slow_double(from, (size_t) (r->p - from));
		if (!isfinite(*value))
			return refuse(r, "a number does not fit a double");
		return true;
	}
	if (negative)
		*value = -*value;
	return true;
}

static bool
read_number(struct reader *r)
{
	double		d = 0;
	uint64_t	bits;
	uint8_t		field[9] = {TAG_NUMBER};

	if (!read_double(r, &d))
		return false;
	memcpy(&bits, &d, sizeof(bits));
	for (int i = 0; i < 8; i++)
		field[1 + i] = (uint8_t) (bits >> (8 * i));
	buf_append(r->out, field, sizeof(field));
	return true;
}

static bool
read_literal(struct reader *r, const char *word, size_t len, uint8_t tag, uint8_t value)
{
	uint8_t		field[2] = {tag, value};

	if ((size_t) (r->end - r->p) < len || memcmp(r->p, word, len) != 0)
		return refuse(r, "a value is expected");
	r->p += len;
	buf_append(r->out, field, sizeof(field));
	return true;
}

static bool
enter(struct reader *r, int cost)
{
	r->nesting += cost;
	if (r->nesting > WIG_JSON_MAX_NESTING)
		return refuse(r, "it is nested too deeply (at most 32 levels of objects or 48 of arrays)");
	return true;
}

static bool
read_member(struct reader *r)
{
	size_t		entry = wire_open(r->out, TAG_FIELDS);
	size_t		content;

	if (r->p == r->end || *r->p != '"')
		return refuse(r, "a member's name is expected");
	if (!read_string(r, TAG_KEY) || !expect(r, ':', "':' is expected"))
		return false;
	content = wire_open(r->out, TAG_VALUE);
	if (!read_value(r))
		return false;
	wire_close(r->out, content);
	wire_close(r->out, entry);
	return true;
}

/* The fields of a Struct; r->p is at the opening brace. */
static bool
read_object(struct reader *r)
{
	if (!enter(r, OBJECT_COST))
		return false;
	r->p++;
	skip_space(r);
	if (r->p < r->end && *r->p == '}')
		r->p++;
	else
	{
		for (;;)
		{
			skip_space(r);
			if (!read_member(r))
				return false;
			skip_space(r);
			if (r->p == r->end || *r->p != ',')
				break;
			r->p++;
		}
		if (!expect(r, '}', "',' or '}' is expected"))
			return false;
	}
	r->nesting -= OBJECT_COST;
	return true;
}

static bool
read_array(struct reader *r)
{
	if (!enter(r, ARRAY_COST))
		return false;
	r->p++;
	skip_space(r);
	if (r->p < r->end && *r->p == ']')
		r->p++;
	else
	{
		for (;;)
		{
			size_t		content = wire_open(r->out, TAG_FIELDS);

			if (!read_value(r))
				return false;
			wire_close(r->out, content);
			skip_space(r);
			if (r->p == r->end || *r->p != ',')
				break;
			r->p++;
		}
		if (!expect(r, ']', "',' or ']' is expected"))
			return false;
	}
	r->nesting -= ARRAY_COST;
	return true;
}

static bool
read_value(struct reader *r)
{
	size_t		content;
	bool		is_object;

	skip_space(r);
	if (r->p == r->end)
		return refuse(r, "a value is expected");
	switch (*r->p)
	{
		case '"':
			return read_string(r, TAG_STRING);
		case 't':
			return read_literal(r, "true", 4, TAG_BOOL, 1);
		case 'f':
			return read_literal(r, "false", 5, TAG_BOOL, 0);
		case 'n':
			return read_literal(r, "null", 4, TAG_NULL, 0);
		case '{':
		case '[':
			is_object = *r->p == '{';
			content = wire_open(r->out, is_object ? TAG_STRUCT : TAG_LIST);
			if (!(is_object ? read_object(r) : read_array(r)))
				return false;
			wire_close(r->out, content);
			return true;
		default:
			return read_number(r);
	}
}

static bool
read_root_object(struct reader *r)
{
	skip_space(r);
	if (r->p == r->end || *r->p != '{')
		return refuse(r, "an object is expected");
	return read_object(r);
}

static bool
transcode(bool (*root) (struct reader *), const char *json, size_t len,
		  struct buf *out, struct wig_error *err)
{
	struct reader r = {.out = out, .err = err};
	size_t		before = out->len;
	bool		ok;

	r.start = r.p = (const uint8_t *) json;
	r.end = len > 0 ? r.start + len : r.start;
	buf_reserve(out, len);
	ok = root(&r);
	skip_space(&r);
	if (ok && r.p < r.end)
		ok = refuse(&r, "something follows the value");
	if (!ok)
		out->len = before;
	return ok;
}

bool
json_to_value(const char *json, size_t len, struct buf *out, struct wig_error *err)
{
	return transcode(read_value, json, len, out, err);
}

bool
json_to_struct(const char *json, size_t len, struct buf *out, struct wig_error *err)
{
	return transcode(read_root_object, json, len, out, err);
}

bool
json_to_text(const char *json, size_t len, struct buf *out, struct wig_error *err)
{
	struct wig_json_info info;

	if (!wig_json_check(json, len, &info, err))
		return false;
	buf_byte(out, VALUE_TEXT_MARK);
	buf_append(out, json + info.start, info.length);
	return true;
}
