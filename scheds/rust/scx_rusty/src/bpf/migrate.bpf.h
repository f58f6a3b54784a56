/* SPDX-License-Identifier: GPL-2.0-only */
/* The domain of a task. It changes only when the task wakes up or is enqueued. */
#ifndef __RUSTY_MIGRATE_BPF_H
#define __RUSTY_MIGRATE_BPF_H

/* A task is young until it has used this CPU time. place_young() may move young tasks. The balancer
 * moves tasks by their load, but the duty cycle of a new task starts at 0. It is an average with a
 * half-life of a second by default, and after this time it is high enough for the balancer. */
#define YOUNG_NS (NSEC_PER_SEC / 4)

/* Return what one runnable task of @weight adds to the demand of its domain. */
static u64 demand_of_one(u32 weight)
{
	return (1ULL << RUSTY_DEMAND_NR_SHIFT) + weight;
}

static void forget_weight(struct rusty_task *t)
{
	if (!t->runnable_weight)
		return;
	__sync_fetch_and_sub(demand_of(t->dom), demand_of_one(t->runnable_weight));
	t->runnable_weight = 0;
}

static void note_weight(struct rusty_task *t, u32 weight)
{
	if (t->runnable_weight)
		return;
	t->runnable_weight = weight;
	__sync_fetch_and_add(demand_of(t->dom), demand_of_one(weight));
}

/* Change the domain of a task. The task keeps its lag: its virtual time is converted to the virtual
 * time of the new domain. */
static void set_dom(struct rusty_task *t, u32 to)
{
	struct rusty_dom *old = dom_state(t->dom), *new = dom_state(to);
	u32 weight = t->runnable_weight;

	if (t->dom == to)
		return;
	forget_weight(t);
	t->vtime = t->vtime - old->vtime_now + new->vtime_now;
	t->dom = to;
	if (weight)
		note_weight(t, weight);
}

/* Return the domain that apply_migration() would give the task now. This is the domain chosen by
 * the balancer, if the task may still use it and the choice has not expired. Otherwise it is the
 * current domain. */
static u32 next_dom(const struct rusty_task *t)
{
	u32 dom = t->dom, to = t->target_dom;

	if (to == dom || !is_allowed(t, to))
		return dom;
	return time_before(scx_monotonic_now(), t->target_until_ns) ? to : dom;
}

/* Apply a pending migration, on wakeup or enqueue. */
static void apply_migration(struct rusty_task *t)
{
	u32 to;

	if (t->target_dom == t->dom)
		return;
	to = next_dom(t);
	if (to != t->dom) {
		set_dom(t, to);
		count(migrations);
	}
	t->target_dom = t->dom;
}

/*
 * If @cpu, the CPU of the task, is not the one that this scheduler chose, the kernel has moved the
 * task. In this case, change to the domain of its new CPU. When a CPU goes offline, the kernel
 * pushes its tasks to other CPUs one by one. Suppose that the CPU is the only one of its domain. If
 * a pushed task returned to the domain's queue, the kernel would push it away over and over, and
 * the tasks behind it would never run.
 */
static void follow_kernel(struct rusty_task *t, s32 cpu)
{
	u32 dom = dom_of_cpu(cpu);

	if (t->our_cpu == cpu || dom == t->dom || dom >= config.nr_doms || !is_allowed(t, dom))
		return;
	set_dom(t, dom);
	t->target_dom = dom;
}

/* Update the set of domains that have a CPU within the task's affinity. */
static void note_allowed(struct task_struct *p, struct rusty_task *t)
{
	bool everywhere = (u32)p->nr_cpus_allowed >= nr_cpu_ids;
	struct bpf_cpumask *cpus;
	u32 dom;

	bpf_for(dom, 0, RUSTY_DOM_WORDS)
		t->allowed[dom % RUSTY_DOM_WORDS] = 0;
	bpf_rcu_read_lock();
	bpf_for(dom, 0, config.nr_doms) {
		cpus = dom_cpus(dom);
		if (!cpus)
			continue;
		if (everywhere || bpf_cpumask_intersects((const struct cpumask *)cpus, p->cpus_ptr))
			t->allowed[dom / 64 % RUSTY_DOM_WORDS] |= 1ULL << (dom % 64);
	}
	bpf_rcu_read_unlock();
}

/* Return the first domain that the task may use, in a cyclic search that starts at @dom. If there
 * is none, return @dom. */
static u32 first_allowed(const struct rusty_task *t, u32 dom)
{
	u32 i, at;

	bpf_for(i, 0, config.nr_doms) {
		at = (dom + i) % (config.nr_doms ?: 1);
		if (is_allowed(t, at))
			return at;
	}
	return dom;
}

/* Whether the domain has fewer runnable tasks than CPUs. */
static bool has_idle_cpu(u32 dom)
{
	return nr_runnable(dom) < dom_state(dom)->nr_cpus;
}

/* Return a domain that has an idle CPU and that the task may use, out of the @nr domains that start
 * at @first. If there is none, return @own. */
static u32 dom_with_idle_cpu(const struct rusty_task *t, u32 first, u32 nr, u32 own)
{
	u32 i, dom;

	bpf_for(i, 0, nr) {
		dom = first + (own + i) % (nr ?: 1);
		if (is_allowed(t, dom) && has_idle_cpu(dom))
			return dom;
	}
	return own;
}

/* Return a domain with an idle CPU that the task may use, preferably on the node of @own. If there
 * is none, return @own. */
static u32 dom_with_idle_cpu_near(const struct rusty_task *t, u32 own)
{
	u32 node = node_of_dom(own) % RUSTY_NODES_MAX, first = config.first_dom[node];
	u32 dom = dom_with_idle_cpu(t, first, config.first_dom[node + 1] - first, own);

	return dom == own ? dom_with_idle_cpu(t, 0, config.nr_doms, own) : dom;
}

/* Return the initial domain of a forked task. This is the domain of its parent's CPU, unless the
 * task may not use that domain, or all CPUs there are busy and another domain has an idle CPU. The
 * balancer would correct a bad choice only in its next round. */
static u32 first_dom(const struct rusty_task *t, u32 parent_dom)
{
	u32 dom;

	if (is_allowed(t, parent_dom) && has_idle_cpu(parent_dom))
		return parent_dom;
	dom = dom_with_idle_cpu_near(t, parent_dom);
	return is_allowed(t, dom) ? dom : first_allowed(t, dom);
}

/* Move a young task from a domain that has more runnable tasks than CPUs to a domain with an idle
 * CPU, if there is one. The initial domain of a task depends on which CPUs were busy at the fork,
 * and may be a bad choice by now. The move costs little, because a young task usually has little
 * data in the caches. */
static void place_young(const struct task_struct *p, struct rusty_task *t)
{
	if (config.nr_doms < 2 || p->se.sum_exec_runtime > YOUNG_NS ||
	    nr_runnable(t->dom) <= dom_state(t->dom)->nr_cpus)
		return;
	set_dom(t, dom_with_idle_cpu_near(t, t->dom));
	t->target_dom = t->dom;
}

/* Called by the balancer. The task migrates when it is next woken or enqueued, unless the migration
 * has expired by then. Returns -ENOENT if there is no such task or if it may not use the domain. */
SEC("syscall")
int rusty_migrate(struct rusty_migration *migration)
{
	struct task_struct *p = bpf_task_from_pid(migration->pid);
	struct rusty_task *t;
	u32 dom = migration->dom;
	int err = -ENOENT;

	if (!p)
		return err;
	t = bpf_task_storage_get(&rusty_tasks, p, NULL, 0);
	if (t && dom < config.nr_doms && is_allowed(t, dom)) {
		t->target_until_ns = migration->until_ns;
		t->target_dom = dom;
		err = 0;
	}
	bpf_task_release(p);
	return err;
}

#endif /* __RUSTY_MIGRATE_BPF_H */
