/* SPDX-License-Identifier: GPL-2.0-only */
/* Weights of tasks, and the cost of CPU time. With config.cgroups, the effective weight
 * (scx/cgroup.h) of a task replaces its own weight in the charged cost, in the priority, in the
 * demand of the domain, and in the load that the balancer reads. */
#ifndef __RUSTY_WEIGHT_BPF_H
#define __RUSTY_WEIGHT_BPF_H

/* Return the weight of a task; with config.cgroups, as of the last refresh_weight(). */
static u32 weight_of(const struct task_struct *p, const struct rusty_task *t)
{
	return config.cgroups ? scx_effective_round(t->effective_weight) : p->scx.weight;
}

/* Update the effective weight of a task, which changes with the loads of the cgroups above it.
 * Without config.cgroups there is nothing to do. */
static void refresh_weight(const struct task_struct *p, struct rusty_task *t)
{
	u32 weight;

	if (!config.cgroups)
		return;
	t->effective_weight = scx_cgroup_task_effective(&t->cgroup, p->scx.weight);
	if (!t->runnable_weight)
		return;
	weight = weight_of(p, t);
	__sync_fetch_and_add(demand_of(t->dom), (u64)weight - t->runnable_weight);
	t->runnable_weight = weight;
}

/* Return the cost of @ran_ns of CPU time, ns of virtual time. With config.cgroups, it is the mean
 * of the costs at the effective weights before and after refresh_weight(). */
static u64 cost(const struct task_struct *p, struct rusty_task *t, u64 ran_ns)
{
	u64 before = t->effective_weight;

	if (!config.cgroups)
		return scx_vtime_cost(ran_ns, p->scx.weight);
	refresh_weight(p, t);
	return (scx_effective_cost(ran_ns, before) +
		scx_effective_cost(ran_ns, t->effective_weight)) /
	       2;
}

#endif /* __RUSTY_WEIGHT_BPF_H */
