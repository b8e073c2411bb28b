/*
 * signals.c
 *	  Signals become events of the loop.
 */
#include <signal.h>

#include "drain.h"
#include "loop.h"
#include "signals.h"

static const int watched[] = {SIGTERM, SIGINT, SIGHUP};
static uv_signal_t handles[sizeof(watched) / sizeof(watched[0])];
static void (*hangup) (void);

static void (*hangup) (void);

static void
on_signal(uv_signal_t *handle, int number)
{
	(void) handle;
	if (number == SIGHUP)
		hangup();
	else
		drain_begin(number == SIGTERM ? "SIGTERM" : "SIGINT");
}

void
signals_open(void (*on_hangup) (void))
{
	hangup = on_hangup;
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
	{
		uv_signal_init(loop_get(), &handles[i]);
		uv_signal_start(&handles[i], on_signal, watched[i]);
		/* Waiting for signals alone is no reason to stay. */
		uv_unref((uv_handle_t *) &handles[i]);
	}
}
