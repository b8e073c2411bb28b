/*
 * cluster_page.h
 *	  /api/cluster: this process, the proxies that home listed, and who takes what.
 */
#ifndef WIGGLE_PROXY_CLUSTER_PAGE_H
#define WIGGLE_PROXY_CLUSTER_PAGE_H

#include "buf.h"

extern void cluster_page_write(struct buf *out);

#endif							/* WIGGLE_PROXY_CLUSTER_PAGE_H */
