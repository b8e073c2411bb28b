/*
 * rpc_probe.c
 *	  grpc.health.v1.Health: what load balancers and Kubernetes ask.
 *
 * Both names of the server serve when /readyz says so: home and one shard can be worked
 * on, and no drain is on. A watcher whose server is about to end is told, then
 * let go, so that it does not hold the drain up.
 */
#include <stdlib.h>
#include <string.h>

#include "grpc/health/v1/health.pb-c.h"

#include "drain.h"
#include "health.h"
#include "loop.h"
#include "message.h"
#include "rpc_probe.h"

typedef Grpc__Health__V1__HealthCheckRequest Request;
typedef Grpc__Health__V1__HealthCheckResponse Response;
typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus Status;

#define STATUS(what) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##what

struct watcher
{
	struct call *call;
	bool		known;			/* asks for a service that is here */
	Status		told;
	struct watcher *prev;
	struct watcher *next;
};

/* Of a connection. Clients need one; proxies in front of the server bundle those of many. */
#define WATCHES 100

static struct watcher *watchers;
static Status told_all;			/* what all of them were told, of a service that is here; UNKNOWN: not the same */

static bool
known(const char *service)
{
	return *service == '\0' || strcmp(service, "com.wiggle.proto.WiggleControlPlane") == 0;
}

static Status
current(bool is_known)
{
	if (!is_known)
		return STATUS(SERVICE_UNKNOWN);
	return health_ready() ? STATUS(SERVING) : STATUS(NOT_SERVING);
}

static Request *
take_request(struct call *call)
{
	return (Request *) message_request(call, &grpc__health__v1__health_check_request__descriptor);
}

void
rpc_probe_check(struct call *call)
{
	Request    *request = take_request(call);
	Response	reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

	if (request == NULL)
		return;
	reply.status = current(known(request->service));
	if (reply.status == STATUS(SERVICE_UNKNOWN))
		call_fail(call, GRPC_NOT_FOUND, "service not found: '%.150s'", request->service);
	else
		message_reply(call, &reply.base);
	protobuf_c_message_free_unpacked(&request->base, NULL);
}

/* ------------------------------------------------------------------ watch */

static void
forget(struct watcher *watcher)
{
	if (watcher->prev != NULL)
		watcher->prev->next = watcher->next;
	else
		watchers = watcher->next;
	if (watcher->next != NULL)
		watcher->next->prev = watcher->prev;
	free(watcher);
}

static void
gone(struct call *call, void *arg)
{
	(void) call;
	forget(arg);
}

/* Tell the status; the watcher may be gone afterwards. */
static void
tell(struct watcher *watcher, Status status)
{
	Response	reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

	reply.status = status;
	watcher->told = status;
	if (watcher->known && status != told_all)
		told_all = STATUS(UNKNOWN);
	if (!message_send(watcher->call, &reply.base))
		forget(watcher);
	else if (drain_started())
	{
		call_fail(watcher->call, GRPC_UNAVAILABLE, "the server is about to end");
		forget(watcher);
	}
}

/* Once a turn: a change shows in the turn that made it, and is all that has the watchers looked at. */
static void
look(void)
{
	struct watcher *next;
	Status		now;

	if (watchers == NULL)
		return;
	now = current(true);
	if (now == told_all && !drain_started())
		return;
	told_all = now;
	for (struct watcher *w = watchers; w != NULL; w = next)
	{
		Status		status = w->known ? now : STATUS(SERVICE_UNKNOWN);

		next = w->next;
		if (status != w->told || drain_started())
			tell(w, status);
	}
}

void
rpc_probe_watch(struct call *call)
{
	Request    *request = take_request(call);
	struct watcher *watcher;

	if (request == NULL)
		return;
	if (call_siblings(call) > WATCHES)
	{
		call_fail(call, GRPC_RESOURCE_EXHAUSTED, "a connection has at most %d calls of Watch open; end some first", WATCHES);
		protobuf_c_message_free_unpacked(&request->base, NULL);
		return;
	}
	watcher = xcalloc(1, sizeof(*watcher));
	watcher->call = call;
	watcher->known = known(request->service);
	watcher->next = watchers;
	if (watchers != NULL)
		watchers->prev = watcher;
	watchers = watcher;
	protobuf_c_message_free_unpacked(&request->base, NULL);
	call_drop_request(call);
	call_on_cancel(call, gone, watcher);
	tell(watcher, current(watcher->known));
}

void
rpc_probe_open(void)
{
	loop_turn(TURN_POLLS, look);
}
