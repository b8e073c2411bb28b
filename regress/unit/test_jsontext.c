/*
 * test_jsontext.c
 *	  JSON text: verdicts against a list and against jansson, merges against a
 *	  model made of jansson objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "addf.h"
#include "jsontext.h"

#define ROUNDS 20000

/* xorshift: the same documents on every run. */
static uint64_t seed = UINT64_C(0x9E3779B97F4A7C15);

static unsigned
roll(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned) ((seed >> 11) % n);
}

static bool
accepts(const char *text)
{
	struct wig_json_info info;
	struct wig_error err;
	size_t		len = strlen(text);
	char	   *exact = malloc(len + 1);
	bool		result;

	/* Ends where the memory ends: reading further is seen by the sanitizer. */
	memcpy(exact, text, len);
	result = wig_json_check(exact, len, &info, &err);
	free(exact);
	return result;
}

static void
test_accepted(void **state)
{
	static const char *const texts[] = {
		"{}", "[]", "null", "true", "false", "0", "-0", "-0.0", "1.5e-7", "1E+2", "\"\"",
		" \t\r\n{ \"a\" : [ 1 , { } ] }\n", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
		"\"\\ud83d\\ude00\"", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbf\"",
		"\"\x7f\"", "1e308", "1.7976931348623157e308", "-1.7976931348623157e308",
		"1.7976931348623158079e308", "0e999", "0.00e5", "1e-400", "123456789012345678901234567890",
		"0.0000000000000000000000000000001e338", "[[[[]]]]", "{\"a\":null,\"a\":1}",
		"100000000000000000000000000000000000000000e267"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (!accepts(texts[i]))
			fail_msg("refused: %s", texts[i]);
	}
}

static void
test_refused(void **state)
{
	static const char *const texts[] = {
		"", " ", "{", "}", "[", "]", "[1,]", "[,1]", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
		"{a:1}", "{'a':1}", "{1:2}", "[1 2]", "{\"a\":1 \"b\":2}", "[}", "{]", "[1}", "1 2", "nul",
		"nulll", "True", "+1", ".5", "1.", "01", "-", "-01", "1e", "1e+", "0x10", "NaN",
		"Infinity", "-Infinity", "1e309", "1.7976931348623159e308",
		"1000000000000000000000000000000000000000000e267", "1e99999999999999999999",
		"0e99999999", "1e-16384", "1e-99999999999999999999",
		"\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u0000\"", "\"\\u0000k\"",
		"\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\\u0041\"", "\"\\ude00\"",
		"\"\\udc59\\ud835\"", "\"\n\"", "\"\x01\"", "\"\x80\"", "\"\xc0\x80\"", "\"\xc1\xbf\"",
		"\"\xe0\x80\x80\"", "\"\xed\xa0\xbd\"", "\"\xf0\x80\x80\x80\"", "\"\xf4\x90\x80\x80\"",
		"\"\xf5\x80\x80\x80\"", "\"\xc3\"", "\"\xe2\x82\"", "\xef\xbb\xbf{}", "\f1", "[1]x", "//\n1"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (accepts(texts[i]))
			fail_msg("accepted: %s", texts[i]);
	}
	assert_false(wig_json_check("\"a\0b\"", 5, &(struct wig_json_info) {0}, NULL));
}

/* n levels, a scalar in the innermost. */
static bool
nested_accepts(const char *open, const char *close, int n)
{
	size_t		size = (size_t) n * (strlen(open) + strlen(close)) + 2;
	char	   *text = calloc(1, size);
	char	   *at = text;
	bool		result;

	for (int i = 0; i < n; i++)
		at = stpcpy(at, open);
	*at++ = '1';
	for (int i = 0; i < n; i++)
		at = stpcpy(at, close);
	result = accepts(text);
	free(text);
	return result;
}

static void
test_nesting(void **state)
{
	static const int deeper[] = {50, 100, 101, 1000, 12000, 100000};

	(void) state;
	for (int n = 1; n <= 48; n++)
		assert_true(nested_accepts("[", "]", n));
	for (int n = 1; n <= 32; n++)
		assert_true(nested_accepts("{\"a\":", "}", n));
	assert_false(nested_accepts("[", "]", 49));
	assert_false(nested_accepts("{\"a\":", "}", 33));
	for (size_t i = 0; i < sizeof(deeper) / sizeof(deeper[0]); i++)
	{
		assert_false(nested_accepts("[", "]", deeper[i]));
		assert_false(nested_accepts("{\"a\":", "}", deeper[i]));
		assert_false(nested_accepts("[{\"a\":", "}]", deeper[i]));
	}
	assert_true(nested_accepts("[{\"a\":", "}]", 19));
	assert_false(nested_accepts("[{\"a\":", "}]", 20));
}

static void
test_info(void **state)
{
	struct wig_json_info info;

	(void) state;
	assert_true(wig_json_check("  {\"a\":{\"b\":null}} ", 19, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_OBJECT);
	assert_false(info.has_null_member);
	assert_int_equal(info.start, 2);
	assert_int_equal(info.length, 16);
	assert_true(wig_json_check("{\"a\":null}", 10, &info, NULL));
	assert_true(info.has_null_member);
	assert_true(wig_json_check("[null]", 6, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_ARRAY);
	assert_false(info.has_null_member);
	assert_true(wig_json_check("true", 4, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_BOOL);
	assert_true(info.bool_value);
	assert_true(wig_json_check("false", 5, &info, NULL));
	assert_false(info.bool_value);
	assert_true(wig_json_check("[true]", 6, &info, NULL));
	assert_false(info.bool_value);
	assert_true(wig_json_check("1", 1, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_NUMBER);
	assert_true(wig_json_check("\"1\"", 3, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_STRING);
	assert_true(wig_json_check("null", 4, &info, NULL));
	assert_int_equal(info.type, WIG_JSON_NULL);
}

static void
test_position(void **state)
{
	struct wig_json_info info;
	struct wig_error err;

	(void) state;
	assert_false(wig_json_check("{\n \"a\": 1,\n  x}", 15, &info, &err));
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 3);
	assert_string_equal(err.message, "not valid JSON at byte 14: expected a key in double quotes");
}

/* ---- random documents ---- */

struct text
{
	char		data[8192];
	size_t		len;
};

static void
put(struct text *text, const char *bytes)
{
	size_t		len = strlen(bytes);

	assert_true(text->len + len < sizeof(text->data));
	memcpy(text->data + text->len, bytes, len + 1);
	text->len += len;
}

static void
put_space(struct text *text)
{
	static const char *const spaces[] = {"", "", "", " ", "\n", "\t ", "\r\n"};

	put(text, spaces[roll(7)]);
}

static void
put_string(struct text *text)
{
	static const char *const pieces[] = {
		"a", "b", "key", "\\n", "\\\"", "\\\\", "\\/", "\\u0061", "\\u00e9", "\xc3\xa9",
		"\\ud83d\\ude00", "\xf0\x9f\x98\x80", "\xe2\x82\xac", "0123456789abcdef", "{", "]", ","
	};

	put(text, "\"");
	for (unsigned n = roll(4); n > 0; n--)
		put(text, pieces[roll(17)]);
	put(text, "\"");
}

static void
put_value(struct text *text, int depth)
{
	static const char *const scalars[] = {
		"null", "null", "true", "false", "0", "-1", "12345678901", "1.5", "-2.5e-3", "1E5", "0.001"
	};
	unsigned	kind = roll(depth > 3 ? 2 : 4);

	put_space(text);
	if (kind == 0)
		put(text, scalars[roll(11)]);
	else if (kind == 1)
		put_string(text);
	else
	{
		put(text, kind == 2 ? "[" : "{");
		for (unsigned n = roll(5), i = 0; i < n; i++)
		{
			if (i > 0)
				put(text, ",");
			if (kind == 3)
			{
				put_space(text);
				put_string(text);
				put_space(text);
				put(text, ":");
			}
			put_value(text, depth + 1);
		}
		put_space(text);
		put(text, kind == 2 ? "]" : "}");
	}
	put_space(text);
}

static bool
jansson_accepts(const char *text, size_t len)
{
	json_error_t problem;
	json_t	   *json = json_loadb(text, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &problem);

	json_decref(json);
	return json != NULL;
}

static void
test_random_against_jansson(void **state)
{
	static struct text text;
	struct wig_json_info info;
	unsigned	refused = 0;

	(void) state;
	for (int i = 0; i < ROUNDS; i++)
	{
		text.len = 0;
		put_value(&text, 0);
		assert_true(wig_json_check(text.data, text.len, &info, NULL));
		assert_true(jansson_accepts(text.data, text.len));

		/* One byte changed: both must say the same. */
		text.data[roll((unsigned) text.len)] = "{}[],:\"\\0e.-ntf \x80\xc3\xed\xf0\x1f"[roll(21)];
		if (wig_json_check(text.data, text.len, &info, NULL) !=
			jansson_accepts(text.data, text.len))
			fail_msg("verdicts differ: %.*s", (int) text.len, text.data);
		refused += !wig_json_check(text.data, text.len, &info, NULL);
	}
	assert_true(refused > ROUNDS / 4 && refused < ROUNDS);
}

static void
test_truncated(void **state)
{
	static struct text text;
	struct wig_json_info info;

	(void) state;
	for (int i = 0; i < 300; i++)
	{
		text.len = 0;
		do
			put_value(&text, 0);
		while (!wig_json_check(text.data, text.len, &info, NULL));
		for (size_t len = 0; len < text.len; len++)
		{
			char	   *exact = malloc(len + 1);

			memcpy(exact, text.data, len);
			assert_int_equal(wig_json_check(exact, len, &info, NULL), jansson_accepts(exact, len));
			free(exact);
		}
	}
}

/* ---- members and merges ---- */

static void
put_object(struct text *text, unsigned members)
{
	text->len = 0;
	put_space(text);
	put(text, "{");
	for (unsigned i = 0; i < members; i++)
	{
		if (i > 0)
			put(text, ",");
		put_space(text);
		put_string(text);
		put(text, ":");
		if (roll(4) == 0)
			put(text, "null");
		else
			put_value(text, 3);
	}
	put_space(text);
	put(text, "}");
	put_space(text);
}

/* What a merge wrote: an object in which no key stands twice. */
static json_t *
load(const char *text, size_t len)
{
	json_t	   *json = json_loadb(text, len, 0, NULL);
	struct wig_json_member member;
	size_t		pos = 0;
	size_t		members = 0;

	while (wig_json_next_member(text, len, &pos, &member))
		members++;
	if (json == NULL || members != json_object_size(json))
		fail_msg("not an object without duplicates: %.*s", (int) len, text);
	return json;
}

static json_t *
load_last_wins(const struct text *text)
{
	json_t	   *json = json_loadb(text->data, text->len, 0, NULL);

	assert_non_null(json);
	return json;
}

static void
check_drop_nulls(const struct text *text, char *out)
{
	json_t	   *model = load_last_wins(text);
	size_t		len = wig_json_drop_nulls(text->data, text->len, out);
	json_t	   *result;
	const char *key;
	json_t	   *value;
	void	   *tmp;

	assert_true(len <= text->len);
	json_object_foreach_safe(model, tmp, key, value)
	{
		if (json_is_null(value))
			json_object_del(model, key);
	}
	result = load(out, len);
	assert_true(json_equal(model, result));
	json_decref(model);
	json_decref(result);
}

static void
check_merge(const struct text *base, const struct text *patch, char *out)
{
	json_t	   *model = load_last_wins(base);
	json_t	   *changes = load_last_wins(patch);
	size_t		len = wig_json_merge(base->data, base->len, patch->data, patch->len, out);
	json_t	   *result;
	const char *key;
	json_t	   *value;

	assert_true(len <= base->len + patch->len);
	json_object_foreach(changes, key, value)
	{
		if (json_is_null(value))
			json_object_del(model, key);
		else
			json_object_set(model, key, value);
	}
	result = load(out, len);
	assert_true(json_equal(model, result));
	json_decref(model);
	json_decref(changes);
	json_decref(result);
}

static void
test_random_merges(void **state)
{
	static struct text base;
	static struct text patch;
	char	   *out;

	(void) state;
	for (int i = 0; i < ROUNDS / 10; i++)
	{
		/* Up to 60 members: both the small and the large index are used. */
		put_object(&base, roll(i % 10 == 0 ? 60 : 6));
		put_object(&patch, roll(i % 10 == 0 ? 60 : 6));
		out = malloc(base.len + patch.len);
		check_merge(&base, &patch, out);
		free(out);
		out = malloc(base.len);
		check_drop_nulls(&base, out);
		free(out);
	}
}

static void
check_merge_text(const char *base, const char *patch, const char *expected)
{
	char		out[256];
	size_t		len = wig_json_merge(base, strlen(base), patch, strlen(patch), out);

	assert_int_equal(len, strlen(expected));
	assert_memory_equal(out, expected, len);
}

static void
test_merge_order(void **state)
{
	(void) state;
	check_merge_text("{\"a\":1,\"b\":2}", "{\"c\":3,\"a\":4}", "{\"a\":4,\"b\":2,\"c\":3}");
	check_merge_text("{\"a\":1, \"n\":null}", "{\"\\u0061\":null,\"x\":null}", "{\"n\":null}");
	check_merge_text("[1]", "{\"a\":null,\"b\":{\"c\":null}}", "{\"b\":{\"c\":null}}");
	check_merge_text("3", "{}", "{}");
	check_merge_text("{}", "{}", "{}");
}

static void
test_members(void **state)
{
	const char *text = " { \"a\" : \"}\\\"\" , \"b\":[{\"x\":\"]\"}],\"c\":-1.5e3 } ";
	struct wig_json_member member;
	size_t		pos = 0;

	(void) state;
	assert_true(wig_json_next_member(text, strlen(text), &pos, &member));
	assert_memory_equal(member.key, "\"a\"", 3);
	assert_int_equal(member.value_len, 5);
	assert_memory_equal(member.value, "\"}\\\"\"", 5);
	assert_true(wig_json_next_member(text, strlen(text), &pos, &member));
	assert_int_equal(member.value_len, 11);
	assert_true(wig_json_next_member(text, strlen(text), &pos, &member));
	assert_int_equal(member.value_len, 6);
	assert_memory_equal(member.value, "-1.5e3", 6);
	assert_false(wig_json_next_member(text, strlen(text), &pos, &member));
	pos = 0;
	assert_false(wig_json_next_member("{}", 2, &pos, &member));
	pos = 0;
	assert_false(wig_json_next_member("[1]", 3, &pos, &member));
}

static bool
keys_equal(const char *a, const char *b)
{
	return wig_json_key_equal(a, strlen(a), b, strlen(b));
}

static void
test_key_equal(void **state)
{
	(void) state;
	assert_true(keys_equal("\"a\"", "\"a\""));
	assert_true(keys_equal("\"a\"", "\"\\u0061\""));
	assert_true(keys_equal("\"\\u00e9\"", "\"\xc3\xa9\""));
	assert_true(keys_equal("\"\\u20AC\"", "\"\xe2\x82\xac\""));
	assert_true(keys_equal("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""));
	assert_true(keys_equal("\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "\"/\\u0008\\u000c\\u000a\\u000D\\u0009\\u0022\\u005c\""));
	assert_false(keys_equal("\"a\"", "\"b\""));
	assert_false(keys_equal("\"a\"", "\"\\u0062\""));
	assert_false(keys_equal("\"\\u0061\"", "\"ab\""));
	assert_false(keys_equal("\"\"", "\"\\u0061\""));
}

/* Many keys cost time in proportion, not squared. */
static void
test_many_members(void **state)
{
	const unsigned n = 200000;
	struct wig_text text = {0};
	char	   *out;

	(void) state;
	for (unsigned i = 0; i < n; i++)
		addf(&text, "%s\"k%u\":%u", i == 0 ? "{" : ",", i % (n / 2), i % 9);
	addf(&text, "}");
	out = malloc(text.len);
	assert_true(wig_json_drop_nulls(text.data, text.len, out) < text.len);
	wig_text_free(&text);
	free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_position),
		cmocka_unit_test(test_random_against_jansson),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_random_merges),
		cmocka_unit_test(test_merge_order),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_key_equal),
		cmocka_unit_test(test_many_members)
	};

	return cmocka_run_group_tests_name("jsontext", tests, NULL, NULL);
}
