/*
 * guc.h
 *	  The extension's settings (prefix wiggle.).
 */
#ifndef WIGGLE_GUC_H
#define WIGGLE_GUC_H

#include "wiggle.h"

extern int	wig_default_lease;	/* ms */
extern int	wig_retry_park;				/* ms */
extern int	wig_loop_max_iterations;
extern int	wig_max_depth;			/* of sub-workflows */
extern int	wig_retention;				/* minutes */
extern int	wig_event_retention;		/* minutes */
extern int	wig_clock_batch;			/* items a pass moves in one transaction */
extern int	wig_max_databases;
extern int	wig_max_queues;
extern bool wig_allow_graph_replace;
extern bool wig_record_step_io;
extern bool wig_test_clock;

extern void wig_guc_define(void);

/* A hash of what ALTER DATABASE has set of wiggle.* for this database: has it changed? In a transaction. */
extern uint32 wig_guc_of_database(void);

/* Take them anew into this session. In a transaction. */
extern void wig_guc_apply_database(void);

#endif							/* WIGGLE_GUC_H */
