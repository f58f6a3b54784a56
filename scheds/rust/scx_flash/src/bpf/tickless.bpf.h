/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tickless mode: slices are infinite, and while tasks wait, a timer preempts tasks that have run
 * for config.slice_ns. A nohz_full CPU with a single task needs no tick.
 */
#ifndef __FLASH_TICKLESS_BPF_H
#define __FLASH_TICKLESS_BPF_H

/* Period of the timer that looks for waiting tasks. */
#define TICKLESS_INTERVAL_NS (10 * NSEC_PER_MSEC)

/* When the current task of each CPU started its turn, ns; 0: the CPU runs no sched_ext task. */
static u64 turn_since_ns[SCX_CPUS_MAX];

/* The CPU that the timer visits first, modulo the number of CPU ids. It changes in each period, so
 * that no CPU is preferred. */
static u32 tickless_first;

struct tickless {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tickless);
} tickless_timer SEC(".maps");

/* Number of tasks in each node's DSQ for which the timer has not kicked a CPU in this period. */
static s32 tickless_waiting[SCX_NODES_MAX];

/* Note that the turn of a task begins on @cpu, or ends. */
static void tickless_turn(s32 cpu, bool begins)
{
	if (config.tickless)
		turn_since_ns[(u32)cpu % SCX_CPUS_MAX] = begins ? scx_bpf_now() : 0;
}

/* Whether the first task of the node's DSQ may run on @cpu. */
static bool is_for_first(s32 cpu)
{
	const struct task_struct *first;
	bool allowed;

	bpf_rcu_read_lock();
	first = scx_bpf_dsq_peek(SCX_NODE_DSQ | scx_node_of(cpu));
	allowed = first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr);
	bpf_rcu_read_unlock();
	return allowed;
}

/*
 * Whether a task waits for @cpu: in the CPU's local DSQ, in its DSQ of pinned tasks, or in the DSQ
 * of its node. The kernel itself inserts some tasks, such as exiting tasks, into local DSQs. N
 * tasks in the node's DSQ make this function return true for at most N CPUs per period. The last of
 * these has to be a CPU that may run the first task of the DSQ, since the affinity of that task may
 * allow only few CPUs.
 */
static bool is_awaited(s32 cpu)
{
	s32 *waiting = &tickless_waiting[scx_node_of(cpu) % SCX_NODES_MAX];

	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0 || scx_has_pinned_waiting(cpu))
		return true;
	if (*waiting <= 0 || (*waiting == 1 && !is_for_first(cpu)))
		return false;
	(*waiting)--;
	return true;
}

/* End the turn of the task that runs on @cpu if the turn has lasted for config.slice_ns, and a task
 * waits for that CPU. The running task is preempted, because a slice of 0 would have no effect
 * before the next tick, which may never come. */
static void tickless_visit(s32 cpu)
{
	u64 since = turn_since_ns[(u32)cpu % SCX_CPUS_MAX];

	if (since && time_delta(scx_bpf_now(), since) >= config.slice_ns && is_awaited(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

static int tickless_tick(void *map, u32 *key, struct tickless *tickless)
{
	u32 i;

	bpf_for(i, 0, scx_cpus.nr_nodes)
		tickless_waiting[i % SCX_NODES_MAX] = scx_bpf_dsq_nr_queued(SCX_NODE_DSQ | i);
	tickless_first++;
	bpf_for(i, 0, scx_cpus.nr_cpu_ids)
		tickless_visit((tickless_first + i) % (scx_cpus.nr_cpu_ids ?: 1));
	bpf_timer_start(&tickless->timer, TICKLESS_INTERVAL_NS, 0);
	return 0;
}

/* Start the timer in tickless mode. Call it from ops.init(). */
static s32 tickless_init(void)
{
	struct tickless *tickless;
	u32 zero = 0;

	if (!config.tickless)
		return 0;
	tickless = bpf_map_lookup_elem(&tickless_timer, &zero);
	if (!tickless)
		return -ENOENT;
	return bpf_timer_init(&tickless->timer, &tickless_timer, CLOCK_MONOTONIC) ?:
		       bpf_timer_set_callback(&tickless->timer, tickless_tick)	  ?:
		       bpf_timer_start(&tickless->timer, TICKLESS_INTERVAL_NS, 0);
}

#endif /* __FLASH_TICKLESS_BPF_H */
