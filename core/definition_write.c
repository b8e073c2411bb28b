/*
 * definition_write.c
 *	  A definition as JSON text, and its fingerprint.
 *
 * One writer serves both. It writes every object's keys in ascending order and
 * no white space, which is what the canonical form asks for.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "definition.h"
#include "textbuf.h"

/* How a combine that came in the legacy encoding is written. */
enum combine_form
{
	COMBINE_TYPED,				/* armNames or collectKey: the canonical form */
	COMBINE_AS_CAME,			/* itemsKey alone for what came that way */
	COMBINE_BOTH				/* every combine carries both */
};

/* Write the key of a member, with the comma or brace before it. */
static void
put_key(struct wig_text *out, const char *key)
{
	if (out->len > 0 && out->data[out->len - 1] != '{')
		wig_text_put(out, ",", 1);
	wig_text_put_string(out, key);
	wig_text_put(out, ":", 1);
}

static void
put_string_member(struct wig_text *out, const char *key, const char *value)
{
	if (value == NULL)
		return;
	put_key(out, key);
	wig_text_put_string(out, value);
}

static void
put_int_member(struct wig_text *out, const char *key, int64_t value)
{
	put_key(out, key);
	wig_text_put_int(out, value);
}

static void
put_strings(struct wig_text *out, const char *const *strings, int n)
{
	wig_text_put(out, "[", 1);
	for (int i = 0; i < n; i++)
	{
		if (i > 0)
			wig_text_put(out, ",", 1);
		wig_text_put_string(out, strings[i]);
	}
	wig_text_put(out, "]", 1);
}

static const char *
node_id(const struct wig_definition *def, int node)
{
	return node < 0 ? NULL : def->nodes[node].id;
}

static void
put_branches(struct wig_text *out, const struct wig_definition *def,
			 const struct wig_node *node)
{
	if (node->nbranches == 0)
		return;
	put_key(out, "branches");
	wig_text_put(out, "[", 1);
	for (int i = 0; i < node->nbranches; i++)
	{
		if (i > 0)
			wig_text_put(out, ",", 1);
		wig_text_put_string(out, node_id(def, node->branches[i]));
	}
	wig_text_put(out, "]", 1);
}

/* itemsKey: plain text, or the JSON text that a combine's keys once were. */
static void
put_items_key(struct wig_text *out, const struct wig_node *node, bool legacy)
{
	struct wig_text inner = {0};
	char	   *text;

	if (!legacy || (node->narms == 0 && node->collect_key == NULL))
	{
		put_string_member(out, "itemsKey", node->items_key);
		return;
	}
	if (node->narms > 0)
		put_strings(&inner, node->arm_names, node->narms);
	else
		wig_text_put_string(&inner, node->collect_key);
	text = wig_text_take(&inner);
	if (text == NULL)
		out->failed = true;
	else
		put_string_member(out, "itemsKey", text);
	free(text);
}

static void
put_retry(struct wig_text *out, const struct wig_retry *retry)
{
	put_key(out, "retry");
	wig_text_put(out, "{", 1);
	put_int_member(out, "initialBackoffMillis", retry->initial_ms);
	put_key(out, "jitter");
	wig_text_put_double(out, retry->jitter);
	put_int_member(out, "maxAttempts", retry->max_attempts);
	put_int_member(out, "maxBackoffMillis", retry->max_ms);
	put_key(out, "multiplier");
	wig_text_put_double(out, retry->multiplier);
	wig_text_put(out, "}", 1);
}

static void
put_node(struct wig_text *out, const struct wig_definition *def,
		 const struct wig_node *node, enum combine_form form)
{
	bool		typed = form != COMBINE_AS_CAME || !node->legacy_combine;
	bool		legacy = form == COMBINE_BOTH || !typed;

	wig_text_put(out, "{", 1);
	put_string_member(out, "activity", node->activity);
	put_string_member(out, "altNext", node_id(def, node->alt));
	if (typed && node->narms > 0)
	{
		put_key(out, "armNames");
		put_strings(out, node->arm_names, node->narms);
	}
	put_branches(out, def, node);
	if (typed)
		put_string_member(out, "collectKey", node->collect_key);
	if (node->compensable)
	{
		put_key(out, "compensable");
		wig_text_puts(out, "true");
	}
	if (node->expected > 0)
		put_int_member(out, "expected", node->expected);
	put_string_member(out, "id", node->id);
	put_string_member(out, "itemKey", node->item_key);
	put_items_key(out, node, legacy);
	put_string_member(out, "kind", wig_kind_name(node->kind));
	if (node->loop_budget != 0)
		put_int_member(out, "loopBudget", node->loop_budget);
	put_key(out, "name");
	wig_text_put_string(out, node->name);
	put_string_member(out, "next", node_id(def, node->next));
	put_string_member(out, "queue", node->queue);
	put_string_member(out, "reason", node->reason);
	if (node->has_retry)
		put_retry(out, &node->retry);
	if (node->sleep_ms > 0)
		put_int_member(out, "sleepMillis", node->sleep_ms);
	if (node->kind == WIG_END)
	{
		put_key(out, "success");
		wig_text_puts(out, node->success ? "true" : "false");
	}
	wig_text_put(out, "}", 1);
}

static void
put_nodes(struct wig_text *out, const struct wig_definition *def, enum combine_form form)
{
	put_key(out, "nodes");
	wig_text_put(out, "[", 1);
	for (int i = 0; i < def->nnodes; i++)
	{
		if (i > 0)
			wig_text_put(out, ",", 1);
		put_node(out, def, &def->nodes[i], form);
	}
	wig_text_put(out, "]", 1);
}

/* Nodes are sorted by id, and so are the checkpoints taken from them. */
static void
put_checkpoints(struct wig_text *out, const struct wig_definition *def)
{
	bool		first = true;

	put_key(out, "checkpoints");
	wig_text_put(out, "[", 1);
	for (int i = 0; i < def->nnodes; i++)
	{
		if (!def->nodes[i].checkpoint)
			continue;
		if (!first)
			wig_text_put(out, ",", 1);
		first = false;
		wig_text_put_string(out, def->nodes[i].id);
	}
	wig_text_put(out, "]", 1);
}

static bool
has_checkpoints(const struct wig_definition *def)
{
	for (int i = 0; i < def->nnodes; i++)
	{
		if (def->nodes[i].checkpoint)
			return true;
	}
	return false;
}

char *
wig_definition_to_json(const struct wig_definition *def, bool show_legacy)
{
	struct wig_text out = {0};

	wig_text_put(&out, "{", 1);
	if (has_checkpoints(def))
		put_checkpoints(&out, def);
	put_string_member(&out, "executionMode", wig_mode_name(def->mode));
	put_string_member(&out, "name", def->name);
	put_nodes(&out, def, show_legacy ? COMBINE_BOTH : COMBINE_AS_CAME);
	put_key(&out, "queues");
	put_strings(&out, def->queues, def->nqueues);
	put_string_member(&out, "startNode", node_id(def, def->start));
	put_int_member(&out, "version", def->version);
	wig_text_put(&out, "}", 1);
	return wig_text_take(&out);
}

bool
wig_definition_fingerprint(const struct wig_definition *def, char out[65])
{
	static const char hex[] = "0123456789abcdef";
	struct wig_text text = {0};
	unsigned char digest[32];
	unsigned int len = 0;
	bool		done;

	wig_text_put(&text, "{", 1);
	put_checkpoints(&text, def);
	put_string_member(&text, "executionMode", wig_mode_name(def->mode));
	put_string_member(&text, "name", def->name);
	put_nodes(&text, def, COMBINE_TYPED);
	put_string_member(&text, "startNode", node_id(def, def->start));
	wig_text_put(&text, "}", 1);
	done = !text.failed &&
		EVP_Digest(text.data, text.len, digest, &len, EVP_sha256(), NULL) == 1 &&
		len == sizeof(digest);
	wig_text_free(&text);
	if (!done)
		return false;
	for (size_t i = 0; i < sizeof(digest); i++)
	{
		out[2 * i] = hex[digest[i] >> 4];
		out[2 * i + 1] = hex[digest[i] & 15];
	}
	out[64] = '\0';
	return true;
}
