/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is next on a CPU that looks for work: of the decided, of those whom nobody decides about, or
 * whoever ran there just now. */
#ifndef __RL_DISPATCH_BPF_H
#define __RL_DISPATCH_BPF_H

/* Whether the first of CPU @cpu's own queue goes before the first of the queue of all. */
static bool own_is_first(s32 cpu)
{
	struct task_struct *own, *any;
	bool is_first = true;

	bpf_rcu_read_lock();
	own = scx_bpf_dsq_peek(cpu);
	any = scx_bpf_dsq_peek(SHARED_DSQ);
	if (own && any)
		is_first = time_before_eq(own->scx.dsq_vtime, any->scx.dsq_vtime);
	bpf_rcu_read_unlock();
	return is_first;
}

/* A function of its own, so that a test can look at the order of its accesses. */
static __noinline bool take_shared(void)
{
	if (!scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
		return false;
	note_spare();
	if (shared.nr_spare)
		return true;
	/* So that the next CPU that looks for work need not wait. The policy's thread writes
	 * nr_waiting and then looks at nr_spare. */
	scx_full_barrier();
	if (*(volatile u64 *)&shared.nr_waiting)
		nudge();
	return true;
}

/* The next of the decided tasks. */
static bool take_decided(s32 cpu, bool *is_shared)
{
	s32 nr_own = scx_bpf_dsq_nr_queued(cpu), nr_shared = scx_bpf_dsq_nr_queued(SHARED_DSQ);

	*is_shared = true;
	if (nr_shared > 0 && (nr_own <= 0 || !own_is_first(cpu)) && take_shared())
		return true;
	*is_shared = false;
	if (nr_own > 0 && scx_bpf_dsq_move_to_local(cpu, 0)) {
		note_service(cpu);
		return true;
	}
	*is_shared = true;
	return nr_shared > 0 && take_shared();
}

/*
 * The next of those whom nobody decides about, or whom nobody was asked about. While user space
 * does not answer, HELD gets no more: who is there came before those who are not asked about.
 */
static bool take_unasked(void)
{
	if (is_stalled() && scx_bpf_dsq_move_to_local(HELD_DSQ, 0))
		return true;
	return scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0 &&
	       scx_bpf_dsq_move_to_local(FALLBACK_DSQ, 0);
}

/* So many of those who wait are looked at in take_back(). */
#define TAKE_BACK_MAX 16

/*
 * A task whose slice was over lost CPU @cpu to somebody who needed it for a moment only. If the
 * policy has not even been told of it, it just goes on, so that the CPU is not idle meanwhile.
 */
__noinline int take_back(s32 cpu)
{
	u64 seen = *(volatile u64 *)&shared.seen, generation;
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;
	struct rl_task *t;

	if (!state)
		return false;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, HELD_DSQ, 0) {
		if (state->nr_looked_at++ >= TAKE_BACK_MAX)
			break;
		if (scx_bpf_task_cpu(p) != cpu || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
		generation = t ? *(volatile u64 *)&t->generation : 0;
		if (!t || !t->has_run_out || generation <= seen || !claim(t, generation))
			continue;
		count(nr_cancelled);
		count(nr_kept);
		begin_slice(p, t);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, t->slice_ns ?: config.slice_ns);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/* Gives CPU @cpu something to do. The two kinds of tasks take turns, so that none starves. */
__noinline int take(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	bool left_one = drain(cpu), is_shared = false;
	bool is_unasked_first = state && state->turn++ % 2, done;

	done = is_unasked_first && take_unasked();
	if (!done)
		done = take_decided(cpu, &is_shared);
	if (!done)
		done = !is_unasked_first && take_unasked();
	if (left_one && !is_shared)
		kick_any_idle();
	return done;
}

/* How long a task goes on while the policy decides who is next. */
#define MOMENT_NS (1 * NSEC_PER_MSEC)

/* Whether somebody may be decided to run instead of a task that goes on. */
static bool anybody_waits(void)
{
	return *(volatile u64 *)&shared.nr_waiting || scx_bpf_dsq_nr_queued(HELD_DSQ) > 0 ||
	       is_undrained();
}

/*
 * Lets the task that has used up its slice go on, since nobody else was decided to run here: for
 * another slice, or, if the policy is about to decide, for a moment. The CPU is not idle meanwhile.
 */
static bool goes_on(struct task_struct *prev)
{
	struct rl_task *t;
	u64 slice = config.slice_ns;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (t && t->slice_ns)
		slice = t->slice_ns;
	if (anybody_waits() && slice > MOMENT_NS)
		slice = MOMENT_NS;
	scx_bpf_task_set_slice(prev, slice);
	if (t)
		begin_slice(prev, t);
	count(nr_kept);
	return true;
}

/* So long a task goes on at a stretch because it is still before the others, divided by their
 * number: a twentieth of what makes the kernel end the scheduler. */
#define STILL_FIRST_MAX_NS (TIMEOUT_MS * NSEC_PER_MSEC / 20)

/* Later than any. */
#define NO_VTIME (~0ULL)

/* The vtime of the first of a queue: of one who goes on with a slice, what was decided. Within an
 * RCU section. */
static u64 first_vtime(u64 dsq_id)
{
	struct task_struct *first = scx_bpf_dsq_peek(dsq_id);
	struct rl_task *t;
	u64 vtime;

	if (!first)
		return NO_VTIME;
	vtime = first->scx.dsq_vtime;
	if (vtime == VTIME_PREEMPTING || vtime > VTIME_RESUMED_LAST)
		return vtime;
	t = bpf_task_storage_get(&rl_tasks, first, NULL, 0);
	return t ? advanced_vtime(first, t) + VTIME_FIRST : vtime;
}

/* Whether a task with this vtime is before all who were decided to run on CPU @cpu; not if there
 * are none. */
static bool is_before_decided(s32 cpu, u64 vtime)
{
	u64 of_own, of_any;

	bpf_rcu_read_lock();
	of_own = first_vtime(cpu);
	of_any = first_vtime(SHARED_DSQ);
	bpf_rcu_read_unlock();
	return vtime < of_own && vtime < of_any && (of_own & of_any) != NO_VTIME;
}

/* Whether somebody came straight to CPU @cpu, who may not wait: while decisions are taken in, the
 * lock of its run queue is not held. */
static bool has_local(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

/*
 * Whether the task whose slice is over is still before all others, by a policy that says how its
 * vtime advances. Else two tasks of one CPU would take turns, whatever they weigh.
 */
static bool is_still_first(s32 cpu, struct task_struct *prev)
{
	u64 max_ns = STILL_FIRST_MAX_NS;
	struct rl_task *t;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED) || is_stalled() ||
	    scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0)
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (!t || !t->weight)
		return false;
	if (drain(cpu))
		kick_any_idle();
	if (has_local(cpu))
		return false;
	max_ns /= 1 + scx_bpf_dsq_nr_queued(cpu);
	if (scx_monotonic_now() - t->start_ns > max_ns)
		return false;
	if (!is_before_decided(cpu, advanced_vtime(prev, t) + VTIME_FIRST))
		return false;
	begin_slice(prev, t);
	note_running_vtime(cpu, t->vtime);
	scx_bpf_task_set_slice(prev, t->slice_ns ?: config.slice_ns);
	count(nr_kept);
	return true;
}

/* Reminds the policy of the tasks that it holds. Those that are decided, if there are any, are not
 * for the CPU that has looked. */
static void remind(void)
{
	if (*(volatile u64 *)&shared.nr_waiting) {
		shared.nr_spare = 0;
		nudge();
	}
}

#endif /* __RL_DISPATCH_BPF_H */
