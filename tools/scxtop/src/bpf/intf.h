/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions shared by the BPF side and user space of scxtop. Times are ns of the monotonic
 * clock. */
#ifndef __SCXTOP_INTF_H
#define __SCXTOP_INTF_H

#include <scx/types.h>

/* Size of a task's name with its terminating 0: TASK_COMM_LEN of the kernel. */
#define TOP_COMM_LEN 16

/* Maximum number of CPUs: MAX_NR_CPU_IDS of scx_utils. */
#define TOP_CPUS_MAX 16384

/* Maximum number of DSQs with counters. */
#define TOP_DSQS_MAX 2048

/* Maximum number of tasks whose last insertion into a DSQ is remembered. */
#define TOP_INSERTED_MAX 65536

/* Number of buckets of a latency histogram, a power of two. There are four buckets for each power
 * of two, from 1 us to more than an hour. */
#define TOP_BUCKETS 128

/* Maximum number of DSQs whose depths one call of the program read_depths returns. */
#define TOP_DEPTHS_MAX 256

/* The scheduling class of a task. */
enum top_class {
	TOP_CLASS_FAIR,
	TOP_CLASS_EXT,
	TOP_CLASS_RT, /* including the kernel's stop tasks */
	TOP_CLASS_DL,
	TOP_CLASS_IDLE,
};

enum top_state {
	TOP_SLEEPING,
	TOP_WAITING, /* runnable */
	TOP_RUNNING,
};

/* The kernel's counters of a CPU, monotonic, and its current task. */
struct top_cpu {
	u64 busy_ns; /* time with tasks other than the idle task */
	u64 nr_switches;
	u32 pid; /* the current task; 0: idle */
	u32 class; /* enum top_class of the current task */
	u8 comm[TOP_COMM_LEN];
};

/* What the programs have observed on a CPU, monotonic. */
struct top_observed_cpu {
	u64 nr_migrations; /* tasks that came from another CPU */
	u64 nr_migrations_llc; /* of these, tasks that came from another LLC */
	u64 nr_migrations_node; /* of these, tasks that came from another node */
	u32 wakeups[TOP_BUCKETS]; /* wakeup latencies of tasks that began to run here */
};

/* A record of the iterator: the kernel's counters of a task, monotonic, and what the programs have
 * observed of the task. */
struct top_task {
	u64 run_ns;
	u64 wait_ns; /* runnable, not running */
	u64 start_ns; /* when it was created */
	u64 slice_ns;
	u64 dsq_vtime;
	u64 dsq_id; /* the DSQ that it was last inserted into */
	u32 nr_switches; /* times it was switched in */
	u32 nr_sleeps;
	u32 nr_preemptions;
	u32 nr_migrations;
	u32 pid; /* of the thread */
	u32 tgid;
	u32 cpu;
	u32 state; /* enum top_state */
	u32 class; /* enum top_class */
	s32 prio; /* the kernel's: -1 deadline, 0..99 real-time, 120 for nice 0 */
	u32 weight; /* of sched_ext */
	u32 has_dsq; /* dsq_id is valid */
	u8 comm[TOP_COMM_LEN];
	u32 wakeups[TOP_BUCKETS]; /* latencies of its wakeups */
};

/* Counters of a DSQ, monotonic, except the range of vtime. */
struct top_dsq {
	u64 nr_inserts;
	/* The interval (top_control.interval) of vtime_min and vtime_max; 0: no task was inserted
	 * by vtime. */
	u64 vtime_interval;
	u64 vtime_min;
	u64 vtime_max;
	u32 latency[TOP_BUCKETS]; /* from the insertion to running */
};

/* The last insertion of a task, kept until the task is seen to run, or exits. */
struct top_inserted {
	u64 time_ns;
	u64 dsq_id;
};

/* What user space sets while the programs run. */
struct top_control {
	u64 is_tracing; /* whether events are recorded now */
	u64 interval; /* number of the current interval, from 1 on */
	u64 observed_since_ns; /* start of the current window; 0: no window */
	/* Whether the iterator also returns tasks that sleep and did not run since they were last
	 * returned. */
	u64 is_complete;
	u64 nr_cpus; /* read_cpus reads the CPUs below this number */
};

/* What the program read_depths reads and writes. */
struct top_depths {
	u64 nr; /* number of DSQs */
	u64 dsq_ids[TOP_DEPTHS_MAX];
	s64 depths[TOP_DEPTHS_MAX]; /* negative: unknown */
};

/* Kinds of records of a trace. */
enum top_event_kind {
	TOP_EVENT_SWITCH, /* task: prev, with its state; other: next */
	TOP_EVENT_WAKING, /* task: the wakee; other: the waker */
	TOP_EVENT_WAKEUP_NEW, /* task: a new task, now runnable on target_cpu */
	TOP_EVENT_MIGRATE, /* task: goes to target_cpu */
	TOP_EVENT_FORK, /* task: the child; other: the parent */
	TOP_EVENT_EXEC, /* task: with its new name */
	TOP_EVENT_EXIT,
	TOP_EVENT_INSERT, /* task: into dsq_id */
};

struct top_event_task {
	u32 pid; /* of the thread */
	u32 tgid;
	s32 prio;
	u32 class; /* enum top_class */
	u8 comm[TOP_COMM_LEN];
};

/* Positions in the ring of a CPU, monotonic numbers of records. The record with the number n is in
 * the slot n modulo the size of the ring. Two cache lines, so that no line is written by two CPUs,
 * or by both the BPF side and user space. */
struct top_ring {
	u64 nr_reserved; /* changed by the BPF side */
	u64 padding[7];
	u64 nr_read; /* changed by user space */
	u64 more_padding[7];
};

/* Number of slots that are left unused, for interrupts that record an event between the check for
 * room and the reservation. */
#define TOP_RING_SPARE 16

/* A record of a trace. */
struct top_event {
	/* Set by the BPF side when the record is complete, cleared by user space when the record
	 * has been read. */
	u64 is_complete;
	u64 time_ns;
	u32 kind; /* enum top_event_kind */
	u32 cpu; /* where it occurred */
	u32 state; /* SWITCH: task_struct.__state of prev; 0: still runnable */
	u32 target_cpu; /* MIGRATE: the new CPU; WAKEUP_NEW: the task's CPU */
	struct top_event_task task;
	struct top_event_task other;
	u64 dsq_id; /* INSERT; 0 in other records */
	u64 vtime; /* INSERT by vtime; 0 in other records */
	u64 slice_ns; /* INSERT; SWITCH: the remaining slice of next */
	u64 enq_flags; /* INSERT */
};

/* Counters of losses, monotonic. */
struct top_lost {
	u64 nr_events; /* records of a trace that did not fit into the ring */
	u64 nr_tasks; /* events of tasks without counters */
	u64 nr_dsqs; /* insertions whose latency could not be counted */
};

#endif /* __SCXTOP_INTF_H */
