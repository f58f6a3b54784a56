/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_simple. */
#ifndef __SCX_SIMPLE_H
#define __SCX_SIMPLE_H

#include <scx/types.h>

/* Counters of a CPU: how tasks were dispatched. */
struct simple_stats {
	u64 local; /* tasks inserted into a local DSQ: on an idle CPU, or per-CPU kernel threads */
	u64 global; /* tasks inserted into the shared queue */
};

#endif /* __SCX_SIMPLE_H */
