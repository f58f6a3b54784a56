/* SPDX-License-Identifier: GPL-2.0-only */
/* What is remembered of the machine, of each domain, of each task; and the counters. */
#ifndef __RUSTY_STATE_BPF_H
#define __RUSTY_STATE_BPF_H

/* The kernel ends the scheduler when a task has waited for so long. */
#define TIMEOUT_MS 10000

/* How long a task may wait, however many others do and whatever they weigh: below that. Half of it
 * is for what it has had too much of (debt), a quarter each for what others have had too little of
 * (lag) and for what it does at a stretch (request). Slices may take half as long again. */
#define MAX_WAIT_NS (4 * NSEC_PER_SEC)
#define DEBT_WAIT_NS (MAX_WAIT_NS / 2)
#define LAG_WAIT_NS (MAX_WAIT_NS / 4)
#define REQUEST_WAIT_NS (MAX_WAIT_NS / 4)

/* A shorter slice than this is all overhead. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

const volatile struct rusty_config config SEC(".rodata.rusty_config");
struct rusty_tune tune SEC(".data.rusty_tune");
s64 idle_cpus[RUSTY_CPUS_MAX] SEC(".data.rusty_idle");
struct rusty_demand demands[RUSTY_DOMS_MAX] SEC(".data.rusty_demands");
u32 nr_cpu_ids;

/* What runs on a CPU, if it may be interrupted by somebody whose deadline is earlier. */
struct rusty_running {
	u64 deadline; /* when it began; 0: nothing that may be interrupted */
	u64 since_ns;
	u64 stretch_ns; /* that it runs for, on average */
};

struct rusty_running running[RUSTY_CPUS_MAX];

/* Who runs no longer than this at a stretch is done sooner than interrupted. */
#define STRETCH_MIN_NS (NSEC_PER_MSEC / 2)

/* The same for who is woken by one that is about to sleep: those that send each other messages get
 * on better one after the other, and only who computes is interrupted. */
#define SYNC_STRETCH_MIN_NS (4 * NSEC_PER_MSEC)

/* Of those that are served in order of arrival. */
#define NO_DEADLINE (~0ULL)

/* Queues (DSQs): of each CPU, with its id, for tasks that may run nowhere else; and of each
 * domain. All are ordered by deadline, within the domain's virtual time. */
#define DOM_DSQ (1ULL << 32)

struct rusty_dom {
	u64 vtime_now; /* virtual time of the domain */
	u32 nr_cpus;
	struct bpf_cpumask __kptr *cpus;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_DOMS_MAX);
	__type(key, u32);
	__type(value, struct rusty_dom);
} rusty_doms SEC(".maps");

/* CPUs that tasks of other domains may use: of a node, or, as the last, of the machine. */
struct rusty_reach {
	u32 has_direct;
	u32 has_kick;
	struct bpf_cpumask __kptr *direct; /* if they are idle when such a task wakes up */
	struct bpf_cpumask __kptr *kick; /* these are woken to steal it */
};

#define MACHINE RUSTY_NODES_MAX

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_NODES_MAX + 1);
	__type(key, u32);
	__type(value, struct rusty_reach);
} rusty_reaches SEC(".maps");

/* What is known of a task. */
struct rusty_task {
	u32 dom;
	u32 target_dom; /* other than that: where it is to migrate */
	u64 target_until_ns; /* if it has not done so by then, it stays */
	u64 vtime;
	u64 sum_exec_ns; /* when it began to run */
	u64 runtime_ns; /* since it last woke up */
	u64 avg_runtime_ns; /* the same, averaged */
	u64 blocked_at_ns;
	u64 woke_at_ns; /* when it last woke another one */
	u64 blocked_freq; /* per 100 ms, averaged */
	u64 waker_freq;
	u64 allowed[RUSTY_DOM_WORDS]; /* domains that have a CPU that it may use */
	struct scx_ravg duty_cycle; /* 1 while it wants to run */
	u32 runnable_weight; /* as added to the domain's; 0: not */
	u32 has_waited; /* in a queue of its domain */
	u32 woken_sync; /* by one that is about to sleep */
	s32 our_cpu; /* where it is by our doing; others are the kernel's */
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
	return bpf_map_lookup_elem(&rusty_doms, &dom);
}

static struct rusty_demand *demand_of(u32 dom)
{
	return &demands[dom % RUSTY_DOMS_MAX];
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

/* What a running task has used since this was asked last. */
static void charge(const struct task_struct *p, struct rusty_task *t)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->sum_exec_ns;

	t->sum_exec_ns += ran_ns;
	t->runtime_ns += ran_ns;
	t->vtime += scx_vtime_cost(ran_ns, p->scx.weight);
}

/* Shorter where many wait, so that the last one's turn comes in time. */
static u64 slice_ns(u32 dom)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(DOM_DSQ | dom);

	return scx_slice_shared(tune.slice_ns, MAX_WAIT_NS / 2, nr_queued > 0 ? nr_queued : 0,
				MIN_SLICE_NS);
}

#endif /* __RUSTY_STATE_BPF_H */
