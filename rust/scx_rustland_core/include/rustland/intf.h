/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of scx_rustland_core agree on: the only definition of each record. */
#ifndef __SCX_RUSTLAND_CORE_INTF_H
#define __SCX_RUSTLAND_CORE_INTF_H

#include <scx/types.h>

enum rl_consts {
	/* Bound of CPU ids: the largest CONFIG_NR_CPUS of any architecture. */
	RL_CPUS_MAX = 8192,
	RL_CPU_WORDS = RL_CPUS_MAX / 64,
	/* How many records each ring has room for, at least. */
	RL_IN_FLIGHT_MAX = 8192,
	RL_COMM_LEN = 16,
	/* Of the policy, kept with a task. */
	RL_WORDS = 4,
};

/* In rl_decision.cpu: whichever CPU is free first. Ids are below it. */
#define RL_CPU_ANY (1 << 20)

/* Who places a task that wakes up. Unless it is the policy, one that finds no idle CPU may get the
 * rest of a slice: handover.bpf.h. */
enum rl_idle_selection {
	RL_IDLE_FULL_USER, /* the policy */
	RL_IDLE_PREV_CPU, /* it runs on its last CPU, if that is idle */
	RL_IDLE_BUILTIN, /* the kernel */
};

/* What user space sets before the load. */
struct rl_config {
	u64 slice_ns; /* of a task whose decision says nothing else */
	u32 idle_selection; /* enum rl_idle_selection */
	u32 low_power; /* 0 or 1: whether idle CPUs are left asleep as long as another one runs */
};

/* rl_decision.flags */
enum rl_flags {
	/* What the CPU runs now gives way. */
	RL_PREEMPT_CPU = 1 << 0,
	/* The CPU was chosen because it is idle: if it no longer is, any will do. */
	RL_IF_IDLE = 1 << 1,
};

/* A task that waits for a decision, or, with pid 0, merely the wish to be looked after. */
struct rl_queued {
	u64 generation; /* of this enqueue; no two are the same */
	u64 now_ns; /* when it was enqueued; all times are CLOCK_MONOTONIC */
	u64 start_ns; /* when it last began to run */
	u64 stop_ns; /* when it last ceased to */
	u64 exec_ns; /* CPU time since it last slept */
	u64 sum_exec_ns; /* CPU time since it was made */
	u64 vtime; /* what the last decision for it said, or what it has advanced to since */
	u64 nvcsw; /* how often it went to sleep by itself */
	u64 enq_flags; /* SCX_ENQ_* as the running kernel has them */
	/* What the last decision for it said, or for the thread that it was made by. */
	u64 words[RL_WORDS];
	s32 pid; /* of the thread */
	s32 tgid; /* of its process */
	s32 cpu; /* where it ran last */
	u32 weight; /* 1..10000, 100 is nice 0 */
	u32 nr_cpus_allowed;
	u32 is_kthread; /* 0 or 1 */
	char comm[RL_COMM_LEN];
};

/* What becomes of it. */
struct rl_decision {
	u64 generation;
	u64 slice_ns; /* 0: the default */
	u64 vtime; /* 0: after all decisions before */
	u64 words[RL_WORDS]; /* to be kept with the task */
	s32 pid;
	s32 cpu; /* or RL_CPU_ANY */
	u32 flags; /* enum rl_flags */
	/* Not 0: vtime advances by 100 / weight while it runs, and when its slice is over it goes
	 * on as long as it is before all who were decided to run there. */
	u32 weight;
};

/*
 * Memory that both halves have mapped, so that they can look at each other without a system
 * call. Each half writes its own lines, but for two words that are taken back by who acts on them:
 * is_sleeping and free_cpu. All words are read and written whole.
 */
struct rl_shared {
	/* Of user space. */
	u64 nr_sent; /* decisions */
	u64 nr_cycles; /* a sign of life */
	u64 nr_waiting; /* tasks that the policy holds */
	u64 nr_failed; /* decisions that had to wait for room in their ring */
	u64 seen; /* the generation of the newest task that the policy has been told of */
	u64 mode; /* whatever the policy tells of itself */
	u64 user_unused[2];

	/* 1: the policy's thread sleeps, or is about to. Whoever wakes it makes it 0. */
	u64 is_sleeping;
	u64 sleep_unused[7];

	/* Of BPF. */
	u64 nr_drained; /* decisions */
	u64 nr_spare; /* decided tasks in the queue of all CPUs, when last looked at; 0: none that
		       * the CPU that looked may run */
	u64 hotplug_seq; /* rises whenever a CPU comes or goes */
	u64 is_stalled; /* user space does not answer: tasks are served as they come */
	u64 free_cpu; /* the policy's thread woke up on a CPU that was idle: its id + 1; else 0 */
	u64 own_cpu; /* where the policy's thread runs, or ran last */
	u64 nr_stalls; /* times that is_stalled became 1 */
	u64 is_slow; /* user space has answered too late of late: it should decide ahead */
	u64 idle[RL_CPU_WORDS]; /* a bit for each CPU */
	u64 online[RL_CPU_WORDS];
	/* Of what each CPU runs: the decision's vtime; 0: not decided, so not to be preempted. Of a
	 * CPU that runs a thread of the scheduler's own: of whom it has interrupted. */
	u64 running[RL_CPUS_MAX];
};

/*
 * Counts of one CPU; all but nr_running only grow. Each generation that is counted as queued ends
 * as exactly one of dispatched, fallback, cancelled and dequeued; each decision that is taken in
 * is counted as dispatched or late.
 */
struct rl_counters {
	u64 nr_queued; /* generations: tasks that asked for a decision */
	u64 nr_dispatched; /* the decision was applied */
	u64 nr_fallback; /* BPF let it run without */
	u64 nr_cancelled; /* taken back: to be queued anew (affinity, priority, class), or to go on
			   */
	u64 nr_dequeued; /* it went to sleep or ended before there was a decision */
	u64 nr_late; /* decisions for a generation that had ended */
	u64 nr_bounced; /* of the dispatched: its CPU is gone, forbidden or held by a higher class
			 */
	u64 nr_congested; /* of the fallback: for want of room in the ring */
	u64 nr_kernel; /* times that a task ran without asking: see main.bpf.c */
	u64 nr_kept; /* times that a task went on: nobody else wants its CPU, or it is still first
		      */
	u64 nr_wakeups; /* of the policy's thread, by BPF */
	u64 nr_preempting; /* of the dispatched: what its CPU ran gave way */
	u64 nr_idle_kicks; /* idle CPUs that were woken */
	u64 nr_rescued; /* tasks moved off a CPU that is gone, or held by a higher class */
	u64 nr_running; /* 0 or 1 */
};

/* Argument of the program rl_find_idle: the system call to find an idle CPU. */
struct rl_find_idle_args {
	s32 pid;
	s32 prev_cpu;
};

#endif /* __SCX_RUSTLAND_CORE_INTF_H */
