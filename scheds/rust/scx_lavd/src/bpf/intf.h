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
	LAVD_AUTO, /* one of the next three, by the load */
	LAVD_PERFORMANCE, /* all, but little ones last */
	LAVD_BALANCED, /* as many as the load needs, one thread of each core first */
	LAVD_POWERSAVE, /* as many as the load needs, whole cores and little CPUs first */
	LAVD_NO_COMPACTION, /* all; a task prefers the kind that suits it */
};

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct lavd_config {
	u64 slice_min_ns;
	u64 slice_max_ns;
	u64 pinned_slice_ns; /* limit while a pinned task waits for the CPU; 0: none */
	u32 preempt_shift; /* only tasks in the topmost 1 / 2^shift of criticality preempt */
	u32 no_preemption;
	u32 no_slice_boost;
	u32 ignores_sync; /* treat sync wakeups like others */
};

/* The orders in which CPUs become active: ids of the online CPUs. Set by user space before it loads
 * the BPF programs. */
struct lavd_orders {
	u16 performance[LAVD_CPUS_MAX];
	u16 powersave[LAVD_CPUS_MAX];
};

/* Written by user space at any time. */
struct lavd_control {
	u64 mode; /* LAVD_AUTO or another mode */
};

/* Averages of the machine, updated every 10 or 20 ms (round.bpf.h). Written by BPF. */
struct lavd_system {
	u64 avg_lat_cri;
	u64 max_lat_cri;
	u64 avg_perf_cri;
	u64 thr_perf_cri; /* tasks above it are performance critical */
	u64 nr_queued; /* tasks that wait */
	u64 avg_runtime_us; /* of tasks that start to run: CPU time until they sleep, up to 10 ms */
	u64 load; /* of all CPUs, averaged; a CPU of capacity 1024 that is always busy has 1024 */
	u64 nr_active; /* CPUs in use */
	u64 mode; /* the current one: not LAVD_AUTO */
	u64 nr_performance; /* rounds in this mode, or without compaction */
	u64 nr_balanced;
	u64 nr_powersave;
};

/* How many samples user space waits for. */
struct lavd_request {
	u64 nr_samples;
};

/* Counters of a CPU. */
struct lavd_counts {
	u64 nr_sched; /* tasks that started to run */
	u64 nr_lat_cri; /* of these, with a criticality of at least the average */
	u64 nr_perf_cri; /* performance critical */
	u64 nr_big; /* on a big CPU */
	u64 nr_lat_cri_on_big;
	u64 nr_perf_cri_on_big;
	u64 nr_x_migration; /* from another compute domain */
	u64 nr_preempt;
	u64 nr_stolen;
	u64 nr_lock_boost; /* slices extended for a lock */
	u64 nr_slice_boost;
};

/* Flags of a sample. */
enum {
	LAVD_IS_CRITICAL = 1 << 0, /* of at least average criticality */
	LAVD_IS_HOLDER = 1 << 1, /* probably holds a lock: futex.bpf.h */
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
	u64 slice_used_ns; /* duration of its last run */
	u64 wait_ns; /* since it was queued */
	u64 resched_ns; /* since it last started to run */
	u64 avg_runtime_ns;
	u32 flags;
	s32 cpu;
	s32 prev_cpu;
	s32 suggested_cpu; /* by ops.select_cpu(); -1: not called */
	u32 static_prio;
	u32 lat_cri;
	u32 avg_lat_cri;
	u32 perf_cri;
	u32 thr_perf_cri;
	u32 run_freq;
	u32 wait_freq;
	u32 wake_freq;
	u32 cpu_util; /* 0 to 1024 */
	u32 perf_level; /* requested of the CPU, 0 to 1024 */
};

#endif /* __SCX_LAVD_INTF_H */
