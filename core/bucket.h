/*
 * bucket.h
 *	  Tasks by bucket, and buckets by member.
 *
 * A task's bucket is the CRC-32 (IEEE 802.3, as zlib's and Java's) of its id's text,
 * modulo WIG_BUCKETS. Members that have agreed on their order split the buckets into
 * contiguous ranges of equal size; when they do not divide, the first ones have one more.
 */
#ifndef WIGGLE_CORE_BUCKET_H
#define WIGGLE_CORE_BUCKET_H

#include <stddef.h>
#include <stdint.h>

#define WIG_BUCKETS 1000

extern uint32_t wig_crc32(const char *data, size_t len);

/* 0 to WIG_BUCKETS - 1. */
extern int	wig_bucket(const char *task_id, size_t len);

/* The range [*start, *end) of member 0 <= place < members; empty for some when there are more than WIG_BUCKETS. */
extern void wig_bucket_range(int place, int members, int *start, int *end);

#endif							/* WIGGLE_CORE_BUCKET_H */
