/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Standing decisions: a decision with RL_STANDING holds for later wakeups of the task, so that a
 * task that sleeps often does not cost a round trip to user space on each wakeup. Standing
 * decisions are used only while the policy has nothing to decide: no task waits for a decision, and
 * no CPU runs a task that the policy might preempt.
 */
#ifndef __RL_STANDING_BPF_H
#define __RL_STANDING_BPF_H

/* Time for which a decision stands. At the first wakeup after that, the policy sees the task and
 * can raise vtime_floor. Until then vtime_floor may stay the same, so the vtime of a task that
 * sleeps may fall behind the vtimes of running tasks of nice 0 by up to this time. */
#define STANDING_NS (100 * NSEC_PER_MSEC)

/* A bit for each CPU: whether it runs a task without a standing decision. The policy might preempt
 * such a task. While the CPU runs an urgent task, the bit is still that of the previous task. */
static u64 preemptible[RL_CPU_WORDS];

static bool has_standing(const struct rl_task *t)
{
	return t->standing_until_ns && t->weight;
}

static void note_preemptible(s32 cpu, bool is_preemptible)
{
	if (test_cpu(preemptible, cpu) == is_preemptible)
		return;
	if (is_preemptible)
		set_cpu(preemptible, cpu);
	else
		clear_cpu(preemptible, cpu);
}

static bool any_preemptible(void)
{
	u32 word;

	bpf_for(word, 0, ((u32)nr_cpu_ids + 63) / 64) {
		if (*(volatile u64 *)word_of(preemptible, word * 64))
			return true;
	}
	return false;
}

/* Publish the vtime of the CPU's current task to the policy, and note whether the policy might
 * preempt the task. The policy should not preempt a task with a standing decision before its slice
 * expires: such a task probably sleeps soon, and may hold a lock that other tasks wait for. */
static void note_current(s32 cpu, const struct rl_task *t)
{
	bool stands = t && has_standing(t);

	note_running_vtime(cpu, t && !stands ? t->vtime : 0);
	note_preemptible(cpu, !stands);
}

/* End the standing decision of a task whose slice has expired. The task needs a new decision when
 * it is next enqueued. */
static void end_standing(struct rl_task *t)
{
	t->standing_until_ns = 0;
}

/* In ops.enqueue(): queue @p by its standing decision if it wakes up. Returns false if @p needs a
 * new decision. */
static bool enqueue_standing(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	u64 dsq_id = SHARED_DSQ, floor = *(volatile u64 *)&shared.vtime_floor;

	if (!(enq_flags & SCX_ENQ_WAKEUP) || !has_standing(t) ||
	    config.idle_selection == RL_IDLE_FULL_USER ||
	    time_after(scx_bpf_now(), t->standing_until_ns))
		return false;
	if (*(volatile u64 *)&shared.nr_waiting || scx_bpf_dsq_nr_queued(PENDING_DSQ) > 0 ||
	    any_preemptible())
		return false;
	begin_slice(p, t);
	if (t->vtime < floor)
		t->vtime = floor;
	if (p->nr_cpus_allowed == 1)
		dsq_id = scx_bpf_task_cpu(p);
	scx_bpf_dsq_insert_vtime(p, dsq_id, t->slice_ns ?: config.slice_ns, t->vtime + VTIME_FIRST,
				 enq_flags);
	if (dsq_id == SHARED_DSQ)
		kick_idle_for(p);
	else if (!is_dying_cpu())
		scx_kick_idle_cpu(dsq_id, enq_flags);
	count(nr_kernel);
	return true;
}

#endif /* __RL_STANDING_BPF_H */
