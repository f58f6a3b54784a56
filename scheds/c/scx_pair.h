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
	u64 dispatched; /* tasks taken from the DSQ of their cgroup */
	u64 kept; /* times that a task continued on slice expiry */
	u64 kernel; /* dispatches of kernel threads, and of dying tasks whose cgroup is gone */
	u64 turns; /* turns that pairs have begun */
	u64 switches; /* turns whose cgroup differs from that of the pair's previous turn */
	u64 waits; /* times that a CPU had to wait because the other CPU claimed or ran a cgroup */
	u64 ended; /* tasks preempted by the other CPU at the end of a turn */
	u64 reenqueued; /* tasks enqueued again, because a higher class has taken their CPU */
};

#endif /* __SCX_PAIR_H */
