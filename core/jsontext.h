/*
 * jsontext.h
 *	  Contexts as validated JSON text: checked once, never parsed into a tree.
 *
 * The hot path moves contexts as text. These functions look at it in one pass
 * over the bytes, without recursion that grows with the input. Nothing is
 * allocated, except that dropping nulls and merging take a table from malloc for
 * objects of many members, and do without when there is none.
 */
#ifndef WIGGLE_CORE_JSONTEXT_H
#define WIGGLE_CORE_JSONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/*
 * Every client must be able to decode what any door accepted. Decoders stop at
 * 100 nested messages; a context sits below two of them, an object costs three
 * a level (Struct, map entry, Value) and an array two (ListValue, Value).
 * Nesting cost above this is refused: 32 levels of objects or 48 of arrays.
 */
#define WIG_JSON_MAX_NESTING	97

enum wig_json_type
{
	WIG_JSON_NULL,
	WIG_JSON_BOOL,
	WIG_JSON_NUMBER,
	WIG_JSON_STRING,
	WIG_JSON_ARRAY,
	WIG_JSON_OBJECT
};

struct wig_json_info
{
	enum wig_json_type type;
	bool		bool_value;		/* for WIG_JSON_BOOL */
	bool		has_null_member;	/* an object with a top-level null member */
	size_t		start;			/* the value without surrounding white space */
	size_t		length;
};

/*
 * Check one RFC 8259 document: grammar, valid UTF-8, no U+0000 (raw or
 * escaped), no lone surrogates, numbers that fit a finite double, nesting cost
 * up to WIG_JSON_MAX_NESTING, nothing but white space behind it. Fills *info
 * (never NULL) on success, *err on refusal. The text need not be terminated.
 */
extern bool wig_json_check(const char *text, size_t len, struct wig_json_info *info,
						   struct wig_error *err);

/*
 * The same for a document that only holds contexts: up to 64 levels of either
 * kind. What is taken out of it as a context is checked by wig_json_check.
 */
extern bool wig_json_check_envelope(const char *text, size_t len, struct wig_json_info *info,
									struct wig_error *err);

/*
 * Walk the top-level members of an object that wig_json_check accepted. Start
 * with *pos = 0; each call that returns true gives the raw key (with quotes and
 * escapes), and the raw value. False at the end.
 */
struct wig_json_member
{
	const char *key;
	size_t		key_len;
	const char *value;
	size_t		value_len;
};
extern bool wig_json_next_member(const char *object, size_t len, size_t *pos,
								 struct wig_json_member *member);

/*
 * Walk the elements of an array that wig_json_check accepted, likewise from
 * *pos = 0; each call that returns true gives the raw element.
 */
extern bool wig_json_next_element(const char *array, size_t len, size_t *pos,
								  const char **element, size_t *element_len);

/*
 * Do two raw JSON strings (quotes included) denote the same text? Escapes are
 * resolved, so "a" and "\u0061" are equal.
 */
extern bool wig_json_key_equal(const char *a, size_t a_len, const char *b, size_t b_len);

/*
 * Drop top-level members whose value is null, and earlier duplicates of a key
 * that comes again. out has room for len bytes; returns the written length.
 * Nested nulls stay.
 */
extern size_t wig_json_drop_nulls(const char *object, size_t len, char *out);

/*
 * Shallow merge of a patch object over a base object: the patch's members win,
 * a null member deletes the key, the order of the base is kept and new keys
 * follow in the patch's order. out has room for base_len + patch_len bytes.
 * When base is not an object the result is the patch without its nulls.
 */
extern size_t wig_json_merge(const char *base, size_t base_len,
							 const char *patch, size_t patch_len, char *out);

/*
 * Lay an object's members over a base: the overlay's members win, nulls
 * included. A base that is not an object is hidden altogether. out has room for
 * base_len + overlay_len + 1 bytes.
 */
extern size_t wig_json_overlay(const char *base, size_t base_len,
							   const char *overlay, size_t overlay_len, char *out);

#endif							/* WIGGLE_CORE_JSONTEXT_H */
