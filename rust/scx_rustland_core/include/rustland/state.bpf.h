/* SPDX-License-Identifier: GPL-2.0-only */
/* What the BPF half remembers: of the machine, of each CPU, of each task; and its counters. */
#ifndef __RL_STATE_BPF_H
#define __RL_STATE_BPF_H

/*
 * Queues (DSQs). Each possible CPU has one, whose id is the CPU's: tasks that were decided to run
 * there. ops.dispatch() serves all but HELD; and HELD too while user space does not answer.
 */
enum {
	/* Decided tasks that any CPU may take. Ordered by vtime, as those of CPUs are. */
	SHARED_DSQ = 1ULL << 32,
	/* Tasks that wait for a decision, in order of arrival. */
	HELD_DSQ,
	/* Tasks that nobody is asked about, in order of arrival. */
	FALLBACK_DSQ,
};

/* Places in the order of a CPU's queue that no decision has (rl_decision.vtime). */
enum {
	VTIME_PREEMPTING, /* whoever is to run there at once */
	/* Between: whoever was interrupted, the last of them first: own.bpf.h. */
	VTIME_RESUMED_LAST = 1ULL << 40,
	VTIME_FIRST, /* the first decision */
};

/* include/linux/sched/prio.h: below are deadline and real-time tasks. */
#define MAX_RT_PRIO 100

/*
 * The kernel ends the scheduler when a task has waited for so long, or when the worker that looks
 * for such tasks has: it is one of those that wait, too, and is called at half of this time. Ten
 * thousand tasks that all want to run for a millisecond make four CPUs busy for 2.5 s.
 */
#define TIMEOUT_MS 10000

const volatile struct rl_config config SEC(".rodata.rl_config");

/* The thread that the policy runs on, by its id in the first PID namespace. */
u32 policy_pid;
u64 last_generation;
s32 nr_cpu_ids;

struct rl_shared shared SEC(".data.rl_shared");

/* What is known of a CPU. */
struct rl_cpu {
	u64 nr_resumed; /* tasks that were interrupted and came back */
	u32 turn; /* who goes first in ops.dispatch() */
	u32 gives_way; /* what it runs is being interrupted: own.bpf.h */
	/* What loops count and note is here and not in registers, where the verifier would follow
	 * each value. */
	u32 nr_looked_at; /* tasks of a queue */
	u32 nr_taken_in; /* decisions, in drain() */
	/* A task that any CPU may take, and that none was woken for: this one looks for work. */
	u32 left_one;
	u32 nr_beats_idle; /* so often it was idle with tasks in its queue, since it last looked */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_CPUS_MAX);
	__type(key, u32);
	__type(value, struct rl_cpu);
} rl_cpus SEC(".maps");

/* What is known of a task. */
struct rl_task {
	u64 generation; /* that waits for its decision; 0: none */
	u64 slice_ns; /* as decided */
	u64 vtime; /* as decided; the kernel's is a place in a queue */
	u64 granted_at_ns; /* CPU time that it had had by then */
	u64 start_ns;
	u64 gift_end_ns; /* if it was handed the rest of a slice: its end (handover.bpf.h) */
	u64 hands_over_until_ns; /* its own slice, or what it was handed; 0: never */
	u64 stop_ns;
	u64 exec_ns; /* since it last slept */
	u64 sum_exec_ns; /* when it began to run */
	u64 words[RL_WORDS]; /* of the policy */
	u32 weight; /* as decided; 0: vtime stands still */
	u32 resumes; /* it was interrupted, and goes on: own.bpf.h */
	u32 has_run_out; /* it waits because its slice is over, and not because it woke up */
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

/* Made when the task is; if that failed, it is tried again wherever it is wanted. */
static struct rl_task *task_state(struct task_struct *p)
{
	return bpf_task_storage_get(&rl_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The vtime of a task, advanced by what it has run of its slice. */
static u64 advanced_vtime(const struct task_struct *p, const struct rl_task *t)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->granted_at_ns;

	return t->weight ? t->vtime + ran_ns * 100 / t->weight : t->vtime;
}

/* The task begins another slice: what it ran in the one before counts. */
static void begin_slice(struct task_struct *p, struct rl_task *t)
{
	t->vtime = advanced_vtime(p, t);
	t->granted_at_ns = p->se.sum_exec_runtime;
}

/* What the policy sees of whom a CPU runs. */
static void note_running_vtime(s32 cpu, u64 vtime)
{
	shared.running[(u32)cpu % RL_CPUS_MAX] = vtime;
}

/* Ends the generation that waits, if there is one; whether there was. Only one caller is told. */
static bool claim_any(struct rl_task *t)
{
	return __sync_lock_test_and_set(&t->generation, 0) != 0;
}

static bool claim(struct rl_task *t, u64 generation)
{
	return __sync_val_compare_and_swap(&t->generation, generation, 0) == generation;
}

/* Whether decisions were sent that were not taken in yet. */
static bool is_undrained(void)
{
	return *(volatile u64 *)&shared.nr_sent != *(volatile u64 *)&shared.nr_drained;
}

static bool is_stalled(void)
{
	return *(volatile u64 *)&shared.is_stalled;
}

/* Whether the CPU runs a real-time or deadline task, which ours cannot preempt. */
static bool is_taken_by_higher_class(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);

	return curr && curr->prio < MAX_RT_PRIO;
}

#endif /* __RL_STATE_BPF_H */
