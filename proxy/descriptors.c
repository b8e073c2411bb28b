/*
 * descriptors.c
 *	  The protocols of this server as descriptors, in the bytes that protoc made.
 *
 * The bytes are read in place: a request names one thing, and there are few.
 */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "descriptors.h"

static const uint8_t set[] = {
#include "descriptors.inc"
};

/* Field numbers of descriptor.proto. A name is field 1 of whatever has one. */
enum
{
	NAME = 1,
	SET_FILE = 1,
	FILE_PACKAGE = 2,
	FILE_IMPORT = 3,
	FILE_SERVICE = 6
};

struct piece
{
	const uint8_t *data;
	size_t		len;
};

static struct piece files[DESCRIPTOR_FILES];
static int	nfiles;

static uint64_t
varint(struct piece *in)
{
	uint64_t	v = 0;

	for (int shift = 0; shift < 64 && in->len > 0; shift += 7)
	{
		uint8_t		b = *in->data++;

		in->len--;
		v |= (uint64_t) (b & 0x7f) << shift;
		if (b < 0x80)
			break;
	}
	return v;
}

/* The next field that has a length: names, messages; numbers are passed over. 0 at the end. */
static int
next_field(struct piece *in, struct piece *field)
{
	while (in->len > 0)
	{
		uint64_t	tag = varint(in);

		if ((tag & 7) == 0)
		{
			varint(in);
			continue;
		}
		if ((tag & 7) != 2)
			abort();			/* descriptors have no such fields */
		field->len = (size_t) varint(in);
		field->data = in->data;
		if (field->len > in->len)
			abort();
		in->data += field->len;
		in->len -= field->len;
		return (int) (tag >> 3);
	}
	return 0;
}

/* The first field of this number; empty when there is none. */
static struct piece
field_of(struct piece in, int number)
{
	struct piece field;
	int			n;

	while ((n = next_field(&in, &field)) != 0)
		if (n == number)
			return field;
	return (struct piece) {(const uint8_t *) "", 0};
}

static bool
is(struct piece name, const char *text)
{
	return strlen(text) == name.len && memcmp(text, name.data, name.len) == 0;
}

/* What follows "name." in the text, or NULL. */
static const char *
within(struct piece name, const char *text)
{
	if (strncmp(text, (const char *) name.data, name.len) != 0 || text[name.len] != '.')
		return NULL;
	return text + name.len + 1;
}

static void
load(void)
{
	struct piece in = {set, sizeof(set)};

	if (nfiles > 0)
		return;
	while (nfiles < DESCRIPTOR_FILES && next_field(&in, &files[nfiles]) == SET_FILE)
		nfiles++;
	if (in.len > 0)
		abort();				/* DESCRIPTOR_FILES is too small */
}

int
descriptors_by_name(const char *name)
{
	load();
	for (int i = 0; i < nfiles; i++)
		if (is(field_of(files[i], NAME), name))
			return i;
	return -1;
}

/* ---------------------------------------------------------------- symbols */

enum kind
{
	KIND_FILE,
	KIND_MESSAGE,
	KIND_ENUM,
	KIND_SERVICE,
	KIND_LEAF
};

static const struct
{
	enum kind	parent;
	int			field;
	enum kind	kind;
}			children[] = {
	{KIND_FILE, 4, KIND_MESSAGE},
	{KIND_FILE, 5, KIND_ENUM},
	{KIND_FILE, FILE_SERVICE, KIND_SERVICE},
	{KIND_MESSAGE, 2, KIND_LEAF},	/* field */
	{KIND_MESSAGE, 3, KIND_MESSAGE},
	{KIND_MESSAGE, 4, KIND_ENUM},
	{KIND_MESSAGE, 8, KIND_LEAF},	/* oneof */
	{KIND_ENUM, 2, KIND_LEAF},	/* value */
	{KIND_SERVICE, 2, KIND_LEAF},	/* method */
};

static bool
child_kind(enum kind parent, int field, enum kind *kind)
{
	for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
	{
		if (children[i].parent == parent && children[i].field == field)
		{
			*kind = children[i].kind;
			return true;
		}
	}
	return false;
}

/* Does a descriptor define the name, which is relative to it? */
static bool
defines(enum kind kind, struct piece in, const char *symbol)
{
	struct piece child;
	int			n;

	while ((n = next_field(&in, &child)) != 0)
	{
		enum kind	what;
		const char *rest;
		struct piece name;

		if (!child_kind(kind, n, &what))
			continue;
		name = field_of(child, NAME);
		rest = within(name, symbol);
		/* The values of an enum are named beside it, not within it. */
		if (is(name, symbol) || (what == KIND_ENUM && defines(what, child, symbol)) ||
			(what != KIND_ENUM && rest != NULL && defines(what, child, rest)))
			return true;
	}
	return false;
}

int
descriptors_by_symbol(const char *symbol)
{
	load();
	for (int i = 0; i < nfiles; i++)
	{
		const char *rest = within(field_of(files[i], FILE_PACKAGE), symbol);

		if (rest != NULL && defines(KIND_FILE, files[i], rest))
			return i;
	}
	return -1;
}

const uint8_t *
descriptors_file(int file, size_t *len)
{
	*len = files[file].len;
	return files[file].data;
}

void
descriptors_closure(int file, bool wanted[DESCRIPTOR_FILES])
{
	wanted[file] = true;
	/* What a file imports stands before it. */
	for (int i = file; i >= 0; i--)
	{
		struct piece in = files[i];
		struct piece field;
		int			n;

		while (wanted[i] && (n = next_field(&in, &field)) != 0)
			for (int k = 0; n == FILE_IMPORT && k < i; k++)
			{
				struct piece name = field_of(files[k], NAME);

				if (name.len == field.len && memcmp(name.data, field.data, name.len) == 0)
					wanted[k] = true;
			}
	}
}

void
descriptors_services(void (*each) (const char *name, void *arg), void *arg)
{
	load();
	for (int i = 0; i < nfiles; i++)
	{
		struct piece package = field_of(files[i], FILE_PACKAGE);
		struct piece in = files[i];
		struct piece field;
		int			n;

		while ((n = next_field(&in, &field)) != 0)
		{
			struct buf	full = BUF_INIT;
			struct piece name;

			if (n != FILE_SERVICE)
				continue;
			name = field_of(field, NAME);
			buf_append(&full, package.data, package.len);
			buf_byte(&full, '.');
			buf_append(&full, name.data, name.len);
			each(buf_cstr(&full), arg);
			buf_free(&full);
		}
	}
}
