/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_bpfland. */
#ifndef __SCX_BPFLAND_INTF_H
#define __SCX_BPFLAND_INTF_H

#include <scx/types.h>

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct bpfland_config {
	u64 slice_max_ns; /* slice of a task of weight 100 while no other one waits */
	u64 slice_min_ns;
	u64 lag_ns; /* credit of a task that wakes up rarely */
	u32 local_pcpu; /* pinned tasks run before all others of their CPU */
	u32 local_kthreads; /* per-CPU kernel threads run before all other tasks */
	u32 ignores_sync; /* treat sync wakeups like others */
	u32 sticky; /* tasks with short runs stay on their CPU */
	u32 prefers_fastest; /* take the previous CPU if it is idle, else the fastest idle one */
	u32 padding;
};

/* Counters of a CPU. */
struct bpfland_counts {
	u64 nr_started; /* tasks that started to run */
	u64 nr_stopped;
	u64 nr_kthread_dispatches;
	u64 nr_direct_dispatches;
	u64 nr_shared_dispatches;
	u64 nr_keep_running;
	u64 nr_queue_dispatches; /* of tasks that have waited */
	u64 nr_idle_misses;
	u64 nr_preemptions;
};

#endif /* __SCX_BPFLAND_INTF_H */
