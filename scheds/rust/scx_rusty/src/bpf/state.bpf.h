/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the machine, of each domain and of each task; and the counters. */
#ifndef __RUSTY_STATE_BPF_H
#define __RUSTY_STATE_BPF_H

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long. Far
 * longer than any task waits, since the CPUs of a virtual machine may be halted by the host. */
#define TIMEOUT_MS 20000

/* Maximum wait of a task, whatever the number and weights of runnable tasks: half of it for its own
 * excess of CPU time (debt), a quarter each for what others are owed (lag) and for its average
 * runtime (request). Slices may add half as much. */
#define MAX_WAIT_NS (4 * NSEC_PER_SEC)
#define DEBT_WAIT_NS (MAX_WAIT_NS / 2)
#define LAG_WAIT_NS (MAX_WAIT_NS / 4)
#define REQUEST_WAIT_NS (MAX_WAIT_NS / 4)

/* Shorter slices are all overhead. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

const volatile struct rusty_config config SEC(".rodata.rusty_config");
struct rusty_tune tune SEC(".data.rusty_tune");
s64 idle_cpus[RUSTY_CPUS_MAX] SEC(".data.rusty_idle");
struct rusty_demand demands[RUSTY_DOMS_MAX] SEC(".data.rusty_demands");
u32 nr_cpu_ids;
/* When each CPU next looks for domains that are not served. */
static u64 rescue_at_ns[RUSTY_CPUS_MAX];

/* Tasks with a shorter average runtime are not preempted when others wake up. */
#define STRETCH_MIN_NS (NSEC_PER_MSEC / 2)

/* The same for sync wakeups: tasks that exchange messages run better one after the other, so only
 * tasks that compute are preempted. */
#define SYNC_STRETCH_MIN_NS (4 * NSEC_PER_MSEC)

/* The deadline of tasks in FIFO order. */
#define NO_DEADLINE (~0ULL)

/* DSQs: each CPU has one for pinned tasks, whose id is the CPU; each domain has one, whose id is
 * DOM_DSQ | domain. All are ordered by deadline, in the virtual time of the domain. */
#define DOM_DSQ (1ULL << 32)

struct rusty_dom {
	u64 vtime_now; /* virtual time of the domain */
	u64 served_ns; /* when its queue was last served: note_served() */
	u32 nr_cpus;
	struct bpf_cpumask __kptr *cpus;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_DOMS_MAX);
	__type(key, u32);
	__type(value, struct rusty_dom);
} rusty_doms SEC(".maps");

/* CPUs that tasks of other domains may use: an element for each node, and the last one for the
 * machine. */
struct rusty_reach {
	u32 has_direct;
	u32 has_kick;
	struct bpf_cpumask __kptr *direct; /* for wakeups, if they are idle */
	struct bpf_cpumask __kptr *kick; /* kicked to steal tasks */
};

#define MACHINE RUSTY_NODES_MAX

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUSTY_NODES_MAX + 1);
	__type(key, u32);
	__type(value, struct rusty_reach);
} rusty_reaches SEC(".maps");

/* State of a task. */
struct rusty_task {
	u32 dom;
	u32 target_dom; /* where it will migrate to; equal to dom: no migration */
	u64 target_until_ns; /* expiry of the migration */
	u64 vtime;
	u64 sum_exec_ns; /* CPU time at the last charge() */
	u64 runtime_ns; /* CPU time since it last woke up */
	u64 avg_runtime_ns; /* average of runtime_ns */
	u64 blocked_at_ns;
	u64 woke_at_ns; /* when it last woke another task */
	u64 blocked_freq; /* per 100 ms, averaged */
	u64 waker_freq;
	u64 allowed[RUSTY_DOM_WORDS]; /* domains with a CPU that it may use */
	struct scx_ravg duty_cycle; /* average of being runnable, 0 or 1 */
	u32 runnable_weight; /* what it has added to the domain's weight; 0: not runnable */
	u32 has_waited; /* in a queue of its domain */
	u32 woken_sync; /* its last wakeup was a sync wakeup */
	s32 our_cpu; /* the CPU chosen by this scheduler: see follow_kernel() */
	/* With config.cgroups. */
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
	return bpf_map_lookup_elem(&rusty_doms, &dom);
}

/* Note that the domain's queue was served: a CPU took a task, or continued with one that precedes
 * all of the queue; or that the queue is no longer empty. */
static void note_served(u32 dom)
{
	struct rusty_dom *d = config.nr_doms > 1 ? dom_state(dom) : NULL;

	if (d)
		d->served_ns = scx_bpf_now();
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

/* Return the slice of a task. It shrinks as the queue grows, so that the last task runs in time. */
static u64 slice_ns(u32 dom)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(DOM_DSQ | dom);

	return scx_slice_shared(tune.slice_ns, MAX_WAIT_NS / 2, nr_queued > 0 ? nr_queued : 0,
				MIN_SLICE_NS);
}

#endif /* __RUSTY_STATE_BPF_H */
