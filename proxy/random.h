/*
 * random.h
 *	  Random bits that nobody can guess, for ids and nonces.
 */
#ifndef WIGGLE_PROXY_RANDOM_H
#define WIGGLE_PROXY_RANDOM_H

#include <stdint.h>

extern uint64_t random_u64(void);

#endif							/* WIGGLE_PROXY_RANDOM_H */
