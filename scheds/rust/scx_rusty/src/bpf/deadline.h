/* SPDX-License-Identifier: GPL-2.0-only */
/* Deadlines of tasks, and the priorities that they depend on. A task that often wakes other tasks
 * and often blocks, with short runs in between, is probably part of a chain of tasks that wait for
 * each other. Its priority is high and its deadline is early. Pure functions. */
#ifndef __RUSTY_DEADLINE_H
#define __RUSTY_DEADLINE_H

#include <scx/average.h>
#include <scx/log2.h>
#include <scx/vtime.h>

/* Frequencies are per 100 ms, clamped to RUSTY_FREQ_MAX. */
#define RUSTY_FREQ_UNIT_NS (100 * 1000 * 1000ULL)
#define RUSTY_FREQ_MAX 100000

/* rusty_prio() lowers the priority by the logarithm of half of the average runtime, converted to
 * virtual time by the weight. This is the upper bound of that half before the conversion. */
#define RUSTY_RUNTIME_MAX_NS (50 * 1000 * 1000ULL)

/* Highest priority: the last index of the table in rusty_latency_scale(). */
#define RUSTY_PRIO_MAX 38

/* Return the updated average frequency of an event that follows the previous event by
 * @interval_ns. */
static inline u64 rusty_freq(u64 freq, u64 interval_ns)
{
	return scx_average_freq(freq, interval_ns, RUSTY_FREQ_UNIT_NS, RUSTY_FREQ_MAX);
}

/* Return the divisor of the average runtime for a priority, in percent. The table is
 * sched_prio_to_weight[] of kernel/sched/core.c, from nice 19 (priority 0) to nice -19
 * (RUSTY_PRIO_MAX). Values above 10000 are clamped to 10000. */
static inline u32 rusty_latency_scale(u32 prio)
{
	static const u32 weights[RUSTY_PRIO_MAX + 1] = {
		15,    18,    23,    29,    36,	   45,	  56,	 70,	87,    110,
		137,   172,   215,   272,   335,   423,	  526,	 655,	820,   1024,
		1277,  1586,  1991,  2501,  3121,  3906,  4904,	 6100,	7620,  9548,
		10000, 10000, 10000, 10000, 10000, 10000, 10000, 10000, 10000,
	};

	/* Hide from clang what it knows about the priority. Otherwise clang would remove the check,
	 * without which the verifier rejects the access. */
	asm volatile("" : "+r"(prio));
	return weights[prio < RUSTY_PRIO_MAX ? prio : RUSTY_PRIO_MAX];
}

/* Clamp a frequency, so that rusty_prio() cannot overflow for any arguments. It changes no
 * frequency that rusty_freq() returns. */
static inline u64 rusty_freq_clamp(u64 freq)
{
	return freq < RUSTY_FREQ_MAX ? freq : RUSTY_FREQ_MAX;
}

/* Return the priority of a task, from 0 to RUSTY_PRIO_MAX. The waker frequency is squared, because
 * other tasks depend on wakers. */
static inline u32 rusty_prio(u64 blocked_freq, u64 waker_freq, u64 avg_runtime_ns, u32 weight)
{
	u64 waker = rusty_freq_clamp(waker_freq), freq;
	u32 prio, run;

	weight = scx_weight_clamp(weight);
	/* No overflow: the product is at most 10^15. Scaled by the weight, it is at most 10^17. */
	freq = scx_weight_scale(rusty_freq_clamp(blocked_freq) * waker * waker, weight);
	prio = scx_log2(freq + 1);
	if (prio > RUSTY_PRIO_MAX)
		prio = RUSTY_PRIO_MAX;
	if (avg_runtime_ns > 2 * RUSTY_RUNTIME_MAX_NS)
		avg_runtime_ns = 2 * RUSTY_RUNTIME_MAX_NS;
	run = scx_log2(scx_vtime_cost(avg_runtime_ns / 2, weight) + 1);
	return prio > run ? prio - run : 0;
}

/*
 * Return the distance from a task's virtual time to its deadline, ns, at most @max_ns: the average
 * runtime, of which at most @max_ns count, divided by rusty_latency_scale(). The maximum bounds how
 * far the virtual times of tasks drift apart. CPU-bound tasks have priority 0, which means a
 * division by 0.15. Without the maximum, one such task would run for more than six slices while
 * others wait.
 */
static inline u64 rusty_request_ns(u64 avg_runtime_ns, u32 prio, u64 max_ns)
{
	u64 runtime_ns = avg_runtime_ns < max_ns ? avg_runtime_ns : max_ns;
	u64 request_ns = runtime_ns * 100 / rusty_latency_scale(prio);

	return request_ns < max_ns ? request_ns : max_ns;
}

#endif /* __RUSTY_DEADLINE_H */
