/*
 * token.c
 *	  Minting, reading and settling rows of wf_token.
 */
#include "wiggle.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "token.h"

enum
{
	TOKEN_INSTANCE = 1,
	TOKEN_CREATED_AT,
	TOKEN_AVAILABLE_AT,
	TOKEN_STARTED_AT,
	TOKEN_FINISHED_AT,
	TOKEN_NONCE,
	TOKEN_N,
	TOKEN_SCOPE,
	TOKEN_ATTEMPT,
	TOKEN_COMP_SEQ,
	TOKEN_FIRST_SCOPE,
	TOKEN_WIDTH,
	TOKEN_MISSING,
	TOKEN_STATUS,
	TOKEN_NODE,
	TOKEN_LOOPS,
	TOKEN_STAGED,
	TOKEN_INPUT,
	TOKEN_OUTPUT,
	TOKEN_LAST_ERROR,
	TOKEN_NATTS = TOKEN_LAST_ERROR
};

static TimestampTz
time_attr(TupleTableSlot *row, int attnum)
{
	bool		isnull;
	Datum		value = slot_getattr(row, attnum, &isnull);

	return isnull ? 0 : DatumGetTimestampTz(value);
}

/* Null stands for zero in the columns that most tokens lack. */
static int32
int_attr(TupleTableSlot *row, int attnum)
{
	bool		isnull;
	Datum		value = slot_getattr(row, attnum, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

/* A node that the graph lacks is reported at this level; token->node is -1 then. */
static void
read_row(TupleTableSlot *row, int level, const WigInstance *inst, WigToken *token)
{
	bool		isnull;
	Datum		value;
	text	   *node;

	token->instance = inst->no;
	token->n = DatumGetInt32(slot_getattr(row, TOKEN_N, &isnull));
	token->scope = DatumGetInt32(slot_getattr(row, TOKEN_SCOPE, &isnull));
	token->attempt = DatumGetInt32(slot_getattr(row, TOKEN_ATTEMPT, &isnull));
	token->letter = DatumGetChar(slot_getattr(row, TOKEN_STATUS, &isnull));
	token->created_at = time_attr(row, TOKEN_CREATED_AT);
	token->available_at = time_attr(row, TOKEN_AVAILABLE_AT);
	token->started_at = time_attr(row, TOKEN_STARTED_AT);
	token->finished_at = time_attr(row, TOKEN_FINISHED_AT);
	value = slot_getattr(row, TOKEN_NONCE, &isnull);
	token->nonce = isnull ? 0 : (uint64) DatumGetInt64(value);
	token->comp_seq = int_attr(row, TOKEN_COMP_SEQ);
	token->first_scope = int_attr(row, TOKEN_FIRST_SCOPE);
	token->width = int_attr(row, TOKEN_WIDTH);
	token->missing = int_attr(row, TOKEN_MISSING);
	value = slot_getattr(row, TOKEN_LOOPS, &isnull);
	token->loops = isnull ? NULL : TextDatumGetCString(value);
	value = slot_getattr(row, TOKEN_STAGED, &isnull);
	token->staged = isnull ? NULL : TextDatumGetCString(value);
	token->input = token->output = NULL;

	node = DatumGetTextPP(slot_getattr(row, TOKEN_NODE, &isnull));
	token->node = wig_definition_node(inst->graph->def, VARDATA_ANY(node),
									  VARSIZE_ANY_EXHDR(node));
	if (token->node < 0)
		ereport(level,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("token %d of instance %s stands at node \"%s\", which its definition lacks",
						token->n, inst->id, text_to_cstring(node)),
				 errhint("The graph was replaced under a running instance: cancel it.")));
}

static bool
fetch(WigStore *store, const WigInstance *inst, int32 n, int level, WigToken *token)
{
	Datum		key[2] = {Int64GetDatum(inst->no), Int32GetDatum(n)};
	TupleTableSlot *row = wig_store_fetch(store, WIG_INDEX_TOKEN, key, 2);

	if (row == NULL)
		return false;
	read_row(row, level, inst, token);
	return token->node >= 0;
}

bool
wig_token_peek(WigStore *store, const WigInstance *inst, int32 n, WigToken *token)
{
	return fetch(store, inst, n, WARNING, token);
}

bool
wig_token_read(WigStore *store, WigInstance *inst, int32 n, WigToken *token)
{
	Datum		key = Int64GetDatum(inst->no);
	TupleTableSlot *row = wig_store_fetch_last(store, WIG_INDEX_TOKEN, &key, 1);
	bool		isnull;

	if (row == NULL)
		return false;
	inst->last_n = DatumGetInt32(slot_getattr(row, TOKEN_N, &isnull));

	/* The newest token is nearly always the one that is asked for. */
	if (inst->last_n != n)
		return fetch(store, inst, n, ERROR, token);
	read_row(row, ERROR, inst, token);
	return true;
}

static void
set_time(Datum *values, bool *nulls, int attnum, TimestampTz at)
{
	nulls[attnum - 1] = at == 0;
	values[attnum - 1] = TimestampTzGetDatum(at);
}

static void
set_int(Datum *values, bool *nulls, int attnum, int32 value)
{
	nulls[attnum - 1] = value == 0;
	values[attnum - 1] = Int32GetDatum(value);
}

static void
set_text(Datum *values, bool *nulls, int attnum, const char *value)
{
	nulls[attnum - 1] = value == NULL;
	if (value != NULL)
		values[attnum - 1] = CStringGetTextDatum(value);
}

void
wig_token_mint(WigStore *store, WigInstance *inst, WigToken *token, WigTokenStatus status)
{
	Datum		values[TOKEN_NATTS] = {0};
	bool		nulls[TOKEN_NATTS] = {false};

	if (!wig_token_may(WIG_TOKEN_NONE, status))
		elog(ERROR, "a token cannot be minted %s", wig_token_status_name(status));

	token->instance = inst->no;
	token->n = ++inst->last_n;
	token->attempt = 0;
	token->letter = wig_token_status_letter(status);

	values[TOKEN_INSTANCE - 1] = Int64GetDatum(inst->no);
	set_time(values, nulls, TOKEN_CREATED_AT, token->created_at);
	set_time(values, nulls, TOKEN_AVAILABLE_AT, token->available_at);
	set_time(values, nulls, TOKEN_STARTED_AT, token->started_at);
	set_time(values, nulls, TOKEN_FINISHED_AT, token->finished_at);
	values[TOKEN_NONCE - 1] = Int64GetDatum((int64) token->nonce);
	nulls[TOKEN_NONCE - 1] = token->nonce == 0;
	values[TOKEN_N - 1] = Int32GetDatum(token->n);
	values[TOKEN_SCOPE - 1] = Int32GetDatum(token->scope);
	values[TOKEN_ATTEMPT - 1] = Int32GetDatum(0);
	set_int(values, nulls, TOKEN_COMP_SEQ, token->comp_seq);
	set_int(values, nulls, TOKEN_FIRST_SCOPE, token->first_scope);
	set_int(values, nulls, TOKEN_WIDTH, token->width);
	set_int(values, nulls, TOKEN_MISSING, token->missing);
	values[TOKEN_STATUS - 1] = CharGetDatum(token->letter);
	values[TOKEN_NODE - 1] = CStringGetTextDatum(wig_graph_node(inst->graph, token->node)->id);
	set_text(values, nulls, TOKEN_LOOPS, token->loops);
	set_text(values, nulls, TOKEN_STAGED, token->staged);
	set_text(values, nulls, TOKEN_INPUT, token->input);
	set_text(values, nulls, TOKEN_OUTPUT, token->output);
	nulls[TOKEN_LAST_ERROR - 1] = true;
	wig_store_insert(store, WIG_TABLE_TOKEN, TOKEN_NATTS, values, nulls);
}

void
wig_token_set_status(WigStore *store, const WigInstance *inst, WigToken *token,
					 WigTokenStatus from, WigTokenStatus to, const char *last_error)
{
	Datum		values[TOKEN_NATTS] = {0};
	bool		nulls[TOKEN_NATTS] = {false};
	bool		replace[TOKEN_NATTS] = {false};
	Datum		key[2] = {Int64GetDatum(inst->no), Int32GetDatum(token->n)};

	if (wig_token_status_letter(from) != token->letter || !wig_token_may(from, to))
		elog(ERROR, "token %d of instance %s cannot become %s from %s", token->n, inst->id,
			 wig_token_status_name(to), wig_token_status_name(from));

	if (wig_store_fetch(store, WIG_INDEX_TOKEN, key, 2) == NULL)
		elog(ERROR, "token %d of instance %s vanished", token->n, inst->id);

	token->letter = wig_token_status_letter(to);
	values[TOKEN_STATUS - 1] = CharGetDatum(token->letter);
	replace[TOKEN_STATUS - 1] = true;
	values[TOKEN_ATTEMPT - 1] = Int32GetDatum(token->attempt);
	replace[TOKEN_ATTEMPT - 1] = true;
	set_time(values, nulls, TOKEN_AVAILABLE_AT, token->available_at);
	replace[TOKEN_AVAILABLE_AT - 1] = true;
	set_time(values, nulls, TOKEN_STARTED_AT, token->started_at);
	replace[TOKEN_STARTED_AT - 1] = true;
	set_time(values, nulls, TOKEN_FINISHED_AT, token->finished_at);
	replace[TOKEN_FINISHED_AT - 1] = true;
	values[TOKEN_NONCE - 1] = Int64GetDatum((int64) token->nonce);
	nulls[TOKEN_NONCE - 1] = token->nonce == 0;
	replace[TOKEN_NONCE - 1] = true;
	set_text(values, nulls, TOKEN_INPUT, token->input);
	replace[TOKEN_INPUT - 1] = token->input != NULL;
	set_text(values, nulls, TOKEN_OUTPUT, token->output);
	replace[TOKEN_OUTPUT - 1] = token->output != NULL;
	if (last_error != NULL)
	{
		values[TOKEN_LAST_ERROR - 1] = CStringGetTextDatum(last_error);
		replace[TOKEN_LAST_ERROR - 1] = true;
	}
	wig_store_update(store, WIG_TABLE_TOKEN, TOKEN_NATTS, values, nulls, replace);
}

void
wig_token_arrived(WigStore *store, const WigInstance *inst, WigToken *token)
{
	Datum		values[TOKEN_NATTS] = {0};
	bool		nulls[TOKEN_NATTS] = {false};
	bool		replace[TOKEN_NATTS] = {false};
	Datum		key[2] = {Int64GetDatum(inst->no), Int32GetDatum(token->n)};

	wig_store_step(store);
	if (wig_store_fetch(store, WIG_INDEX_TOKEN, key, 2) == NULL)
		elog(ERROR, "token %d of instance %s vanished", token->n, inst->id);
	token->missing--;
	set_int(values, nulls, TOKEN_MISSING, token->missing);
	replace[TOKEN_MISSING - 1] = true;
	wig_store_update(store, WIG_TABLE_TOKEN, TOKEN_NATTS, values, nulls, replace);
}

void
wig_token_walk_live(WigStore *store, const WigInstance *inst)
{
	Datum		key = Int64GetDatum(inst->no);

	wig_store_walk(store, WIG_INDEX_TOKEN, &key, 1);
}

bool
wig_token_next_live(WigStore *store, const WigInstance *inst, WigToken *token)
{
	TupleTableSlot *row;

	while ((row = wig_store_next(store, WIG_INDEX_TOKEN)) != NULL)
	{
		bool		isnull;

		if (!wig_token_letter_live(DatumGetChar(slot_getattr(row, TOKEN_STATUS, &isnull))))
			continue;
		read_row(row, WARNING, inst, token);
		return true;
	}
	return false;
}
