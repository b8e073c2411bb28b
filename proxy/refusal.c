/*
 * refusal.c
 *	  What an error of the database means: for the batch, and for the caller.
 */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "refusal.h"

struct sqlstate_class
{
	const char *prefix;			/* a whole SQLSTATE or its class */
	enum error_class error_class;
};

/* The first prefix that fits decides. */
static const struct sqlstate_class classes[] = {
	{"WG4", ERROR_ENGINE},
	{"42501", ERROR_ENGINE},
	{"40001", ERROR_RETRY},
	{"40P01", ERROR_RETRY},
	{"57P", ERROR_CONNECTION},
	{"08", ERROR_CONNECTION},
	{"53300", ERROR_CONNECTION},
	{"25006", ERROR_CONNECTION},
	{"25P02", ERROR_CONNECTION},
	{"26000", ERROR_PLAN},
	{"0A000", ERROR_PLAN},
	{"42883", ERROR_SCHEMA},
	{"42704", ERROR_SCHEMA},
	{"42P01", ERROR_SCHEMA},
	{"3F000", ERROR_SCHEMA},
	{"42804", ERROR_SCHEMA},
	{"57014", ERROR_BUSY},
	{"55P03", ERROR_BUSY},
	{"55006", ERROR_BUSY},
	{"55000", ERROR_BUSY},		/* the extension's guard: library and catalog differ, not preloaded */
	{"53", ERROR_BUSY},
};

enum error_class
error_classify(const char *sqlstate)
{
	if (sqlstate == NULL || *sqlstate == '\0')
		return ERROR_CONNECTION;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
	{
		if (strncmp(sqlstate, classes[i].prefix, strlen(classes[i].prefix)) == 0)
			return classes[i].error_class;
	}
	return ERROR_DEFECT;
}

enum error_class
error_classify_statement(const char *sqlstate, const char *message)
{
	static const char gone[] = "cache lookup failed";

	if (sqlstate != NULL && strcmp(sqlstate, "XX000") == 0 && message != NULL &&
		strncmp(message, gone, sizeof(gone) - 1) == 0)
		return ERROR_SCHEMA;
	return error_classify(sqlstate);
}

void
refusal_engine(struct refusal *refusal, const char *sqlstate, const char *message)
{
	refusal->status = grpc_status_from_sqlstate(sqlstate);
	refusal->code = strncmp(sqlstate, "WG4", 3) == 0 ? 400 + (sqlstate[3] - '0') * 10 + (sqlstate[4] - '0')
		: 500;
	refusal->storage = refusal->code == 500;
	snprintf(refusal->message, sizeof(refusal->message), "%s", message ? message : "refused");
}

/*
 * A shard that is down refuses every call: the log gets some of the lines, each
 * caller a reference all the same.
 */
static void
with_reference(struct refusal *refusal, enum grpc_status status, const char *text, int shard_id,
			   const char *sqlstate, const char *cause)
{
	static struct log_gate gate;
	char		ref[9];

	log_ref(ref);
	refusal->status = status;
	refusal->code = 500;
	refusal->storage = true;
	snprintf(refusal->message, sizeof(refusal->message), "%s (ref %s)", text, ref);
	if (status == GRPC_INTERNAL || log_gate_open(&gate))
		log_with(status == GRPC_INTERNAL ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "storage",
				 &(const struct log_facts) {.sqlstate = sqlstate, .ref = ref},
				 "shard %d: %s%s%s (ref %s)", shard_id, cause ? cause : "no cause told",
				 sqlstate && *sqlstate ? ", SQLSTATE " : "", sqlstate ? sqlstate : "", ref);
}

void
refusal_unavailable(struct refusal *refusal, int shard_id, const char *sqlstate, const char *cause)
{
	with_reference(refusal, GRPC_UNAVAILABLE, "storage temporarily unavailable", shard_id, sqlstate,
				   cause);
}

void
refusal_internal(struct refusal *refusal, int shard_id, const char *sqlstate, const char *cause)
{
	with_reference(refusal, GRPC_INTERNAL, "internal error", shard_id, sqlstate, cause);
}

void
refusal_from_error(struct refusal *refusal, int shard_id, const char *sqlstate, const char *message)
{
	switch (error_classify_statement(sqlstate, message))
	{
		case ERROR_ENGINE:
			refusal_engine(refusal, sqlstate, message);
			break;
		case ERROR_RETRY:
		case ERROR_CONNECTION:
		case ERROR_BUSY:
		case ERROR_SCHEMA:
			refusal_unavailable(refusal, shard_id, sqlstate, message);
			break;
		case ERROR_PLAN:
		case ERROR_DEFECT:
			refusal_internal(refusal, shard_id, sqlstate, message);
			break;
	}
}
