/* SPDX-License-Identifier: GPL-2.0-only */
/* The number of CPUs that a load needs, and the mode. Loads are in units of CPU capacity: the
 * fastest CPU has 1024. Pure functions, tested on the host by tests/unit_c. */
#ifndef __LAVD_COMPACT_H
#define __LAVD_COMPACT_H

#include <scx/types.h>

#include "intf.h"

/* Return the average load after a round with the load @now. The average falls slowly, so that CPUs
 * stay active between bursts. It need not rise at once, because if the active CPUs are saturated,
 * the load of the waiting tasks is added (lavd_queued_load()). */
static inline u64 lavd_load_average(u64 avg, u64 now)
{
	return now > avg ? avg + (now - avg + 3) / 4 : avg - (avg - now + 7) / 8;
}

/* Return the capacity that a load needs: the load plus a quarter. */
static inline u64 lavd_need(u64 load)
{
	return load + load / 4;
}

/* Return the load that @nr waiting tasks cause in a round of @round_us, if each of them runs for
 * @runtime_us. */
static inline u64 lavd_queued_load(u64 nr, u64 runtime_us, u64 round_us)
{
	return nr * 1024 * (runtime_us < round_us ? runtime_us : round_us) / round_us;
}

/* Whether the active CPUs were busy for at least 7/8 of a round. If they were not, the tasks that
 * wait at the end of the round need no further CPUs. Such tasks usually woke up at the same time,
 * so they wait only briefly, and the measured load includes their CPU time. */
static inline bool lavd_is_saturated(u64 load, u64 capacity)
{
	return load >= capacity - capacity / 8;
}

/* Return the approximate time, us, that a task will wait behind @nr other tasks for one of @nr_cpus
 * busy CPUs, if each task runs for @runtime_us. */
static inline u64 lavd_wait_us(u64 nr, u64 runtime_us, u32 nr_cpus)
{
	return (nr + 1) * runtime_us / (nr_cpus ? nr_cpus : 1);
}

/* Whether CPUs with a total capacity of @capacity suffice for @need. @need may be at most 9/16 of
 * @capacity: half, plus a margin so that fluctuations of the load do not activate another CPU. For
 * example, two CPUs suffice for a need of one CPU, which is a load of 0.8 CPUs (lavd_need()). */
static inline bool lavd_suffices(u64 capacity, u64 need)
{
	return capacity / 16 * 9 >= need;
}

/* Return the mode for @need: powersave up to half of the smallest CPU, balanced up to half of the
 * machine, else performance. With SMT, balanced is used up to a quarter of the machine, because two
 * threads share a core. */
static inline u32 lavd_auto_mode(u64 need, u64 min_capacity, u64 total, bool has_smt)
{
	if (need <= min_capacity / 2)
		return LAVD_POWERSAVE;
	return need <= total / (has_smt ? 4 : 2) ? LAVD_BALANCED : LAVD_PERFORMANCE;
}

#endif /* __LAVD_COMPACT_H */
