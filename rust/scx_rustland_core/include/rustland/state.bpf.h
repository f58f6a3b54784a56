/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the machine, of each CPU and of each task, and the counters. */
#ifndef __RL_STATE_BPF_H
#define __RL_STATE_BPF_H

/*
 * DSQs. Each possible CPU has a DSQ with the CPU's id, for tasks that the policy sent to the CPU,
 * that were preempted there or that are pinned to it. Without a decision, ops.dispatch() takes
 * tasks from PENDING_DSQ only while user space is stalled, or to reclaim a task.
 */
enum {
	/* Decided tasks for any CPU, ordered by vtime like the DSQs of the CPUs. */
	SHARED_DSQ = 1ULL << 32,
	/* Tasks that wait for a decision, in FIFO order. */
	PENDING_DSQ,
	/* Tasks that get no decision and are not pinned, in FIFO order. */
	FALLBACK_DSQ,
};

/* Values of dsq_vtime in the queues of the CPUs and in SHARED_DSQ. */
enum {
	VTIME_PREEMPTING, /* tasks that preempt the CPU's current task */
	/* The values up to this are for preempted tasks, in LIFO order (bypass.bpf.h). */
	VTIME_RESUMED_LAST = 1ULL << 40,
	/* Added to the vtimes of all other tasks, so that these come after the tasks with the
	 * values above. */
	VTIME_FIRST,
};

/*
 * ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long. It
 * does the same if the kernel's watchdog worker has not run for this long. The worker's period is
 * half of the timeout, and this scheduler schedules the worker too. The timeout has to cover
 * bursts: ten thousand tasks that each need 1 ms keep four CPUs busy for 2.5 s.
 */
#define TIMEOUT_MS 10000

const volatile struct rl_config config SEC(".rodata.rl_config");

/* Thread id of the policy thread in the initial PID namespace. */
u32 policy_pid;
u64 last_enq_seq;
s32 nr_cpu_ids;

struct rl_shared shared SEC(".data.rl_shared");

/* State of a CPU. */
struct rl_cpu {
	u64 nr_resumed; /* preempted tasks that were requeued so far (resume()) */
	u32 turn; /* odd: fallback tasks go before decided tasks (dispatch_next()) */
	u32 is_preempted; /* 1: the current task is being preempted (bypass.bpf.h) */
	/* Counters of loops. They are kept here, because the verifier would check the loop again
	 * for each value of a counter in a register. */
	u32 nr_looked_at; /* tasks of a queue */
	u32 nr_drained; /* decisions, in drain() */
	/* Thread id of a task in SHARED_DSQ for which no CPU was kicked, because this CPU was
	 * looking for work; 0: none. */
	s32 left_pid;
	u32 nr_idle_periods; /* watchdog periods in which the CPU idled with tasks in its queue */
	u32 may_reclaim; /* 1: PENDING_DSQ may have tasks for reclaim(); else it has none */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_CPUS_MAX);
	__type(key, u32);
	__type(value, struct rl_cpu);
} rl_cpus SEC(".maps");

/* State of a task. */
struct rl_task {
	u64 enq_seq; /* number of the pending enqueue; 0: none is pending */
	u64 slice_ns; /* slice of the last decision; 0: config.slice_ns */
	u64 vtime; /* as decided, then advanced; p->scx.dsq_vtime is the place in a queue */
	u64 granted_at_ns; /* CPU time of the task when vtime was set */
	u64 start_ns;
	u64 inherited_end_ns; /* end of the inherited slice; 0: none inherited (inherit.bpf.h) */
	u64 inheritable_until_ns; /* end of the slice that wakees may inherit; 0: they may not */
	u64 stop_ns;
	u64 exec_ns; /* CPU time since the task last slept */
	u64 sum_exec_ns; /* CPU time when the task started to run */
	u64 standing_until_ns; /* end of the standing decision (scx_bpf_now()); 0: there is none */
	u64 ctx[RL_CTX_WORDS]; /* task context of the policy */
	u32 weight; /* weight of the last decision; 0: vtime does not advance */
	u32 resumes; /* 1: the task was preempted and is to resume (bypass.bpf.h) */
	u32 slice_expired; /* 1: the pending enqueue is no wakeup; usually the slice had expired */
	u32 may_leave; /* 1: by the last decision, another CPU may run the task (share_rest()) */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rl_task);
} rl_tasks SEC(".maps");

SCX_PERCPU_COUNTERS(rl_counters, struct rl_counters);
#define count(what) scx_count(rl_counters, what)

static struct rl_cpu *cpu_state(s32 cpu)
{
	return bpf_map_lookup_elem(&rl_cpus, &cpu);
}

/* Return the state of a task, NULL if it cannot be created. ops.init_task() creates it. If that
 * failed, the next call tries again. */
static struct rl_task *task_state(struct task_struct *p)
{
	return bpf_task_storage_get(&rl_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Return the decided vtime of a task, advanced by the weighted CPU time that the task has used
 * since (rl_decision.weight). */
static u64 advanced_vtime(const struct task_struct *p, const struct rl_task *t)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->granted_at_ns;

	return t->weight ? t->vtime + ran_ns * 100 / t->weight : t->vtime;
}

/* Start another slice: charge the CPU time of the previous slice to vtime. */
static void begin_slice(struct task_struct *p, struct rl_task *t)
{
	t->vtime = advanced_vtime(p, t);
	t->granted_at_ns = p->se.sum_exec_runtime;
}

/* Publish the vtime of the CPU's current task to the policy. */
static void note_running_vtime(s32 cpu, u64 vtime)
{
	shared.running[(u32)cpu % RL_CPUS_MAX] = vtime;
}

/* End the pending enqueue. Returns whether there was one. If several CPUs call this or claim() at
 * once, only one of them gets true. */
static bool claim_any(struct rl_task *t)
{
	return __sync_lock_test_and_set(&t->enq_seq, 0) != 0;
}

/* Like claim_any(), but only if @enq_seq is the number of the pending enqueue. */
static bool claim(struct rl_task *t, u64 enq_seq)
{
	return __sync_val_compare_and_swap(&t->enq_seq, enq_seq, 0) == enq_seq;
}

/* Whether there are decisions to drain. The policy thread increments nr_sent after it has put a
 * decision into the ring, so nr_drained may be ahead of nr_sent. */
static bool is_undrained(void)
{
	return (s64)(*(volatile u64 *)&shared.nr_sent - *(volatile u64 *)&shared.nr_drained) > 0;
}

static bool is_stalled(void)
{
	return *(volatile u64 *)&shared.is_stalled;
}

/* Whether this scheduler also schedules tasks whose p->policy is not SCHED_EXT; false with
 * --partial. */
static bool has_all_tasks;

/* Whether the CPU runs a task that no task of this scheduler preempts: a real-time or deadline
 * task or, with --partial, a task of the fair class. */
static bool is_taken_by_higher_class(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);

	if (!curr || curr->flags & PF_IDLE)
		return false;
	return curr->prio < MAX_RT_PRIO || (!has_all_tasks && curr->policy != SCHED_EXT);
}

#endif /* __RL_STATE_BPF_H */
