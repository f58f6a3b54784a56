/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of weighted virtual time.
 *
 * The virtual time of a task of weight 100 (nice 0) advances as fast as its CPU time, the virtual
 * time of a task of weight 200 half as fast. If the task with the smallest virtual time runs next,
 * tasks share the CPU in proportion to their weights.
 *
 * A queue has a virtual time too, which follows those of its tasks. A task whose virtual time is
 * behind the queue's has a credit (or lag) and runs early. A task whose virtual time is ahead of
 * the queue's has a debt (or lead) and has to wait. Credits and debts are in ns of virtual time.
 *
 * Pure functions, tested on the host by tests/unit_c.
 */
#ifndef __SCX_VTIME_H
#define __SCX_VTIME_H

#include "time.h"

/* p->scx.weight of a nice 0 task; the kernel's range is 1..10000. */
#define SCX_WEIGHT_DFL 100
#define SCX_WEIGHT_MAX 10000

/*
 * Return @value x @mul / @div without intermediate overflow, saturating at U64_MAX. @mul and @div
 * are from 1 to SCX_WEIGHT_MAX.
 */
static inline u64 scx_mul_div(u64 value, u32 mul, u32 div)
{
	u64 whole, limit;

	/* Most tasks have the default weight. */
	if (mul == div)
		return value;
	whole = value / div;
	limit = ~0ULL / mul;
	/* Hide from clang how the limit was computed. Otherwise clang would turn the comparison
	 * into a multiplication of 128 bits, which BPF lacks. */
	asm volatile("" : "+r"(limit));
	if (whole > limit)
		return ~0ULL;
	whole *= mul;
	value = value % div * mul / div;
	return whole > ~0ULL - value ? ~0ULL : whole + value;
}

static inline u32 scx_weight_clamp(u32 weight)
{
	if (weight < 1)
		return 1;
	return weight > SCX_WEIGHT_MAX ? SCX_WEIGHT_MAX : weight;
}

/* Return the virtual time, ns, by which @ran_ns of CPU time advances a task of @weight. */
static inline u64 scx_vtime_cost(u64 ran_ns, u32 weight)
{
	return scx_mul_div(ran_ns, SCX_WEIGHT_DFL, scx_weight_clamp(weight));
}

/* Return @ns scaled by @weight / SCX_WEIGHT_DFL: the inverse of scx_vtime_cost(). */
static inline u64 scx_weight_scale(u64 ns, u32 weight)
{
	return scx_mul_div(ns, scx_weight_clamp(weight), SCX_WEIGHT_DFL);
}

/*
 * Bound the credit that a task accumulates while it sleeps: return @vtime, but at most @credit_ns
 * behind @vtime_now.
 */
static inline u64 scx_vtime_limit_credit(u64 vtime, u64 vtime_now, u64 credit_ns)
{
	return time_max(vtime, vtime_now - credit_ns);
}

/*
 * Return how far ahead of the queue's virtual time a task may be queued, ns, so that it waits for
 * about @wait_ns at most. While virtual time advances by V, runnable tasks with a total weight of
 * @total_weight use V * @total_weight / 100 of CPU time, in the worst case on one CPU. Without a
 * bound, a task of nice 19 (weight 1) beside a task of nice -20 (weight 8668) would wait for three
 * minutes after a slice of 20 ms, and the kernel's watchdog would eject the scheduler after 30 s.
 * @wait_ns <= 10^17.
 */
static inline u64 scx_vtime_max_ahead(u64 wait_ns, u64 total_weight)
{
	return wait_ns * SCX_WEIGHT_DFL / (total_weight ? total_weight : 1);
}

/* Bound the debt of a task that has run for a long time: return @vtime, but at most @ahead_ns ahead
 * of @vtime_now. */
static inline u64 scx_vtime_limit_debt(u64 vtime, u64 vtime_now, u64 ahead_ns)
{
	return time_before(vtime, vtime_now + ahead_ns) ? vtime : vtime_now + ahead_ns;
}

/*
 * Return @slice_ns, or a shorter slice if @nr_waiting tasks and one more would otherwise take
 * longer than @wait_ns to run once each. It is at least @min_ns, but never more than @slice_ns.
 */
static inline u64 scx_slice_shared(u64 slice_ns, u64 wait_ns, u64 nr_waiting, u64 min_ns)
{
	u64 share_ns;

	/* Usually no division is needed. The first two conditions exclude an overflow. */
	if (slice_ns < 1ULL << 32 && nr_waiting < 1ULL << 31 &&
	    slice_ns * (nr_waiting + 1) <= wait_ns)
		return slice_ns;
	share_ns = wait_ns / (nr_waiting + 1);
	if (share_ns < min_ns)
		share_ns = min_ns;
	return share_ns < slice_ns ? share_ns : slice_ns;
}

#endif /* __SCX_VTIME_H */
