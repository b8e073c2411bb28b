/*
 * json_message.c
 *	  Messages of our protocol <-> JSON, by their descriptors.
 */
#include <common/shortest_dec.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_message.h"
#include "jsontext.h"
#include "value.h"
#include "wire.h"

#define NAME_BYTES		64		/* longest name of a field with its quotes */
#define NUMBER_BYTES	64		/* longest text of an integer that is looked at */
#define EXACT_INTEGER	9007199254740992.0	/* 2^53 */

/* A raw JSON value. */
struct text
{
	const char *p;
	size_t		len;
};

struct reader
{
	const ProtobufCMessageDescriptor *type;
	struct buf *out;
	struct wig_error *err;
};

static bool read_object(const struct reader *r, struct text in);

/* The name of a field as JSON has it, in quotes; returns the length. */
static size_t
camel_name(const char *name, char out[NAME_BYTES])
{
	size_t		n = 0;
	bool		upper = false;

	out[n++] = '"';
	for (; *name != '\0' && n < NAME_BYTES - 1; name++)
	{
		if (*name == '_')
		{
			upper = true;
			continue;
		}
		out[n++] = upper && *name >= 'a' && *name <= 'z' ? (char) (*name - 'a' + 'A') : *name;
		upper = false;
	}
	out[n++] = '"';
	return n;
}

/* ---------------------------------------------------------- JSON to message */

static bool
refuse(const struct reader *r, const ProtobufCFieldDescriptor *field, const char *what)
{
	return wig_fail(r->err, "%s.%s %s", r->type->short_name, field->name, what);
}

static bool
is_named(const ProtobufCFieldDescriptor *field, struct text key)
{
	char		name[NAME_BYTES];
	size_t		len = camel_name(field->name, name);

	if (wig_json_key_equal(key.p, key.len, name, len))
		return true;
	if (strchr(field->name, '_') == NULL)
		return false;
	len = (size_t) snprintf(name, sizeof(name), "\"%s\"", field->name);
	return len < sizeof(name) && wig_json_key_equal(key.p, key.len, name, len);
}

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *type, struct text key)
{
	for (unsigned i = 0; i < type->n_fields; i++)
		if (is_named(&type->fields[i], key))
			return &type->fields[i];
	return NULL;
}

static bool
is_null(struct text in)
{
	return *in.p == 'n';
}

/*
 * A number, or a string that holds one. The text was checked, so what strtoll does
 * not read to its end has a point or an exponent: 1e3 and 2.0 are integers too.
 */
static bool
read_integer(struct text in, int64_t least, int64_t most, int64_t *value)
{
	char		text[NUMBER_BYTES];
	char	   *end;
	double		d;

	if (*in.p == '"')
	{
		in.p++;
		in.len -= 2;
	}
	if (in.len == 0 || in.len >= sizeof(text) || strspn(in.p, "+-.0123456789eE") < in.len ||
		*in.p == '+')
		return false;
	memcpy(text, in.p, in.len);
	text[in.len] = '\0';
	errno = 0;
	*value = strtoll(text, &end, 10);
	if (*end != '\0')
	{
		d = strtod(text, &end);
		if (*end != '\0' || d != rint(d) || fabs(d) > EXACT_INTEGER)
			return false;
		*value = (int64_t) d;
	}
	return errno == 0 && *value >= least && *value <= most;
}

static bool
put_integer(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in,
			int64_t least, int64_t most, const char *what)
{
	int64_t		value;

	if (!read_integer(in, least, most, &value))
		return refuse(r, field, what);
	wire_tag(r->out, field->id, WIRE_VARINT);
	wire_varint(r->out, (uint64_t) value);
	return true;
}

/*
 * The transcoder writes a string as the field 3 of a Value; its one byte of a tag is
 * put in the place of our tag's last byte, which is then set right.
 */
static bool
put_string(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in)
{
	struct buf *out = r->out;
	size_t		at;
	uint8_t		last;

	if (*in.p != '"')
		return refuse(r, field, "is a string");
	wire_tag(out, field->id, WIRE_BYTES);
	at = --out->len;
	last = out->data[at];
	if (!json_to_value(in.p, in.len, out, r->err))
		return false;
	out->data[at] = last;
	return true;
}

static bool
put_value(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in)
{
	struct wig_error why = {.message = ""};
	size_t		content;

	wire_tag(r->out, field->id, WIRE_BYTES);
	content = wire_open_length(r->out);
	if (!json_to_text(in.p, in.len, r->out, &why))
		return wig_fail(r->err, "%s.%s: %s", r->type->short_name, field->name, why.message);
	wire_close(r->out, content);
	return true;
}

static bool
put_message(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in)
{
	struct reader inner = *r;
	size_t		content;

	if (*in.p != '{')
		return refuse(r, field, "is an object");
	inner.type = field->descriptor;
	wire_tag(r->out, field->id, WIRE_BYTES);
	content = wire_open_length(r->out);
	if (!read_object(&inner, in))
		return false;
	wire_close(r->out, content);
	return true;
}

static bool
put_one(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in)
{
	switch (field->type)
	{
		case PROTOBUF_C_TYPE_STRING:
			return put_string(r, field, in);
		case PROTOBUF_C_TYPE_INT32:
			return put_integer(r, field, in, INT32_MIN, INT32_MAX, "is a whole number of 32 bits");
		case PROTOBUF_C_TYPE_INT64:
			return put_integer(r, field, in, INT64_MIN, INT64_MAX, "is a whole number of 64 bits");
		case PROTOBUF_C_TYPE_BOOL:
			if (*in.p != 't' && *in.p != 'f')
				return refuse(r, field, "is true or false");
			wire_tag(r->out, field->id, WIRE_VARINT);
			wire_varint(r->out, *in.p == 't');
			return true;
		case PROTOBUF_C_TYPE_BYTES:
			return put_value(r, field, in);
		case PROTOBUF_C_TYPE_MESSAGE:
			return put_message(r, field, in);
		default:
			return refuse(r, field, "cannot be given in JSON");
	}
}

static bool
put_list(const struct reader *r, const ProtobufCFieldDescriptor *field, struct text in)
{
	size_t		pos = 0;
	struct text element;

	if (*in.p != '[')
		return refuse(r, field, "is an array");
	while (wig_json_next_element(in.p, in.len, &pos, &element.p, &element.len))
	{
		if (is_null(element))
			return refuse(r, field, "holds a null");
		if (!put_one(r, field, element))
			return false;
	}
	return true;
}

/* Fields that were given already; a oneof counts as all of its fields. */
static bool
mark_given(const struct reader *r, const ProtobufCFieldDescriptor *field, uint64_t *given)
{
	const ProtobufCMessageDescriptor *type = r->type;

	for (unsigned i = 0; i < type->n_fields; i++)
	{
		const ProtobufCFieldDescriptor *other = &type->fields[i];
		bool		excluded = other == field ||
			((field->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
			 field->quantifier_offset == other->quantifier_offset);

		if (!excluded)
			continue;
		if ((*given & UINT64_C(1) << i) != 0)
			return refuse(r, field, "is given twice, or beside another one that excludes it");
	}
	*given |= UINT64_C(1) << (field - type->fields);
	return true;
}

static bool
read_object(const struct reader *r, struct text in)
{
	struct wig_json_member member;
	uint64_t	given = 0;
	size_t		pos = 0;

	while (wig_json_next_member(in.p, in.len, &pos, &member))
	{
		const struct text key = {member.key, member.key_len};
		const struct text value = {member.value, member.value_len};
		const ProtobufCFieldDescriptor *field = find_field(r->type, key);

		if (field == NULL || (is_null(value) && field->type != PROTOBUF_C_TYPE_BYTES))
			continue;
		if (!mark_given(r, field, &given))
			return false;
		if (!(field->label == PROTOBUF_C_LABEL_REPEATED ? put_list : put_one) (r, field, value))
			return false;
	}
	return true;
}

bool
json_to_message(const char *json, size_t len, const ProtobufCMessageDescriptor *type,
				struct buf *out, struct wig_error *err)
{
	const struct reader r = {.type = type, .out = out, .err = err};
	struct wig_error why = {.message = ""};
	struct wig_json_info info;

	if (!wig_json_check_envelope(json, len, &info, &why))
		return wig_fail(err, "the request is %s", why.message);
	if (info.type != WIG_JSON_OBJECT)
		return wig_fail(err, "the request is not a JSON object");
	return read_object(&r, (struct text) {json + info.start, info.length});
}

/* ---------------------------------------------------------- message to JSON */

static void
write_double(double d, struct buf *out)
{
	if (isnan(d))
		buf_text(out, "\"NaN\"");
	else if (isinf(d))
		buf_text(out, d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
	{
		buf_reserve(out, DOUBLE_SHORTEST_DECIMAL_LEN);
		out->len += (size_t) double_to_shortest_decimal_buf(d, (char *) out->data + out->len);
	}
}

static bool
write_one(const ProtobufCFieldDescriptor *field, const void *at, struct buf *out, struct wig_error *err)
{
	const ProtobufCBinaryData *bytes = at;

	switch (field->type)
	{
		case PROTOBUF_C_TYPE_STRING:
			buf_json(out, *(char *const *) at);
			return true;
		case PROTOBUF_C_TYPE_INT32:
			buf_printf(out, "%" PRId32, *(const int32_t *) at);
			return true;
		case PROTOBUF_C_TYPE_INT64:
			buf_printf(out, "\"%" PRId64 "\"", *(const int64_t *) at);
			return true;
		case PROTOBUF_C_TYPE_BOOL:
			buf_text(out, *(const protobuf_c_boolean *) at ? "true" : "false");
			return true;
		case PROTOBUF_C_TYPE_DOUBLE:
			write_double(*(const double *) at, out);
			return true;
		case PROTOBUF_C_TYPE_BYTES:
			return value_to_json(bytes->data, bytes->len, out, err);
		case PROTOBUF_C_TYPE_MESSAGE:
			return message_to_json(*(ProtobufCMessage *const *) at, out, err);
		default:
			return wig_fail(err, "%s has no form in JSON", field->name);
	}
}

static size_t
size_of(ProtobufCType type)
{
	switch (type)
	{
		case PROTOBUF_C_TYPE_INT32:
			return sizeof(int32_t);
		case PROTOBUF_C_TYPE_INT64:
			return sizeof(int64_t);
		case PROTOBUF_C_TYPE_BOOL:
			return sizeof(protobuf_c_boolean);
		case PROTOBUF_C_TYPE_DOUBLE:
			return sizeof(double);
		case PROTOBUF_C_TYPE_BYTES:
			return sizeof(ProtobufCBinaryData);
		default:
			return sizeof(void *);
	}
}

/* Is the field's value other than its type's default? */
static bool
is_set(const ProtobufCFieldDescriptor *field, const void *at)
{
	switch (field->type)
	{
		case PROTOBUF_C_TYPE_STRING:
			return *(char *const *) at != NULL && **(char *const *) at != '\0';
		case PROTOBUF_C_TYPE_INT32:
			return *(const int32_t *) at != 0;
		case PROTOBUF_C_TYPE_INT64:
			return *(const int64_t *) at != 0;
		case PROTOBUF_C_TYPE_BOOL:
			return *(const protobuf_c_boolean *) at != 0;
		case PROTOBUF_C_TYPE_DOUBLE:
			return *(const double *) at != 0;
		case PROTOBUF_C_TYPE_BYTES:
			return ((const ProtobufCBinaryData *) at)->len > 0;
		default:
			return *(void *const *) at != NULL;
	}
}

/* How many values the field has that are to be written. */
static size_t
count_values(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *) message;
	const void *quantifier = base + field->quantifier_offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *) quantifier;
	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
		return *(const uint32_t *) quantifier == field->id;
	return is_set(field, base + field->offset);
}

static bool
write_list(const ProtobufCFieldDescriptor *field, const char *at, size_t n, struct buf *out,
		   struct wig_error *err)
{
	size_t		size = size_of(field->type);

	for (size_t i = 0; i < n; i++)
	{
		buf_byte(out, i == 0 ? '[' : ',');
		if (!write_one(field, at + i * size, out, err))
			return false;
	}
	buf_byte(out, ']');
	return true;
}

bool
message_to_json(const ProtobufCMessage *message, struct buf *out, struct wig_error *err)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	char		before = '{';

	for (unsigned i = 0; i < type->n_fields; i++)
	{
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		const char *at = (const char *) message + field->offset;
		size_t		n = count_values(message, field);
		char		name[NAME_BYTES];

		if (n == 0)
			continue;
		buf_byte(out, (uint8_t) before);
		before = ',';
		buf_append(out, name, camel_name(field->name, name));
		buf_byte(out, ':');
		if (!(field->label == PROTOBUF_C_LABEL_REPEATED ?
			  write_list(field, *(const char *const *) at, n, out, err) :
			  write_one(field, at, out, err)))
			return false;
	}
	if (before == '{')
		buf_byte(out, '{');
	buf_byte(out, '}');
	return true;
}
