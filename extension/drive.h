/*
 * drive.h
 *	  The pump: moves an instance on until it waits for somebody.
 */
#ifndef WIGGLE_DRIVE_H
#define WIGGLE_DRIVE_H

#include "wiggle.h"

#include "work.h"

/*
 * Let a locked, RUNNING instance arrive at a node, working in a scope with
 * these loop counts, and go on from there as far as the server alone can.
 */
extern void wig_drive(WigWork *work, WigInstance *inst, int node, int32 scope,
					  const char *loops);

#endif							/* WIGGLE_DRIVE_H */
