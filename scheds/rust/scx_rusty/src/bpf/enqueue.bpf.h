/* SPDX-License-Identifier: GPL-2.0-only */
/* ops.enqueue(): queue a task for its domain or, if pinned, its CPU, or run it at once. */
#ifndef __RUSTY_ENQUEUE_BPF_H
#define __RUSTY_ENQUEUE_BPF_H

/* Return the lead in virtual time that makes a task of @dom wait for about MAX_WAIT_NS / 4, ns. */
static u64 quarter_ahead_ns(u32 dom)
{
	return scx_vtime_max_ahead(MAX_WAIT_NS / 4, runnable_weight(dom));
}

/* Return the distance from a task's virtual time to its deadline, ns: at most @max_ns, which is
 * quarter_ahead_ns(). */
static u64 bounded_request_ns(const struct task_struct *p, const struct rusty_task *t, u64 max_ns)
{
	u32 prio = rusty_prio(t->blocked_freq, t->waker_freq, t->avg_runtime_ns, weight_of(p, t));
	u64 request_ns = rusty_request_ns(t->avg_runtime_ns, prio, tune.slice_ns);

	return request_ns < max_ns ? request_ns : max_ns;
}

static u64 request_ns(const struct task_struct *p, const struct rusty_task *t)
{
	return bounded_request_ns(p, t, quarter_ahead_ns(t->dom));
}

/* Bound the lag and the debt of a task, so that no task waits too long. @quarter_ns is
 * quarter_ahead_ns(). The comment of MAX_WAIT_NS explains the shares of lag, debt and request. */
static void bound_vtime(const struct rusty_dom *dom, struct rusty_task *t, u64 lag_max_ns,
			u64 quarter_ns)
{
	t->vtime = scx_vtime_limit_credit(t->vtime, dom->vtime_now, lag_max_ns);
	t->vtime = scx_vtime_limit_debt(t->vtime, dom->vtime_now, 2 * quarter_ns);
}

/* Bound the lag and the debt of a task (bound_vtime()), and return its deadline. On a wakeup, the
 * lag is also bounded by config.credit_ns, because the task did not wait for a CPU while it slept.
 */
static u64 deadline(struct task_struct *p, struct rusty_task *t, u64 enq_flags)
{
	struct rusty_dom *dom = dom_state(t->dom);
	u64 quarter = quarter_ahead_ns(t->dom), lag_max = quarter;

	if (enq_flags & SCX_ENQ_WAKEUP && lag_max > config.credit_ns)
		lag_max = config.credit_ns;
	if (time_before(t->vtime, dom->vtime_now - lag_max))
		count(dl_clamp);
	else
		count(dl_preset);
	bound_vtime(dom, t, lag_max, quarter);
	return t->vtime + bounded_request_ns(p, t, quarter);
}

/* Insert the task into its queue, by its deadline @until or, with config.fifo_sched, by its time of
 * arrival. */
static void insert(struct task_struct *p, struct rusty_task *t, u64 until, u64 enq_flags)
{
	u64 dsq_id = DOM_DSQ | t->dom, slice = slice_ns(t->dom, t);

	if (config.fifo_sched) {
		/* A task that has already been dispatched keeps the rest of its slice. The kernel
		 * leaves the slice unchanged if 0 is passed. */
		if (enq_flags & SCX_ENQ_REENQ)
			slice = 0;
		until = p->scx.dsq_vtime;
	}
	if (p->nr_cpus_allowed == 1) {
		scx_pinned_insert(p, bpf_cpumask_first(p->cpus_ptr), slice, until, enq_flags);
		return;
	}
	if (config.nr_doms > 1 && !scx_bpf_dsq_nr_queued(dsq_id))
		note_served(t->dom);
	scx_bpf_dsq_insert_vtime(p, dsq_id, slice, until, enq_flags);
}

/* Return the CPU on which @p, which is being enqueued, may preempt the running task. This is @cpu,
 * the CPU of @p, or, if @p is not pinned and that CPU is not in its domain, any allowed CPU of the
 * domain. */
static s32 cpu_to_preempt(struct task_struct *p, struct rusty_task *t, s32 cpu)
{
	struct bpf_cpumask *cpus;

	if (p->nr_cpus_allowed == 1 || dom_of_cpu(cpu) == t->dom)
		return cpu;
	cpus = dom_cpus(t->dom);
	return cpus ? bpf_cpumask_any_and_distribute((const struct cpumask *)cpus, p->cpus_ptr) :
		      cpu;
}

/* Return the minimum stretch (scx/preempt.bpf.h) of a task that the wakee @p may preempt. The
 * kernel does not call ops.select_cpu() for pinned tasks, so their woken_sync is out of date. */
static u64 stretch_min_ns(const struct task_struct *p, const struct rusty_task *t)
{
	return t->woken_sync && p->nr_cpus_allowed > 1 ? SCX_SYNC_STRETCH_MIN_NS :
							 SCX_STRETCH_MIN_NS;
}

/*
 * Whether a wakee of the domain @dom, whose deadline is @until, should preempt @curr, the task that
 * runs on @cpu: if @curr has a later deadline, and its stretch (scx/preempt.bpf.h) is at least
 * @stretch_min_ns. A task of another domain is not preempted, because virtual times of different
 * domains cannot be compared.
 */
static bool precedes_running(struct task_struct *curr, s32 cpu, u32 dom, u64 until,
			     u64 stretch_min_ns)
{
	const struct rusty_task *running = bpf_task_storage_get(&rusty_tasks, curr, NULL, 0);
	u64 ran_ns;

	if (!running || running->dom != dom ||
	    scx_stretch_ns(running->avg_runtime_ns, running->runtime_ns) < stretch_min_ns)
		return false;
	ran_ns = scx_curr_exec_ns(cpu, curr) - running->sum_exec_ns;
	return time_before(until, running->vtime + request_ns(curr, running) +
					  scx_vtime_cost(ran_ns, weight_of(curr, running)));
}

/* Whether the wakee @p, whose deadline is @until, should preempt the task that runs on @cpu. */
static bool should_preempt(const struct task_struct *p, const struct rusty_task *t, s32 cpu,
			   u64 until)
{
	struct task_struct *curr = scx_get_curr(cpu);
	bool result;

	if (!curr)
		return false;
	result = precedes_running(curr, cpu, t->dom, until, stretch_min_ns(p, t));
	scx_put_curr(curr);
	return result;
}

/* Run the wakee @p, which should preempt the running task of its CPU, at once if its deadline is
 * earlier than those of all tasks queued for that CPU and its domain. But if CPUs of other domains
 * may be kicked (may_kick_beyond()), they are preferred. Returns whether @p runs. */
static bool run_at_once(struct task_struct *p, struct rusty_task *t, s32 cpu, u64 until,
			u64 enq_flags)
{
	if (dom_of_cpu(cpu) != t->dom || may_kick_beyond(t->dom) ||
	    !scx_may_run_at_once(p, until, cpu, DOM_DSQ | t->dom))
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(t->dom, t), enq_flags | SCX_ENQ_AT_ONCE);
	count(preempt);
	/* Count it as dispatched from a queue, as it would be after a kick. Otherwise it would be
	 * missing in ClusterStats::total. */
	count(dsq_dispatch);
	return true;
}

/*
 * Whether the task bypasses the queues and goes to the local DSQ of its CPU. Per-CPU kernel threads
 * do, because other tasks depend on them. Migration-disabled tasks do, because no other CPU can run
 * them. With config.kthreads_local, the other kernel threads do too, unless they are enqueued again
 * because the CPU is busy (SCX_ENQ_REENQ). In that case they are queued, so that another CPU can
 * run them.
 */
static bool bypasses_queue(const struct task_struct *p, u64 enq_flags)
{
	return scx_task_is_percpu_kthread(p) ||
	       (config.kthreads_local && p->flags & PF_KTHREAD && !(enq_flags & SCX_ENQ_REENQ)) ||
	       scx_task_is_migration_disabled(p, enq_flags);
}

/* If @cpu, the CPU of a pinned task, is idle, insert the task into the local DSQ of that CPU.
 * Returns whether it was inserted. The kernel does not call ops.select_cpu() for pinned tasks. */
static bool run_pinned(struct task_struct *p, struct rusty_task *t, s32 cpu, u64 enq_flags)
{
	/* While its affinity is changed, the task may still be on a CPU that is not allowed any
	 * more. */
	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || !scx_bpf_test_and_clear_cpu_idle(cpu))
		return false;
	t->has_waited = false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(t->dom, t), enq_flags | SCX_ENQ_IMMED);
	count(pinned);
	return true;
}

static void enqueue(struct task_struct *p, struct rusty_task *t, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p), victim_cpu;
	bool preempts = false;
	u64 until;

	follow_kernel(t, cpu);
	apply_migration(t);
	place_young(p, t);
	if (!is_allowed(t, t->dom)) {
		set_dom(t, first_allowed(t, t->dom));
		t->target_dom = t->dom;
	}
	/* SCX_ENQ_LAST: ops.dispatch() has found no other task for the CPU. */
	if (enq_flags & SCX_ENQ_LAST && dom_of_cpu(cpu) == t->dom) {
		t->has_waited = false;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(t->dom, t), enq_flags);
		return;
	}
	if (p->nr_cpus_allowed == 1 && run_pinned(p, t, cpu, enq_flags))
		return;
	t->has_waited = true;
	until = config.fifo_sched ? NO_DEADLINE : deadline(p, t, enq_flags);
	if (enq_flags & SCX_ENQ_WAKEUP && !config.fifo_sched) {
		victim_cpu = cpu_to_preempt(p, t, cpu);
		preempts = should_preempt(p, t, victim_cpu, until);
		if (preempts && run_at_once(p, t, cpu, until, enq_flags))
			return;
	}
	insert(p, t, until, enq_flags);
	if (p->nr_cpus_allowed == 1)
		scx_kick_idle_cpu(bpf_cpumask_first(p->cpus_ptr), enq_flags);
	else if (kick_for(p, t, cpu))
		return;
	if (preempts) {
		scx_bpf_kick_cpu(victim_cpu, SCX_KICK_PREEMPT);
		count(preempt);
	}
}

#endif /* __RUSTY_ENQUEUE_BPF_H */
