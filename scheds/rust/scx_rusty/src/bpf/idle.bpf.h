/* SPDX-License-Identifier: GPL-2.0-only */
/* Selection of the CPU for a task: on a sync wakeup, its previous CPU or the waker's CPU, else an
 * idle CPU of its own domain, or of another domain if the tuner allows that. Kicks of idle CPUs for
 * queued tasks. */
#ifndef __RUSTY_IDLE_BPF_H
#define __RUSTY_IDLE_BPF_H

static struct rusty_reach *reach_of(u32 node)
{
	return bpf_map_lookup_elem(&rusty_reaches, &node);
}

/*
 * Claim an idle CPU of @mask that the task may use, preferably on a fully idle core. Returns a
 * negative value if there is none. SCX_WAKE_SYNC is not passed on to the kernel. With this flag, if
 * any CPU is idle, even one that the task may not use, the kernel would put the task on the waker's
 * CPU, where it would run before all tasks that wait in the queues.
 */
static s32 pick_idle(struct task_struct *p, s32 prev_cpu, struct bpf_cpumask *mask)
{
	if (!mask)
		return -EBUSY;
	return scx_bpf_select_cpu_and(p, prev_cpu, 0, (const struct cpumask *)mask, 0);
}

/* Claim an idle CPU in the task's own domain. */
static s32 pick_idle_own(struct task_struct *p, struct rusty_task *t, s32 prev_cpu)
{
	return pick_idle(p, prev_cpu, dom_cpus(t->dom));
}

/* Claim an idle CPU in one of the domains of @node that the tuner has opened to wakees of other
 * domains. MACHINE stands for all nodes. Returns a negative value if there is none. */
static s32 pick_idle_beyond(struct task_struct *p, s32 prev_cpu, u32 node)
{
	struct rusty_reach *reach = reach_of(node);

	if (!reach || !reach->has_direct)
		return -EBUSY;
	return pick_idle(p, prev_cpu, reach->direct);
}

/* Whether a task waits in a DSQ of the CPU or in the queue of the CPU's domain. */
static bool has_waiting(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0 || scx_has_pinned_waiting(cpu) ||
	       scx_bpf_dsq_nr_queued(DOM_DSQ | dom_of_cpu(cpu)) > 0;
}

/*
 * Return the CPU for a sync wakeup. The waker is about to sleep, and its CPU has a warm cache for
 * the wakee. If prev_cpu is idle and in the domain of the waker's CPU, the wakee gets prev_cpu.
 * Otherwise the wakee gets the waker's CPU, if the waker is not exiting, no task waits for that CPU
 * or its domain, and another CPU of its domain is idle. In both cases, the affinity of the wakee
 * has to include the CPU. Returns a negative value if neither CPU is suitable.
 */
static s32 pick_sync(struct task_struct *p, s32 prev_cpu)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	s32 cpu = bpf_get_smp_processor_id();
	struct bpf_cpumask *near;
	const struct cpumask *idle;
	bool has_idle;

	if (dom_of_cpu(prev_cpu) == dom_of_cpu(cpu) &&
	    bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr) &&
	    scx_bpf_test_and_clear_cpu_idle(prev_cpu)) {
		count(wake_sync_prev_idle);
		return prev_cpu;
	}
	if (waker->flags & PF_EXITING || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
	    has_waiting(cpu))
		return -EBUSY;
	near = dom_cpus(dom_of_cpu(cpu));
	if (!near)
		return -EBUSY;
	idle = scx_bpf_get_idle_cpumask();
	has_idle = bpf_cpumask_intersects((const struct cpumask *)near, idle);
	scx_bpf_put_idle_cpumask(idle);
	if (!has_idle)
		return -EBUSY;
	count(wake_sync);
	return cpu;
}

/* Return the CPU on which the task runs without waiting in a queue; negative if there is none. */
static s32 pick_cpu(struct task_struct *p, struct rusty_task *t, s32 prev_cpu, u64 wake_flags)
{
	u32 node = node_of_dom(t->dom);
	s32 cpu;

	if (!scx_any_idle())
		return -EBUSY;
	if (wake_flags & SCX_WAKE_SYNC) {
		cpu = pick_sync(p, prev_cpu);
		if (cpu >= 0)
			return cpu;
	}
	cpu = pick_idle_own(p, t, prev_cpu);
	if (cpu >= 0) {
		if (cpu == prev_cpu)
			count(prev_idle);
		else
			count(direct);
		return cpu;
	}
	cpu = pick_idle_beyond(p, prev_cpu, node);
	if (cpu < 0 && config.direct_greedy_numa)
		cpu = pick_idle_beyond(p, prev_cpu, MACHINE);
	if (cpu < 0)
		return cpu;
	if (cpu == prev_cpu)
		count(greedy_idle);
	else if (node_of_dom(dom_of_cpu(cpu)) == node)
		count(greedy);
	else
		count(greedy_far);
	return cpu;
}

/* Kick an idle CPU of a domain of @node, so that it steals the task. MACHINE stands for all nodes.
 * Returns false if no such CPU is idle, or if the tuner does not allow the kick. */
static bool kick_greedy(struct task_struct *p, u32 node)
{
	struct rusty_reach *reach = reach_of(node);
	s32 cpu;

	if (!reach || !reach->has_kick)
		return false;
	cpu = pick_idle(p, scx_bpf_task_cpu(p), reach->kick);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	count(kick_greedy);
	return true;
}

/* Whether the tuner allows kicking a CPU of another domain for a task of @dom. */
static bool may_kick_beyond(u32 dom)
{
	const struct rusty_reach *near, *far;

	if (config.nr_doms < 2)
		return false;
	near = reach_of(node_of_dom(dom));
	far = reach_of(MACHINE);
	return (near && near->has_kick) || (far && far->has_kick);
}

/* Whether at least @threshold tasks will wait in the queue of @dom, as steal() requires, once the
 * task that is being enqueued is in the queue. The kernel does not count that task yet. */
static bool may_steal(u32 dom, u32 threshold)
{
	return threshold && scx_bpf_dsq_nr_queued(DOM_DSQ | dom) + 1 >= (s32)threshold;
}

/* Kick an idle CPU for a task that has just been inserted into the queue of its domain. @task_cpu
 * is the CPU of the task. Returns whether a CPU was kicked. */
static bool kick_for(struct task_struct *p, struct rusty_task *t, s32 task_cpu)
{
	u32 node = node_of_dom(t->dom);
	s32 cpu;

	if (!scx_any_idle())
		return false;
	cpu = pick_idle_own(p, t, task_cpu);
	if (cpu >= 0) {
		if (dom_of_cpu(task_cpu) != t->dom)
			count(repatriate);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return true;
	}
	if (config.nr_doms < 2)
		return false;
	if (may_steal(t->dom, config.greedy_threshold) && kick_greedy(p, node))
		return true;
	return may_steal(t->dom, config.greedy_threshold_x_numa) && kick_greedy(p, MACHINE);
}

/* Set @mask to the CPUs of the domains in @doms, out of the domains from @first to @last - 1. Set
 * @has_any to whether there is such a domain. */
static void set_reach(struct bpf_cpumask *mask, u32 *has_any, u32 first, u32 last, const u64 *doms)
{
	struct bpf_cpumask *cpus;
	u32 dom;

	if (!mask)
		return;
	*has_any = 0;
	bpf_cpumask_clear(mask);
	bpf_for(dom, first, last) {
		if (!(doms[dom / 64 % RUSTY_DOM_WORDS] >> (dom % 64) & 1))
			continue;
		cpus = dom_cpus(dom);
		if (!cpus)
			continue;
		bpf_cpumask_or(mask, (const struct cpumask *)mask, (const struct cpumask *)cpus);
		*has_any = 1;
	}
}

/* Called by the tuner. Sets the domains whose idle CPUs tasks of other domains may use (struct
 * rusty_greedy). A task that wakes up while a mask is being rebuilt may miss an idle CPU and wait
 * in a queue instead. */
SEC("syscall")
int rusty_set_greedy(struct rusty_greedy *args)
{
	/* Copy the argument, because older kernels allow access to it only at constant offsets. */
	struct rusty_greedy greedy = *args;
	struct rusty_reach *reach;
	u32 i, node, first, last;

	bpf_rcu_read_lock();
	bpf_for(i, 0, config.nr_nodes + 1) {
		node = i < config.nr_nodes ? i : MACHINE;
		reach = reach_of(node);
		if (!reach)
			continue;
		first = node == MACHINE ? 0 : config.first_dom[node % RUSTY_NODES_MAX];
		last = node == MACHINE ? config.nr_doms :
					 config.first_dom[node % RUSTY_NODES_MAX + 1];
		set_reach(reach->direct, &reach->has_direct, first, last, greedy.direct);
		set_reach(reach->kick, &reach->has_kick, first, last, greedy.kick);
	}
	bpf_rcu_read_unlock();
	return 0;
}

#endif /* __RUSTY_IDLE_BPF_H */
