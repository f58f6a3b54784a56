/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The latency criticality of a task, which says how urgent the task is, values that depend on it,
 * and the performance criticality. Pure functions, tested on the host by tests/unit_c.
 *
 * A task that often waits for other tasks, often wakes other tasks, and runs briefly is in the
 * middle of a chain of tasks that depend on each other. Any delay of such a task delays the whole
 * chain, so it is urgent.
 */
#ifndef __LAVD_CRITICALITY_H
#define __LAVD_CRITICALITY_H

#include <scx/log2.h>
#include <scx/vtime.h>

/* Upper bound of frequencies, per second. */
#define LAVD_FREQ_MAX 100000

/* Upper bound of the average runtimes that lavd_runtime_factor() tells apart. */
#define LAVD_RUNTIME_LONG_NS NSEC_PER_SEC

/* Unit of lavd_runtime_factor(). */
#define LAVD_RUNTIME_UNIT_NS (NSEC_PER_MSEC / 2)

/* Boosts. lavd_lat_cri() multiplies the weight by one plus the sum of the boosts that apply. */
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
#define LAVD_BOOST_MAX 4096 /* larger than the sum of all boosts */

/* Upper bound of the criticality: 72^2. The two logarithms that lavd_lat_cri() adds up are at most
 * 34 and 37. */
#define LAVD_LAT_CRI_MAX 5184

/* Maximum CPU time since the last sleep that lavd_request_ns() takes into account. It is also the
 * constant that lavd_request_ns() adds to this CPU time. */
#define LAVD_RUNTIME_COUNTED_NS (5 * NSEC_PER_MSEC)

/* The criticality at which lavd_request_ns() does not scale the counted CPU time. Tasks that
 * compute have a criticality of 64 to 700, interactive tasks have one of 1000 to 3000. */
#define LAVD_LAT_CRI_UNIT 256

/* The credit of a task that sleeps, ns of virtual time, for each unit of criticality. For example,
 * a task of a game with a criticality of 1000 gets a credit of up to 80 ms, so that it can compute
 * a frame before other tasks precede it. */
#define LAVD_CREDIT_UNIT_NS (80 * 1000ULL)

/* A wakee that has used at most this CPU time in its life counts as new. */
#define LAVD_NEW_NS (5 * NSEC_PER_MSEC)

static inline u64 lavd_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Return the number of bits of @value; 1 for 0. */
static inline u32 lavd_log(u64 value)
{
	return scx_log2(value) + 1;
}

/* Return one plus the difference between LAVD_RUNTIME_LONG_NS and the average runtime, in units of
 * LAVD_RUNTIME_UNIT_NS: 1 to 2001. */
static inline u32 lavd_runtime_factor(u64 avg_runtime_ns)
{
	if (avg_runtime_ns >= LAVD_RUNTIME_LONG_NS)
		return 1;
	return (LAVD_RUNTIME_LONG_NS - avg_runtime_ns) / LAVD_RUNTIME_UNIT_NS + 1;
}

/* Return the number of bits of the product of the two frequencies, each plus one: 1 to 34. */
static inline u32 lavd_log_freq(u64 wait_freq, u64 wake_freq)
{
	wait_freq = lavd_min(wait_freq, LAVD_FREQ_MAX) + 1;
	wake_freq = lavd_min(wake_freq, LAVD_FREQ_MAX) + 1;
	return lavd_log(wait_freq * wake_freq);
}

/* Return the latency criticality, below LAVD_LAT_CRI_MAX, of a task that sleeps @wait_freq times
 * and wakes other tasks @wake_freq times per second. @boost is the sum of LAVD_BOOST_*. */
static inline u32 lavd_lat_cri(u64 wait_freq, u64 wake_freq, u64 avg_runtime_ns, u32 weight,
			       u32 boost)
{
	u64 run = lavd_runtime_factor(avg_runtime_ns);
	u64 scale = (u64)scx_weight_clamp(weight) * (1 + lavd_min(boost, LAVD_BOOST_MAX)) + 1;
	u32 sum = lavd_log_freq(wait_freq, wake_freq) + lavd_log(run * scale);

	return sum * sum;
}

/* Return the criticality of a task, including what it inherits. @of_waker is the criticality of its
 * waker, @of_wakee that of the most critical task that it has woken since the last update. It
 * inherits an eighth of the amount by which the sum of these two exceeds 2 * @lat_cri, but at most
 * @lat_cri / 4. */
static inline u32 lavd_inherit(u32 lat_cri, u32 of_waker, u32 of_wakee)
{
	u64 given = (u64)of_waker + of_wakee;

	if (given <= 2ULL * lat_cri)
		return lat_cri;
	return lavd_min(lat_cri + lavd_min((given - 2ULL * lat_cri) / 8, lat_cri / 4),
			LAVD_LAT_CRI_MAX);
}

/* Return the performance criticality: how much a task gains from a fast CPU. It grows with the
 * frequencies, with the CPU time per second, and with the weight. */
static inline u32 lavd_perf_cri(u64 wait_freq, u64 wake_freq, u64 run_freq, u64 runtime_ns,
				u32 weight)
{
	u64 run = lavd_min(run_freq, LAVD_FREQ_MAX), ns = lavd_min(runtime_ns, NSEC_PER_SEC);
	u64 used = ((run ?: 1) * (ns ?: 1)) >> 10;

	/* This does not overflow: the product is at most 10^14 / 2^10 x 10^4. */
	return lavd_log_freq(wait_freq, wake_freq) + lavd_log(used * scx_weight_clamp(weight));
}

/* Return the request of a task, ns: the distance from its virtual time to its deadline. This is
 * LAVD_LAT_CRI_UNIT / @lat_cri times the sum of 5 ms and the CPU time since the task last slept
 * (@awake_ns, of which at most 5 ms count). */
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

/* Return the minimum criticality of a task that may preempt other tasks: the largest criticality,
 * minus 1 / 2^@shift of its distance from the average. */
static inline u64 lavd_preempt_threshold(u64 max, u64 avg, u32 shift)
{
	return max > avg ? max - ((max - avg) >> (shift < 32 ? shift : 31)) : max;
}

/* Return the performance criticality above which a task should run on a big CPU. It is @avg if the
 * big CPUs have half of the capacity (@big of @total), between @min and @avg if they have more than
 * half, and between @avg and @max if they have less than half. */
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
