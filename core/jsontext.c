/*
 * jsontext.c
 *	  Check JSON text in one pass over the bytes.
 *
 * The checker is a loop with an explicit stack of container kinds, one bit a
 * level: the nesting bound keeps it within 64 bits.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "jsontext.h"

#define OBJECT_COST		3		/* nested messages that one level costs a decoder */
#define ARRAY_COST		2
#define MAX_LEVELS		64

_Static_assert(WIG_JSON_MAX_NESTING / ARRAY_COST <= MAX_LEVELS,
			   "the container stack holds one bit a level");

/*
 * PostgreSQL's numeric keeps at most this many digits behind the decimal point;
 * a number with more could be stored as text and never be shown as jsonb.
 */
#define MAX_FRACTION_DIGITS 16383

/* Exponents beyond this decide nothing more and must not overflow. */
#define EXPONENT_SATURATED 10000000

#define DOUBLE_MAX_EXP10 308

/*
 * 2^1024 - 2^970, the smallest number that rounds to an infinite double, up to
 * its last digit that is not zero.
 */
static const char overflow_digits[] =
"1797693134862315807937289714053034150799341327100378269361737789804449"
"6829276475094664901797758720709633028641669288791094655554785194040263"
"0657488671505820681908902000708383676273854845817711531764475730270069"
"8555713669596228429148198608349364752927190741684443655107043427115596"
"99508093042880177904174497792";

struct scan
{
	const unsigned char *start;
	const unsigned char *p;
	const unsigned char *end;
	struct wig_error *err;
};

static bool
refuse(const struct scan *s, const char *what)
{
	if (s->err == NULL)
		return false;
	wig_fail(s->err, "not valid JSON at byte %zu: %s", (size_t) (s->p - s->start) + 1, what);
	s->err->line = 1;
	s->err->column = 1;
	for (const unsigned char *c = s->start; c < s->p; c++)
	{
		s->err->column++;
		if (*c == '\n')
		{
			s->err->line++;
			s->err->column = 1;
		}
	}
	return false;
}

static void
skip_space(struct scan *s)
{
	while (s->p < s->end &&
		   (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

/* Step over plain ASCII string bytes, eight at a time. */
static void
skip_plain(struct scan *s)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t high = UINT64_C(0x8080808080808080);

	while (s->end - s->p >= 8)
	{
		uint64_t	w;
		uint64_t	quote;
		uint64_t	slash;

		memcpy(&w, s->p, 8);
		quote = w ^ (ones * '"');
		slash = w ^ (ones * '\\');

		/*
		 * Each term may also mark bytes above a true hit; that only sends a
		 * plain byte to the slow path.
		 */
		if ((((w - ones * 0x20) | (quote - ones) | (slash - ones) | w) & high) != 0)
			break;
		s->p += 8;
	}
}

static int
hex_value(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Four hex digits at p, or -1. */
static int
hex4(const unsigned char *p, const unsigned char *end)
{
	int			value = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++)
	{
		int			digit = hex_value(p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* At a backslash: check one escape sequence and step over it. */
static bool
check_escape(struct scan *s)
{
	int			unit;
	int			low;

	if (s->end - s->p < 2)
		return refuse(s, "the text ends inside a string");
	if (s->p[1] != 'u')
	{
		if (memchr("\"\\/bfnrt", s->p[1], 8) == NULL)
			return refuse(s, "unknown escape sequence in a string");
		s->p += 2;
		return true;
	}
	unit = hex4(s->p + 2, s->end);
	if (unit < 0)
		return refuse(s, "\\u needs four hexadecimal digits");
	if (unit == 0)
		return refuse(s, "U+0000 cannot be stored");
	if (unit < 0xD800 || unit > 0xDFFF)
	{
		s->p += 6;
		return true;
	}
	low = -1;
	if (unit < 0xDC00 && s->end - s->p >= 12 && s->p[6] == '\\' && s->p[7] == 'u')
		low = hex4(s->p + 8, s->end);
	if (low < 0xDC00 || low > 0xDFFF)
		return refuse(s, "half of a surrogate pair without the other half");
	s->p += 12;
	return true;
}

/* At a byte >= 0x80: check one UTF-8 sequence and step over it. */
static bool
check_utf8(struct scan *s)
{
	const unsigned char *p = s->p;
	size_t		left = (size_t) (s->end - p);
	unsigned char low = 0x80;
	unsigned char high = 0xBF;
	size_t		n;

	if (p[0] >= 0xC2 && p[0] <= 0xDF)
		n = 2;
	else if (p[0] >= 0xE0 && p[0] <= 0xEF)
	{
		n = 3;
		if (p[0] == 0xE0)
			low = 0xA0;			/* shorter forms exist */
		if (p[0] == 0xED)
			high = 0x9F;		/* surrogates */
	}
	else if (p[0] >= 0xF0 && p[0] <= 0xF4)
	{
		n = 4;
		if (p[0] == 0xF0)
			low = 0x90;
		if (p[0] == 0xF4)
			high = 0x8F;		/* beyond U+10FFFF */
	}
	else
		return refuse(s, "invalid UTF-8 in a string");

	if (left < n || p[1] < low || p[1] > high)
		return refuse(s, "invalid UTF-8 in a string");
	for (size_t i = 2; i < n; i++)
	{
		if ((p[i] & 0xC0) != 0x80)
			return refuse(s, "invalid UTF-8 in a string");
	}
	s->p += n;
	return true;
}

/* At the opening quote. */
static bool
check_string(struct scan *s)
{
	s->p++;
	for (;;)
	{
		skip_plain(s);
		if (s->p >= s->end)
			return refuse(s, "the text ends inside a string");
		if (*s->p == '"')
		{
			s->p++;
			return true;
		}
		if (*s->p == '\\')
		{
			if (!check_escape(s))
				return false;
		}
		else if (*s->p >= 0x80)
		{
			if (!check_utf8(s))
				return false;
		}
		else if (*s->p < 0x20)
			return refuse(s, "control character in a string; write it as an escape");
		else
			s->p++;
	}
}

static bool
is_digit(const struct scan *s)
{
	return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

/*
 * Would the number round to infinity? Its first significant digit stands at
 * 10^308 here, so only the digits decide. Between first and the exponent there
 * are digits and at most one point.
 */
static bool
digits_overflow(const unsigned char *first, const unsigned char *end)
{
	const char *limit = overflow_digits;

	for (const unsigned char *p = first; p < end && *p != 'e' && *p != 'E'; p++)
	{
		if (*p == '.')
			continue;
		if (*limit == '\0')
			return true;
		if (*p != (unsigned char) *limit)
			return *p > (unsigned char) *limit;
		limit++;
	}
	return *limit == '\0';
}

/* The exponent's value, saturated; s->p is behind 'e'. */
static bool
scan_exponent(struct scan *s, long *exponent)
{
	bool		negative = false;
	long		value = 0;

	if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
	{
		negative = *s->p == '-';
		s->p++;
	}
	if (!is_digit(s))
		return refuse(s, "a digit is missing in a number's exponent");
	for (; is_digit(s); s->p++)
	{
		if (value < EXPONENT_SATURATED)
			value = value * 10 + (*s->p - '0');
	}
	*exponent = negative ? -value : value;
	return true;
}

static bool
check_number(struct scan *s)
{
	const unsigned char *begin = s->p;
	const unsigned char *first = NULL;	/* first significant digit */
	const unsigned char *int_start;
	const unsigned char *int_end;
	const unsigned char *frac_end;
	long		exponent = 0;
	long		magnitude;

	if (*s->p == '-')
		s->p++;
	if (!is_digit(s))
		return refuse(s, "a digit is missing in a number");
	int_start = s->p;
	if (*s->p == '0')
		s->p++;
	else
	{
		first = s->p;
		while (is_digit(s))
			s->p++;
	}
	int_end = frac_end = s->p;
	if (is_digit(s))
		return refuse(s, "a number starts with a superfluous zero");
	if (s->p < s->end && *s->p == '.')
	{
		s->p++;
		if (!is_digit(s))
			return refuse(s, "a digit is missing behind a number's point");
		for (; is_digit(s); s->p++)
		{
			if (first == NULL && *s->p != '0')
				first = s->p;
		}
		frac_end = s->p;
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E'))
	{
		s->p++;
		if (!scan_exponent(s, &exponent))
			return false;
	}

	if ((frac_end > int_end ? frac_end - int_end - 1 : 0) - exponent > MAX_FRACTION_DIGITS ||
		exponent >= EXPONENT_SATURATED)
	{
		s->p = begin;
		return refuse(s, "a number is too small, too long or its exponent too large");
	}
	if (first == NULL)
		return true;
	magnitude = exponent + (first < int_end ? int_end - int_start - 1 : int_end - first);
	if (magnitude > DOUBLE_MAX_EXP10 ||
		(magnitude == DOUBLE_MAX_EXP10 && digits_overflow(first, frac_end)))
	{
		s->p = begin;
		return refuse(s, "a number is too large for a double");
	}
	return true;
}

static bool
check_word(struct scan *s, const char *word, size_t len)
{
	if ((size_t) (s->end - s->p) < len || memcmp(s->p, word, len) != 0)
		return refuse(s, "expected a value");
	s->p += len;
	return true;
}

/* A value that is no container; *type says which. */
static bool
check_scalar(struct scan *s, enum wig_json_type *type, bool *bool_value)
{
	switch (*s->p)
	{
		case '"':
			*type = WIG_JSON_STRING;
			return check_string(s);
		case 't':
			*type = WIG_JSON_BOOL;
			*bool_value = true;
			return check_word(s, "true", 4);
		case 'f':
			*type = WIG_JSON_BOOL;
			*bool_value = false;
			return check_word(s, "false", 5);
		case 'n':
			*type = WIG_JSON_NULL;
			return check_word(s, "null", 4);
		default:
			if (*s->p != '-' && !is_digit(s))
				return refuse(s, "expected a value");
			*type = WIG_JSON_NUMBER;
			return check_number(s);
	}
}

/* A key and its colon, up to the value's first byte. */
static bool
check_key(struct scan *s)
{
	if (s->p >= s->end)
		return refuse(s, "the text ends inside an object");
	if (*s->p != '"')
		return refuse(s, "expected a key in double quotes");
	if (!check_string(s))
		return false;
	skip_space(s);
	if (s->p >= s->end || *s->p != ':')
		return refuse(s, "expected ':' after a key");
	s->p++;
	skip_space(s);
	return true;
}

/* The containers that are open, innermost in the lowest bit. */
struct stack
{
	uint64_t	objects;		/* bit set: an object, clear: an array */
	int			depth;
	int			cost;
	int			most;			/* cost that is allowed */
};

static bool
push(struct scan *s, struct stack *stack, bool object)
{
	stack->cost += object ? OBJECT_COST : ARRAY_COST;
	if (stack->cost > stack->most)
		return refuse(s, "nested too deeply: at most 32 levels of objects or 48 of arrays");
	if (stack->depth == MAX_LEVELS)
		return refuse(s, "nested too deeply: at most 64 levels");
	stack->objects = stack->objects << 1 | (object ? 1 : 0);
	stack->depth++;
	s->p++;
	return true;
}

static void
pop(struct scan *s, struct stack *stack)
{
	stack->cost -= (stack->objects & 1) ? OBJECT_COST : ARRAY_COST;
	stack->objects >>= 1;
	stack->depth--;
	s->p++;
}

/*
 * Behind a complete value: close containers and step over a comma, up to the
 * first byte of the next value. *done when the outermost value is complete.
 */
static bool
next_value(struct scan *s, struct stack *stack, bool *done)
{
	for (;;)
	{
		bool		object = (stack->objects & 1) != 0;

		if (stack->depth == 0)
		{
			*done = true;
			return true;
		}
		skip_space(s);
		if (s->p >= s->end)
			return refuse(s, object ? "the text ends inside an object" :
						  "the text ends inside an array");
		if (*s->p == (object ? '}' : ']'))
		{
			pop(s, stack);
			continue;
		}
		if (*s->p != ',')
			return refuse(s, object ? "expected ',' or '}'" : "expected ',' or ']'");
		s->p++;
		skip_space(s);
		return !object || check_key(s);
	}
}

/*
 * Behind the bracket that opened a container: *empty when it closes at once,
 * else up to the first byte of its first value.
 */
static bool
enter(struct scan *s, const struct stack *stack, bool *empty)
{
	bool		object = (stack->objects & 1) != 0;

	skip_space(s);
	*empty = s->p < s->end && *s->p == (object ? '}' : ']');
	return *empty || !object || check_key(s);
}

static bool
check_text(const char *text, size_t len, int most, struct wig_json_info *info, struct wig_error *err)
{
	struct scan s = {
		.start = (const unsigned char *) text,
		.p = (const unsigned char *) text,
		.end = (const unsigned char *) text + len,
		.err = err
	};
	struct stack stack = {.most = most};
	const unsigned char *begin;
	bool		done = false;

	memset(info, 0, sizeof(*info));
	skip_space(&s);
	begin = s.p;
	while (!done)
	{
		enum wig_json_type type = WIG_JSON_NULL;
		bool		bool_value = false;

		if (s.p >= s.end)
			return refuse(&s, s.p == begin ? "the text is empty" : "the text ends where a value is expected");
		if (*s.p == '{' || *s.p == '[')
		{
			bool		empty;

			if (stack.depth == 0)
				info->type = *s.p == '{' ? WIG_JSON_OBJECT : WIG_JSON_ARRAY;
			if (!push(&s, &stack, *s.p == '{') || !enter(&s, &stack, &empty))
				return false;
			if (!empty)
				continue;
		}
		else
		{
			if (!check_scalar(&s, &type, &bool_value))
				return false;
			if (stack.depth == 0)
			{
				info->type = type;
				info->bool_value = bool_value;
			}
			else if (type == WIG_JSON_NULL && stack.depth == 1 && (stack.objects & 1) != 0)
				info->has_null_member = true;
		}
		if (!next_value(&s, &stack, &done))
			return false;
	}
	info->start = (size_t) (begin - s.start);
	info->length = (size_t) (s.p - begin);
	skip_space(&s);
	if (s.p < s.end)
		return refuse(&s, "more text behind the value");
	return true;
}

bool
wig_json_check(const char *text, size_t len, struct wig_json_info *info, struct wig_error *err)
{
	return check_text(text, len, WIG_JSON_MAX_NESTING, info, err);
}

bool
wig_json_check_envelope(const char *text, size_t len, struct wig_json_info *info,
						struct wig_error *err)
{
	return check_text(text, len, INT_MAX, info, err);
}
