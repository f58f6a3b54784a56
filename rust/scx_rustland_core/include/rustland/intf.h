/* SPDX-License-Identifier: GPL-2.0-only */
/* Definitions shared by the BPF side and user space of scx_rustland_core. User space uses bindings
 * that are generated from this file. */
#ifndef __SCX_RUSTLAND_CORE_INTF_H
#define __SCX_RUSTLAND_CORE_INTF_H

#include <scx/types.h>

enum rl_consts {
	/* All CPU ids are below this, the largest CONFIG_NR_CPUS of any architecture. */
	RL_CPUS_MAX = 8192,
	RL_CPU_WORDS = RL_CPUS_MAX / 64,
	/* Minimum capacity of each ring, in records. */
	RL_IN_FLIGHT_MAX = 8192,
	RL_COMM_LEN = 16,
	/* Size of the policy's task context, in words of 64 bits. */
	RL_CTX_WORDS = 4,
};

/* Value of rl_decision.cpu: any CPU, the first that becomes free. All CPU ids are smaller. */
#define RL_CPU_ANY (1 << 20)

/* Which side selects a CPU for a wakee. If BPF selects none, the wakee may inherit the waker's
 * slice on a sync wakeup (inherit.bpf.h), except with RL_IDLE_FULL_USER. */
enum rl_idle_selection {
	RL_IDLE_FULL_USER, /* the policy */
	RL_IDLE_PREV_CPU, /* BPF selects the task's previous CPU, if it is idle */
	RL_IDLE_BUILTIN, /* BPF calls the kernel's built-in selection */
};

/* The configuration, which user space sets before the load. */
struct rl_config {
	u64 slice_ns; /* slice of decisions with slice_ns 0 and of most tasks without a decision */
	u32 idle_selection; /* enum rl_idle_selection */
	/* 1: a task waits for a busy CPU, if it may use one, so that idle CPUs stay idle; else 0 */
	u32 low_power;
};

/* rl_decision.flags */
enum rl_flags {
	/* Preempt the CPU's current task. */
	RL_PREEMPT_CPU = 1 << 0,
	/* The CPU was chosen because it was idle. If it is busy by now, or has to stay idle
	 * (rl_config.low_power), use any CPU. */
	RL_IF_IDLE = 1 << 1,
	/* The decision also holds for later wakeups (standing.bpf.h). Requires vtime and weight. */
	RL_STANDING = 1 << 2,
};

/* A pending task. A record with pid 0 stands for no task, and only wakes the policy thread
 * (wake_user()). */
struct rl_queued {
	u64 enq_seq; /* unique number of this enqueue */
	u64 now_ns; /* when the task was enqueued, CLOCK_MONOTONIC like start_ns and stop_ns */
	u64 start_ns; /* when the task last started to run; 0: not since the scheduler's start */
	/* When the task last stopped running: start_ns plus the CPU time of that run; 0: not since
	 * the scheduler's start. */
	u64 stop_ns;
	u64 exec_ns; /* CPU time since the task last slept */
	u64 sum_exec_ns; /* CPU time since fork */
	u64 vtime; /* decided vtime, since then advanced (weight) or raised (vtime_floor) */
	u64 nvcsw; /* voluntary context switches */
	u64 enq_flags; /* SCX_ENQ_*, with the running kernel's values */
	/* Task context of the last decision, or inherited from the parent on fork. */
	u64 ctx[RL_CTX_WORDS];
	s32 pid; /* thread id */
	s32 tgid; /* process id */
	s32 cpu; /* the task's CPU: usually the CPU where it ran last */
	u32 weight; /* 1..10000, 100 is nice 0 */
	u32 nr_cpus_allowed;
	u32 is_kthread; /* 0 or 1 */
	char comm[RL_COMM_LEN];
};

/* The policy's decision on a pending task. */
struct rl_decision {
	u64 enq_seq;
	u64 slice_ns; /* 0: rl_config.slice_ns */
	/* Place in the order of decided tasks; 0: after all earlier decisions. A policy must not
	 * use both 0 and other values. */
	u64 vtime;
	u64 ctx[RL_CTX_WORDS]; /* new task context */
	s32 pid;
	s32 cpu; /* or RL_CPU_ANY */
	u32 flags; /* enum rl_flags */
	/* If neither weight nor vtime is 0, vtime advances by the task's CPU time (ns) * 100 /
	 * weight. On slice expiry, the task may then continue if it precedes all tasks that were
	 * decided for its CPU or for any CPU (prev_is_first()). */
	u32 weight;
};

/*
 * Memory that both sides map, so that each side sees the other's state without a system call. Each
 * side writes its own cache lines, except that the reader of is_sleeping or free_cpu resets the
 * word. Each word is read and written in a single access.
 */
struct rl_shared {
	/* Written by user space. */
	u64 nr_sent; /* decisions sent */
	u64 nr_cycles; /* iterations of the policy thread, by which BPF detects stalls */
	u64 nr_waiting; /* tasks that the policy holds */
	u64 nr_failed; /* failed attempts to send a decision, because the ring was full */
	u64 seen; /* enq_seq of the newest record that the policy has read */
	u64 mode; /* the policy's mode, for statistics */
	u64 vtime_floor; /* minimum vtime of a task that wakes up with a standing decision */
	u64 user_unused[1];

	/* 1: the policy thread sleeps, or is about to sleep. BPF resets this to 0 when it wakes the
	 * thread. */
	u64 is_sleeping;
	u64 sleep_unused[7];

	/* Written by BPF. */
	u64 nr_drained; /* decisions drained */
	u64 nr_spare; /* decided tasks in SHARED_DSQ at the last check; also 0 after a CPU found no
		       * decided task that it may run while the policy held tasks (remind()) */
	u64 hotplug_seq; /* incremented by each CPU hotplug event */
	u64 is_stalled; /* 1: user space does not respond, and BPF dispatches in FIFO order */
	u64 free_cpu; /* if the policy thread woke up on an idle CPU: that CPU + 1; else 0 */
	u64 own_cpu; /* the CPU where the policy thread runs, or ran last */
	u64 nr_stalls; /* how often is_stalled became 1 */
	u64 is_slow; /* 1: user space recently answered late, and should decide in batches */
	u64 idle[RL_CPU_WORDS]; /* a bit for each CPU */
	u64 online[RL_CPU_WORDS];
	/* For each CPU, the vtime of its current task at the start of the slice; 0: the CPU is
	 * idle, or its task has no vtime or must not be preempted. While a task of a higher class
	 * or a thread of the scheduler's own process runs, this is the vtime of the task before. */
	u64 running[RL_CPUS_MAX];
};

/*
 * Counters of one CPU, monotonic except nr_running. Each enqueue that nr_queued counts ends up in
 * exactly one of nr_dispatched, nr_fallback, nr_cancelled and nr_dequeued. Each drained decision is
 * counted in nr_dispatched or nr_late.
 */
struct rl_counters {
	u64 nr_queued; /* enqueues that need a decision */
	u64 nr_dispatched; /* enqueues for which the decision was applied */
	u64 nr_fallback; /* tasks dispatched by BPF without a decision */
	u64 nr_cancelled; /* enqueues that ended because the affinity, priority or class of the task
			   * changed, or because its CPU took it back (reclaim()) */
	u64 nr_dequeued; /* tasks that slept or exited before the decision */
	u64 nr_late; /* decisions for an enqueue that had already ended */
	u64 nr_bounced; /* of nr_dispatched: the decided CPU was offline, not allowed or used by a
			 * higher class, or no allowed CPU was online */
	u64 nr_congested; /* of nr_fallback: the ring of pending tasks was full */
	u64 nr_kernel; /* dispatches that bypass the policy (rustland.bpf.h) */
	u64 nr_kept; /* expired slices after which the task continued (rustland.bpf.h) */
	u64 nr_wakeups; /* wakeups of the policy thread by BPF */
	u64 nr_preempting; /* of nr_dispatched: the task was to preempt a CPU's current task */
	u64 nr_idle_kicks; /* idle CPUs that were claimed and kicked (kick_idle()) */
	u64 nr_rescued; /* tasks moved to SHARED_DSQ from the queue of a CPU that is offline or used
			 * by a higher class */
	u64 nr_running; /* calls of ops.running() minus calls of ops.stopping() by this CPU. A CPU
			 * may stop a task that runs on another CPU, so only the sum over all CPUs
			 * is a number of tasks. */
};

/* Argument of the program rl_find_idle, which finds an idle CPU for a task. */
struct rl_find_idle_args {
	s32 pid;
	s32 prev_cpu;
};

#endif /* __SCX_RUSTLAND_CORE_INTF_H */
