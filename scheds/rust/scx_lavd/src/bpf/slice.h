/* SPDX-License-Identifier: GPL-2.0-only */
/* Time slices. Pure functions, tested on the host by tests/unit_c. */
#ifndef __LAVD_SLICE_H
#define __LAVD_SLICE_H

#include <scx/time.h>

/* Approximate time within which all waiting tasks should run. */
#define LAVD_TARGET_LATENCY_NS (10 * NSEC_PER_MSEC)

/* While no other task waits, a boosted slice is the average runtime plus this bonus, so that the
 * task can finish its work. */
#define LAVD_SLICE_BONUS_NS (NSEC_PER_MSEC / 2)
/* Maximum of a boosted slice while no other task waits. */
#define LAVD_SLICE_BOOST_MAX_NS (500 * NSEC_PER_MSEC)

static inline u64 lavd_clamp(u64 value, u64 min, u64 max)
{
	if (value < min)
		return min;
	return value < max ? value : max;
}

/* Return the slice of tasks in a domain of @nr_cpus where @nr_waiting tasks wait. @min_ns must not
 * exceed @max_ns. */
static inline u64 lavd_slice_ns(u32 nr_cpus, u64 nr_waiting, u64 min_ns, u64 max_ns)
{
	/* Usually no division is needed. No overflow: @nr_waiting is at most the number of tasks
	 * times @nr_cpus, and @max_ns is at most 1 s. */
	if (LAVD_TARGET_LATENCY_NS * nr_cpus >= nr_waiting * max_ns)
		return max_ns;
	return lavd_clamp(LAVD_TARGET_LATENCY_NS * nr_cpus / nr_waiting, min_ns, max_ns);
}

/*
 * Return the slice of a task that runs for @avg_runtime_ns on average: twice this time, but at
 * least twice @min_ns and at most @slice_ns. A new task, whose average is 0, thus gets a short
 * slice. Only the end of the slice bounds the wait of other tasks, because they do not preempt a
 * task whose stretch (scx/preempt.bpf.h) was short when it started to run.
 */
static inline u64 lavd_fitting_slice_ns(u64 slice_ns, u64 avg_runtime_ns, u64 min_ns)
{
	if (avg_runtime_ns >= slice_ns / 2)
		return slice_ns;
	min_ns = 2 * min_ns < slice_ns ? 2 * min_ns : slice_ns;
	return lavd_clamp(2 * avg_runtime_ns, min_ns, slice_ns);
}

/*
 * Return the slice of a task that runs for at least @slice_ns on average. If no other task waits,
 * the slice is this average plus LAVD_SLICE_BONUS_NS, but at most the longer of
 * LAVD_SLICE_BOOST_MAX_NS and @slice_ns. Otherwise only a task of more than average criticality
 * gets more than @slice_ns: its average runtime, at most twice @slice_ns.
 */
static inline u64 lavd_boosted_slice_ns(u64 slice_ns, u64 avg_runtime_ns, bool others_wait,
					u32 lat_cri, u64 avg_lat_cri)
{
	/* @slice_ns may be larger than LAVD_SLICE_BOOST_MAX_NS (--slice-max-us). */
	if (!others_wait)
		return lavd_clamp(avg_runtime_ns + LAVD_SLICE_BONUS_NS, slice_ns,
				  slice_ns > LAVD_SLICE_BOOST_MAX_NS ? slice_ns :
								       LAVD_SLICE_BOOST_MAX_NS);
	if (lat_cri <= avg_lat_cri)
		return slice_ns;
	return lavd_clamp(avg_runtime_ns, slice_ns, 2 * slice_ns);
}

#endif /* __LAVD_SLICE_H */
