/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_bpfland. */
#ifndef __SCX_BPFLAND_INTF_H
#define __SCX_BPFLAND_INTF_H

#include <scx/types.h>

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct bpfland_config {
	u64 slice_max_ns; /* slice of a task of weight 100 while at most one other task waits */
	u64 slice_min_ns;
	u64 lag_ns; /* maximum credit of a task that wakes up at most 10 times per second */
	u32 local_pcpu; /* 1: pinned tasks run before all other tasks of their CPU */
	u32 local_kthreads; /* 1: per-CPU kernel threads run before all other tasks of their CPU */
	u32 ignores_sync; /* 1: treat sync wakeups like other wakeups */
	/* 1: a task with a short average runtime waits for its CPU if no CPU is idle, and a task
	 * whose slice ends is not dispatched directly to another CPU unless scx_should_move() is
	 * true. */
	u32 sticky;
	u32 prefers_fastest; /* 1: search for idle CPUs with scx_pick_fastest_idle() */
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
	u64 nr_queue_dispatches; /* dispatches of tasks that have waited */
	u64 nr_idle_misses;
	u64 nr_preemptions;
};

#endif /* __SCX_BPFLAND_INTF_H */
