/* SPDX-License-Identifier: GPL-2.0-only */
/* Preemption on wakeup. */
#ifndef __LAVD_PREEMPT_BPF_H
#define __LAVD_PREEMPT_BPF_H

/* Maximum number of CPUs that are examined to find two that may be preempted. */
#define NR_CANDIDATES 8

/* Whether a task that is being enqueued may preempt other tasks: it is new or has woken up, is
 * among the most critical tasks, and has not used more than its share. */
static bool may_preempt(const struct scx_dl_task *t, u64 enq_flags)
{
	if (config.no_preemption || (t->has_begun && !(enq_flags & SCX_ENQ_WAKEUP)))
		return false;
	return t->lat_cri >= lavd_preempt_threshold(lavd_system.max_lat_cri,
						    lavd_system.avg_lat_cri,
						    config.preempt_shift) &&
	       !is_greedy(t);
}

/* Return a pseudo-random number from the time @now. It is hashed with 2^64 divided by the golden
 * ratio, because the clocks of some machines advance by tens of ns at a time. */
static u32 pseudo_random(u64 now)
{
	return now * 0x9e3779b97f4a7c15ULL >> 32;
}

/* Return the online CPU of rank @first + @index by capacity, modulo scx_cpus.nr_online. */
static s32 candidate(u32 first, u32 index)
{
	u32 at = first + index, nr = scx_cpus.nr_online;

	return scx_cpu_info(at < nr ? at : at - nr)->by_capacity;
}

/* Whether a candidate runs a task that may be preempted at all. Usually none does, and this plain
 * loop costs less than the loop in find_victim(). This is a global function, so that the verifier
 * does not follow each end of the loop into the code after the call. */
__noinline int any_victim(u32 first)
{
	u32 i;

	for (i = 0; i < NR_CANDIDATES && i < scx_cpus.nr_online; i++)
		if (scx_running_on(candidate(first, i))->deadline)
			return true;
	return false;
}

/* Examine up to NR_CANDIDATES online CPUs, starting at a pseudo-random CPU, to find two CPUs of the
 * task's domain that may be preempted. Return the CPU whose task has the later deadline, or a
 * negative number if no such CPU was found. */
static s32 find_victim(struct task_struct *p, const struct scx_dl_task *t, u64 until)
{
	u32 i, nr = scx_cpus.nr_online ?: 1, first = pseudo_random(t->queued_at_ns) % nr;
	s32 cpu, victim = -1, nr_found = 0;

	if (!any_victim(first))
		return -1;
	bpf_for(i, 0, lavd_min(nr, NR_CANDIDATES)) {
		cpu = candidate(first, i);
		if (scx_node_of(cpu) != t->node || !scx_dl_should_preempt(t, cpu, until) ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (victim < 0 ||
		    time_after(scx_running_on(cpu)->deadline, scx_running_on(victim)->deadline))
			victim = cpu;
		if (++nr_found == 2)
			break;
	}
	return victim;
}

/* Preempt a task if scx_dl_should_preempt() is true for it and for @until, the deadline of @p: the
 * task that runs on @cpu, the CPU of @p, or else, unless @p is pinned, a task on another CPU of the
 * domain (find_victim()). */
static void preempt(struct task_struct *p, const struct scx_dl_task *t, s32 cpu, u64 until)
{
	if (!scx_dl_should_preempt(t, cpu, until))
		cpu = t->pinned_to ? -1 : find_victim(p, t, until);
	if (cpu < 0)
		return;
	/* Until the kick takes effect, no other task should preempt the same CPU. */
	scx_running_clear(cpu);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	count(nr_preempt);
}

#endif /* __LAVD_PREEMPT_BPF_H */
