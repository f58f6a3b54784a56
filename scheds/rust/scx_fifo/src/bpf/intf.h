/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_fifo. */
#ifndef __SCX_FIFO_INTF_H
#define __SCX_FIFO_INTF_H

#include <scx/types.h>

/* Monotonic counters of one CPU. */
struct fifo_counts {
	u64 nr_local; /* tasks that were sent directly to an idle CPU */
	u64 nr_queued; /* tasks that waited in the queue */
	u64 nr_kthreads; /* per-CPU kernel threads, which bypass the queue */
};

#endif /* __SCX_FIFO_INTF_H */
