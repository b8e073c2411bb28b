/*
 * ids.c
 *	  Format and parse ids. On the hot path: no allocation, no stdio.
 */
#include <string.h>

#include "ids.h"

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

static const char instance_prefix[] = "wfi";
static const char task_prefix[] = "tok";

#define PREFIX_LEN		3		/* of both prefixes above */
#define TIME_CHARS		10
#define RANDOM_CHARS	(WIG_PART_LEN - TIME_CHARS)
#define MAX_SHARD_DIGITS 9

/* The pieces of an id; the pointers look into the caller's text. */
struct id_parts
{
	size_t		prefix_len;
	int32_t		shard;			/* WIG_NO_SHARD for the bare form */
	const char *last;
	size_t		last_len;
};

/* Value of a character of the alphabet, -1 for any other byte. */
static int
digit_value(char c)
{
	const char *at;

	if (c == '\0')
		return -1;
	at = memchr(alphabet, c, sizeof(alphabet) - 1);
	return at == NULL ? -1 : (int) (at - alphabet);
}

/* Write the lowest 5 * n bits of value, most significant first. */
static void
encode_bits(char *out, int n, uint64_t value)
{
	for (int i = n - 1; i >= 0; i--)
	{
		out[i] = alphabet[value & 31];
		value >>= 5;
	}
}

static bool
is_part(const char *text, size_t len)
{
	if (len != WIG_PART_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		if (digit_value(text[i]) < 0)
			return false;
	}
	return true;
}

void
wig_part_encode(char out[WIG_PART_LEN], uint64_t unix_ms, uint64_t rnd)
{
	encode_bits(out, TIME_CHARS, unix_ms);
	encode_bits(out + TIME_CHARS, RANDOM_CHARS, rnd);
}

/* Write a non-negative number in decimal; returns its length. */
static int
put_decimal(char *out, int32_t n)
{
	char		digits[12];
	int			len = 0;

	do
	{
		digits[len++] = (char) ('0' + n % 10);
		n /= 10;
	} while (n > 0);
	for (int i = 0; i < len; i++)
		out[i] = digits[len - 1 - i];
	return len;
}

/*
 * Read a decimal number of at most max, without sign or leading zeros (a lone
 * zero is one). Returns -1 for anything else.
 */
static int64_t
get_decimal(const char *text, size_t len, int64_t max)
{
	int64_t		value = 0;

	if (len == 0 || (text[0] == '0' && len > 1))
		return -1;
	for (size_t i = 0; i < len; i++)
	{
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
		if (value > max)
			return -1;
	}
	return value;
}

int
wig_id_format(char *out, const char *prefix, int32_t shard,
			  const char *last, size_t last_len)
{
	size_t		prefix_len = strlen(prefix);
	char		infix[MAX_SHARD_DIGITS + 4];
	int			infix_len = 0;

	if (prefix_len == 0 || prefix_len > WIG_ID_MAX ||
		last_len == 0 || last_len > WIG_ID_MAX ||
		memchr(last, '.', last_len) != NULL)
		return -1;
	for (size_t i = 0; i < prefix_len; i++)
	{
		if (prefix[i] < 'a' || prefix[i] > 'z')
			return -1;
	}

	if (shard == WIG_NO_SHARD)
		infix[infix_len++] = '_';
	else
	{
		if (shard < 0 || shard > WIG_MAX_SHARD)
			return -1;
		infix[infix_len++] = '.';
		infix[infix_len++] = 's';
		infix_len += put_decimal(infix + infix_len, shard);
		infix[infix_len++] = '.';
	}

	if (prefix_len + (size_t) infix_len + last_len > WIG_ID_MAX)
		return -1;
	memcpy(out, prefix, prefix_len);
	memcpy(out + prefix_len, infix, (size_t) infix_len);
	memcpy(out + prefix_len + infix_len, last, last_len);
	out[prefix_len + (size_t) infix_len + last_len] = '\0';
	return (int) (prefix_len + (size_t) infix_len + last_len);
}

/* Split "<prefix>.s<shard>.<last>"; false when the id has not that form. */
static bool
split_sharded(const char *id, size_t len, struct id_parts *parts)
{
	const char *end = id + len;
	const char *p = id;
	const char *shard;
	int64_t		value;

	if (len > WIG_ID_MAX)
		return false;
	while (p < end && *p >= 'a' && *p <= 'z')
		p++;
	if (p == id || end - p < 2 || p[0] != '.' || p[1] != 's')
		return false;
	parts->prefix_len = (size_t) (p - id);
	shard = p + 2;
	p = memchr(shard, '.', (size_t) (end - shard));
	if (p == NULL || p + 1 == end)
		return false;
	value = get_decimal(shard, (size_t) (p - shard), WIG_MAX_SHARD);
	if (value < 0)
		return false;
	parts->shard = (int32_t) value;
	parts->last = p + 1;
	parts->last_len = (size_t) (end - p - 1);
	return memchr(parts->last, '.', parts->last_len) == NULL;
}

/* Split either form of an id that starts with a three-letter prefix. */
static bool
split(const char *id, size_t len, const char *prefix, struct id_parts *parts)
{
	if (len <= PREFIX_LEN || len > WIG_ID_MAX || memcmp(id, prefix, PREFIX_LEN) != 0)
		return false;
	if (id[PREFIX_LEN] != '_')
		return split_sharded(id, len, parts) && parts->prefix_len == PREFIX_LEN;
	parts->prefix_len = PREFIX_LEN;
	parts->shard = WIG_NO_SHARD;
	parts->last = id + PREFIX_LEN + 1;
	parts->last_len = len - PREFIX_LEN - 1;
	return true;
}

int32_t
wig_id_shard(const char *id, size_t len)
{
	struct id_parts parts;

	return split_sharded(id, len, &parts) ? parts.shard : WIG_NO_SHARD;
}

bool
wig_instance_id_valid(const char *id, size_t len, int32_t *shard)
{
	struct id_parts parts;

	if (!split(id, len, instance_prefix, &parts) ||
		!is_part(parts.last, parts.last_len))
		return false;
	*shard = parts.shard;
	return true;
}

int
wig_task_id_format(char *out, const char *instance_id, size_t len, int32_t n)
{
	struct id_parts parts;
	char		last[WIG_PART_LEN + 12];
	int			last_len;

	if (n < 1 || !split(instance_id, len, instance_prefix, &parts) ||
		!is_part(parts.last, parts.last_len))
		return -1;
	memcpy(last, parts.last, WIG_PART_LEN);
	last[WIG_PART_LEN] = '-';
	last_len = WIG_PART_LEN + 1 + put_decimal(last + WIG_PART_LEN + 1, n);
	return wig_id_format(out, task_prefix, parts.shard, last, (size_t) last_len);
}

bool
wig_task_id_parse(const char *task_id, size_t len,
				  char instance_id[WIG_ID_MAX + 1], int32_t *n)
{
	struct id_parts parts;
	int64_t		value;

	if (!split(task_id, len, task_prefix, &parts) ||
		parts.last_len < WIG_PART_LEN + 2 || parts.last[WIG_PART_LEN] != '-' ||
		!is_part(parts.last, WIG_PART_LEN))
		return false;
	value = get_decimal(parts.last + WIG_PART_LEN + 1,
						parts.last_len - WIG_PART_LEN - 1, INT32_MAX);
	if (value < 1)
		return false;
	if (wig_id_format(instance_id, instance_prefix, parts.shard,
					  parts.last, WIG_PART_LEN) < 0)
		return false;
	*n = (int32_t) value;
	return true;
}

void
wig_nonce_encode(char out[WIG_NONCE_LEN], uint64_t nonce)
{
	encode_bits(out, WIG_NONCE_LEN, nonce);
}

bool
wig_nonce_decode(const char *owner, size_t len, uint64_t *nonce)
{
	const char *text;
	uint64_t	value = 0;

	/* The nonce has a fixed width, so what follows the last '#' is at the end. */
	if (len < WIG_NONCE_LEN + 1 || owner[len - WIG_NONCE_LEN - 1] != '#')
		return false;
	text = owner + len - WIG_NONCE_LEN;
	for (int i = 0; i < WIG_NONCE_LEN; i++)
	{
		int			digit = digit_value(text[i]);

		/* Thirteen characters carry 65 bits; the first one has only four. */
		if (digit < 0 || (i == 0 && digit > 15))
			return false;
		value = value << 5 | (uint64_t) digit;
	}
	*nonce = value;
	return true;
}
