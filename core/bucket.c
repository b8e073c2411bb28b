/*
 * bucket.c
 *	  Tasks by bucket, and buckets by member.
 */
#include "bucket.h"

/* Half a byte at a time: ids are short, and sixteen words stay in the cache. */
static const uint32_t crc_table[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c
};

uint32_t
wig_crc32(const char *data, size_t len)
{
	uint32_t	crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++)
	{
		crc ^= (uint8_t) data[i];
		crc = crc_table[crc & 15] ^ crc >> 4;
		crc = crc_table[crc & 15] ^ crc >> 4;
	}
	return ~crc;
}

int
wig_bucket(const char *task_id, size_t len)
{
	return (int) (wig_crc32(task_id, len) % WIG_BUCKETS);
}

/* Where the range of a member begins, and that of the one before it ends. */
static int
begin_of(int place, int members)
{
	int			more = WIG_BUCKETS % members;

	return place * (WIG_BUCKETS / members) + (place < more ? place : more);
}

void
wig_bucket_range(int place, int members, int *start, int *end)
{
	*start = begin_of(place, members);
	*end = begin_of(place + 1, members);
}
