/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_prev. */
#ifndef __SCX_PREV_H
#define __SCX_PREV_H

#include <scx/types.h>

/* Counters of a CPU. The first three: wakeups, and forks, of tasks that may use several CPUs. */
struct prev_stats {
	u64 prev_cpu; /* to the previous CPU, which was idle */
	u64 idle_cpu; /* to another idle CPU */
	u64 select_fail; /* no CPU was idle */
	u64 local; /* per-CPU kernel threads */
	u64 queued; /* insertions into the shared queue */
};

#endif /* __SCX_PREV_H */
