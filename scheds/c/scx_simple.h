/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_simple. */
#ifndef __SCX_SIMPLE_H
#define __SCX_SIMPLE_H

#include <scx/types.h>

/* Counters of a CPU: how tasks were dispatched. */
struct simple_stats {
	u64 local; /* inserted into a local DSQ: on an idle CPU, or as a per-CPU kernel thread */
	u64 global; /* inserted into the shared queue */
};

#endif /* __SCX_SIMPLE_H */
