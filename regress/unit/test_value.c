/*
 * test_value.c
 *	  protobuf Value bytes <-> JSON text: exact bytes, refusals, round trips of random
 *	  documents judged by jansson, doubles, truncations at every length.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "value.h"

static uint64_t rng = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t
next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* ------------------------------------------------------------ helpers */

static void
to_json_is(const void *pb, size_t len, const char *want)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	if (!value_to_json(pb, len, &out, &err))
		fail_msg("refused: %s", err.message);
	assert_string_equal(buf_cstr(&out), want);
	buf_free(&out);
}

static void
to_json_refused(const void *pb, size_t len, const char *part)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	buf_text(&out, "kept");
	assert_false(value_to_json(pb, len, &out, &err));
	assert_non_null(strstr(err.message, part));
	assert_string_equal(buf_cstr(&out), "kept");
	buf_free(&out);
}

static void
from_json_is(const char *json, const void *want, size_t len)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	if (!json_to_value(json, strlen(json), &out, &err))
		fail_msg("%s refused: %s", json, err.message);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, want, len);
	buf_free(&out);
}

static void
from_json_refused(const char *json, const char *part)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	buf_text(&out, "kept");
	if (json_to_value(json, strlen(json), &out, &err))
		fail_msg("accepted: %s", json);
	if (strstr(err.message, part) == NULL)
		fail_msg("%s: \"%s\" does not mention \"%s\"", json, err.message, part);
	assert_string_equal(buf_cstr(&out), "kept");
	buf_free(&out);
}

/* JSON -> Value -> JSON */
static void
round_trip_is(const char *json, const char *want)
{
	struct buf	pb = BUF_INIT;
	struct wig_error err;

	if (!json_to_value(json, strlen(json), &pb, &err))
		fail_msg("%s refused: %s", json, err.message);
	to_json_is(pb.data, pb.len, want);
	buf_free(&pb);
}

#define BYTES(...) (const uint8_t[]) {__VA_ARGS__}, sizeof((const uint8_t[]) {__VA_ARGS__})

static const uint8_t *
number_value(double d)
{
	static uint8_t pb[9];

	pb[0] = 0x11;
	memcpy(pb + 1, &d, 8);		/* the tests' machine is little-endian */
	return pb;
}

static void
number_is(double d, const char *want)
{
	to_json_is(number_value(d), 9, want);
}

/* -------------------------------------------------------------- tests */

static void
scalars(void **state)
{
	(void) state;
	to_json_is(NULL, 0, "null");
	to_json_is("", 0, "null");
	to_json_is(BYTES(0x08, 0x00), "null");
	to_json_is(BYTES(0x20, 0x01), "true");
	to_json_is(BYTES(0x20, 0x00), "false");
	to_json_is(BYTES(0x1a, 0x02, 'h', 'i'), "\"hi\"");
	to_json_is(BYTES(0x1a, 0x00), "\"\"");
	to_json_is(BYTES(0x2a, 0x00), "{}");
	to_json_is(BYTES(0x32, 0x00), "[]");

	from_json_is("null", BYTES(0x08, 0x00));
	from_json_is(" true ", BYTES(0x20, 0x01));
	from_json_is("false", BYTES(0x20, 0x00));
	from_json_is("\"hi\"", BYTES(0x1a, 0x02, 'h', 'i'));
	from_json_is("{}", BYTES(0x2a, 0x00));
	from_json_is("[ ]", BYTES(0x32, 0x00));
	from_json_is("1", BYTES(0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f));
	from_json_is("{\"a\":[true]}",
				 BYTES(0x2a, 0x0d, 0x0a, 0x0b, 0x0a, 0x01, 'a', 0x12, 0x06, 0x32, 0x04, 0x0a, 0x02, 0x20, 0x01));
}

static void
struct_bytes(void **state)
{
	struct buf	out = BUF_INIT;
	struct wig_error err;

	(void) state;
	assert_true(struct_to_json(NULL, 0, &out, &err));
	assert_string_equal(buf_cstr(&out), "{}");
	buf_reset(&out);
	assert_true(json_to_struct(" {\"a\":null} ", 12, &out, &err));
	assert_int_equal(out.len, 9);
	assert_memory_equal(out.data, "\x0a\x07\x0a\x01" "a" "\x12\x02\x08\x00", 9);
	buf_reset(&out);
	assert_false(json_to_struct("[1]", 3, &out, &err));
	assert_non_null(strstr(err.message, "an object is expected"));
	assert_false(json_to_struct("{} x", 4, &out, &err));
	buf_free(&out);
}

static void
last_field_of_the_oneof_wins(void **state)
{
	(void) state;
	to_json_is(BYTES(0x20, 0x01, 0x1a, 0x01, 'x'), "\"x\"");
	to_json_is(BYTES(0x1a, 0x01, 'x', 0x08, 0x00), "null");
	/* unknown fields, and known numbers with a foreign wire type, are skipped */
	to_json_is(BYTES(0x20, 0x01, 0x3a, 0x01, 'x', 0x45, 1, 2, 3, 4), "true");
	to_json_is(BYTES(0x20, 0x01, 0x18, 0x05), "true");
	/* an entry without key, one without value */
	to_json_is(BYTES(0x2a, 0x02, 0x0a, 0x00), "{\"\":null}");
	to_json_is(BYTES(0x2a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 'k'), "{\"k\":null}");
}

static void
numbers_to_json(void **state)
{
	(void) state;
	number_is(0.0, "0");
	number_is(-0.0, "0");
	number_is(42, "42");
	number_is(-7, "-7");
	number_is(9007199254740993.0, "9007199254740992");
	number_is(1e300, "9223372036854775807");
	number_is(-1e300, "-9223372036854775808");
	number_is(9223372036854775808.0, "9223372036854775807");
	number_is(-9223372036854775808.0, "-9223372036854775808");
	number_is(9223372036854774784.0, "9223372036854774784");
	number_is(0.5, "0.5");
	number_is(-0.5, "-0.5");
	number_is(19.99, "19.99");
	number_is(-19.99, "-19.99");
	number_is(0.1 + 0.2, "0.30000000000000004");
	number_is(0.000001, "0.000001");
	number_is(123456789.123456, "123456789.123456");
	number_is(1.0 / 3, "0.3333333333333333");
	to_json_refused(number_value(NAN), 9, "NaN");
	to_json_refused(number_value(INFINITY), 9, "Infinity");
	to_json_refused(number_value(-INFINITY), 9, "-Infinity");
}

static void
numbers_from_json(void **state)
{
	(void) state;
	round_trip_is("0", "0");
	round_trip_is("-0", "0");
	round_trip_is("1.0", "1");
	round_trip_is("1e2", "100");
	round_trip_is("1E+2", "100");
	round_trip_is("12.5e-1", "1.25");
	round_trip_is("9007199254740991", "9007199254740991");
	round_trip_is("9223372036854775807", "9223372036854775807");
	round_trip_is("123456789012345678901234567890", "9223372036854775807");
	round_trip_is("0.1", "0.1");
	round_trip_is("1e-400", "0");
	round_trip_is("0e999999999", "0");
	from_json_refused("1e400", "does not fit");
	from_json_refused("-1e400", "does not fit");
	from_json_refused("01", "leading zero");
	from_json_refused("-", "a value is expected");
	from_json_refused("+1", "a value is expected");
	from_json_refused(".5", "a value is expected");
	from_json_refused("1.", "digits");
	from_json_refused("1e", "digits");
	from_json_refused("1e+", "digits");
	from_json_refused("0x10", "follows");
	from_json_refused("NaN", "a value is expected");
	from_json_refused("Infinity", "a value is expected");
}

static void
strings(void **state)
{
	(void) state;
	to_json_is(BYTES(0x1a, 0x06, '"', '\\', '\n', 0x01, 0x7f, '/'), "\"\\\"\\\\\\n\\u0001\x7f/\"");
	to_json_is(BYTES(0x1a, 0x04, 0xf0, 0x9f, 0x98, 0x80), "\"\xf0\x9f\x98\x80\"");
	round_trip_is("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\/\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\"");
	round_trip_is("\"\\b\\f\\n\\r\\t\\\"\\\\\"", "\"\\b\\f\\n\\r\\t\\\"\\\\\"");
	/* every offset within a word of eight bytes */
	for (size_t n = 0; n < 20; n++)
	{
		char		json[64] = "\"";
		char		want[64];

		memset(json + 1, 'x', n);
		strcpy(json + 1 + n, "\\n\xc3\xa9tail\"");
		strcpy(want, json);
		round_trip_is(json, want);
	}
	to_json_refused(BYTES(0x1a, 0x01, 0x00), "U+0000");
	to_json_refused(BYTES(0x1a, 0x03, 0xed, 0xa0, 0x80), "UTF-8");	/* lone surrogate */
	to_json_refused(BYTES(0x1a, 0x02, 0xc0, 0x80), "UTF-8");	/* overlong */
	to_json_refused(BYTES(0x1a, 0x03, 0xe0, 0x80, 0x80), "UTF-8");
	to_json_refused(BYTES(0x1a, 0x04, 0xf4, 0x90, 0x80, 0x80), "UTF-8");	/* above U+10FFFF */
	to_json_refused(BYTES(0x1a, 0x01, 0xff), "UTF-8");
	to_json_refused(BYTES(0x1a, 0x02, 0xe2, 0x82), "UTF-8");
	to_json_refused(BYTES(0x2a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0xff), "UTF-8");	/* a key */
	from_json_refused("\"\\u0000\"", "U+0000");
	from_json_refused("\"\\ud800\"", "surrogate");
	from_json_refused("\"\\udc00\"", "surrogate");
	from_json_refused("\"\\ud800\\u0041\"", "surrogate");
	from_json_refused("\"\\ud800\\", "surrogate");
	from_json_refused("\"\\u12g4\"", "hexadecimal");
	from_json_refused("\"\\x\"", "escape");
	from_json_refused("\"a\nb\"", "control");
	from_json_refused("\"abc", "does not end");
	from_json_refused("\"\xff\"", "UTF-8");
	from_json_refused("\"\xed\xa0\x80\"", "UTF-8");
}

static void
grammar(void **state)
{
	(void) state;
	from_json_refused("", "a value is expected");
	from_json_refused("  ", "a value is expected");
	from_json_refused("{", "expected");
	from_json_refused("[", "expected");
	from_json_refused("[1", "expected");
	from_json_refused("[1,]", "expected");
	from_json_refused("{\"a\"}", "':' is expected");
	from_json_refused("{\"a\":1,}", "name is expected");
	from_json_refused("{a:1}", "name is expected");
	from_json_refused("{\"a\":1 \"b\":2}", "expected");
	from_json_refused("tru", "expected");
	from_json_refused("1 2", "follows");
	from_json_refused("{}}", "follows");
}

static void
nested(char *json, int levels, const char *open, const char *inner, const char *close)
{
	json[0] = '\0';
	for (int i = 0; i < levels; i++)
		strcat(json, open);
	strcat(json, inner);
	for (int i = 0; i < levels; i++)
		strcat(json, close);
}

static void
nesting_is_bounded(void **state)
{
	static char json[4096];
	struct buf	pb = BUF_INIT;
	size_t		len;

	(void) state;
	nested(json, 48, "[", "1", "]");
	round_trip_is(json, json);
	nested(json, 49, "[", "1", "]");
	from_json_refused(json, "nested too deeply");
	nested(json, 32, "{\"a\":", "1", "}");
	round_trip_is(json, json);
	nested(json, 33, "{\"a\":", "1", "}");
	from_json_refused(json, "nested too deeply");

	/* 100,000 lists within each other as wire bytes, from the inside out */
	for (int levels = 1; levels <= 100000; levels *= 10)
	{
		static uint8_t raw[1300000];
		size_t		at = sizeof(raw);

		len = 0;
		for (int i = 0; i < levels; i++)
		{
			for (int field = 0; field < 2; field++)
			{
				uint8_t		head[6];
				size_t		n = 0;
				size_t		v = len;

				head[n++] = field == 0 && i > 0 ? 0x0a : 0x32;
				if (field == 1 && i == 0)
					break;
				if (field == 1)
					head[0] = 0x32;
				for (; v >= 0x80; v >>= 7)
					head[n++] = (uint8_t) (v | 0x80);
				head[n++] = (uint8_t) v;
				at -= n;
				memcpy(raw + at, head, n);
				len += n;
			}
		}
		if (levels <= 48)
		{
			struct wig_error err;

			assert_true(value_to_json(raw + at, len, &pb, &err));
			assert_int_equal(pb.len, 2 * levels);
			buf_reset(&pb);
		}
		else
			to_json_refused(raw + at, len, "nested too deeply");
	}
	buf_free(&pb);
}

/* Lengths around every step of the varint: one, two, three and four bytes. */
static void
lengths_of_every_size(void **state)
{
	static const size_t sizes[] = {0, 1, 126, 127, 128, 129, 16381, 16382, 16383, 16384, 16385, 2097151, 2097152, 2200000};

	(void) state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		char	   *json = malloc(sizes[i] + 32);
		size_t		n = 0;

		n += (size_t) sprintf(json, "{\"k\":[\"");
		memset(json + n, 'y', sizes[i]);
		n += sizes[i];
		strcpy(json + n, "\",1]}");
		round_trip_is(json, json);
		free(json);
	}
}

static json_t *
random_document(int depth)
{
	json_t	   *doc;
	char		text[40];
	size_t		n;

	switch (next_random() % (depth > 0 ? 9 : 6))
	{
		case 0:
			return json_null();
		case 1:
			return json_boolean(next_random() & 1);
		case 2:
			return json_integer((json_int_t) (next_random() % 2000001) - 1000000);
		case 3:
			return json_real((double) (int64_t) next_random() / 65536.0 + 0.25);
		case 4:
			return json_integer((json_int_t) (next_random() >> 11));
		case 5:
			n = next_random() % 12;
			text[0] = '\0';
			while (n-- > 0)
			{
				static const char *const part[] = {"a", "\"", "\\", "\n", "\xc3\xa9", "\xf0\x9f\x98\x80", "\x7f", "word ", "\x01", "/"};

				if (strlen(text) < 30)
					strcat(text, part[next_random() % 10]);
			}
			return json_string(text);
		case 6:
		case 7:
			doc = json_object();
			n = next_random() % 6;
			while (n-- > 0)
			{
				snprintf(text, sizeof(text), "key\n%u", (unsigned) (next_random() % 50));
				json_object_set_new(doc, text, random_document(depth - 1));
			}
			return doc;
		default:
			doc = json_array();
			n = next_random() % 6;
			while (n-- > 0)
				json_array_append_new(doc, random_document(depth - 1));
			return doc;
	}
}

/* jansson tells 2.0 from 2; both are one number here. */
static bool
same(const json_t *a, const json_t *b)
{
	const char *key;
	json_t	   *value;

	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	if (json_typeof(a) != json_typeof(b))
		return false;
	if (json_is_array(a))
	{
		if (json_array_size(a) != json_array_size(b))
			return false;
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!same(json_array_get(a, i), json_array_get(b, i)))
				return false;
		return true;
	}
	if (json_is_object(a))
	{
		if (json_object_size(a) != json_object_size(b))
			return false;
		json_object_foreach((json_t *) a, key, value)
			if (json_object_get(b, key) == NULL || !same(value, json_object_get(b, key)))
				return false;
		return true;
	}
	return json_equal((json_t *) a, (json_t *) b);
}

static void
random_documents_round_trip(void **state)
{
	(void) state;
	for (int i = 0; i < 20000; i++)
	{
		json_t	   *doc = random_document(5);
		char	   *text = json_dumps(doc, JSON_ENCODE_ANY | (i % 2 ? JSON_COMPACT : JSON_INDENT(1)) | (i % 3 ? 0 : JSON_ENSURE_ASCII));
		struct buf	pb = BUF_INIT;
		struct buf	back = BUF_INIT;
		struct wig_error err;
		json_t	   *again;

		if (!json_to_value(text, strlen(text), &pb, &err))
			fail_msg("%s: %s", text, err.message);
		if (!value_to_json(pb.data, pb.len, &back, &err))
			fail_msg("%s: %s", text, err.message);
		again = json_loadb((char *) back.data, back.len, JSON_DECODE_ANY, NULL);
		assert_non_null(again);
		if (!same(doc, again))
			fail_msg("%s became %s", text, buf_cstr(&back));
		json_decref(again);
		json_decref(doc);
		free(text);
		buf_free(&pb);
		buf_free(&back);
	}
}

/* What strtod reads back from our text must be the double that we were given. */
static void
a_million_doubles(void **state)
{
	struct buf	text = BUF_INIT;
	struct buf	pb = BUF_INIT;
	struct wig_error err;

	(void) state;
	for (int i = 0; i < 1000000; i++)
	{
		double		d;
		double		back;
		uint64_t	bits = next_random();

		switch (i % 4)
		{
			case 0:
				memcpy(&d, &bits, sizeof(d));
				break;
			case 1:
				d = (double) (int64_t) (bits % 2000000000) / 1000 - 1e6;
				break;
			case 2:
				d = (double) (bits >> 12) / (double) (1 + (bits & 4095));
				break;
			default:
				d = (double) (bits % 100000) / 100;
				break;
		}
		if (!isfinite(d) || (d == rint(d) && fabs(d) > 9e18))
			continue;
		buf_reset(&text);
		assert_true(value_to_json(number_value(d), 9, &text, &err));
		if (strtod(buf_cstr(&text), NULL) != d)
			fail_msg("%.17g became %s", d, buf_cstr(&text));
		buf_reset(&pb);
		assert_true(json_to_value((char *) text.data, text.len, &pb, &err));
		memcpy(&back, pb.data + 1, sizeof(back));
		if (back != d)
			fail_msg("%s read as %.17g, not %.17g", buf_cstr(&text), back, d);
	}
	buf_free(&text);
	buf_free(&pb);
}

/* Random decimal texts must read exactly as strtod reads them. */
static void
decimals_read_like_strtod(void **state)
{
	struct buf	pb = BUF_INIT;
	struct wig_error err;

	(void) state;
	for (int i = 0; i < 300000; i++)
	{
		char		text[80];
		double		d;
		int			n = 0;

		n += sprintf(text + n, "%s%llu", next_random() & 1 ? "-" : "",
					 (unsigned long long) (next_random() >> (next_random() % 64)));
		if (next_random() & 1)
			n += sprintf(text + n, ".%0*llu", (int) (1 + next_random() % 18),
						 (unsigned long long) (next_random() >> (next_random() % 64)));
		if (next_random() % 3 == 0)
			sprintf(text + n, "e%d", (int) (next_random() % 60) - 30);
		buf_reset(&pb);
		if (!json_to_value(text, strlen(text), &pb, &err))
			fail_msg("%s: %s", text, err.message);
		memcpy(&d, pb.data + 1, sizeof(d));
		if (d != strtod(text, NULL))
			fail_msg("%s read as %.17g", text, d);
	}
	buf_free(&pb);
}

/* Every prefix of a document is refused or a document, and never read past. */
static void
truncated_at_every_length(void **state)
{
	static const char json[] = "{\"a\":[1,2.5,-3e2,true,false,null,\"x\\u00e9\\n\xc3\xa9\"],\"b\":{\"c\":{\"d\":\"long enough to matter\"}}}";
	struct buf	pb = BUF_INIT;
	struct buf	out = BUF_INIT;
	struct wig_error err;
	int			accepted = 0;

	(void) state;
	assert_true(json_to_value(json, sizeof(json) - 1, &pb, &err));
	for (size_t n = 0; n < sizeof(json) - 1; n++)
	{
		char	   *cut = malloc(n > 0 ? n : 1);	/* so that a sanitizer sees the end */

		memcpy(cut, json, n);
		buf_reset(&out);
		assert_false(json_to_value(cut, n, &out, &err));
		free(cut);
	}
	for (size_t n = 0; n < pb.len; n++)
	{
		uint8_t    *cut = malloc(n > 0 ? n : 1);

		memcpy(cut, pb.data, n);
		buf_reset(&out);
		accepted += value_to_json(cut, n, &out, &err);
		free(cut);
	}
	assert_int_equal(accepted, 1);	/* the empty message only */
	buf_free(&pb);
	buf_free(&out);
}

/* Damaged bytes are refused or give JSON that an independent reader takes. */
static void
damaged_bytes(void **state)
{
	static const char json[] = "{\"a\":[1,2.5,true,null,\"text\"],\"b\":{\"c\":\"d\"},\"e\":[[],{}]}";
	struct buf	pb = BUF_INIT;
	struct buf	out = BUF_INIT;
	struct wig_error err;
	int			accepted = 0;

	(void) state;
	assert_true(json_to_value(json, sizeof(json) - 1, &pb, &err));
	for (int i = 0; i < 200000; i++)
	{
		uint8_t    *copy = malloc(pb.len);

		memcpy(copy, pb.data, pb.len);
		for (int k = 0; k <= i % 3; k++)
			copy[next_random() % pb.len] = (uint8_t) next_random();
		buf_reset(&out);
		if (value_to_json(copy, pb.len, &out, &err))
		{
			json_t	   *doc = json_loadb((char *) out.data, out.len, JSON_DECODE_ANY, NULL);

			if (doc == NULL)
				fail_msg("wrote what is not JSON: %s", buf_cstr(&out));
			json_decref(doc);
			accepted++;
		}
		free(copy);
	}
	assert_true(accepted > 0 && accepted < 200000);
	buf_free(&pb);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars),
		cmocka_unit_test(struct_bytes),
		cmocka_unit_test(last_field_of_the_oneof_wins),
		cmocka_unit_test(numbers_to_json),
		cmocka_unit_test(numbers_from_json),
		cmocka_unit_test(strings),
		cmocka_unit_test(grammar),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(lengths_of_every_size),
		cmocka_unit_test(random_documents_round_trip),
		cmocka_unit_test(a_million_doubles),
		cmocka_unit_test(decimals_read_like_strtod),
		cmocka_unit_test(truncated_at_every_length),
		cmocka_unit_test(damaged_bytes),
	};

	return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
