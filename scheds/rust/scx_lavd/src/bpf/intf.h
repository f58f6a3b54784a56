/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_lavd. */
#ifndef __SCX_LAVD_INTF_H
#define __SCX_LAVD_INTF_H

#include <scx/types.h>

enum {
	LAVD_COMM_LEN = 16, /* TASK_COMM_LEN */
	LAVD_CPUS_MAX = 8192, /* SCX_CPUS_MAX */
};

/* Modes: how many CPUs are active. */
enum {
	LAVD_AUTO, /* one of the next three modes, by the load */
	LAVD_PERFORMANCE, /* all CPUs, but little CPUs only if no big CPU is idle */
	LAVD_BALANCED, /* as many as the load needs, one thread of each core first */
	LAVD_POWERSAVE, /* like balanced, but whole cores first, and in an LLC little CPUs first */
	LAVD_NO_COMPACTION, /* all CPUs; a task prefers the kind of CPU that suits it */
};

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct lavd_config {
	u64 slice_min_ns;
	u64 slice_max_ns;
	u64 pinned_slice_ns; /* maximum slice while a pinned task waits; 0: no limit */
	/* Only tasks in the topmost 1 / 2^preempt_shift of the range from the average to the
	 * largest criticality preempt other tasks. */
	u32 preempt_shift;
	u32 no_preemption;
	u32 no_slice_boost;
	u32 ignores_sync; /* 1: treat sync wakeups like other wakeups */
};

/* The orders in which CPUs become active: ids of the online CPUs. All modes except powersave use
 * the order of performance mode. Set by user space before it loads the BPF programs. */
struct lavd_orders {
	u16 performance[LAVD_CPUS_MAX];
	u16 powersave[LAVD_CPUS_MAX];
};

/* Written by user space at any time. */
struct lavd_control {
	u64 mode; /* LAVD_AUTO or another mode */
};

/* Averages and other state of the machine, updated every 10 or 20 ms (round.bpf.h). Written by
 * BPF. */
struct lavd_system {
	u64 avg_lat_cri;
	u64 max_lat_cri;
	u64 avg_perf_cri;
	u64 thr_perf_cri; /* tasks with a larger perf_cri are performance critical */
	u64 nr_queued; /* number of waiting tasks */
	u64 avg_runtime_us; /* average of the tasks' avg_runtime_ns, each capped at 10 ms */
	u64 load; /* moving average; a CPU of capacity 1024 that is always busy adds 1024 */
	u64 nr_active; /* number of CPUs in use: without compaction, all online CPUs */
	u64 mode; /* mode of the last round; LAVD_AUTO only before the first round */
	u64 nr_performance; /* rounds in performance mode, or without compaction */
	u64 nr_balanced; /* rounds in balanced mode */
	u64 nr_powersave; /* rounds in powersave mode */
};

/* A request of user space for samples. */
struct lavd_request {
	u64 nr_samples; /* number of samples still to take */
};

/* Counters of a CPU. nr_perf_cri, nr_big and nr_*_on_big stay 0 unless there are both big and
 * little CPUs. */
struct lavd_counts {
	u64 nr_sched; /* runs that started */
	u64 nr_lat_cri; /* of nr_sched: with a criticality of at least the average */
	u64 nr_perf_cri; /* of nr_sched: performance critical */
	u64 nr_big; /* of nr_sched: on a big CPU */
	u64 nr_lat_cri_on_big; /* of nr_big: with a criticality of at least the average */
	u64 nr_perf_cri_on_big; /* of nr_big: performance critical */
	u64 nr_x_migration; /* of nr_sched: last ran in another compute domain */
	u64 nr_preempt; /* tasks preempted by a task that was new or woke up */
	u64 nr_stolen; /* tasks taken from the DSQ of another compute domain */
	u64 nr_lock_boost; /* slices extended for a lock */
	u64 nr_slice_boost; /* slices that were longer than plain_slice_ns() */
};

/* Flags of a sample. */
enum {
	LAVD_IS_CRITICAL = 1 << 0, /* has at least average criticality */
	LAVD_IS_HOLDER = 1 << 1, /* probably holds a lock (futex.bpf.h) */
	LAVD_ON_BIG = 1 << 2,
	LAVD_IS_GREEDY = 1 << 3, /* has used more than its share */
};

/* A task that starts to run. Times are in ns, frequencies per second. */
struct lavd_sample {
	s32 pid;
	s32 waker_pid; /* 0: an interrupt, or unknown */
	char comm[LAVD_COMM_LEN];
	char waker_comm[LAVD_COMM_LEN];
	u64 dsq_id;
	u64 slice_ns;
	u64 slice_used_ns; /* duration of the previous run */
	u64 wait_ns; /* time since the task was queued */
	u64 resched_ns; /* time since the task previously started to run */
	u64 avg_runtime_ns;
	u32 flags;
	s32 cpu;
	s32 prev_cpu;
	s32 suggested_cpu; /* selected by ops.select_cpu(); -1: not called at the last wakeup */
	u32 static_prio;
	u32 lat_cri;
	u32 avg_lat_cri;
	u32 perf_cri;
	u32 thr_perf_cri;
	u32 run_freq;
	u32 wait_freq;
	u32 wake_freq;
	/* Utilization of the CPU and performance level requested for it, 0 to 1024. Both are 0 with
	 * --no-freq-scaling. */
	u32 cpu_util;
	u32 perf_level;
};

#endif /* __SCX_LAVD_INTF_H */
