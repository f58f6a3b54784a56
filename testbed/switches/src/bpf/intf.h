/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions shared by the BPF side and user space of scx_switches. */
#ifndef __SCX_SWITCHES_INTF_H
#define __SCX_SWITCHES_INTF_H

#include <scx/types.h>

/* Size of a thread's name with its terminating 0. It is the kernel's TASK_COMM_LEN. */
#define SWITCHES_COMM_LEN 16

/* Maximum number of thread and process ids in the filter. */
#define SWITCHES_PIDS_MAX 64

/* Maximum number of CPUs in the filter. It is MAX_NR_CPU_IDS of scx_utils. */
#define SWITCHES_CPUS_MAX 16384

/* Maximum number of threads with individual counters. */
#define SWITCHES_THREADS_MAX 16384

/* How a run ended. */
enum switches_end {
	SWITCHES_UNWANTED, /* not recorded */
	SWITCHES_RUNNING, /* not ended yet */
	SWITCHES_PREEMPTED, /* still runnable, for example preempted or yielded */
	SWITCHES_SLEPT,
	SWITCHES_EXITED,
};

/* Aligned because the name is compared in words. */
struct switches_task {
	u32 pid; /* thread id */
	u32 tgid; /* process id */
	u8 comm[SWITCHES_COMM_LEN];
} __attribute__((aligned(8)));

/* A run: the time from switching a thread in to switching it out. Times are ns of the monotonic
 * clock. */
struct switches_run {
	u64 start_ns; /* 0 if the run began before the recording */
	u64 stop_ns;
	struct switches_task task;
	u32 cpu;
	s32 prio; /* task_struct.prio: -1 deadline, 0..99 real-time, 120 for nice 0 */
	u32 policy; /* SCHED_* */
	u32 end; /* enum switches_end */
};

/* Counters of a thread, monotonic. */
struct switches_counts {
	struct switches_task task; /* comm is the thread's last name */
	u64 nr_runs; /* complete runs */
	u64 cpu_ns; /* total length of these runs */
	u64 nr_wakeups;
	u64 nr_switches_in;
	u64 nr_voluntary; /* times it was switched out because it slept or exited */
	u64 nr_involuntary; /* times it was switched out while runnable */
	u64 nr_syscalls;
};

/* Counters of a CPU, monotonic. */
struct switches_totals {
	u64 nr_runs; /* complete runs, including lost ones */
	u64 nr_uncounted; /* events of threads that did not fit into the table */
};

#endif /* __SCX_SWITCHES_INTF_H */
