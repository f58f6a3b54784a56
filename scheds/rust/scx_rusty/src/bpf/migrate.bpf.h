/* SPDX-License-Identifier: GPL-2.0-only */
/* The domain of a task. It changes only when the task wakes up or is enqueued. */
#ifndef __RUSTY_MIGRATE_BPF_H
#define __RUSTY_MIGRATE_BPF_H

/* CPU time up to which a task is young. After that the balancer sees its load: the averages have a
 * half-life of a second by default. */
#define YOUNG_NS (NSEC_PER_SEC / 4)

static void forget_weight(struct rusty_task *t)
{
	struct rusty_demand *demand = demand_of(t->dom);

	if (!t->runnable_weight)
		return;
	__sync_fetch_and_sub(&demand->weight, t->runnable_weight);
	__sync_fetch_and_sub(&demand->nr, 1);
	t->runnable_weight = 0;
}

static void note_weight(struct rusty_task *t, u32 weight)
{
	struct rusty_demand *demand = demand_of(t->dom);

	if (t->runnable_weight)
		return;
	t->runnable_weight = weight;
	__sync_fetch_and_add(&demand->weight, weight);
	__sync_fetch_and_add(&demand->nr, 1);
}

/* Change the domain. The task keeps its lag. */
static void set_dom(struct rusty_task *t, u32 to)
{
	struct rusty_dom *old = dom_state(t->dom), *new = dom_state(to);
	u32 weight = t->runnable_weight;

	if (!old || !new || t->dom == to)
		return;
	forget_weight(t);
	t->vtime = t->vtime - old->vtime_now + new->vtime_now;
	t->dom = to;
	if (weight)
		note_weight(t, weight);
}

/* Return the domain that the task will have after its next wakeup or enqueue: the one chosen by the
 * balancer, if the task may still use it and the choice has not expired; else the current one. */
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
 * If the task is not on the CPU that this scheduler chose, the kernel has moved it: change to the
 * domain of its new CPU. When a CPU goes offline, the kernel pushes tasks away from it one by one.
 * If it is the only CPU of its domain, a task that returned to the domain's queue would be pushed
 * away over and over, and the tasks behind it would never run.
 */
static void follow_kernel(const struct task_struct *p, struct rusty_task *t)
{
	s32 cpu = scx_bpf_task_cpu(p);
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
	struct rusty_dom *d;
	u32 dom;

	bpf_for(dom, 0, RUSTY_DOM_WORDS)
		t->allowed[dom % RUSTY_DOM_WORDS] = 0;
	bpf_rcu_read_lock();
	bpf_for(dom, 0, config.nr_doms) {
		d = dom_state(dom);
		cpus = d ? d->cpus : NULL;
		if (!cpus)
			continue;
		if (everywhere || bpf_cpumask_intersects((const struct cpumask *)cpus, p->cpus_ptr))
			t->allowed[dom / 64 % RUSTY_DOM_WORDS] |= 1ULL << (dom % 64);
	}
	bpf_rcu_read_unlock();
}

/* Return the first domain from @dom on, cyclically, that the task may use; @dom itself if there is
 * none. */
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
	struct rusty_dom *d = dom_state(dom);

	return d && demand_of(dom)->nr < d->nr_cpus;
}

/* Return the first domain with an idle CPU for the task out of @nr from @first on; @own if there is
 * none. */
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

/* Return a domain with an idle CPU for the task, preferably on the node of @own; @own if there is
 * none. */
static u32 dom_with_idle_cpu_near(const struct rusty_task *t, u32 own)
{
	u32 node = node_of_dom(own) % RUSTY_NODES_MAX, first = config.first_dom[node];
	u32 dom = dom_with_idle_cpu(t, first, config.first_dom[node + 1] - first, own);

	return dom == own ? dom_with_idle_cpu(t, 0, config.nr_doms, own) : dom;
}

/* Return the initial domain of a task: its parent's, unless all CPUs there are busy and others are
 * not. The balancer would correct a bad choice only seconds later. */
static u32 first_dom(const struct rusty_task *t, u32 parent_dom)
{
	u32 dom;

	if (is_allowed(t, parent_dom) && has_idle_cpu(parent_dom))
		return parent_dom;
	dom = dom_with_idle_cpu_near(t, parent_dom);
	return is_allowed(t, dom) ? dom : first_allowed(t, dom);
}

/*
 * Move a young task from a crowded domain to one with an idle CPU, when it is enqueued. Its initial
 * domain may be crowded by coincidence, because it depends on which CPUs were busy at the fork. A
 * young task has little in the caches.
 */
static void place_young(const struct task_struct *p, struct rusty_task *t)
{
	struct rusty_dom *d;

	if (p->se.sum_exec_runtime > YOUNG_NS)
		return;
	d = dom_state(t->dom);
	if (!d || demand_of(t->dom)->nr <= d->nr_cpus)
		return;
	set_dom(t, dom_with_idle_cpu_near(t, t->dom));
	t->target_dom = t->dom;
}

/* Called by the balancer: the task migrates when it is next woken or enqueued. */
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
