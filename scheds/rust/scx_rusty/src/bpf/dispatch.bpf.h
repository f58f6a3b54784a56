/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops.dispatch() takes the first of these tasks that exists:
 *  - a task of another domain that is not served by its own CPUs;
 *  - prev, if it still precedes all queued tasks;
 *  - the first task queued for the CPU or its domain;
 *  - prev, if it is still runnable;
 *  - a task stolen from another domain.
 */
#ifndef __RUSTY_DISPATCH_BPF_H
#define __RUSTY_DISPATCH_BPF_H

/* Whether @prev, whose slice has expired, precedes all tasks queued for @cpu and for its domain.
 * False if there are none, if @prev belongs to another domain or has a pending migration, or with
 * config.fifo_sched. The kernel calls ops.dispatch() before it enqueues @prev again. Without this
 * check, two tasks on a CPU would take turns, whatever their weights. */
static bool prev_is_first(s32 cpu, u32 dom, struct task_struct *prev, struct rusty_task *t)
{
	struct rusty_dom *d = dom_state(dom);
	u64 quarter = quarter_ahead_ns(dom);

	if (config.fifo_sched || t->target_dom != t->dom || t->dom != dom)
		return false;
	/* If prev did not wait in a queue, it may have slept for a long time. Without the bound, it
	 * would precede all other tasks until its virtual time had caught up with theirs. */
	bound_vtime(d, t, quarter, quarter);
	return scx_precedes(t->vtime + request_ns(prev, t), cpu, DOM_DSQ | dom);
}

/* Advance the virtual time of a domain as if the first task of its queue that may run on @cpu had
 * run, without waiting for rusty_tick(). Until then, note_alone() would forgive too much debt of a
 * task that continues on another CPU. A global function, which is verified only once. */
__noinline int advance_to_first(u32 dom, s32 cpu)
{
	struct rusty_task *t;
	struct task_struct *p;
	u32 nr = 0;

	bpf_for_each(scx_dsq, p, DOM_DSQ | dom, 0) {
		if (nr++ >= SCX_FIRST_MAX)
			break;
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = task_state(p);
		if (t)
			advance_dom(t);
		break;
	}
	return 0;
}

/* Clear the credit of a task that continues because no other task waits, and limit its debt to the
 * cost of one slice: while the task is alone, it takes no CPU time from other tasks. The virtual
 * time of the domain does not follow the task. If it did, a task of small weight would soon be far
 * ahead of all tasks that share another CPU. */
static void note_alone(u32 dom, struct task_struct *prev, struct rusty_task *t, u64 slice)
{
	struct rusty_dom *d = dom_state(dom);

	if (t->dom != dom)
		return;
	t->vtime = time_max(t->vtime, d->vtime_now);
	t->vtime = scx_vtime_limit_debt(t->vtime, d->vtime_now,
					scx_vtime_cost(slice, weight_of(prev, t)));
}

/* Steal a task from one of the @nr domains that start at @first, if at least @threshold tasks wait
 * there. The start of the search depends on @own, so that not all domains steal from the same
 * domain. */
static bool steal(u32 first, u32 nr, u32 own, u32 threshold)
{
	u32 i, dom;

	bpf_for(i, 0, nr) {
		dom = first + (own + 1 + i) % (nr ?: 1);
		if (dom == own || scx_bpf_dsq_nr_queued(DOM_DSQ | dom) < (s32)threshold)
			continue;
		if (scx_dispatch_from(DOM_DSQ | dom))
			return true;
	}
	return false;
}

/* Steal a task from a domain of another node. */
static bool steal_far(u32 node, u32 dom)
{
	u32 i, other, first;

	bpf_for(i, 1, config.nr_nodes) {
		other = (node + i) % (config.nr_nodes ?: 1) % RUSTY_NODES_MAX;
		first = config.first_dom[other];
		if (steal(first, config.first_dom[other + 1] - first, dom,
			  config.greedy_threshold_x_numa))
			return true;
	}
	return false;
}

static bool steal_any(u32 dom)
{
	u32 node = node_of_dom(dom) % RUSTY_NODES_MAX, first = config.first_dom[node];

	if (config.greedy_threshold &&
	    steal(first, config.first_dom[node + 1] - first, dom, config.greedy_threshold)) {
		count(greedy_local);
		return true;
	}
	if (config.greedy_threshold_x_numa && steal_far(node, dom)) {
		count(greedy_xnuma);
		return true;
	}
	return false;
}

/* A domain is not served if it has queued tasks, but its CPUs have taken none for this long, or for
 * three slices if that is longer. */
#define UNSERVED_MAX_NS (50 * NSEC_PER_MSEC)

/* Interval at which a CPU looks for domains that are not served. */
#define RESCUE_INTERVAL_NS (10 * NSEC_PER_MSEC)

static bool unserved(u32 dom, u64 now)
{
	u64 wait_ns = time_max(UNSERVED_MAX_NS, 3 * tune.slice_ns);

	return scx_bpf_dsq_nr_queued(DOM_DSQ | dom) > 0 &&
	       time_after(now, dom_state(dom)->served_ns + wait_ns);
}

/*
 * Take a task of a domain that is not served, in preference to the tasks of the CPU's own domain.
 * While the last CPU of a domain goes offline, that CPU may stop taking tasks from the domain's
 * queue. The kernel then waits for an RCU grace period before it unloads the scheduler. If the RCU
 * kthread stayed in that queue, the grace period would never end.
 */
static bool rescue(s32 cpu, u32 own)
{
	u64 now, *look_at_ns = &rescue_at_ns[(u32)cpu % RUSTY_CPUS_MAX];
	u32 i, dom;

	if (config.nr_doms < 2)
		return false;
	now = scx_bpf_now();
	if (time_before(now, *look_at_ns))
		return false;
	*look_at_ns = now + RESCUE_INTERVAL_NS;
	bpf_for(i, 1, config.nr_doms) {
		dom = (own + i) % (config.nr_doms ?: 1);
		if (!unserved(dom, now) || !scx_dispatch_from(DOM_DSQ | dom))
			continue;
		if (node_of_dom(dom) == node_of_dom(own))
			count(greedy_local);
		else
			count(greedy_xnuma);
		return true;
	}
	return false;
}

static void dispatch(s32 cpu, struct task_struct *prev)
{
	bool has_prev = prev && prev->scx.flags & SCX_TASK_QUEUED;
	u32 dom = dom_of_cpu(cpu);
	struct rusty_task *t = has_prev ? task_state(prev) : NULL;
	u64 slice;

	if (dom >= config.nr_doms)
		return;
	if (t)
		account_prev(prev, t);
	if (rescue(cpu, dom))
		return;
	if (t && prev_is_first(cpu, dom, prev, t)) {
		note_served(dom);
		scx_bpf_task_set_slice(prev, slice_ns(dom, t));
		return;
	}
	if (has_prev && !config.fifo_sched)
		advance_to_first(dom, cpu);
	if (scx_dispatch_first(cpu, DOM_DSQ | dom)) {
		count(dsq_dispatch);
		note_served(dom);
		return;
	}
	/* @prev continues, and the CPU does not steal. But if @prev has a pending migration, it
	 * gets no new slice. Then the kernel enqueues it (SCX_OPS_ENQ_LAST), and rusty_enqueue()
	 * migrates it. */
	if (has_prev) {
		if (t && t->target_dom != t->dom)
			return;
		slice = t ? slice_ns(dom, t) : tune.slice_ns;
		if (t)
			note_alone(dom, prev, t, slice);
		scx_bpf_task_set_slice(prev, slice);
		return;
	}
	steal_any(dom);
}

#endif /* __RUSTY_DISPATCH_BPF_H */
