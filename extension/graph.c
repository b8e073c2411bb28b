/*
 * graph.c
 *	  Per-backend cache of compiled definitions.
 *
 * A version's graph never changes, so a cached one needs no check, with two
 * exceptions after which entries are compared with their rows again: a forced
 * replacement on a development server, which invalidates the relation's cache
 * entry everywhere, and the abort of a transaction that read rows which may
 * have been its own.
 */
#include "wiggle.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "graph.h"

enum
{
	DEFINITION_ID = 1,
	DEFINITION_VERSION,
	DEFINITION_REGISTERED_AT,
	DEFINITION_NAME,
	DEFINITION_FINGERPRINT,
	DEFINITION_FINGERPRINT_ALGO,
	DEFINITION_BODY
};

typedef struct GraphKey
{
	int32		version;
	char		workflow[WIG_MAX_NAME_BYTES + 1];
} GraphKey;

typedef struct GraphEntry
{
	GraphKey	key;
	uint32		epoch;			/* when it was last compared with its row */
	char		fingerprint[65];
	WigGraph	graph;
} GraphEntry;

static HTAB *cache = NULL;
static GraphEntry *last = NULL;
static uint32 epoch = 1;
static Oid	definition_relid = InvalidOid;
static bool loaded_in_xact = false;

static void
compare_again(void)
{
	epoch++;
	last = NULL;
}

static void
relation_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == definition_relid)
		compare_again();
}

static void
xact_ended(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT && loaded_in_xact)
		compare_again();
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		loaded_in_xact = false;
}

static void
subxact_ended(SubXactEvent event, SubTransactionId mySubid,
			  SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && loaded_in_xact)
		compare_again();
}

static void
make_cache(void)
{
	HASHCTL		ctl = {
		.keysize = sizeof(GraphKey),
		.entrysize = sizeof(GraphEntry),
	};

	if (CacheMemoryContext == NULL)
		CreateCacheMemoryContext();
	ctl.hcxt = CacheMemoryContext;
	cache = hash_create("wiggle graphs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(xact_ended, NULL);
	RegisterSubXactCallback(subxact_ended, NULL);
}

static void
fill_key(GraphKey *key, const char *workflow, int32 version)
{
	memset(key, 0, sizeof(GraphKey));	/* hashed as bytes */
	key->version = version;
	strlcpy(key->workflow, workflow, sizeof(key->workflow));
}

static struct wig_definition *
parse_body(TupleTableSlot *row, const char *workflow, int32 version)
{
	bool		isnull;
	char	   *body = TextDatumGetCString(slot_getattr(row, DEFINITION_BODY, &isnull));
	struct wig_error err = {0};
	struct wig_definition *def = wig_definition_parse(body, strlen(body), &err);

	if (def == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the stored definition of workflow '%s' version %d cannot be read: %s",
						workflow, version, err.message)));
	pfree(body);
	return def;
}

/*
 * Compare an entry with its row. The graph that a forced replacement supersedes
 * is not freed: a unit of work further up the stack may be using it.
 */
static bool
load_entry(WigStore *store, const GraphKey *key)
{
	Datum		row_key[2] = {CStringGetTextDatum(key->workflow), Int32GetDatum(key->version)};
	TupleTableSlot *row = wig_store_fetch(store, WIG_INDEX_DEFINITION, row_key, 2);
	GraphEntry *entry = hash_search(cache, key, HASH_FIND, NULL);
	char	   *fingerprint;
	bool		isnull;

	if (row == NULL)
	{
		if (entry != NULL)
			hash_search(cache, key, HASH_REMOVE, NULL);
		return false;
	}
	definition_relid = RelationGetRelid(wig_store_heap(store, WIG_TABLE_DEFINITION));
	fingerprint = TextDatumGetCString(slot_getattr(row, DEFINITION_FINGERPRINT, &isnull));
	if (entry == NULL || strcmp(entry->fingerprint, fingerprint) != 0)
	{
		struct wig_definition *def = parse_body(row, key->workflow, key->version);

		entry = hash_search(cache, key, HASH_ENTER, NULL);
		strlcpy(entry->fingerprint, fingerprint, sizeof(entry->fingerprint));
		entry->graph.def = def;
	}
	entry->graph.definition_id = DatumGetInt32(slot_getattr(row, DEFINITION_ID, &isnull));
	entry->epoch = epoch;
	loaded_in_xact = true;
	return true;
}

const WigGraph *
wig_graph_get(WigStore *store, const char *workflow, int32 version)
{
	GraphKey	key;
	GraphEntry *entry;

	if (last != NULL && last->key.version == version &&
		strcmp(last->key.workflow, workflow) == 0)
		return &last->graph;
	if (strlen(workflow) > WIG_MAX_NAME_BYTES)
		return NULL;
	if (cache == NULL)
		make_cache();

	fill_key(&key, workflow, version);
	entry = hash_search(cache, &key, HASH_FIND, NULL);
	if (entry == NULL || entry->epoch != epoch)
	{
		if (!load_entry(store, &key))
			return NULL;
		entry = hash_search(cache, &key, HASH_FIND, NULL);
	}
	last = entry;
	return &entry->graph;
}

int32
wig_graph_latest(WigStore *store, const char *workflow)
{
	Datum		key = CStringGetTextDatum(workflow);
	TupleTableSlot *row = wig_store_fetch_last(store, WIG_INDEX_DEFINITION, &key, 1);
	bool		isnull;

	if (row == NULL)
		return 0;
	return DatumGetInt32(slot_getattr(row, DEFINITION_VERSION, &isnull));
}
