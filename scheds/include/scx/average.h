/* SPDX-License-Identifier: GPL-2.0-only */
/* Moving averages of durations and frequencies. Pure functions, tested on the host by
 * tests/unit_c. */
#ifndef __SCX_AVERAGE_H
#define __SCX_AVERAGE_H

#include "time.h"

/* Update a moving average in which the new value has a weight of 1/4. Values below 4 count as 0. */
static inline u64 scx_average(u64 old, u64 new)
{
	return old - old / 4 + new / 4;
}

/*
 * Update the average frequency @freq, events per @unit_ns, after an event that follows the previous
 * one by @interval_ns. The frequency of a single interval is limited to @max. An interval of 0 does
 * not change the average: the previous event was on a CPU whose clock is ahead.
 */
static inline u64 scx_average_freq(u64 freq, u64 interval_ns, u64 unit_ns, u64 max)
{
	u64 now;

	if (!interval_ns)
		return freq;
	now = unit_ns / interval_ns;
	return scx_average(freq, now < max ? now : max);
}

#endif /* __SCX_AVERAGE_H */
