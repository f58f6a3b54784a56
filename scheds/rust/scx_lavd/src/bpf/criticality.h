/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How urgent a task is: its latency criticality, and what follows from it. Pure functions, tested
 * on the host by tests/unit_c.
 *
 * The more often a task waits for others, the more often it wakes others, and the more briefly it
 * runs, the more urgent it is: such a task is in the middle of a chain of tasks that depend on each
 * other, and any delay of the task delays the whole chain.
 */
#ifndef __LAVD_CRITICALITY_H
#define __LAVD_CRITICALITY_H

#include <scx/log2.h>
#include <scx/vtime.h>

/* Frequencies are per second, clamped to this. */
#define LAVD_FREQ_MAX 100000

/* Longer average runtimes are clamped to this. */
#define LAVD_RUNTIME_LONG_NS NSEC_PER_SEC

/* Unit of lavd_runtime_factor(). */
#define LAVD_RUNTIME_UNIT_NS (NSEC_PER_MSEC / 2)

/* Boosts: the weight is multiplied by one plus the sum of those that apply. */
#define LAVD_BOOST_WAKEUP 128
#define LAVD_BOOST_SYNC 128
#define LAVD_BOOST_HARDIRQ 1024
#define LAVD_BOOST_SOFTIRQ 512
#define LAVD_BOOST_RT_WAKER 512
#define LAVD_BOOST_KTHREAD 256
#define LAVD_BOOST_WORKER 128
#define LAVD_BOOST_AFFINITIZED 128
#define LAVD_BOOST_PINNED 256
#define LAVD_BOOST_LOCK 128
#define LAVD_BOOST_MAX 4096 /* above their sum */

/* Upper bound of the criticality: 72^2. The two logarithms that lavd_lat_cri() adds up are at most
 * 34 and 37. */
#define LAVD_LAT_CRI_MAX 5184

/* At most this much of the CPU time since the last sleep counts for the deadline. */
#define LAVD_RUNTIME_COUNTED_NS (5 * NSEC_PER_MSEC)

/* The criticality at which lavd_request_ns() returns the counted CPU time unscaled. Tasks that
 * compute have 64 to 700, interactive tasks 1000 to 3000. */
#define LAVD_LAT_CRI_UNIT 256

/* The credit of a sleeper, ns of virtual time, for each unit of criticality: a game's task with a
 * criticality of 1000 may use up to 80 ms for a frame at once. */
#define LAVD_CREDIT_UNIT_NS (80 * 1000ULL)

static inline u64 lavd_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Return the number of bits of @value; 1 for 0. */
static inline u32 lavd_log(u64 value)
{
	return scx_log2(value) + 1;
}

/* Return how much shorter than LAVD_RUNTIME_LONG_NS the task runs on average, in units of
 * LAVD_RUNTIME_UNIT_NS plus 1: 1 to 2001. */
static inline u32 lavd_runtime_factor(u64 avg_runtime_ns)
{
	if (avg_runtime_ns >= LAVD_RUNTIME_LONG_NS)
		return 1;
	return (LAVD_RUNTIME_LONG_NS - avg_runtime_ns) / LAVD_RUNTIME_UNIT_NS + 1;
}

/* Return the logarithm of the product of the two frequencies, 1 to 34. */
static inline u32 lavd_log_freq(u64 wait_freq, u64 wake_freq)
{
	wait_freq = lavd_min(wait_freq, LAVD_FREQ_MAX) + 1;
	wake_freq = lavd_min(wake_freq, LAVD_FREQ_MAX) + 1;
	return lavd_log(wait_freq * wake_freq);
}

/* Return the latency criticality, below LAVD_LAT_CRI_MAX, of a task that blocks @wait_freq times
 * and wakes others @wake_freq times per second. @boost <= LAVD_BOOST_MAX is the sum of
 * LAVD_BOOST_*. */
static inline u32 lavd_lat_cri(u64 wait_freq, u64 wake_freq, u64 avg_runtime_ns, u32 weight,
			       u32 boost)
{
	u64 run = lavd_runtime_factor(avg_runtime_ns);
	u64 scale = (u64)scx_weight_clamp(weight) * (1 + lavd_min(boost, LAVD_BOOST_MAX)) + 1;
	u32 sum = lavd_log_freq(wait_freq, wake_freq) + lavd_log(run * scale);

	return sum * sum;
}

/* Return the criticality of a task, including what it inherits from its waker and from the most
 * critical task that it has woken since the last update: an eighth of the amount by which the sum
 * of their criticalities exceeds twice its own, but at most a quarter of its own. */
static inline u32 lavd_inherit(u32 lat_cri, u32 of_waker, u32 of_wakee)
{
	u64 given = (u64)of_waker + of_wakee;

	if (given <= 2ULL * lat_cri)
		return lat_cri;
	return lavd_min(lat_cri + lavd_min((given - 2ULL * lat_cri) / 8, lat_cri / 4),
			LAVD_LAT_CRI_MAX);
}

/* Return the performance criticality: how much a task gains from a fast CPU. It grows with the
 * frequencies, and with the CPU time per second. */
static inline u32 lavd_perf_cri(u64 wait_freq, u64 wake_freq, u64 run_freq, u64 runtime_ns,
				u32 weight)
{
	u64 run = lavd_min(run_freq, LAVD_FREQ_MAX), ns = lavd_min(runtime_ns, NSEC_PER_SEC);
	u64 used = ((run ?: 1) * (ns ?: 1)) >> 10;

	/* No overflow: the product is at most 10^14 / 2^10 x 10^4. */
	return lavd_log_freq(wait_freq, wake_freq) + lavd_log(used * scx_weight_clamp(weight));
}

/* Return the request of a task, the distance from its virtual time to its deadline, ns: 5 to 10 ms,
 * growing with its CPU time since it last slept (@awake_ns), scaled inversely to its
 * criticality. */
static inline u64 lavd_request_ns(u64 awake_ns, u32 lat_cri)
{
	u64 counted_ns = LAVD_RUNTIME_COUNTED_NS + lavd_min(awake_ns, LAVD_RUNTIME_COUNTED_NS);

	return counted_ns * LAVD_LAT_CRI_UNIT / (lat_cri ?: 1);
}

/* Return how far the virtual time of a task may fall behind while it sleeps, ns. */
static inline u64 lavd_credit_ns(u32 lat_cri)
{
	return lat_cri * LAVD_CREDIT_UNIT_NS;
}

/* Return the minimum criticality of a task that preempts others: the largest one, less 1 / 2^@shift
 * of its distance from the average. */
static inline u64 lavd_preempt_threshold(u64 max, u64 avg, u32 shift)
{
	return max > avg ? max - ((max - avg) >> (shift < 32 ? shift : 31)) : max;
}

/* Return the performance criticality above which a task should run on a big CPU: the average if the
 * big CPUs have half of the capacity (@big of @total), down to @min if they have more, and up to
 * @max if they have less. */
static inline u64 lavd_perf_threshold(u64 min, u64 avg, u64 max, u64 big, u64 total)
{
	u64 little;

	if (!total || big > total)
		return 0;
	little = (total - big) * 1024 / total;
	if (little < 512)
		return min + (avg > min ? avg - min : 0) * little / 512;
	return avg + (max > avg ? max - avg : 0) * (little - 512) / 512;
}

#endif /* __LAVD_CRITICALITY_H */
