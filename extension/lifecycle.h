/*
 * lifecycle.h
 *	  What to do when databases or the extension are created, moved or dropped.
 */
#ifndef WIGGLE_LIFECYCLE_H
#define WIGGLE_LIFECYCLE_H

#include "wiggle.h"

/* Install the utility hook; called while preloading. */
extern void wig_lifecycle_init(void);

#endif							/* WIGGLE_LIFECYCLE_H */
