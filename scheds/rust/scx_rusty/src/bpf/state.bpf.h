/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the machine, of each domain and of each task, and the event counters. */
#ifndef __RUSTY_STATE_BPF_H
#define __RUSTY_STATE_BPF_H

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long.
 * This is far longer than MAX_WAIT_NS, because a hypervisor may stop the CPUs of a virtual machine
 * for a while. */
#define TIMEOUT_MS 20000

/*
 * Approximate maximum wait of a task because of its deadline, whatever the weights of runnable
 * tasks. Half of it is for the task's own debt, which is CPU time beyond its share. A quarter is
 * for the lag of other tasks, which is CPU time that they are owed. A quarter is for the request of
 * the task (request_ns()). In addition, the task waits for the slices of other tasks. slice_ns()
 * limits their sum to MAX_WAIT_NS / 2, unless each would have to be shorter than MIN_SLICE_NS.
 */
#define MAX_WAIT_NS (4 * NSEC_PER_SEC)

/* Minimum to which slice_ns() shortens a slice. A shorter slice would be mostly overhead. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

const volatile struct rusty_config config SEC(".rodata.rusty_config");
struct rusty_tune tune SEC(".data.rusty_tune");
s64 idle_cpus[RUSTY_CPUS_MAX] SEC(".data.rusty_idle");
u64 demands[RUSTY_DOMS_MAX] SEC(".data.rusty_demands"); /* layout: intf.h */
u32 nr_cpu_ids;
/* For each CPU, the time of its next search for domains that are not served: rescue(). */
static u64 rescue_at_ns[RUSTY_CPUS_MAX];

/* Stands for the deadline of a task if tasks are in FIFO order. */
#define NO_DEADLINE (~0ULL)

/* DSQ ids: the CPU number for the tasks that are pinned to a CPU, DOM_DSQ | domain for the tasks of
 * a domain. DSQs are ordered by deadline, in the virtual time of the domain, or by time of arrival
 * with config.fifo_sched. */
#define DOM_DSQ (1ULL << 32)

struct rusty_dom {
	u64 vtime_now; /* virtual time of the domain */
	u64 served_ns; /* time of the last note_served() */
	u32 nr_cpus;
};

/* Not a map, because a lookup would cost more than what is done with the result. */
static struct rusty_dom doms[RUSTY_DOMS_MAX];

/* The CPUs of each domain. */
struct rusty_dom_mask {
	struct bpf_cpumask __kptr *cpus;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_DOMS_MAX);
	__type(key, u32);
	__type(value, struct rusty_dom_mask);
} rusty_dom_masks SEC(".maps");

/* CPUs that tasks of other domains may use. The map rusty_reaches has one element for each node.
 * Its last element, MACHINE, is for all nodes together. */
struct rusty_reach {
	u32 has_direct;
	u32 has_kick;
	struct bpf_cpumask __kptr *direct; /* may be used by wakees while idle */
	struct bpf_cpumask __kptr *kick; /* may be kicked to steal tasks */
};

#define MACHINE RUSTY_NODES_MAX

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_NODES_MAX + 1);
	__type(key, u32);
	__type(value, struct rusty_reach);
} rusty_reaches SEC(".maps");

struct rusty_task {
	u32 dom;
	u32 target_dom; /* destination of a pending migration; equal to dom: none */
	u64 target_until_ns; /* expiry of the pending migration */
	u64 vtime;
	u64 sum_exec_ns; /* CPU time for which the task has been charged: charge() */
	u64 runtime_ns; /* CPU time since the task last became runnable */
	u64 avg_runtime_ns; /* average of runtime_ns at the ends of runs */
	u64 blocked_at_ns;
	u64 woke_at_ns; /* when the task last woke another task */
	u64 blocked_freq; /* average number of sleeps per 100 ms */
	u64 waker_freq; /* average number of wakeups of other tasks per 100 ms */
	u64 allowed[RUSTY_DOM_WORDS]; /* domains with a CPU in the task's affinity */
	struct rusty_duty duty;
	u32 runnable_weight; /* weight added to the domain's demand; 0: not counted */
	u32 is_runnable; /* as of the last become_runnable() or account_dequeue() */
	/* The task was last inserted into a queue, or to preempt a task (run_at_once()), and
	 * advance_dom() was not called for it since. */
	u32 has_waited;
	u32 woken_sync; /* the last ops.select_cpu() had SCX_WAKE_SYNC */
	/* The CPU that this scheduler last chose for the task, or on which the task has run since;
	 * -1: the kernel may have moved the task. */
	s32 our_cpu;
	/* Used only with config.cgroups. */
	u64 effective_weight; /* see scx/cgroup.h */
	struct scx_cgroup_task cgroup;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rusty_task);
} rusty_tasks SEC(".maps");

SCX_PERCPU_COUNTERS(rusty_counters, struct rusty_counts);
#define count(what) scx_count(rusty_counters, what)

static struct rusty_task *task_state(struct task_struct *p)
{
	struct rusty_task *t = bpf_task_storage_get(&rusty_tasks, p, NULL, 0);

	if (!t)
		count(task_get_err);
	return t;
}

static struct rusty_dom *dom_state(u32 dom)
{
	return &doms[dom % RUSTY_DOMS_MAX];
}

/* Return the CPUs of a domain, or NULL if there is no such domain. */
static struct bpf_cpumask *dom_cpus(u32 dom)
{
	struct rusty_dom_mask *mask = bpf_map_lookup_elem(&rusty_dom_masks, &dom);

	return mask ? mask->cpus : NULL;
}

/* Record the time at which the domain's queue was last served. A queue is served when a CPU of the
 * domain takes a task, or lets its current task continue because that task precedes all queued
 * tasks. A queue that was empty counts as served when a task is inserted. */
static void note_served(u32 dom)
{
	if (config.nr_doms > 1)
		dom_state(dom)->served_ns = scx_bpf_now();
}

static u64 *demand_of(u32 dom)
{
	return &demands[dom % RUSTY_DOMS_MAX];
}

/* The number of runnable tasks of @dom. */
static u64 nr_runnable(u32 dom)
{
	return *demand_of(dom) >> RUSTY_DEMAND_NR_SHIFT;
}

/* The sum of the weights of the runnable tasks of @dom. */
static u64 runnable_weight(u32 dom)
{
	return *demand_of(dom) & ((1ULL << RUSTY_DEMAND_NR_SHIFT) - 1);
}

static u32 dom_of_cpu(s32 cpu)
{
	return config.dom_of_cpu[(u32)cpu % RUSTY_CPUS_MAX];
}

static u32 node_of_dom(u32 dom)
{
	return config.node_of_dom[dom % RUSTY_DOMS_MAX];
}

static bool is_allowed(const struct rusty_task *t, u32 dom)
{
	return t->allowed[dom / 64 % RUSTY_DOM_WORDS] >> (dom % 64) & 1;
}

/*
 * Return the slice of a task of @dom. It shrinks as the number of waiting tasks grows, to bound the
 * wait of the last one. The tuner adapts tune.slice_ns to the utilization. But a task whose average
 * runtime is below SCX_STRETCH_MIN_NS gets config.short_slice_ns at any utilization, except with
 * config.fifo_sched. Such a task usually sleeps before its slice ends.
 * With a shorter slice, a worker thread whose request takes longer than usual would wait for all
 * other workers, possibly while it holds a lock. With a longer slice, other tasks would wait longer
 * for new tasks, some of which turn out to be CPU-bound.
 */
static u64 slice_ns(u32 dom, const struct rusty_task *t)
{
	u64 nr = nr_runnable(dom), slice_ns = tune.slice_ns;
	u32 nr_cpus = dom_state(dom)->nr_cpus;

	if (!config.fifo_sched && t->avg_runtime_ns < SCX_STRETCH_MIN_NS)
		slice_ns = config.short_slice_ns;
	return scx_slice_shared(slice_ns, MAX_WAIT_NS / 2, nr > nr_cpus ? nr - nr_cpus : 0,
				MIN_SLICE_NS);
}

#endif /* __RUSTY_STATE_BPF_H */
