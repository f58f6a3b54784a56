/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of scx_fifo agree on. */
#ifndef __SCX_FIFO_INTF_H
#define __SCX_FIFO_INTF_H

#include <scx/types.h>

/* Counts of one CPU. They only grow. */
struct fifo_counts {
	u64 nr_local; /* tasks that went straight to a CPU */
	u64 nr_queued; /* tasks that waited in the queue */
	u64 nr_kthreads; /* tasks of these that no other may hold up: per-CPU kernel threads */
};

#endif /* __SCX_FIFO_INTF_H */
