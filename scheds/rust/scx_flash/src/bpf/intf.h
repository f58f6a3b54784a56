/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_flash. */
#ifndef __SCX_FLASH_INTF_H
#define __SCX_FLASH_INTF_H

#include <scx/types.h>

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct flash_config {
	u64 slice_ns; /* slice of a task of weight 100 */
	u64 lag_ns; /* maximum credit of a task that wakes up at most once per 100 ms */
	u32 rr; /* 1: order tasks by arrival, and not by virtual time */
	u32 tickless; /* 1: slices are infinite, and a timer ends them if other tasks wait */
	u32 wakeup_throttle; /* 1: tasks with very short runs get a later deadline */
	u32 local_kthreads; /* 1: per-CPU kernel threads run before all other tasks of their CPU */
};

/* Counters of a CPU. */
struct flash_counts {
	u64 nr_started; /* tasks that started to run */
	u64 nr_stopped;
	u64 nr_kthread_dispatches;
	u64 nr_direct_dispatches;
	u64 nr_shared_dispatches;
	u64 nr_preemptions;
};

#endif /* __SCX_FLASH_INTF_H */
