/*
 * jsonmerge.c
 *	  Top-level members of checked JSON objects: walk, drop nulls, merge.
 *
 * Everything here works on text that wig_json_check accepted, so strings are
 * closed and brackets match. Loops still look at the end of the text: a caller
 * that breaks that promise gets a wrong answer, never a read out of bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jsontext.h"

/* Objects up to this many members are listed on the stack and searched in turn. */
#define SMALL_MEMBERS	24

static const char *
skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* At an opening quote; returns the byte behind the closing one. */
static const char *
skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
	{
		if (*p == '\\')
			p++;
	}
	return p < end ? p + 1 : end;
}

/* At the first byte of a value; returns the byte behind its last. */
static const char *
skip_value(const char *p, const char *end)
{
	int			depth = 0;

	do
	{
		if (p >= end)
			return end;
		switch (*p)
		{
			case '"':
				p = skip_string(p, end);
				break;
			case '{':
			case '[':
				depth++;
				p++;
				break;
			case '}':
			case ']':
				depth--;
				p++;
				break;
			default:
				if (depth > 0)
					p++;
				else
				{
					while (p < end && memchr(",]} \n\t\r", *p, 7) == NULL)
						p++;
				}
				break;
		}
	} while (depth > 0);
	return p;
}

bool
wig_json_next_member(const char *object, size_t len, size_t *pos,
					 struct wig_json_member *member)
{
	const char *end = object + len;
	const char *p = skip_space(object + *pos, end);

	if (p >= end)
		return false;
	if (*pos == 0 && *p != '{')
		return false;
	if (*p == '{' || *p == ',')
		p = skip_space(p + 1, end);
	if (p >= end || *p != '"')
		return false;
	member->key = p;
	p = skip_string(p, end);
	member->key_len = (size_t) (p - member->key);
	p = skip_space(p, end);
	if (p >= end || *p != ':')
		return false;
	p = skip_space(p + 1, end);
	member->value = p;
	p = skip_value(p, end);
	member->value_len = (size_t) (p - member->value);
	*pos = (size_t) (p - object);
	return true;
}

bool
wig_json_next_element(const char *array, size_t len, size_t *pos,
					  const char **element, size_t *element_len)
{
	const char *end = array + len;
	const char *p = skip_space(array + *pos, end);

	if (p >= end || (*pos == 0 && *p != '['))
		return false;
	if (*p == '[' && *pos == 0)
		p = skip_space(p + 1, end);
	else if (*p == ',')
		p = skip_space(p + 1, end);
	if (p >= end || *p == ']')
		return false;
	*element = p;
	p = skip_value(p, end);
	*element_len = (size_t) (p - *element);
	*pos = (size_t) (p - array);
	return true;
}

/* A raw JSON string read as the bytes of the text that it denotes. */
struct key_reader
{
	const char *p;
	const char *end;			/* the closing quote */
	unsigned char pending[4];	/* UTF-8 bytes of an escape, not yet read */
	int			npending;
	int			at;
};

static void
key_open(struct key_reader *r, const char *raw, size_t len)
{
	r->p = raw + 1;
	r->end = raw + (len < 2 ? 1 : len - 1);
	r->npending = r->at = 0;
}

static unsigned
hex4(const char *p)
{
	unsigned	value = 0;

	for (int i = 0; i < 4; i++)
	{
		char		c = p[i];

		value <<= 4;
		if (c <= '9')
			value |= (unsigned) (c - '0');
		else
			value |= (unsigned) ((c | 0x20) - 'a' + 10);
	}
	return value;
}

static void
pend_utf8(struct key_reader *r, unsigned code)
{
	r->at = 0;
	if (code < 0x80)
	{
		r->pending[0] = (unsigned char) code;
		r->npending = 1;
	}
	else if (code < 0x800)
	{
		r->pending[0] = (unsigned char) (0xC0 | code >> 6);
		r->pending[1] = (unsigned char) (0x80 | (code & 0x3F));
		r->npending = 2;
	}
	else if (code < 0x10000)
	{
		r->pending[0] = (unsigned char) (0xE0 | code >> 12);
		r->pending[1] = (unsigned char) (0x80 | (code >> 6 & 0x3F));
		r->pending[2] = (unsigned char) (0x80 | (code & 0x3F));
		r->npending = 3;
	}
	else
	{
		r->pending[0] = (unsigned char) (0xF0 | (code >> 18 & 0x07));
		r->pending[1] = (unsigned char) (0x80 | (code >> 12 & 0x3F));
		r->pending[2] = (unsigned char) (0x80 | (code >> 6 & 0x3F));
		r->pending[3] = (unsigned char) (0x80 | (code & 0x3F));
		r->npending = 4;
	}
}

/* At the character behind a backslash: step over it, leave its bytes pending. */
static void
read_escape(struct key_reader *r)
{
	static const char names[] = "bfnrt";
	static const char values[] = "\b\f\n\r\t";
	char		c = *r->p++;
	const char *at;
	unsigned	code;

	if (c != 'u' || r->end - r->p < 4)
	{
		at = memchr(names, c, sizeof(names) - 1);
		pend_utf8(r, (unsigned char) (at == NULL ? c : values[at - names]));
		return;
	}
	code = hex4(r->p);
	r->p += 4;
	if (code >= 0xD800 && code < 0xDC00 && r->end - r->p >= 6)
	{
		code = 0x10000 + ((code - 0xD800) << 10) + (hex4(r->p + 2) - 0xDC00);
		r->p += 6;
	}
	pend_utf8(r, code);
}

/* The next byte, -1 at the end. */
static int
key_next(struct key_reader *r)
{
	if (r->at < r->npending)
		return r->pending[r->at++];
	if (r->p >= r->end)
		return -1;
	if (*r->p != '\\' || r->p + 1 >= r->end)
		return (unsigned char) *r->p++;
	r->p++;
	read_escape(r);
	return r->pending[r->at++];
}

bool
wig_json_key_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	struct key_reader left;
	struct key_reader right;
	int			byte;

	if (a_len == b_len && memcmp(a, b, a_len) == 0)
		return true;
	if (memchr(a, '\\', a_len) == NULL && memchr(b, '\\', b_len) == NULL)
		return false;
	key_open(&left, a, a_len);
	key_open(&right, b, b_len);
	do
	{
		byte = key_next(&left);
		if (byte != key_next(&right))
			return false;
	} while (byte >= 0);
	return true;
}

struct slot
{
	uint64_t	hash;
	struct wig_json_member member;	/* key NULL: free */
};

/*
 * The members of an object by key. Small objects are a list; of larger ones a
 * table holds the last member of each key. Without memory for the table the text
 * itself is searched: slower, never wrong.
 */
struct index
{
	const char *object;
	size_t		len;
	bool		is_small;
	size_t		nmembers;		/* in the list */
	struct wig_json_member members[SMALL_MEMBERS];
	struct slot *slots;			/* NULL: no table */
	size_t		mask;			/* slots - 1 */
	uint64_t	seed;
};

static uint64_t
hash_key(const struct index *index, const char *key, size_t len)
{
	uint64_t	hash = index->seed;
	struct key_reader r;
	int			byte;

	key_open(&r, key, len);
	while ((byte = key_next(&r)) >= 0)
		hash = (hash ^ (unsigned) byte) * UINT64_C(0x100000001B3);
	return hash ^ hash >> 29;
}

static struct slot *
probe(const struct index *index, const struct wig_json_member *member, uint64_t hash)
{
	size_t		at = hash & index->mask;

	for (;; at = (at + 1) & index->mask)
	{
		struct slot *slot = &index->slots[at];

		if (slot->member.key == NULL ||
			(slot->hash == hash &&
			 wig_json_key_equal(slot->member.key, slot->member.key_len,
								member->key, member->key_len)))
			return slot;
	}
}

/* Make the table of a large object. */
static void
fill_table(struct index *index)
{
	struct wig_json_member member;
	size_t		members = 0;
	size_t		nslots = 64;
	size_t		pos = 0;

	/* Where the text lies is not known to whoever chose the keys. */
	index->seed = ((uint64_t) (uintptr_t) index->object ^ UINT64_C(0xCBF29CE484222325)) *
		UINT64_C(0x9E3779B97F4A7C15);
	while (wig_json_next_member(index->object, index->len, &pos, &member))
		members++;
	while (nslots < members * 2)
		nslots *= 2;
	index->slots = calloc(nslots, sizeof(struct slot));
	if (index->slots == NULL)
		return;
	index->mask = nslots - 1;
	pos = 0;
	while (wig_json_next_member(index->object, index->len, &pos, &member))
	{
		uint64_t	hash = hash_key(index, member.key, member.key_len);
		struct slot *slot = probe(index, &member, hash);

		slot->hash = hash;
		slot->member = member;
	}
}

static void
index_build(struct index *index, const char *object, size_t len)
{
	struct wig_json_member member;
	size_t		pos = 0;

	index->object = object;
	index->len = len;
	index->is_small = true;
	index->nmembers = 0;
	index->slots = NULL;
	while (wig_json_next_member(object, len, &pos, &member))
	{
		if (index->nmembers == SMALL_MEMBERS)
		{
			index->is_small = false;
			fill_table(index);
			return;
		}
		index->members[index->nmembers++] = member;
	}
}

static void
index_free(struct index *index)
{
	free(index->slots);
}

/* The members in the order of the text; *at starts with 0. */
static bool
index_next(const struct index *index, size_t *at, struct wig_json_member *member)
{
	if (!index->is_small)
		return wig_json_next_member(index->object, index->len, at, member);
	if (*at >= index->nmembers)
		return false;
	*member = index->members[(*at)++];
	return true;
}

static bool
same_key(const struct wig_json_member *a, const struct wig_json_member *b)
{
	return wig_json_key_equal(a->key, a->key_len, b->key, b->key_len);
}

/* The last member with this key, copied to *found; false when there is none. */
static bool
find(const struct index *index, const struct wig_json_member *member,
	 struct wig_json_member *found)
{
	struct wig_json_member other;
	size_t		pos = 0;
	bool		any = false;

	if (index->slots != NULL)
	{
		*found = probe(index, member, hash_key(index, member->key, member->key_len))->member;
		return found->key != NULL;
	}
	if (index->is_small)
	{
		for (size_t i = index->nmembers; i > 0; i--)
		{
			if (same_key(&index->members[i - 1], member))
			{
				*found = index->members[i - 1];
				return true;
			}
		}
		return false;
	}
	while (wig_json_next_member(index->object, index->len, &pos, &other))
	{
		if (same_key(&other, member))
		{
			*found = other;
			any = true;
		}
	}
	return any;
}

/* Is this member, taken from the indexed object, the last one of its key? */
static bool
is_last(const struct index *index, const struct wig_json_member *member)
{
	struct wig_json_member last;

	return find(index, member, &last) && last.key == member->key;
}

static bool
is_null(const struct wig_json_member *member)
{
	return member->value_len == 4 && memcmp(member->value, "null", 4) == 0;
}

/* Append one member, with a comma when it is not the first. */
static char *
put_member(char *out, bool *first, const struct wig_json_member *key,
		   const struct wig_json_member *value)
{
	if (!*first)
		*out++ = ',';
	*first = false;
	memcpy(out, key->key, key->key_len);
	out += key->key_len;
	*out++ = ':';
	memcpy(out, value->value, value->value_len);
	return out + value->value_len;
}

static bool
is_object(const char *text, size_t len)
{
	const char *p = skip_space(text, text + len);

	return p < text + len && *p == '{';
}

size_t
wig_json_drop_nulls(const char *object, size_t len, char *out)
{
	struct index index;
	struct wig_json_member member;
	size_t		pos = 0;
	bool		first = true;
	char	   *at = out;

	if (!is_object(object, len))
	{
		memcpy(out, object, len);
		return len;
	}
	index_build(&index, object, len);
	*at++ = '{';
	while (index_next(&index, &pos, &member))
	{
		if (!is_null(&member) && is_last(&index, &member))
			at = put_member(at, &first, &member, &member);
	}
	*at++ = '}';
	index_free(&index);
	return (size_t) (at - out);
}

size_t
wig_json_merge(const char *base, size_t base_len,
			   const char *patch, size_t patch_len, char *out)
{
	struct index base_index;
	struct index patch_index;
	struct wig_json_member member;
	struct wig_json_member other;
	size_t		pos = 0;
	bool		first = true;
	char	   *at = out;

	if (!is_object(base, base_len) || !is_object(patch, patch_len))
		return wig_json_drop_nulls(patch, patch_len, out);

	index_build(&base_index, base, base_len);
	index_build(&patch_index, patch, patch_len);
	*at++ = '{';
	while (index_next(&base_index, &pos, &member))
	{
		if (!is_last(&base_index, &member))
			continue;
		if (!find(&patch_index, &member, &other))
			at = put_member(at, &first, &member, &member);
		else if (!is_null(&other))
			at = put_member(at, &first, &member, &other);
	}
	pos = 0;
	while (index_next(&patch_index, &pos, &member))
	{
		if (!is_null(&member) && is_last(&patch_index, &member) &&
			!find(&base_index, &member, &other))
			at = put_member(at, &first, &member, &member);
	}
	*at++ = '}';
	index_free(&base_index);
	index_free(&patch_index);
	return (size_t) (at - out);
}

size_t
wig_json_overlay(const char *base, size_t base_len,
				 const char *overlay, size_t overlay_len, char *out)
{
	struct index index;
	struct wig_json_member member;
	struct wig_json_member other;
	size_t		pos = 0;
	bool		first = true;
	char	   *at = out;

	*at++ = '{';
	index_build(&index, overlay, overlay_len);
	if (is_object(base, base_len))
	{
		while (wig_json_next_member(base, base_len, &pos, &member))
		{
			if (!find(&index, &member, &other))
				at = put_member(at, &first, &member, &member);
		}
	}
	pos = 0;
	while (index_next(&index, &pos, &member))
		at = put_member(at, &first, &member, &member);
	*at++ = '}';
	index_free(&index);
	return (size_t) (at - out);
}
