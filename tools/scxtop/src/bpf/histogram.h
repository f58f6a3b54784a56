/* SPDX-License-Identifier: GPL-2.0-only */
/* The buckets of latency histograms. Compiles on the host, too. */
#ifndef __SCXTOP_HISTOGRAM_H
#define __SCXTOP_HISTOGRAM_H

#include <scx/log2.h>
#include "intf.h"

/*
 * Return the bucket of a latency, 0 to TOP_BUCKETS - 1: four for each power of two. Bucket 0 has
 * everything below 1280 ns, and the last bucket everything from its lower limit on.
 */
static inline u32 top_bucket(u64 ns)
{
	u32 log2, bucket;

	if (ns < 1024)
		return 0;
	log2 = scx_log2(ns);
	bucket = (log2 - 10) * 4 + (ns >> (log2 - 2) & 3);
	return bucket < TOP_BUCKETS ? bucket : TOP_BUCKETS - 1;
}

#endif /* __SCXTOP_HISTOGRAM_H */
