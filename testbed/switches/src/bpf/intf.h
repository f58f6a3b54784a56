/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of scx_switches agree on. */
#ifndef __SCX_SWITCHES_INTF_H
#define __SCX_SWITCHES_INTF_H

#include <scx/types.h>

/* Bytes of a thread's name with the 0 at its end: TASK_COMM_LEN of the kernel. */
#define SWITCHES_COMM_LEN 16

/* Thread and process ids that can be asked for. */
#define SWITCHES_PIDS_MAX 64

/* CPU ids that can be asked for: as many as a mask of scx_utils has. */
#define SWITCHES_CPUS_MAX 16384

/* Threads that are counted one by one. */
#define SWITCHES_THREADS_MAX 16384

/* How a run ended. */
enum switches_end {
	SWITCHES_UNWANTED, /* nobody asked */
	SWITCHES_RUNNING, /* not yet */
	SWITCHES_PREEMPTED, /* it could have gone on: preempted, its slice over, or it yielded */
	SWITCHES_SLEPT, /* it waits for something */
	SWITCHES_EXITED, /* it is no more */
};

/* Aligned because its name is compared in words. */
struct switches_task {
	u32 pid; /* of the thread */
	u32 tgid; /* of its process */
	u8 comm[SWITCHES_COMM_LEN];
} __attribute__((aligned(8)));

/* From getting a CPU to leaving it. Times: ns of the monotonic clock. */
struct switches_run {
	u64 start_ns; /* 0: before the recording began */
	u64 stop_ns;
	struct switches_task task;
	u32 cpu;
	s32 prio; /* of the kernel: 0..99 real-time, 120 is nice 0 */
	u32 policy; /* SCHED_* */
	u32 end; /* enum switches_end */
};

/* What a thread did while it was recorded. These only grow. */
struct switches_counts {
	struct switches_task task; /* with the last name it had */
	u64 nr_runs; /* that began and ended while it was recorded */
	u64 cpu_ns; /* sum of these */
	u64 nr_wakeups;
	u64 nr_switches_in;
	u64 nr_voluntary; /* times that it gave its CPU away: slept, or exited */
	u64 nr_involuntary; /* times that it left its CPU and could have gone on */
	u64 nr_syscalls;
};

/* Counts of one CPU. They only grow. */
struct switches_totals {
	u64 nr_runs; /* also those that the ring had no place for */
	u64 nr_uncounted; /* events of threads that the table had no place for */
};

#endif /* __SCX_SWITCHES_INTF_H */
