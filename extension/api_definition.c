/*
 * api_definition.c
 *	  SQL: register, register_check, definition.
 */
#include "wiggle.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "api.h"
#include "clock.h"
#include "durable.h"
#include "errors.h"
#include "flow.h"
#include "graph.h"
#include "guard.h"
#include "guc.h"

PG_FUNCTION_INFO_V1(wig_register);
PG_FUNCTION_INFO_V1(wig_register_check);
PG_FUNCTION_INFO_V1(wig_definition);

typedef struct Registration
{
	struct wig_definition *def;
	char	   *body;			/* JSON text as it will be stored */
	char		fingerprint[65];
} Registration;

/* An object with "steps" and no "nodes" is the authoring shorthand. */
static bool
is_shorthand(Jsonb *jb)
{
	JsonbValue	steps = {.type = jbvString, .val.string = {5, "steps"}};
	JsonbValue	nodes = {.type = jbvString, .val.string = {5, "nodes"}};

	return JB_ROOT_IS_OBJECT(jb) &&
		findJsonbValueFromContainer(&jb->root, JB_FOBJECT, &steps) != NULL &&
		findJsonbValueFromContainer(&jb->root, JB_FOBJECT, &nodes) == NULL;
}

static void
invalid(const struct wig_error *err)
{
	if (err->line > 0)
		ereport(ERROR, (errcode(ERRCODE_WIG_INVALID),
						errmsg("line %d, column %d: %s", err->line, err->column, err->message)));
	ereport(ERROR, (errcode(ERRCODE_WIG_INVALID),
					errmsg("%s%s%s", err->place, err->place[0] == '\0' ? "" : ": ", err->message)));
}

/*
 * A join that no fork leads to is that of a step which creates its branches while
 * it runs. The graph is sound, but nothing here could run it.
 */
static void
refuse_created_branches(const struct wig_definition *def)
{
	bool	   *joins = palloc0(sizeof(bool) * def->nnodes);

	for (int i = 0; i < def->nnodes; i++)
		if (def->nodes[i].join >= 0)
			joins[def->nodes[i].join] = true;
	for (int i = 0; i < def->nnodes; i++)
		if (def->nodes[i].kind == WIG_JOIN && !joins[i])
			ereport(ERROR,
					(errcode(ERRCODE_WIG_INVALID),
					 errmsg("join %s waits for created branches, which are not supported yet",
							def->nodes[i].id)));
	pfree(joins);
}

static void
read_definition(Jsonb *jb, Registration *reg)
{
	struct wig_error err = {0};
	char	   *json = JsonbToCString(NULL, &jb->root, VARSIZE(jb));

	reg->body = json;
	if (is_shorthand(jb))
	{
		char	   *compiled = wig_flow_from_json(json, strlen(json), &err);

		if (compiled == NULL)
			invalid(&err);
		reg->body = pstrdup(compiled);
		free(compiled);
	}
	reg->def = wig_definition_parse(reg->body, strlen(reg->body), &err);
	if (reg->def == NULL)
		invalid(&err);
	refuse_created_branches(reg->def);
	if (!wig_definition_fingerprint(reg->def, reg->fingerprint))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
}

/* Insert a new version; the table's lock is held. */
static void
insert_definition(const Registration *reg)
{
	Oid			types[] = {TEXTOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
	Datum		values[] = {
		CStringGetTextDatum(reg->def->name), Int32GetDatum(reg->def->version),
		CStringGetTextDatum(reg->fingerprint), CStringGetTextDatum(WIG_FINGERPRINT_ALGO),
		CStringGetTextDatum(reg->body), TimestampTzGetDatum(wig_now())
	};

	if (SPI_execute_with_args("insert into wiggle.wf_definition"
							  " (id, name, version, fingerprint, fingerprint_algo, body, registered_at)"
							  " select coalesce(max(id), 0) + 1, $1, $2, $3, $4, $5::json, $6"
							  " from wiggle.wf_definition",
							  lengthof(types), types, values, NULL, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not insert a definition");
}

/* Another graph stands under this version already. */
static void
check_replacement(const Registration *reg, bool force)
{
	if (!force)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_CONFLICT),
				 errmsg("workflow '%s:%d' is already registered with a different graph; publish it under a new version",
						reg->def->name, reg->def->version)));
	if (!wig_allow_graph_replace)
		ereport(ERROR,
				(errcode(ERRCODE_WIG_CONFLICT),
				 errmsg("replacing the graph of '%s:%d' was requested but this server does not allow it; set wiggle.allow_graph_replace=on (development only) or publish a new version",
						reg->def->name, reg->def->version)));
}

static void
replace_definition(const Registration *reg)
{
	Oid			types[] = {TEXTOID, INT4OID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
	Datum		values[] = {
		CStringGetTextDatum(reg->def->name), Int32GetDatum(reg->def->version),
		CStringGetTextDatum(reg->fingerprint), CStringGetTextDatum(reg->body),
		TimestampTzGetDatum(wig_now())
	};

	if (SPI_execute_with_args("update wiggle.wf_definition"
							  " set fingerprint = $3, body = $4::json, registered_at = $5"
							  " where name = $1 and version = $2",
							  lengthof(types), types, values, NULL, false, 0) != SPI_OK_UPDATE)
		elog(ERROR, "could not replace a definition");
	CacheInvalidateRelcacheByRelid(get_relname_relid("wf_definition",
													 get_namespace_oid(WIG_SCHEMA, false)));
}

/* The fingerprint that stands under the version, NULL when there is none. */
static char *
present_fingerprint(const Registration *reg)
{
	Oid			types[] = {TEXTOID, INT4OID};
	Datum		values[] = {CStringGetTextDatum(reg->def->name), Int32GetDatum(reg->def->version)};

	if (SPI_execute_with_args("select fingerprint from wiggle.wf_definition"
							  " where name = $1 and version = $2",
							  lengthof(types), types, values, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read wf_definition");
	return SPI_processed == 0 ? NULL
		: SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

/* True when a row was written, or would be. */
static bool
store_definition(const Registration *reg, bool force, bool write)
{
	char	   *present;

	/* One registration at a time: the check and the write must be one. */
	if (write && SPI_execute("lock table wiggle.wf_definition in share row exclusive mode", false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not lock wf_definition");
	present = present_fingerprint(reg);
	if (present != NULL && strcmp(present, reg->fingerprint) == 0)
	{
		if (write)
			wig_commit_confirms();
		return false;
	}
	if (present != NULL)
		check_replacement(reg, force);
	if (write && present == NULL)
		insert_definition(reg);
	else if (write)
		replace_definition(reg);
	return true;
}

static Datum
register_definition(FunctionCallInfo fcinfo, bool write)
{
	Registration reg;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {false};
	bool		created;

	wig_guard_write("wiggle.register()");
	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_WIG_INVALID), errmsg("a definition is required")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	read_definition(PG_GETARG_JSONB_P(0), &reg);
	PG_TRY();
	{
		SPI_connect();
		created = store_definition(&reg, !PG_ARGISNULL(1) && PG_GETARG_BOOL(1), write);
		SPI_finish();
		values[0] = CStringGetTextDatum(reg.def->name);
		values[1] = Int32GetDatum(reg.def->version);
		values[2] = Int32GetDatum(reg.def->nnodes);
		values[3] = BoolGetDatum(created);
	}
	PG_FINALLY();
	{
		wig_definition_free(reg.def);
	}
	PG_END_TRY();
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

Datum
wig_register(PG_FUNCTION_ARGS)
{
	return register_definition(fcinfo, true);
}

Datum
wig_register_check(PG_FUNCTION_ARGS)
{
	return register_definition(fcinfo, false);
}

static void refuse_definition(const char *name, int32 version) __attribute__((noreturn));

static void
refuse_definition(const char *name, int32 version)
{
	ereport(ERROR,
			(errcode(ERRCODE_WIG_NOT_FOUND),
			 errmsg("workflow not found"),
			 version == 0 ? errdetail("No workflow \"%s\" is registered in this database.", name ? name : "")
			 : errdetail("No version %d of workflow \"%s\" is registered in this database.", version,
						 name ? name : ""),
			 errhint(WIG_HINT_WORKFLOWS)));
}

Datum
wig_definition(PG_FUNCTION_ARGS)
{
	char	   *name = WIG_ARG_CSTRING(0);
	const WigGraph *graph = NULL;
	WigStore   *store;
	int32		version;
	char	   *json;
	Datum		result;

	wig_guard_read();
	store = wig_store_open(false);
	if (name != NULL)
	{
		version = PG_ARGISNULL(1) ? wig_graph_latest(store, name) : PG_GETARG_INT32(1);
		graph = version > 0 ? wig_graph_get(store, name, version) : NULL;
	}
	if (graph == NULL)
		refuse_definition(name, PG_ARGISNULL(1) ? 0 : PG_GETARG_INT32(1));
	wig_store_close(store);

	json = wig_definition_to_json(graph->def, true);
	if (json == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	result = DirectFunctionCall1(jsonb_in, CStringGetDatum(pstrdup(json)));
	free(json);
	return result;
}
