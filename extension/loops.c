/*
 * loops.c
 *	  Reading and writing the iteration counts of loop guards.
 */
#include "wiggle.h"

#include "lib/stringinfo.h"
#include "utils/json.h"

#include "jsontext.h"
#include "loops.h"

static char *
quoted(const char *node_id)
{
	StringInfoData key;

	initStringInfo(&key);
	escape_json(&key, node_id);
	return key.data;
}

int32
wig_loops_get(const char *loops, const char *node_id)
{
	struct wig_json_member member;
	size_t		pos = 0;
	char	   *key;
	int32		count = 0;

	if (loops == NULL)
		return 0;
	key = quoted(node_id);
	while (wig_json_next_member(loops, strlen(loops), &pos, &member))
		if (wig_json_key_equal(member.key, member.key_len, key, strlen(key)))
			count = (int32) strtol(member.value, NULL, 10);
	return count;
}

char *
wig_loops_set(const char *loops, const char *node_id, int32 count)
{
	const char *base = loops ? loops : "{}";
	char	   *patch = psprintf("{%s:%d}", quoted(node_id), count);
	char	   *merged = palloc(strlen(base) + strlen(patch) + 1);
	size_t		len = wig_json_merge(base, strlen(base), patch, strlen(patch), merged);

	merged[len] = '\0';
	return merged;
}
