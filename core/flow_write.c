/*
 * flow_write.c
 *	  The nodes that a flow was compiled to, as a definition's JSON text.
 */
#include "flow_impl.h"
#include "textbuf.h"

static void
put_member(struct wig_text *out, const char *key, const char *value)
{
	if (value == NULL)
		return;
	wig_text_put(out, ",", 1);
	wig_text_put_string(out, key);
	wig_text_put(out, ":", 1);
	wig_text_put_string(out, value);
}

static void
put_number(struct wig_text *out, const char *key, int64_t value)
{
	wig_text_put(out, ",", 1);
	wig_text_put_string(out, key);
	wig_text_put(out, ":", 1);
	wig_text_put_int(out, value);
}

static void
put_retry(struct wig_text *out, const struct wig_retry *retry)
{
	wig_text_puts(out, ",\"retry\":{\"multiplier\":");
	wig_text_put_double(out, retry->multiplier);
	wig_text_puts(out, ",\"jitter\":");
	wig_text_put_double(out, retry->jitter);
	put_number(out, "maxAttempts", retry->max_attempts);
	put_number(out, "initialBackoffMillis", retry->initial_ms);
	put_number(out, "maxBackoffMillis", retry->max_ms);
	wig_text_put(out, "}", 1);
}

static void
put_lists(struct wig_text *out, const struct draft *node)
{
	for (int i = 0; i < node->nbranches; i++)
	{
		wig_text_puts(out, i == 0 ? ",\"branches\":[" : ",");
		wig_text_put_string(out, node->branches[i]->id);
	}
	if (node->nbranches > 0)
		wig_text_put(out, "]", 1);
	for (int i = 0; i < node->narms; i++)
	{
		wig_text_puts(out, i == 0 ? ",\"armNames\":[" : ",");
		wig_text_put_string(out, node->arm_names[i]);
	}
	if (node->narms > 0)
		wig_text_put(out, "]", 1);
}

static void
put_node(struct wig_text *out, const struct draft *node)
{
	wig_text_puts(out, "{\"kind\":");
	wig_text_put_string(out, wig_kind_name(node->kind));
	put_member(out, "id", node->id);
	put_member(out, "name", node->name);
	put_member(out, "activity", node->activity);
	put_member(out, "queue", node->queue);
	put_member(out, "next", node->next == NULL ? NULL : node->next->id);
	put_member(out, "altNext", node->alt == NULL ? NULL : node->alt->id);
	put_member(out, "reason", node->reason);
	put_member(out, "itemsKey", node->items_key);
	put_member(out, "itemKey", node->item_key);
	put_member(out, "collectKey", node->collect_key);
	put_number(out, "sleepMillis", node->sleep_ms);
	put_number(out, "expected", node->expected);
	put_number(out, "loopBudget", node->loop_budget);
	if (node->retry != NULL)
		put_retry(out, node->retry);
	if (node->compensable)
		wig_text_puts(out, ",\"compensable\":true");
	put_lists(out, node);
	wig_text_puts(out, node->kind == WIG_END ? ",\"success\":true}" : "}");
}

char *
wig_flow_write(const struct compiler *c, const struct draft *start, int64_t version)
{
	struct wig_text out = {0};
	const char *separator = "";

	wig_text_puts(&out, "{\"executionMode\":\"DEFAULT\"");
	put_member(&out, "name", c->workflow);
	put_number(&out, "version", version);
	put_member(&out, "startNode", start->id);
	wig_text_puts(&out, ",\"nodes\":[");
	for (const struct draft *node = c->first; node != NULL; node = node->later)
	{
		wig_text_puts(&out, separator);
		put_node(&out, node);
		separator = ",";
	}
	wig_text_puts(&out, "],\"queues\":[");
	separator = "";
	for (const struct draft *node = c->first; node != NULL; node = node->later)
	{
		if (node->queue == NULL)
			continue;
		wig_text_puts(&out, separator);
		wig_text_put_string(&out, node->queue);
		separator = ",";
	}
	wig_text_puts(&out, "]}");
	return wig_text_take(&out);
}
