/* SPDX-License-Identifier: GPL-2.0-only */
/* The performance level that a CPU should have. Pure functions, tested on the host by
 * tests/unit_c. */
#ifndef __SCX_CPUFREQ_H
#define __SCX_CPUFREQ_H

#include "time.h"

/* The highest performance level: SCX_CPUPERF_ONE. */
#define SCX_PERF_MAX 1024

/* Thresholds of utilization, 0 to SCX_PERF_MAX. At SCX_PERF_HIGH or more, the highest level is
 * requested, so that a busy CPU reaches full speed at once. At SCX_PERF_LOW or less, half of the
 * highest level is requested. Between the thresholds the level is the utilization, which may be
 * below that half. */
#define SCX_PERF_HIGH 768
#define SCX_PERF_LOW 256

/* Return the utilization, 0 to SCX_PERF_MAX, of a CPU that was busy for @busy_ns < 2^54 of @ns. */
static inline u32 scx_perf_util(u64 busy_ns, u64 ns)
{
	if (busy_ns >= ns)
		return SCX_PERF_MAX;
	return busy_ns * SCX_PERF_MAX / ns;
}

/* Return the moving average @old, updated with @util, which has a weight of 3/4. */
static inline u32 scx_perf_average(u32 old, u32 util)
{
	return (old + 3 * util) / 4;
}

/* Return the level to request at an average utilization. */
static inline u32 scx_perf_level(u32 util)
{
	if (util >= SCX_PERF_HIGH)
		return SCX_PERF_MAX;
	return util <= SCX_PERF_LOW ? SCX_PERF_MAX / 2 : util;
}

#endif /* __SCX_CPUFREQ_H */
