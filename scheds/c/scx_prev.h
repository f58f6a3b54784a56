/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_prev. */
#ifndef __SCX_PREV_H
#define __SCX_PREV_H

#include <scx/types.h>

/* Counters of a CPU. The first three count wakeups and forks of tasks that may use several CPUs. */
struct prev_stats {
	u64 prev_cpu; /* the previous CPU was idle, and was selected */
	u64 idle_cpu; /* another idle CPU was selected */
	u64 select_fail; /* no CPU was idle */
	u64 local; /* insertions of per-CPU kernel threads into the local DSQ of their CPU */
	u64 queued; /* insertions into the shared queue */
};

#endif /* __SCX_PREV_H */
