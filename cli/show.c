/*
 * show.c
 *	  An instance and its tokens, for people and for programs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "registered.h"
#include "show.h"
#include "value.h"

void
show_value(struct buf *out, const ProtobufCBinaryData *value)
{
	if (!value_to_json(value->data, value->len, out, NULL))
		buf_text(out, "null");
}

/* proto3's optional fields arrive as oneofs. */
static const char *
optional_text(int which, const char *text)
{
	return which == 0 ? NULL : text;
}

static const char *
termination_reason(const PB(InstanceView) *view)
{
	return optional_text(view->has_termination_reason_case, view->termination_reason);
}

static const char *
instance_error(const PB(InstanceView) *view)
{
	return optional_text(view->has_error_case, view->error);
}

const char *
show_why(const PB(InstanceView) *view)
{
	return instance_error(view) != NULL ? instance_error(view) : termination_reason(view);
}

/* ---- JSON ---- */

static void
put_value(struct buf *out, const char *key, const ProtobufCBinaryData *value)
{
	struct buf	text = BUF_INIT;

	show_value(&text, value);
	json_raw(out, key, (const char *) text.data, text.len);
	buf_free(&text);
}

void
show_members(struct buf *out, const PB(InstanceView) *view)
{
	json_text(out, "id", view->id);
	json_text(out, "workflow", view->workflow);
	json_number(out, "version", view->version);
	json_text(out, "status", view->status);
	json_text(out, "termination_reason", termination_reason(view));
	json_text(out, "error", instance_error(view));
	json_time(out, "created_at", view->created_at);
	json_time(out, "updated_at", view->updated_at);
	put_value(out, "context", &view->context);
}

static void
put_token(struct buf *out, const PB(Token) *token)
{
	json_open(out, NULL, '{');
	json_text(out, "id", token->id);
	json_text(out, "node_id", token->node_id);
	json_text(out, "kind", token->kind);
	json_text(out, "status", token->status);
	json_text(out, "activity", token->activity[0] == '\0' ? NULL : token->activity);
	json_number(out, "attempt", token->attempt);
	json_time(out, "available_at", token->available_at);
	json_text(out, "lease_owner", optional_text(token->has_lease_owner_case, token->lease_owner));
	json_text(out, "last_error", optional_text(token->has_last_error_case, token->last_error));
	json_time(out, "created_at", token->created_at);
	json_time(out, "started_at", token->has_started_at_case == 0 ? 0 : token->started_at);
	json_time(out, "finished_at", token->has_finished_at_case == 0 ? 0 : token->finished_at);
	put_value(out, "input", &token->input);
	put_value(out, "output", &token->output);
	json_close(out, '}');
}

static void
print_json(const PB(InstanceDetail) *detail)
{
	struct buf	out = BUF_INIT;

	json_open(&out, NULL, '{');
	show_members(&out, detail->instance);
	json_open(&out, "tokens", '[');
	for (size_t i = 0; i < detail->n_tokens; i++)
		put_token(&out, detail->tokens[i]);
	json_close(&out, ']');
	json_close(&out, '}');
	print_buf(&out);
	buf_free(&out);
}

/* ---- text ---- */

static void
print_fact(const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		printf("%-10s  %s\n", name, value);
}

/* "word TIME", when there is a time. */
static void
add_time(struct buf *out, const char *word, int64_t ms)
{
	char		time[40];

	format_time(ms, time);
	if (time[0] != '\0')
		buf_printf(out, "%s %s", word, time);
}

void
show_token_detail(struct buf *out, const PB(Token) *token)
{
	const char *error = optional_text(token->has_last_error_case, token->last_error);
	const char *owner = optional_text(token->has_lease_owner_case, token->lease_owner);

	if (strcmp(token->status, "RUNNING") == 0 && owner != NULL)
		buf_printf(out, "with %s", owner);
	else if (strcmp(token->status, "WAITING") == 0)
		add_time(out, strcmp(token->kind, "SLEEP") == 0 ? "until" : "again at", token->available_at);
	else if (strcmp(token->status, "AWAITING") == 0 && strcmp(token->kind, "SIGNAL") == 0)
		add_time(out, "deadline", token->available_at);
	else if (strcmp(token->status, "AWAITING") == 0 && strcmp(token->kind, "SUB_WORKFLOW") == 0)
		buf_printf(out, "for: wiggle list --correlation-id sub:%s", token->id);
	else if (strcmp(token->status, "READY") == 0 && token->attempt > 0)
		add_time(out, "again at", token->available_at);
	if (error != NULL && error[0] != '\0')
		buf_printf(out, "%s%s", out->len > 0 ? "; " : "", error);
}

/* A step's name: the graph's, which compensators do not stand in, else the activity. */
static const char *
step_name(const PB(InstanceDetail) *detail, const struct wig_definition *def, const PB(Token) *token)
{
	const char *workflow = detail->instance->workflow;
	size_t		len = strlen(workflow);
	int			at = def == NULL ? -1 : wig_definition_node(def, token->node_id, strlen(token->node_id));

	if (strncmp(token->activity, workflow, len) == 0 && token->activity[len] == '#')
		return token->activity + len + 1;
	return at >= 0 ? registered_step(def, &def->nodes[at]) : token->activity;
}

/* Tokens that a person would not tell apart: what was done alike many times, say. */
struct row
{
	const PB(Token) *token;
	int			count;
	struct buf	more;
};

static void
add_token(struct row *rows, size_t *nrows, const PB(Token) *token)
{
	struct row *row = &rows[*nrows];

	*row = (struct row) {.token = token, .count = 1};
	show_token_detail(&row->more, token);
	for (size_t i = 0; i < *nrows && row->more.len == 0; i++)
	{
		const PB(Token) *other = rows[i].token;

		if (rows[i].more.len == 0 && strcmp(other->node_id, token->node_id) == 0 &&
			strcmp(other->status, token->status) == 0 && strcmp(other->activity, token->activity) == 0 &&
			other->attempt == token->attempt)
		{
			rows[i].count++;
			return;
		}
	}
	(*nrows)++;
}

static void
print_tokens(const PB(InstanceDetail) *detail, const struct wig_definition *def)
{
	static const char *const headings[] = {"STEP", "NODE", "KIND", "STATUS", "TOKENS", "FAILURES", "DETAIL"};
	struct row *rows = xcalloc(detail->n_tokens + 1, sizeof(*rows));
	struct table table;
	size_t		n = 0;

	for (size_t i = 0; i < detail->n_tokens; i++)
		add_token(rows, &n, detail->tokens[i]);
	table_start(&table, 7, headings);
	for (size_t i = 0; i < n; i++)
	{
		const PB(Token) *token = rows[i].token;
		char		count[16];
		char		attempt[16];
		const char *cells[] = {step_name(detail, def, token), token->node_id, token->kind, token->status,
		count, attempt, buf_cstr(&rows[i].more)};

		snprintf(count, sizeof(count), "%d", rows[i].count);
		snprintf(attempt, sizeof(attempt), "%d", (int) token->attempt);
		table_row(&table, cells);
		buf_free(&rows[i].more);
	}
	free(rows);
	if (n > 0)
	{
		putchar('\n');
		table_print(&table, stdout);
	}
	table_free(&table);
}

static void
print_text(const PB(InstanceDetail) *detail, const struct wig_definition *def)
{
	const PB(InstanceView) *view = detail->instance;
	struct buf	context = BUF_INIT;
	struct buf	pretty = BUF_INIT;
	char		version[16];
	char		created[40];
	char		updated[40];

	snprintf(version, sizeof(version), "%d", (int) view->version);
	format_time(view->created_at, created);
	format_time(view->updated_at, updated);
	print_fact("id", view->id);
	print_fact("workflow", view->workflow);
	print_fact("version", version);
	print_fact("status", view->status);
	print_fact("reason", termination_reason(view));
	print_fact("error", instance_error(view));
	print_fact("created", created);
	print_fact("updated", updated);
	print_tokens(detail, def);
	show_value(&context, &view->context);
	json_indent((const char *) context.data, context.len, &pretty);
	printf("\ncontext ");
	print_buf(&pretty);
	buf_free(&context);
	buf_free(&pretty);
}

void
show_instance(struct session *session, const PB(InstanceDetail) *detail)
{
	const PB(InstanceView) *view = detail->instance;
	struct wig_definition *def;

	if (session->json)
	{
		print_json(detail);
		return;
	}
	def = registered_find(session, view->workflow, view->version);
	print_text(detail, def);
	wig_definition_free(def);
}
