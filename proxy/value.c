/*
 * value.c
 *	  protobuf Value and Struct bytes -> JSON text, in one walk over the bytes.
 */
#include <common/shortest_dec.h>
#include <math.h>

#include "jsontext.h"
#include "utf8.h"
#include "value.h"
#include "wire.h"

#define OBJECT_COST		3		/* messages a level: Struct, map entry, Value */
#define ARRAY_COST		2		/* ListValue, Value */

/* Fields of google.protobuf.Value, all of one oneof. */
enum value_field
{
	VALUE_NONE = 0,
	VALUE_NULL = 1,
	VALUE_NUMBER = 2,
	VALUE_STRING = 3,
	VALUE_BOOL = 4,
	VALUE_STRUCT = 5,
	VALUE_LIST = 6
};

struct cursor
{
	const uint8_t *p;
	const uint8_t *end;
};

struct field
{
	uint32_t	number;
	uint32_t	type;
	uint64_t	scalar;			/* varint or fixed bits */
	struct cursor bytes;		/* WIRE_BYTES */
};

struct writer
{
	struct buf *out;
	struct wig_error *err;
	int			nesting;
};

static bool put_value(struct writer *w, struct cursor in);

static bool
read_varint(struct cursor *in, uint64_t *value)
{
	uint64_t	v = 0;

	for (int shift = 0; shift < 70; shift += 7)
	{
		uint8_t		b;

		if (in->p == in->end)
			return false;
		b = *in->p++;
		v |= (uint64_t) (b & 0x7f) << (shift < 64 ? shift : 63);
		if (b < 0x80)
		{
			*value = v;
			return true;
		}
	}
	return false;
}

/* One field with its payload; false when the bytes are not protobuf. */
static bool
read_field(struct cursor *in, struct field *f)
{
	uint64_t	tag;
	uint64_t	len;

	if (!read_varint(in, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
		return false;
	f->number = (uint32_t) (tag >> 3);
	f->type = (uint32_t) (tag & 7);
	f->scalar = 0;
	switch (f->type)
	{
		case WIRE_VARINT:
			return read_varint(in, &f->scalar);
		case WIRE_FIXED64:
		case WIRE_FIXED32:
			len = f->type == WIRE_FIXED64 ? 8 : 4;
			if ((size_t) (in->end - in->p) < len)
				return false;
			for (size_t i = 0; i < len; i++)
				f->scalar |= (uint64_t) in->p[i] << (8 * i);
			in->p += len;
			return true;
		case WIRE_BYTES:
			if (!read_varint(in, &len) || len > (size_t) (in->end - in->p))
				return false;
			f->bytes.p = in->p;
			f->bytes.end = in->p + len;
			in->p += len;
			return true;
		default:
			return false;
	}
}

static bool
malformed(struct writer *w)
{
	return wig_fail(w->err, "the value is not a well-formed google.protobuf.Value");
}

static bool
enter(struct writer *w, int cost)
{
	w->nesting += cost;
	if (w->nesting > WIG_JSON_MAX_NESTING)
		return wig_fail(w->err, "the value is nested too deeply: at most %d levels of objects or %d of arrays",
						WIG_JSON_MAX_NESTING / OBJECT_COST, WIG_JSON_MAX_NESTING / ARRAY_COST);
	return true;
}

static void
put_escape(struct buf *out, uint8_t c)
{
	static const char hex[] = "0123456789abcdef";
	char		code = 0;

	switch (c)
	{
		case '"':
		case '\\':
			code = (char) c;
			break;
		case '\n':
			code = 'n';
			break;
		case '\r':
			code = 'r';
			break;
		case '\t':
			code = 't';
			break;
		case '\b':
			code = 'b';
			break;
		case '\f':
			code = 'f';
			break;
		default:
			break;
	}
	buf_byte(out, '\\');
	if (code != 0)
		buf_byte(out, (uint8_t) code);
	else
	{
		char		u[5] = {'u', '0', '0', hex[c >> 4], hex[c & 15]};

		buf_append(out, u, sizeof(u));
	}
}

static bool
put_string(struct writer *w, struct cursor in)
{
	struct buf *out = w->out;

	buf_reserve(out, (size_t) (in.end - in.p) + 2);
	buf_byte(out, '"');
	while (in.p < in.end)
	{
		size_t		left = (size_t) (in.end - in.p);
		size_t		n = utf8_plain_run(in.p, left);

		buf_append(out, in.p, n);
		in.p += n;
		if (n == left)
			break;
		if (*in.p >= 0x80)
		{
			n = utf8_sequence(in.p, left - n);
			if (n == 0)
				return wig_fail(w->err, "the value holds text that is not valid UTF-8");
			buf_append(out, in.p, n);
			in.p += n;
			continue;
		}
		if (*in.p == 0)
			return wig_fail(w->err, "the value holds the character U+0000, which cannot be stored");
		put_escape(out, *in.p++);
	}
	buf_byte(out, '"');
	return true;
}

static void
put_integer(struct buf *out, int64_t v)
{
	char		digits[20];
	size_t		at = sizeof(digits);
	uint64_t	u = v < 0 ? 0 - (uint64_t) v : (uint64_t) v;

	do
	{
		digits[--at] = (char) ('0' + u % 10);
		u /= 10;
	} while (u > 0);
	if (v < 0)
		buf_byte(out, '-');
	buf_append(out, digits + at, sizeof(digits) - at);
}

/*
 * Decimals of up to six places and fifteen digits without the general
 * algorithm: any decimal that short which denotes d is the shortest one.
 */
static bool
put_short_decimal(struct buf *out, double d)
{
	static const double power[] = {1e1, 1e2, 1e3, 1e4, 1e5, 1e6};

	if (!(fabs(d) < 1e9))
		return false;
	for (int k = 0; k < 6; k++)
	{
		double		m = rint(d * power[k]);

		if (m / power[k] == d)
		{
			int64_t		scaled = (int64_t) m;
			uint64_t	u = scaled < 0 ? (uint64_t) -scaled : (uint64_t) scaled;
			uint64_t	unit = (uint64_t) power[k];
			uint64_t	fraction = u % unit;
			char		digits[6];

			for (int i = k; i >= 0; i--, fraction /= 10)
				digits[i] = (char) ('0' + fraction % 10);
			if (d < 0)
				buf_byte(out, '-');
			put_integer(out, (int64_t) (u / unit));
			buf_byte(out, '.');
			buf_append(out, digits, (size_t) k + 1);
			return true;
		}
	}
	return false;
}

static bool
put_number(struct writer *w, uint64_t bits)
{
	double		d;

	memcpy(&d, &bits, sizeof(d));
	if (!isfinite(d))
		return wig_fail(w->err, "the value holds a number that is not finite (%s), which JSON cannot express",
						isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
	if (d == rint(d))
	{
		if (d >= 9223372036854775808.0)
			put_integer(w->out, INT64_MAX);
		else if (d <= -9223372036854775808.0)
			put_integer(w->out, INT64_MIN);
		else
			put_integer(w->out, (int64_t) d);
	}
	else if (!put_short_decimal(w->out, d))
	{
		buf_reserve(w->out, DOUBLE_SHORTEST_DECIMAL_LEN);
		w->out->len += (size_t) double_to_shortest_decimal_buf(d, (char *) w->out->data + w->out->len);
	}
	return true;
}

/* A message whose field 1 repeats: ListValue's values, Struct's entries. */
static bool
put_members(struct writer *w, struct cursor in, int cost, const char brackets[2],
			bool (*put_member) (struct writer *, struct cursor))
{
	struct field f;
	bool		first = true;

	if (!enter(w, cost))
		return false;
	buf_byte(w->out, (uint8_t) brackets[0]);
	while (in.p < in.end)
	{
		if (!read_field(&in, &f))
			return malformed(w);
		if (f.number != 1 || f.type != WIRE_BYTES)
			continue;
		if (!first)
			buf_byte(w->out, ',');
		first = false;
		if (!put_member(w, f.bytes))
			return false;
	}
	buf_byte(w->out, (uint8_t) brackets[1]);
	w->nesting -= cost;
	return true;
}

static bool
put_entry(struct writer *w, struct cursor in)
{
	struct cursor key = {NULL, NULL};
	struct cursor value = {NULL, NULL};
	struct field f;

	while (in.p < in.end)
	{
		if (!read_field(&in, &f))
			return malformed(w);
		if (f.type == WIRE_BYTES && f.number == 1)
			key = f.bytes;
		else if (f.type == WIRE_BYTES && f.number == 2)
			value = f.bytes;
	}
	if (!put_string(w, key))
		return false;
	buf_byte(w->out, ':');
	return put_value(w, value);
}

static bool
put_struct(struct writer *w, struct cursor in)
{
	return put_members(w, in, OBJECT_COST, "{}", put_entry);
}

static bool
put_value(struct writer *w, struct cursor in)
{
	static const uint8_t type_of[] = {
		[VALUE_NULL] = WIRE_VARINT,
		[VALUE_NUMBER] = WIRE_FIXED64,
		[VALUE_STRING] = WIRE_BYTES,
		[VALUE_BOOL] = WIRE_VARINT,
		[VALUE_STRUCT] = WIRE_BYTES,
		[VALUE_LIST] = WIRE_BYTES
	};
	struct field last = {.number = VALUE_NONE};
	struct field f = {.number = VALUE_NONE};

	while (in.p < in.end)
	{
		if (!read_field(&in, &f))
			return malformed(w);
		if (f.number <= VALUE_LIST && f.type == type_of[f.number])
			last = f;
	}
	switch (last.number)
	{
		case VALUE_NUMBER:
			return put_number(w, last.scalar);
		case VALUE_STRING:
			return put_string(w, last.bytes);
		case VALUE_BOOL:
			buf_text(w->out, last.scalar != 0 ? "true" : "false");
			return true;
		case VALUE_STRUCT:
			return put_struct(w, last.bytes);
		case VALUE_LIST:
			return put_members(w, last.bytes, ARRAY_COST, "[]", put_value);
		default:
			buf_append(w->out, "null", 4);
			return true;
	}
}

/* What goes to the database is never taken on trust. */
static bool
put_text(struct writer *w, const char *text, size_t len)
{
	struct wig_json_info info;

	if (!wig_json_check(text, len, &info, w->err))
		return false;
	buf_append(w->out, text + info.start, info.length);
	return true;
}

static bool
transcode(bool (*put) (struct writer *, struct cursor), const uint8_t *pb, size_t len,
		  struct buf *out, struct wig_error *err)
{
	struct writer w = {.out = out, .err = err};
	struct cursor in = {pb, len > 0 ? pb + len : pb};
	size_t		before = out->len;

	if (len > 0 && *pb == VALUE_TEXT_MARK)
		return put_text(&w, (const char *) pb + 1, len - 1);
	buf_reserve(out, len);
	if (put(&w, in))
		return true;
	out->len = before;
	return false;
}

bool
value_to_json(const uint8_t *pb, size_t len, struct buf *out, struct wig_error *err)
{
	return transcode(put_value, pb, len, out, err);
}

bool
struct_to_json(const uint8_t *pb, size_t len, struct buf *out, struct wig_error *err)
{
	return transcode(put_struct, pb, len, out, err);
}
