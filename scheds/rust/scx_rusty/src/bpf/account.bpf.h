/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPU time, wakeups and sleeps of tasks.
 *
 * The callbacks ops.runnable(), ops.running() and, without --cgroups, ops.stopping() are not used
 * for this, because their calls would be a large part of the cost of a context switch. Instead, a
 * task is charged for its last run when it wakes up, when it is enqueued again, or when
 * ops.dispatch() may let it continue. Wakeups are noted by ops.select_cpu() or ops.enqueue().
 */
#ifndef __RUSTY_ACCOUNT_BPF_H
#define __RUSTY_ACCOUNT_BPF_H

/* Advance the virtual time of the domain to the virtual time of a task that runs, has run or is
 * next (advance_to_first()), if it waited in a queue. A task that did not wait may be far ahead of
 * the queued tasks, so it does not advance the virtual time. The update need not be atomic: the
 * next one makes up for a lost one. */
static void advance_dom(struct rusty_task *t)
{
	struct rusty_dom *dom = dom_state(t->dom);

	if (t->has_waited)
		dom->vtime_now = time_max(dom->vtime_now, t->vtime);
	t->has_waited = false;
}

/* Charge the CPU time that a task has used since the last call. A task that has run is still on the
 * CPU on which it ran. */
static void charge(const struct task_struct *p, struct rusty_task *t)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->sum_exec_ns;

	if (!ran_ns)
		return;
	t->our_cpu = scx_bpf_task_cpu(p);
	advance_dom(t);
	t->sum_exec_ns += ran_ns;
	t->runtime_ns += ran_ns;
	t->vtime += cost(p, t, ran_ns);
}

/* Account the last run of a task, which does not run or is prev in ops.dispatch(): charge it, and
 * update the average. */
static void account_run(const struct task_struct *p, struct rusty_task *t)
{
	charge(p, t);
	if (t->runtime_ns)
		t->avg_runtime_ns = scx_average(t->avg_runtime_ns, t->runtime_ns);
}

/* Note that the current task wakes up a task. For wakeups by interrupts, the current task is not
 * the waker, but such wakeups are the minority. */
static void note_waker(u64 now)
{
	struct rusty_task *waker =
		bpf_task_storage_get(&rusty_tasks, bpf_get_current_task_btf(), NULL, 0);

	if (!waker)
		return;
	waker->waker_freq = rusty_freq(waker->waker_freq, time_delta(now, waker->woke_at_ns));
	waker->woke_at_ns = now;
}

/* Note that a task has become runnable. The threads of the scheduler's own process do not count in
 * the demand of the domain: see intf.h. */
static void become_runnable(struct task_struct *p, struct rusty_task *t, bool is_wakeup)
{
	u64 now = scx_bpf_now();

	account_run(p, t);
	t->is_runnable = true;
	t->runtime_ns = 0;
	rusty_duty_set(&t->duty, true, now, config.half_life_ns);
	if (config.cgroups)
		scx_cgroup_task_runnable(p, &t->cgroup);
	refresh_weight(p, t);
	if (!scx_task_is_own(p))
		note_weight(t, weight_of(p, t));
	if (is_wakeup)
		note_waker(now);
}

/*
 * In ops.enqueue(): account the last run of the task and, unless ops.select_cpu() did it, note that
 * the task is runnable. If the task has become runnable without a wakeup, the kernel may have moved
 * it to another CPU: forget our_cpu, so that follow_kernel() uses the domain of the new CPU. A new
 * task has not been moved: ops.select_cpu() chose its CPU, possibly in another domain than its own.
 */
static void account_enqueue(struct task_struct *p, struct rusty_task *t, u64 enq_flags)
{
	bool is_wakeup = enq_flags & SCX_ENQ_WAKEUP;

	if (t->is_runnable) {
		account_run(p, t);
		return;
	}
	become_runnable(p, t, is_wakeup);
	if (!is_wakeup && p->se.sum_exec_runtime)
		t->our_cpu = -1;
}

/* In ops.dispatch(): charge prev. If the nice value or the affinity of a running task changes, the
 * kernel calls ops.quiescent(), but not ops.enqueue(). So note that prev is runnable. */
static void account_prev(struct task_struct *prev, struct rusty_task *t)
{
	if (t->is_runnable)
		charge(prev, t);
	else
		become_runnable(prev, t, false);
}

/* Note that a task sleeps, if @sleeps, or is dequeued for another reason. */
static void account_dequeue(struct rusty_task *t, bool sleeps)
{
	u64 now = scx_bpf_now();

	if (t->is_runnable)
		rusty_duty_set(&t->duty, false, now, config.half_life_ns);
	t->is_runnable = false;
	forget_weight(t);
	if (config.cgroups)
		scx_cgroup_task_quiescent(&t->cgroup);
	if (!sleeps)
		return;
	t->blocked_freq = rusty_freq(t->blocked_freq, time_delta(now, t->blocked_at_ns));
	t->blocked_at_ns = now;
}

#endif /* __RUSTY_ACCOUNT_BPF_H */
