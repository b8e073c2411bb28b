/*
 * router.c
 *	  From an id to the shard that holds it.
 */
#include "ids.h"
#include "router.h"

enum route
router_find(const struct topology *topology, const char *id, size_t len,
			int *shard, int32_t *number)
{
	int			index;

	*number = wig_id_shard(id, len);
	if (*number == WIG_NO_SHARD)
	{
		*shard = topology->home;
		return ROUTE_OK;
	}
	index = topology_find(topology, *number);
	if (index < 0)
		return ROUTE_UNKNOWN;
	if (topology->shards[index].state == SHARD_RETIRED)
		return ROUTE_RETIRED;
	if (!topology_serves(&topology->shards[index]))
		return ROUTE_UNKNOWN;
	*shard = index;
	return ROUTE_OK;
}

uint32_t
router_hash(const char *id, size_t len)
{
	size_t		start = 0;
	size_t		end = len;
	uint32_t	hash = 2166136261u;

	/*
	 * An instance is "wfi.s1.PART" and its tasks are "tok.s1.PART-N": what they
	 * share lies between the first separator and the last '-'. The alphabet of
	 * PART has no '-', so an instance's id is not cut.
	 */
	while (start < len && id[start] != '.' && id[start] != '_')
		start++;
	for (size_t i = len; i > start; i--)
	{
		if (id[i - 1] == '-')
		{
			end = i - 1;
			break;
		}
	}
	for (size_t i = start; i < end; i++)
		hash = (hash ^ (unsigned char) id[i]) * 16777619u;
	return hash ^ (hash >> 15);
}
