/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by both sides of scx_rustland_core: the only definition of each record. */
#ifndef __SCX_RUSTLAND_CORE_INTF_H
#define __SCX_RUSTLAND_CORE_INTF_H

#include <scx/types.h>

enum rl_consts {
	/* Upper bound of CPU ids: the largest CONFIG_NR_CPUS of any architecture. */
	RL_CPUS_MAX = 8192,
	RL_CPU_WORDS = RL_CPUS_MAX / 64,
	/* Minimum capacity of each ring, in records. */
	RL_IN_FLIGHT_MAX = 8192,
	RL_COMM_LEN = 16,
	/* Size of the policy's task context, in u64. */
	RL_CTX_WORDS = 4,
};

/* In rl_decision.cpu: the first CPU that is free. CPU ids are smaller. */
#define RL_CPU_ANY (1 << 20)

/* Which side selects the CPU on wakeup. Unless it is the policy, a wakee that finds no idle CPU may
 * inherit the waker's slice: inherit.bpf.h. */
enum rl_idle_selection {
	RL_IDLE_FULL_USER, /* the policy */
	RL_IDLE_PREV_CPU, /* BPF: the task's previous CPU, if it is idle */
	RL_IDLE_BUILTIN, /* the kernel */
};

/* Set by user space before the load. */
struct rl_config {
	u64 slice_ns; /* default of decisions */
	u32 idle_selection; /* enum rl_idle_selection */
	u32 low_power; /* 0 or 1: tasks wait for a busy CPU rather than wake an idle one */
};

/* rl_decision.flags */
enum rl_flags {
	/* Preempt the CPU's current task. */
	RL_PREEMPT_CPU = 1 << 0,
	/* The CPU was chosen because it was idle: if it no longer is, any CPU will do. */
	RL_IF_IDLE = 1 << 1,
	/* The decision also holds for later wakeups: standing.bpf.h. Requires vtime and weight. */
	RL_STANDING = 1 << 2,
};

/* A pending task, or, with pid 0, a wakeup of the policy thread for another reason. */
struct rl_queued {
	u64 enq_seq; /* of this enqueue, unique */
	u64 now_ns; /* when it was enqueued; all times are CLOCK_MONOTONIC */
	u64 start_ns; /* when it last started to run */
	u64 stop_ns; /* when it last stopped running */
	u64 exec_ns; /* CPU time since it last slept */
	u64 sum_exec_ns; /* CPU time since fork */
	u64 vtime; /* of the last decision, advanced by the CPU time since (rl_decision.weight) */
	u64 nvcsw; /* voluntary context switches */
	u64 enq_flags; /* SCX_ENQ_*, with the running kernel's values */
	/* Task context: of the last decision, or inherited from the parent on fork. */
	u64 ctx[RL_CTX_WORDS];
	s32 pid; /* of the thread */
	s32 tgid; /* of its process */
	s32 cpu; /* the previous CPU */
	u32 weight; /* 1..10000, 100 is nice 0 */
	u32 nr_cpus_allowed;
	u32 is_kthread; /* 0 or 1 */
	char comm[RL_COMM_LEN];
};

/* The policy's decision on a pending task. */
struct rl_decision {
	u64 enq_seq;
	u64 slice_ns; /* 0: the default */
	u64 vtime; /* 0: after all earlier decisions */
	u64 ctx[RL_CTX_WORDS]; /* new task context */
	s32 pid;
	s32 cpu; /* or RL_CPU_ANY */
	u32 flags; /* enum rl_flags */
	/* If neither this nor vtime is 0: vtime advances by CPU time (ns) * 100 / weight. On slice
	 * expiry, the task continues if it precedes all tasks decided for its CPU or for any. */
	u32 weight;
};

/*
 * Memory mapped by both sides, so that each sees the other's state without a system call. Each side
 * writes its own cache lines, except that the reader of is_sleeping or free_cpu resets it. Each
 * word is read and written in a single access.
 */
struct rl_shared {
	/* Written by user space. */
	u64 nr_sent; /* decisions */
	u64 nr_cycles; /* of the policy thread: a sign of life */
	u64 nr_waiting; /* tasks that the policy holds */
	u64 nr_failed; /* decisions delayed because their ring was full */
	u64 seen; /* enq_seq of the newest record that the policy has read */
	u64 mode; /* of the policy, for statistics */
	u64 vtime_floor; /* the least vtime of a task that wakes up with a standing decision */
	u64 user_unused[1];

	/* 1: the policy thread sleeps, or is about to. Its waker sets it to 0. */
	u64 is_sleeping;
	u64 sleep_unused[7];

	/* Written by BPF. */
	u64 nr_drained; /* decisions */
	u64 nr_spare; /* decided tasks in SHARED_DSQ at the last check; 0 also if the checking CPU
		       * may run none of them */
	u64 hotplug_seq; /* incremented by each CPU hotplug event */
	u64 is_stalled; /* user space does not respond: tasks are dispatched in FIFO order */
	u64 free_cpu; /* the idle CPU that the policy thread woke up on, + 1; else 0 */
	u64 own_cpu; /* the CPU where the policy thread runs, or ran last */
	u64 nr_stalls; /* how often is_stalled became 1 */
	u64 is_slow; /* user space recently answered late, and should decide in batches */
	u64 idle[RL_CPU_WORDS]; /* a bit for each CPU */
	u64 online[RL_CPU_WORDS];
	/* The vtime of the task that each CPU runs, at the start of its slice; 0: the CPU is idle,
	 * or must not be preempted. Threads of the scheduler's own process leave it unchanged. */
	u64 running[RL_CPUS_MAX];
};

/*
 * Counters of one CPU; monotonic except nr_running. Each enqueue counted in nr_queued ends as
 * exactly one of dispatched, fallback, cancelled and dequeued; each drained decision is counted as
 * dispatched or late.
 */
struct rl_counters {
	u64 nr_queued; /* enqueues that need a decision */
	u64 nr_dispatched; /* the decision was applied */
	u64 nr_fallback; /* dispatched by BPF without a decision */
	u64 nr_cancelled; /* enqueued again (affinity, priority, class), or reclaimed */
	u64 nr_dequeued; /* slept or exited before the decision */
	u64 nr_late; /* decisions for an enqueue that had ended */
	u64 nr_bounced; /* of nr_dispatched: the CPU is offline, not allowed or used by a higher
			 * class */
	u64 nr_congested; /* of nr_fallback: the ring was full */
	u64 nr_kernel; /* dispatches that bypass the policy: see rustland.bpf.h */
	u64 nr_kept; /* expired slices after which the task continued: see rustland.bpf.h */
	u64 nr_wakeups; /* of the policy thread, by BPF */
	u64 nr_preempting; /* of nr_dispatched: preempted the CPU's task */
	u64 nr_idle_kicks; /* idle CPUs kicked */
	u64 nr_rescued; /* tasks moved off a CPU that is offline or used by a higher class */
	u64 nr_running; /* tasks that started minus tasks that stopped to run: by this CPU, not on
			 * it, so only the sum over all CPUs is a number of tasks */
};

/* Argument of the program rl_find_idle, which finds an idle CPU for a task. */
struct rl_find_idle_args {
	s32 pid;
	s32 prev_cpu;
};

#endif /* __SCX_RUSTLAND_CORE_INTF_H */
