/* SPDX-License-Identifier: GPL-2.0-only */
/* On a sync wakeup the wakee may inherit the waker's remaining slice, without a decision. */
#ifndef __RL_INHERIT_BPF_H
#define __RL_INHERIT_BPF_H

/* Minimum slice that is worth a context switch. */
#define INHERIT_MIN_NS (50 * 1000ULL)

/* If the slice of the waker is shorter than this, its wakees inherit a slice of this length
 * instead. Slices are short while many tasks wait, and a task that wakes up many tasks at once
 * could then pass on its slice to only a few of them. */
#define INHERIT_SPAN_NS (2 * NSEC_PER_MSEC)

/* Maximum length of the local DSQ: if it is reached, wakees inherit no slice. */
#define INHERIT_QUEUE_MAX 20

/*
 * Let @p inherit the waker's remaining slice, and run as soon as the waker sleeps. Called from
 * ops.select_cpu() on the waker's CPU for a sync wakeup. Returns whether @p inherits. If so, @p
 * needs no decision, and on sync wakeups by @p the wakees may inherit in turn. All these wakees
 * inherit the same end of the slice. So together they run no longer than the waker's slice, or
 * INHERIT_SPAN_NS if that is longer. But a wakee that is still queued at the end, for example
 * because the waker did not sleep, gets a slice of INHERIT_MIN_NS.
 */
static bool inherit_slice(struct task_struct *p)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	s32 cpu = bpf_get_smp_processor_id(), nr_inheriting;
	struct rl_task *t, *of_waker;
	u64 now, end_ns;

	if (!(waker->scx.flags & SCX_TASK_QUEUED) || waker->flags & PF_EXITING ||
	    is_urgent(waker) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return false;
	of_waker = bpf_task_storage_get(&rl_tasks, waker, NULL, 0);
	if (!of_waker)
		return false;
	/* waker->scx.slice would be inaccurate, because the kernel updates it mainly at ticks. */
	now = scx_monotonic_now();
	end_ns = of_waker->inheritable_until_ns;
	if (time_before(end_ns, now + INHERIT_MIN_NS))
		return false;
	nr_inheriting = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu);
	t = task_state(p);
	if (nr_inheriting < 0 || nr_inheriting >= INHERIT_QUEUE_MAX || !t)
		return false;
	t->inherited_end_ns = end_ns;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, end_ns - now, 0);
	count(nr_kernel);
	return true;
}

/* In ops.running(): set the time until which wakees of @p may inherit its slice. If @p itself
 * inherited its slice, shorten the slice by what other tasks have used of it meanwhile. */
static void begin_inheritance(struct task_struct *p, struct rl_task *t, u64 now)
{
	u64 rest_ns = INHERIT_MIN_NS, slice_ns = p->scx.slice;

	if (!t->inherited_end_ns) {
		t->inheritable_until_ns =
			now + (slice_ns > INHERIT_SPAN_NS ? slice_ns : INHERIT_SPAN_NS);
		/* An infinite slice has no end that wakees could inherit. */
		if (slice_ns == SCX_SLICE_INF)
			t->inheritable_until_ns = 0;
		return;
	}
	if (time_after(t->inherited_end_ns, now + INHERIT_MIN_NS))
		rest_ns = t->inherited_end_ns - now;
	if (rest_ns < slice_ns)
		scx_bpf_task_set_slice(p, rest_ns);
	t->inheritable_until_ns = t->inherited_end_ns;
	t->inherited_end_ns = 0;
}

#endif /* __RL_INHERIT_BPF_H */
