/*
 * test_log.c
 *	  Lines of the log: whole, of valid JSON or UTF-8, whatever they hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "log.h"
#include "utf8.h"

static char line[16384];		/* what was written last */
static size_t length;
static FILE *file;
static int	stderr_was;

/* Between these two standard error is the file. */
static void
listen_begin(void)
{
	file = tmpfile();
	stderr_was = dup(STDERR_FILENO);
	assert_non_null(file);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
}

/* One line, of UTF-8 without control characters. */
static void
listen_end(void)
{
	assert_true(dup2(stderr_was, STDERR_FILENO) >= 0);
	close(stderr_was);
	rewind(file);
	length = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[length] = '\0';
	assert_in_range(length, 1, 4096);
	assert_int_equal(strlen(line), length);
	assert_ptr_equal(strchr(line, '\n'), line + length - 1);
	line[--length] = '\0';
	for (size_t i = 0; i < length;)
	{
		size_t		n = utf8_sequence((uint8_t *) line + i, length - i);

		assert_int_not_equal(n, 0);
		assert_true((unsigned char) line[i] >= 0x20 && line[i] != 0x7f);
		i += n;
	}
}

static const char *
say(const char *source, const char *message)
{
	listen_begin();
	log_warn(source, "%s", message);
	listen_end();
	return line;
}

/* The line's JSON; the caller owns it. */
static json_t *
say_json(const char *source, const char *message)
{
	json_t	   *object = json_loads(say(source, message), JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(object);
	return object;
}

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	assert_non_null(text);
	return text;
}

static void
fill(char *out, size_t bytes, const char *with)
{
	size_t		n = strlen(with);

	for (size_t i = 0; i + n <= bytes; i += n)
	{
		memcpy(out, with, n);
		out += n;
	}
	*out = '\0';
}

static void
test_text(void **state)
{
	(void) state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_string_equal(say("lane", "shard 0: connected") + 24, " WARN  lane: shard 0: connected");
	assert_string_equal(say("a\"\nb", "x\ny\x7f\x1b[2J") + 24, " WARN  a\"\\x0ab: x\\x0ay\\x7f\\x1b[2J");
	assert_string_equal(say("caf\xc3\xa9", "\xe2\x82\xac \xff \xc2\x9b") + 24,
						" WARN  caf\xc3\xa9: \xe2\x82\xac \\xff \\u009b");
}

static void
test_json(void **state)
{
	json_t	   *object;

	(void) state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	object = say_json("a\"b\\\n", "c\"d\\\n\x7f \xe2\x82\xac");
	assert_string_equal(text_of(object, "level"), "warn");
	assert_string_equal(text_of(object, "source"), "a\"b\\\n");
	assert_string_equal(text_of(object, "message"), "c\"d\\\n\x7f \xe2\x82\xac");
	assert_int_equal(json_object_size(object), 4);
	json_decref(object);
	object = say_json("a\xff", "\xe2\x82");
	assert_string_equal(text_of(object, "source"), "a\xef\xbf\xbd");
	assert_string_equal(text_of(object, "message"), "\xef\xbf\xbd\xef\xbf\xbd");
	json_decref(object);
}

/* As long as names, and what a command says, may be, and longer; of characters of any length. */
static void
test_long(void **state)
{
	static const char *const texts[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x99\x82", "\"", "\n", "\xff"};
	static char source[8192];
	static char message[8192];

	(void) state;
	for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++)
	{
		log_setup(LOG_LEVEL_INFO, (enum log_format) format);
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			for (size_t bytes = 0; bytes < sizeof(source); bytes = bytes * 3 / 2 + 1)
			{
				fill(source, bytes, texts[i]);
				for (size_t shift = 0; shift < 4; shift++)
				{
					memset(message, 'a', shift);
					fill(message + shift, sizeof(message) - 5, texts[i]);
					if (format == LOG_FORMAT_JSON)
						json_decref(say_json(source, message));
					else
						say(source, message);
				}
			}
	}
}

/* A step's label with names of 200 characters of four bytes ends with the instance's id. */
static void
test_labels_are_whole(void **state)
{
	static char source[2048];
	json_t	   *object;

	(void) state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	fill(source, 800, "\xf0\x9f\x99\x82");
	strcat(source, "/");
	fill(source + 801, 800, "\xf0\x9f\x99\x82");
	strcat(source, " wfi.s4095.01hzzzzzzzzzzzzzzzzzzzzzzz");
	object = say_json(source, "done");
	assert_string_equal(text_of(object, "source"), source);
	json_decref(object);
}

static void
test_fields(void **state)
{
	const struct log_facts facts = {.sqlstate = "08006", .ref = "1f0c22d9"};
	json_t	   *object;

	(void) state;
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	listen_begin();
	log_with(LOG_LEVEL_ERROR, "storage", &facts, "shard %d: %s", 12, "gone");
	listen_end();
	object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	assert_int_equal(json_integer_value(json_object_get(object, "shard")), 12);
	assert_string_equal(text_of(object, "sqlstate"), "08006");
	assert_string_equal(text_of(object, "ref"), "1f0c22d9");
	assert_string_equal(text_of(object, "message"), "shard 12: gone");
	json_decref(object);
	object = say_json("work", "shard 3 (db): gone");
	assert_int_equal(json_integer_value(json_object_get(object, "shard")), 3);
	assert_null(json_object_get(object, "ref"));
	json_decref(object);
	object = say_json("work", "shard x: no shard 3");
	assert_null(json_object_get(object, "shard"));
	json_decref(object);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	listen_begin();
	log_with(LOG_LEVEL_ERROR, "storage", &facts, "shard %d: %s", 12, "gone");
	listen_end();
	assert_string_equal(line + 24, " ERROR storage: shard 12: gone");
}

static size_t
format(char *out, size_t cap, const char *fmt,...)
{
	va_list		args;
	size_t		n;

	va_start(args, fmt);
	n = utf8_vformat(out, cap, fmt, args);
	va_end(args);
	return n;
}

static void
test_cut(void **state)
{
	char		out[6];

	(void) state;
	assert_int_equal(format(out, sizeof(out), "%s", "abcde"), 5);
	assert_int_equal(format(out, sizeof(out), "%s", "abcdef"), 5);
	assert_int_equal(format(out, sizeof(out), "ab%s", "\xe2\x82\xac"), 5);
	assert_int_equal(format(out, sizeof(out), "abc%s", "\xe2\x82\xac"), 3);
	assert_string_equal(out, "abc");
	assert_int_equal(format(out, sizeof(out), "abcd%s", "\xe2\x82\xac"), 4);
	assert_int_equal(format(out, sizeof(out), "a%s", "\xf0\x9f\x99\x82\xf0\x9f\x99\x82"), 1);
	assert_int_equal(format(out, 1, "abc"), 0);
	assert_string_equal(out, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_labels_are_whole),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
