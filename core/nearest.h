/*
 * nearest.h
 *	  "Did you mean": the known word that a mistyped one is closest to.
 */
#ifndef WIGGLE_CORE_NEAREST_H
#define WIGGLE_CORE_NEAREST_H

/*
 * The candidate (NULL-terminated list) that fewest changed letters lead to, case
 * ignored; NULL when none is close enough to be meant: one letter of three may be wrong,
 * and no more than three.
 */
extern const char *wig_nearest(const char *word, const char *const *candidates);

#endif							/* WIGGLE_CORE_NEAREST_H */
