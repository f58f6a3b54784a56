/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_flatcg. */
#ifndef __SCX_FLATCG_H
#define __SCX_FLATCG_H

#include <scx/types.h>

/* Counted on each CPU, except nr_cgroups. */
struct flatcg_stats {
	u64 local; /* tasks inserted into a local DSQ directly */
	u64 queued; /* tasks inserted into the shared queue */
	u64 kept; /* tasks that continued on slice expiry, because no waiting task preceded them */
	u64 limited; /* slices not charged in full, to bound the wait of tasks with small shares */
	u64 parked; /* tasks held back by cpu.max */
	u64 moved; /* tasks moved to another cgroup */
	u64 nr_cgroups; /* number of cgroups below the root */
};

#endif /* __SCX_FLATCG_H */
