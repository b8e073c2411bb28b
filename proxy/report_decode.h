/*
 * report_decode.h
 *	  Reported runs of a request to items, with all their texts in one buffer.
 */
#ifndef WIGGLE_PROXY_REPORT_DECODE_H
#define WIGGLE_PROXY_REPORT_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "error.h"
#include "item.h"
#include "wiggle.pb-c.h"

typedef Com__Wiggle__Proto__ReportedRun ReportedRun;

/*
 * What the items of one report point into. Values are known by their place in
 * `json` until report_texts_settle, when it cannot move any more.
 */
struct report_texts
{
	struct buf	json;
	struct item_step *steps;	/* of all runs, in their order */
	size_t		nsteps;
	struct item_event *events;	/* of all steps, in their order */
	size_t		nevents;
	size_t	   *step_at;		/* where each value begins */
	size_t	   *event_at;
	size_t		next_step;		/* of the next run to be decoded */
	size_t		next_event;
};

/*
 * The types of emitted events, which refuse the call as a whole. Payloads are the
 * run's own matter.
 */
extern bool report_check_events(ReportedRun *const *runs, size_t n, struct wig_error *err);

/* Room for what the runs hold; the requests live longer than the texts. */
extern void report_texts_init(struct report_texts *texts, ReportedRun *const *runs, size_t n);

/*
 * The next run, in the order of report_texts_init. False with *err when this run is
 * refused; the following ones may be decoded all the same.
 */
extern bool report_decode_run(struct report_texts *texts, const ReportedRun *request,
							  struct item_run *out, struct wig_error *err);

/* All runs are decoded: let the items' values point to their texts. */
extern void report_texts_settle(struct report_texts *texts);

extern void report_texts_free(struct report_texts *texts);

#endif							/* WIGGLE_PROXY_REPORT_DECODE_H */
