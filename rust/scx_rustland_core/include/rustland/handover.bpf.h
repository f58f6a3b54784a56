/* SPDX-License-Identifier: GPL-2.0-only */
/* Two tasks that wake each other by turns share one slice, without asking user space. */
#ifndef __RL_HANDOVER_BPF_H
#define __RL_HANDOVER_BPF_H

/* Less than this is not worth a switch. */
#define MIN_GIFT_NS (50 * 1000ULL)

/* So long the two may go on, however short his slice is: with many who wait for each other slices
 * are short, and who wakes twenty others would ask user space for most of them. */
#define GIFT_SPAN_NS (2 * NSEC_PER_MSEC)

/* So many may wait on a CPU for the rest of a slice: a message to each of a group. */
#define GIFTS_MAX 20

/*
 * In ops.select_cpu(), on the CPU of who wakes @p and says that he is about to sleep: @p gets what
 * is left of his slice, and runs as soon as he sleeps. For that time the two, and whomever they
 * wake in this way, cost user space nothing; and together they use no more than the policy has
 * granted him, or GIFT_SPAN_NS: the time at which that is over goes from one to the next. Only who
 * waits here when it is over, if he has not slept, gets MIN_GIFT_NS all the same.
 */
static bool hand_over(struct task_struct *p)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	s32 cpu = bpf_get_smp_processor_id(), nr_gifts;
	struct rl_task *t, *of_waker;
	u64 now, end_ns;

	if (!(waker->scx.flags & SCX_TASK_QUEUED) || waker->flags & PF_EXITING ||
	    is_urgent(waker) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return false;
	of_waker = bpf_task_storage_get(&rl_tasks, waker, NULL, 0);
	if (!of_waker)
		return false;
	/* The kernel brings the slice up to date at ticks only. */
	now = scx_monotonic_now();
	end_ns = of_waker->hands_over_until_ns;
	if (time_before(end_ns, now + MIN_GIFT_NS))
		return false;
	nr_gifts = scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu);
	t = task_state(p);
	if (nr_gifts < 0 || nr_gifts >= GIFTS_MAX || !t)
		return false;
	t->gift_end_ns = end_ns;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, end_ns - now, 0);
	count(nr_kernel);
	return true;
}

/* In ops.running(): until when the task may hand its slice over. Whoever handed his slice to it may
 * have gone on, and used it himself. */
static void begin_handover(struct task_struct *p, struct rl_task *t, u64 now)
{
	u64 rest_ns = MIN_GIFT_NS, slice_ns = p->scx.slice;

	if (!t->gift_end_ns) {
		t->hands_over_until_ns = now + (slice_ns > GIFT_SPAN_NS ? slice_ns : GIFT_SPAN_NS);
		if (slice_ns == SCX_SLICE_INF)
			t->hands_over_until_ns = 0;
		return;
	}
	if (time_after(t->gift_end_ns, now + MIN_GIFT_NS))
		rest_ns = t->gift_end_ns - now;
	if (rest_ns < slice_ns)
		scx_bpf_task_set_slice(p, rest_ns);
	t->hands_over_until_ns = t->gift_end_ns;
	t->gift_end_ns = 0;
}

#endif /* __RL_HANDOVER_BPF_H */
