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
	u64 kept; /* continued on slice expiry */
	u64 kernel; /* dispatches of kernel threads, which belong to no cgroup here */
	u64 turns; /* a pair began to run a cgroup, or began another turn of it */
	u64 switches; /* of these, turns of another cgroup than the one before */
	u64 waits; /* took no task: none may run beside the other CPU's, or the turn is over */
	u64 ended; /* preempted the other CPU's task at the end of a turn */
	u64 reenqueued; /* a higher class has taken the CPU */
};

#endif /* __SCX_PAIR_H */
