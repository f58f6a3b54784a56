/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_flatcg. */
#ifndef __SCX_FLATCG_H
#define __SCX_FLATCG_H

#include <scx/types.h>

/* Counted on each CPU, except nr_cgroups. */
struct flatcg_stats {
	u64 local; /* into a local DSQ: of an idle CPU, or for a per-CPU kernel thread */
	u64 queued; /* through the queue */
	u64 kept; /* continued on slice expiry: no waiting task precedes it */
	u64 limited; /* charged for less than it ran, to bound its wait: its share is too small */
	u64 parked; /* held back by cpu.max */
	u64 moved; /* to another cgroup */
	u64 nr_cgroups; /* below the root */
};

#endif /* __SCX_FLATCG_H */
