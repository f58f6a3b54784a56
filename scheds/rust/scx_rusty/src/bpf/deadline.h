/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The priority of a task: one that wakes others often and blocks often, and computes little in
 * between, is part of a work chain that many tasks depend on, and gets an earlier deadline. Pure
 * functions.
 */
#ifndef __RUSTY_DEADLINE_H
#define __RUSTY_DEADLINE_H

#include <scx/vtime.h>

/* Frequencies are per 100 ms, clamped to RUSTY_FREQ_MAX. */
#define RUSTY_FREQ_UNIT_NS (100 * 1000 * 1000ULL)
#define RUSTY_FREQ_MAX 100000

/* Half of the average runtime, up to this, lowers the priority. */
#define RUSTY_RUNTIME_MAX_NS (50 * 1000 * 1000ULL)

/* The highest priority: the last index of the weights below. */
#define RUSTY_PRIO_MAX 38

/* Moving average in which the new value counts a quarter. */
static inline u64 rusty_average(u64 old, u64 new)
{
	return old - old / 4 + new / 4;
}

/*
 * The average frequency of an event that happened now and @interval_ns ago. It does not change if
 * the interval is 0: the previous event was on a CPU whose clock is ahead.
 */
static inline u64 rusty_freq(u64 freq, u64 interval_ns)
{
	u64 now;

	if (!interval_ns)
		return freq;
	now = RUSTY_FREQ_UNIT_NS / interval_ns;
	return rusty_average(freq, now < RUSTY_FREQ_MAX ? now : RUSTY_FREQ_MAX);
}

/*
 * log2(@value), rounded down; 0 for 0. Not inlined, because the verifier would otherwise follow
 * each of its paths through each caller: half a million instructions, and seconds of loading.
 */
__attribute__((noinline)) u32 rusty_log2(u64 value)
{
	u32 log = 0, step;

	for (step = 32; step; step /= 2) {
		if (value >> step) {
			value >>= step;
			log += step;
		}
	}
	return log;
}

/* The divisor of the average runtime, percent, by priority: kernel/sched/core.c,
 * sched_prio_to_weight[], from nice 19 for priority 0 to nice -19 for RUSTY_PRIO_MAX, but at most
 * 10000. */
static inline u32 rusty_latency_scale(u32 prio)
{
	static const u32 weights[RUSTY_PRIO_MAX + 1] = {
		15,    18,    23,    29,    36,	   45,	  56,	 70,	87,    110,
		137,   172,   215,   272,   335,   423,	  526,	 655,	820,   1024,
		1277,  1586,  1991,  2501,  3121,  3906,  4904,	 6100,	7620,  9548,
		10000, 10000, 10000, 10000, 10000, 10000, 10000, 10000, 10000,
	};

	return weights[prio < RUSTY_PRIO_MAX ? prio : RUSTY_PRIO_MAX];
}

/* rusty_freq() never exceeds the bound, but the compiler does not know: it would turn the overflow
 * check of scx_weight_scale() into a multiplication of 128 bits, which BPF lacks. */
static inline u64 rusty_freq_clamp(u64 freq)
{
	return freq < RUSTY_FREQ_MAX ? freq : RUSTY_FREQ_MAX;
}

/* From 0 to RUSTY_PRIO_MAX. The waker frequency is squared: other tasks depend on wakers. */
static inline u32 rusty_prio(u64 blocked_freq, u64 waker_freq, u64 avg_runtime_ns, u32 weight)
{
	u64 waker = rusty_freq_clamp(waker_freq), freq;
	u32 prio, run;

	weight = scx_weight_clamp(weight);
	/* The product is at most 10^15, with the weight 10^17: no overflow. */
	freq = scx_weight_scale(rusty_freq_clamp(blocked_freq) * waker * waker, weight);
	prio = rusty_log2(freq + 1);
	if (prio > RUSTY_PRIO_MAX)
		prio = RUSTY_PRIO_MAX;
	if (avg_runtime_ns > 2 * RUSTY_RUNTIME_MAX_NS)
		avg_runtime_ns = 2 * RUSTY_RUNTIME_MAX_NS;
	run = rusty_log2(scx_vtime_cost(avg_runtime_ns / 2, weight) + 1);
	return prio > run ? prio - run : 0;
}

/* Distance from a task's virtual time to its deadline, ns. At most @max_ns of runtime count. */
static inline u64 rusty_request_ns(u64 avg_runtime_ns, u32 prio, u64 max_ns)
{
	u64 runtime_ns = avg_runtime_ns < max_ns ? avg_runtime_ns : max_ns;

	return runtime_ns * 100 / rusty_latency_scale(prio);
}

#endif /* __RUSTY_DEADLINE_H */
