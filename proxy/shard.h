/*
 * shard.h
 *	  One database: set up once, then lanes, side connections and a wake-up session.
 *
 * What others see of a shard: submit an item to its lanes, ask something of a side
 * connection, know whether it can be reached.
 */
#ifndef WIGGLE_PROXY_SHARD_H
#define WIGGLE_PROXY_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "item.h"
#include "link.h"
#include "refusal.h"
#include "side.h"
#include "statement.h"
#include "topology.h"

enum shard_phase
{
	SHARD_SETTING_UP,			/* connecting, bringing up to date, claiming */
	SHARD_SERVING,				/* lanes may be up or down */
	SHARD_LEAVING,				/* retired: what is in flight ends, then all connections */
	SHARD_GONE
};

/* Has the shard every definition that home has? Else it takes no new instances. */
enum shard_definitions
{
	DEFINITIONS_UNKNOWN,		/* it has just come up, home has not been asked */
	DEFINITIONS_BEHIND,
	DEFINITIONS_COMPLETE
};

#define SHARD_MAX_LANES 16

/*
 * Made once and never freed: index and slot stay its own for the life of the
 * process, also when the shard is retired. Its entry changes with the topology.
 */
struct shard
{
	const struct topology_shard *entry;
	int			index;			/* in the topology */
	int			slot;			/* 0..63 among those that have served: a poll's bit */
	bool		late;			/* has been added to a running process */
	bool		known;			/* home has heard of it from any proxy, which may have minted there */
	struct target *target;		/* the entry's */
	struct target *former;		/* that sessions still use, until the other one has been verified; or NULL */
	enum shard_phase phase;
	bool		closed;			/* its database was retired: it refuses what is new */
	bool		told;			/* setup has succeeded at least once */
	bool		refused;		/* setup was refused at least once */
	bool		left_out;		/* it was not ready at least once */
	char		system_id[32];	/* identity of the database, "" = not known yet */
	char		database[16];
	char		version[48];	/* of the library */
	char		identity[40];	/* drawn when the database was claimed or adopted */
	int			timeline;		/* of its server's history: the latest that was seen */
	char		wal[24];		/* how far its log had come there, at least; "" = not known */
	char	   *facts;			/* JSON: what home's registry is to know; NULL = not known yet */
	bool		reachable;		/* its first lane is up */
	int64_t		changed_at_ms;	/* when that changed, by this machine's clock */
	char		problem[512];	/* the last reason why it is not reachable; "" = none was told */
	uint64_t	problem_at;		/* when setup logged it */
	struct admission *admission;
	enum shard_definitions definitions;
	bool		was_complete;	/* when home was last heard, by any proxy */
	struct catchup *catchup;

	struct lane *lanes[SHARD_MAX_LANES];
	int			made;			/* lanes that exist */
	int			nlanes;			/* that may be used, by the pool */
	int			active;			/* lanes that items are spread over, >= 1 */
	struct lane *heir;			/* connects to another target, to become the first lane; or NULL */
	struct lane *ending;		/* was the first lane and has a batch in flight; or NULL */
	unsigned	crowded;		/* batches in a row that left a long queue */
	unsigned	quiet;			/* batches in a row that left next to nothing */
	struct side_pool *side;
	struct replicas *replicas;	/* NULL: the topology lists none */
	struct wakeup *wakeup;
	struct setup *setup;
	struct health *health;
	uint64_t	hurried_at;		/* when its connections were last hurried */
	struct deadline lost;		/* set while it waits to be set up anew */
};

/* ---- all of them (shards.c) ---- */

/* By the topology's index; NULL for one that was retired when the process started. */
extern struct shard *shard_at(int index);

/* By slot, 0 .. shard_slots() - 1. Their number grows when shards are added. */
extern struct shard *shard_by_slot(int slot);
extern int	shard_slots(void);
extern const struct topology *shard_topology(void);

/* Does the generation in force give it weight? */
extern bool shard_weighs(const struct shard *shard);

/* Another shard whose database is the same, NULL when there is none. */
extern const struct shard *shard_twin(const struct shard *shard, const char *system_id,
									  const char *database);

/*
 * Where the next instance is minted: the shard that placement gives, of those that
 * answer; when none does, one of them all the same, which may be back in time. NULL when
 * the generation in force leads to retired shards only.
 */
extern struct shard *shard_for_instance(void);

/* Do calls queue up at every shard that can be used? What is claimed now could hardly be reported. */
extern bool shards_crowded(void);

/* ---- one of them ---- */

enum submit
{
	SUBMIT_OK,					/* done() will run */
	SUBMIT_DOWN,				/* the shard cannot be reached */
	SUBMIT_BEHIND,				/* no replica serves, and the primary is to be spared */
	SUBMIT_FULL					/* over the bounds of its lane */
};

/*
 * Give an item to the lane of its instance (router_hash of any of its ids). done()
 * runs later, never inside this call, and only for SUBMIT_OK.
 */
extern enum submit shard_submit(struct shard *shard, struct item *item, uint32_t hash);

/* The refusal for a submission that was not OK. */
extern void shard_refuse(const struct shard *shard, enum submit submit, struct refusal *refusal);

/* Ask a side connection. The same rules. */
extern enum submit shard_ask(struct shard *shard, struct question *question);

/* It leaves, or is gone. */
extern bool shard_retired(const struct shard *shard);

/* Up, or lost so recently that waiting for it is sensible. */
extern bool shard_usable(const struct shard *shard);

/* Will a claim be answered soon: is its first lane up and prompt? */
extern bool shard_claims(const struct shard *shard);

/* Are all its lanes' queues so long that they take no more starts? */
extern bool shard_crowded(const struct shard *shard);

/* May new instances be minted there now: is it active, prompt, and has it what home has registered? */
extern bool shard_takes(const struct shard *shard);

/* Or, in a shard that drains, those be started that had been minted before? */
extern bool shard_receives(const struct shard *shard);

/*
 * Is what asks every shard incomplete without it? Not when it is retired, nor, when it was
 * added to a running process, while no proxy can have minted there.
 */
extern bool shard_counts(const struct shard *shard);

/* How many connections it has at present, and why it cannot be reached. */
extern int	shard_connections(const struct shard *shard);
extern const char *shard_problem(const struct shard *shard);

/* ---- between the parts of a shard ---- */

/* A lane has formed a batch and `left` items stayed in its queue. */
extern void shard_crowding(struct shard *shard, int left);

/* A lane came up, went down, or became slow or prompt again; moves work between lanes, tells health and poller. */
extern void shard_lane_changed(struct shard *shard);

/* One of its connections has come up: those that wait for their next attempt make it now. */
extern void shard_connected(struct shard *shard);

/*
 * A session was lost while it owed an answer. A network that drops packets tells nobody, so
 * those that are idle are opened anew before anything is sent into them.
 */
extern void shard_doubt(struct shard *shard);

/* A side connection came up, was lost, or could not be opened; tells health. */
extern void shard_side_changed(struct shard *shard);

/* The extension or the shard's id is gone: soon, close everything and set up anew. */
extern void shard_schema_lost(struct shard *shard, const char *why);

/*
 * Does the row (enum identity_column) bear this shard's id? False with *err, and
 * the shard is set up anew when the database bears none.
 */
extern bool shard_check_identity(struct shard *shard, const PGresult *result, struct wig_error *err);

/* Setup is over: open lanes, side connections, wake-up session. */
extern void shard_setup_done(struct shard *shard);

/* Home's registry does not know the database as this shard: closed, and set up anew later. */
extern void shard_refused_by_home(struct shard *shard, const char *why);

/* The topology is wrong about the database: who starts ends by it. why is one sentence for the operator. */
extern void shard_setup_refused(struct shard *shard, const char *why);

/* The database is not ready: somebody has to do what why says, and it is used from then on. */
extern void shard_left_out(struct shard *shard, const char *why);

/* ---- between shard.c and shards.c ---- */

/* The shard can be used, or was refused or left out, for the first time. */
extern void shards_tell_serving(void);
extern void shards_tell_refused(void);

/* For an entry that serves; takes the target over. */
extern struct shard *shard_create(const struct topology_shard *entry, int index, int slot, struct target *target);
extern void shard_start(struct shard *shard);

/*
 * The entry of another topology, which must outlive it or its replacement: state
 * and pool may differ, and with a target (else NULL, taken over) where or as whom to connect.
 */
extern void shard_renew(struct shard *shard, const struct topology_shard *entry, struct target *target);

extern void shard_turn(struct shard *shard);
extern bool shard_idle(const struct shard *shard);
extern void shard_stop(struct shard *shard);

#endif							/* WIGGLE_PROXY_SHARD_H */
