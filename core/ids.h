/*
 * ids.h
 *	  Instance ids, task ids and lease nonces: format, parse, nothing else.
 *
 * An id part is 22 characters of the alphabet 0-9a-z without i, l, o, u: ten
 * characters of Unix milliseconds (50 bits, most significant first) and twelve
 * random ones. A bare id is "<prefix>_<part>", one that names its shard is
 * "<prefix>.s<shard>.<part>". A task id is its instance's id with the prefix
 * "tok" and "-<n>" behind it, so that it routes by itself and names its
 * instance. The rules are Wiggle's (docs/spec, chapter on ids); the -<n> is ours.
 */
#ifndef WIGGLE_CORE_IDS_H
#define WIGGLE_CORE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIG_ID_MAX		128		/* longest id, without terminator */
#define WIG_PART_LEN	22
#define WIG_NO_SHARD	(-1)	/* the id carries no shard: it lives on home */
#define WIG_MAX_SHARD	999999999
#define WIG_NONCE_LEN	13		/* characters of a lease nonce (65 >= 64 bits) */

/*
 * Write the 22 characters of an id part (no terminator) from Unix milliseconds
 * (the lowest 50 bits are used) and 60 random bits taken from rnd.
 */
extern void wig_part_encode(char out[WIG_PART_LEN], uint64_t unix_ms, uint64_t rnd);

/*
 * Write "<prefix>.s<shard>.<last>" or, for WIG_NO_SHARD, "<prefix>_<last>" with
 * a terminator into out[WIG_ID_MAX + 1]. Returns the length, or -1 when the
 * prefix is not lowercase letters, the shard is out of range, the last segment
 * is empty or holds a '.', or the whole is over 128 characters.
 */
extern int	wig_id_format(char *out, const char *prefix, int32_t shard,
						  const char *last, size_t last_len);

/* The shard that an id names, WIG_NO_SHARD when it names none. */
extern int32_t wig_id_shard(const char *id, size_t len);

/*
 * Is this the id of an instance as this engine writes them: prefix "wfi", a
 * shard or none, and 22 characters of the alphabet? If so *shard is set.
 */
extern bool wig_instance_id_valid(const char *id, size_t len, int32_t *shard);

/*
 * "wfi.s0.X" and 3 -> "tok.s0.X-3"; "wfi_X" and 3 -> "tok_X-3". out has room
 * for WIG_ID_MAX + 1. Returns the length or -1 when the id is not an instance's.
 */
extern int	wig_task_id_format(char *out, const char *instance_id, size_t len, int32_t n);

/*
 * The inverse: writes the instance id (terminated) and n. False when the text
 * is not a task id of ours; n is 1..INT32_MAX without leading zeros.
 */
extern bool wig_task_id_parse(const char *task_id, size_t len,
							  char instance_id[WIG_ID_MAX + 1], int32_t *n);

/*
 * A lease owner is "<worker id>#<13 characters of nonce>": unique for each
 * claim, so that two processes sharing a worker id cannot settle each other's
 * tasks. encode writes the 13 characters (no terminator); decode looks at what
 * follows the last '#' and is false when that is not a nonce.
 */
extern void wig_nonce_encode(char out[WIG_NONCE_LEN], uint64_t nonce);
extern bool wig_nonce_decode(const char *owner, size_t len, uint64_t *nonce);

#endif							/* WIGGLE_CORE_IDS_H */
