/*
 * drive.h
 *	  The pump: moves an instance on until it waits for somebody.
 */
#ifndef WIGGLE_DRIVE_H
#define WIGGLE_DRIVE_H

#include "wiggle.h"

#include "work.h"

/* A token about to be at a node: what it brings along. */
typedef struct WigArrival
{
	int			node;
	int32		scope;
	const char *loops;
	const char *staged;			/* laid over the view of the one node it arrives at */
} WigArrival;

/* The arrivals of one instance that are still to be looked at; last in, first out. */
typedef struct WigDrive
{
	WigWork    *work;
	WigInstance *inst;
	WigArrival *stack;
	int			n;
	int			max;
} WigDrive;

/* Let a locked, RUNNING instance arrive somewhere and go on from there as far as
 * the server alone can. */
extern void wig_drive(WigWork *work, WigInstance *inst, WigArrival first);

/* For the functions of node kinds: one more arrival; and a token's beginnings. */
extern void wig_drive_push(WigDrive *drive, WigArrival at);
extern WigToken wig_arriving(const WigWork *work, const WigArrival *at);

/* Forks and joins (fork.c). */
extern void wig_arrive_at_fork(WigDrive *drive, const WigArrival *at);
extern void wig_arrive_at_dyn_fork(WigDrive *drive, const WigArrival *at);
extern void wig_arrive_at_join(WigDrive *drive, const WigArrival *at);

#endif							/* WIGGLE_DRIVE_H */
