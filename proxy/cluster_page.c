/*
 * cluster_page.c
 *	  /api/cluster: this process, the proxies that home listed, and who takes what.
 */
#include <inttypes.h>
#include <string.h>

#include "bucket.h"
#include "cluster_page.h"
#include "fleet.h"
#include "health.h"
#include "member.h"

/* Queues that are listed at most; with more the page says so. */
#define QUEUES_MAX 1000

static const char *
truth(bool value)
{
	return value ? "true" : "false";
}

static void
write_range(struct buf *out, int start, int end)
{
	buf_printf(out, "\"start\":%d,\"end\":%d,\"share\":%g", start, end, (double) (end - start) / WIG_BUCKETS);
}

static void
write_partitioning(struct buf *out)
{
	enum fleet_state state = fleet_state();

	buf_printf(out, "\"partitioning\":{\"enabled\":%s,\"active\":%s,\"reason\":", truth(state != FLEET_OFF),
			   truth(state == FLEET_DIVIDES));
	if (state == FLEET_DIVIDES)
		buf_text(out, "null");
	else
		buf_json(out, fleet_state_text(state));
	buf_printf(out, ",\"buckets\":%d,\"listAgeMillis\":%" PRId64 "}", WIG_BUCKETS, fleet_age_ms());
}

static void
write_node(struct buf *out, const struct fleet_node *node)
{
	buf_text(out, "{\"id\":");
	buf_json(out, node->id);
	buf_text(out, ",\"name\":");
	buf_json(out, node->name);
	buf_printf(out, ",\"firstHeartbeat\":%" PRId64 ",\"lastHeartbeat\":%" PRId64 ",\"workers\":%d,\"alive\":%s,"
			   "\"leader\":%s,\"self\":%s,\"partitioned\":%s", node->first_ms, node->last_ms, node->workers,
			   truth(node->alive), truth(node->leader), truth(strcmp(node->id, member_id()) == 0),
			   truth(node->member));
	if (node->member)
	{
		buf_byte(out, ',');
		write_range(out, node->start, node->end);
	}
	buf_byte(out, '}');
}

/* This process's share of each queue that somebody names. */
static void
write_queues(struct buf *out)
{
	int			n;
	const struct fleet_queue *queues = fleet_queues(&n);

	buf_text(out, "\"queues\":[");
	for (int i = 0; i < n && i < QUEUES_MAX && fleet_state() == FLEET_DIVIDES; i++)
	{
		buf_text(out, i > 0 ? ",{\"queue\":" : "{\"queue\":");
		buf_json(out, queues[i].name);
		buf_printf(out, ",\"polled\":%s,", truth(queues[i].polled));
		write_range(out, queues[i].start, queues[i].end);
		buf_byte(out, '}');
	}
	buf_printf(out, "],\"queuesListed\":%s", truth(n <= QUEUES_MAX));
}

static void
write_members(struct buf *out)
{
	int			n;
	const struct fleet_node *nodes = fleet_nodes(&n);

	buf_text(out, ",\"self\":");
	buf_json(out, member_id());
	buf_printf(out, ",\"leader\":%s,", truth(member_leads()));
	write_partitioning(out);
	buf_text(out, ",\"members\":[");
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
			buf_byte(out, ',');
		write_node(out, &nodes[i]);
	}
	buf_text(out, "],");
	write_queues(out);
}

void
cluster_page_write(struct buf *out)
{
	health_write(out, write_members);
}
