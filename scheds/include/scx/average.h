/* SPDX-License-Identifier: GPL-2.0-only */
/* Moving averages of durations and frequencies. Pure functions, tested on the host by
 * tests/unit_c. */
#ifndef __SCX_AVERAGE_H
#define __SCX_AVERAGE_H

#include "time.h"

/* Return the moving average @old, updated with @new, which has a weight of 1/4. If @new is below 4,
 * it counts as 0. An average below 4 does not decay. */
static inline u64 scx_average(u64 old, u64 new)
{
	return old - old / 4 + new / 4;
}

/*
 * Return the average frequency @freq, events per @unit_ns, updated after an event that follows the
 * previous one by @interval_ns. The frequency of a single interval is limited to @max. An interval
 * of 0 does not change the average: either the clock has not advanced, or the previous event was on
 * a CPU whose clock is ahead.
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
