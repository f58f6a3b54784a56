/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_pair. */
#ifndef __SCX_PAIR_H
#define __SCX_PAIR_H

#include <scx/types.h>

#define PAIR_CPUS_MAX 1024
#define PAIR_CGROUPS_MAX 65536

/* Counters of a CPU. */
struct pair_stats {
	u64 enqueued; /* tasks inserted into the DSQ of their cgroup */
	u64 dispatched; /* tasks taken from there */
	u64 kept; /* tasks that continued on slice expiry */
	u64 kernel; /* dispatches of kernel threads, which belong to no cgroup here */
	u64 turns; /* turns that pairs have begun */
	u64 switches; /* turns of another cgroup than in the turn before */
	u64 waits; /* times that a CPU waited for the end of the other CPU's claim */
	u64 ended; /* tasks preempted by the other CPU at the end of a turn */
	u64 reenqueued; /* tasks enqueued again, because a higher class has taken their CPU */
};

#endif /* __SCX_PAIR_H */
