/*
 * nearest.c
 *	  The known word that a mistyped one is closest to.
 */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "nearest.h"

#define DISTANCE_MAX 3

/* Levenshtein distance of two short words, ignoring case; 99 for long ones. */
static int
distance(const char *a, const char *b)
{
	int			row[33];
	size_t		na = strlen(a);
	size_t		nb = strlen(b);

	if (na > 32 || nb > 32)
		return 99;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (int) j;
	for (size_t i = 1; i <= na; i++)
	{
		int			diagonal = row[0];

		row[0] = (int) i;
		for (size_t j = 1; j <= nb; j++)
		{
			int			replace = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);
			int			best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			diagonal = row[j];
			row[j] = replace < best ? replace : best;
		}
	}
	return row[nb];
}

/* A third of the shorter word's letters, begun ones count: of few letters most must be right. */
static int
allowed(const char *a, const char *b)
{
	size_t		na = strlen(a);
	size_t		nb = strlen(b);
	size_t		n = na < nb ? na : nb;
	size_t		third = n > 1 ? (n + 2) / 3 : 0;

	return third < DISTANCE_MAX ? (int) third : DISTANCE_MAX;
}

const char *
wig_nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	int			best_distance = DISTANCE_MAX + 1;

	for (int i = 0; candidates[i] != NULL; i++)
	{
		int			d = distance(word, candidates[i]);

		if (d < best_distance && d <= allowed(word, candidates[i]))
		{
			best_distance = d;
			best = candidates[i];
		}
	}
	return best;
}
