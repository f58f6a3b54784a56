/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of ops.dispatch(), which dispatches a decided task or a fallback task, lets prev
 * continue, or reclaims a pending task. */
#ifndef __RL_DISPATCH_BPF_H
#define __RL_DISPATCH_BPF_H

/* Whether the first task of @cpu's queue precedes the first task of SHARED_DSQ. */
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

/* Dispatch the next task of SHARED_DSQ. The function is not inlined, because a test checks the
 * order of its memory accesses. */
static __noinline bool dispatch_shared(void)
{
	if (!scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
		return false;
	note_spare();
	if (shared.nr_spare)
		return true;
	/* Let the policy decide on the next task now, so that no CPU waits for the decision. The
	 * barrier pairs with the barrier of the policy thread, which writes nr_waiting and then
	 * reads nr_spare. */
	scx_full_barrier();
	if (*(volatile u64 *)&shared.nr_waiting)
		wake_user();
	return true;
}

/* Maximum number of tasks that share_rest() looks at. */
#define SHARE_MAX 16

/* Whether a CPU that @p may use is idle. */
static bool any_idle_for(const struct task_struct *p)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = bpf_cpumask_intersects(idle, p->cpus_ptr);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* Move a task from the queue of a CPU to SHARED_DSQ, and kick an idle CPU for it. A preempted or
 * preempting task, whose dsq_vtime does not depend on its vtime, is queued by its vtime. */
static void share(struct bpf_iter_scx_dsq *it, struct task_struct *p, struct rl_task *t)
{
	if (p->scx.dsq_vtime <= VTIME_RESUMED_LAST)
		scx_bpf_dsq_move_set_vtime(it, advanced_vtime(p, t) + VTIME_FIRST);
	if (scx_bpf_dsq_move_vtime(it, p, SHARED_DSQ, 0))
		kick_idle_for(p);
}

/*
 * @cpu runs a task that precedes the tasks in its queue. If other CPUs are idle, let them run those
 * tasks in the queue that are not bound to @cpu: tasks decided for any CPU, which were preempted
 * here, and tasks that were sent to @cpu because it was idle, or to preempt its current task.
 */
__noinline int share_rest(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;
	struct rl_task *t;

	if (!state)
		return 0;
	state->nr_looked_at = 0;
	/* This CPU may still be marked as idle. */
	claim_idle(cpu);
	if (!scx_any_idle())
		return 0;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (state->nr_looked_at++ >= SHARE_MAX)
			break;
		if (p->nr_cpus_allowed == 1 || !any_idle_for(p))
			continue;
		t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
		if (t && t->may_leave)
			share(BPF_FOR_EACH_ITER, p, t);
	}
	note_spare();
	return 0;
}

/* Dispatch the next decided task. */
static bool dispatch_decided(s32 cpu)
{
	s32 nr_own = scx_bpf_dsq_nr_queued(cpu), nr_shared = scx_bpf_dsq_nr_queued(SHARED_DSQ);

	if (nr_shared > 0 && (nr_own <= 0 || !own_is_first(cpu)) && dispatch_shared())
		return true;
	if (nr_own > 0 && scx_bpf_dsq_move_to_local(cpu, 0)) {
		note_service(cpu);
		if (nr_own > 1)
			share_rest(cpu);
		return true;
	}
	return nr_shared > 0 && dispatch_shared();
}

/*
 * Dispatch the next task of FALLBACK_DSQ. While user space is stalled, pending tasks go first. They
 * have waited longer than most fallback tasks, because no task is added to PENDING_DSQ during a
 * stall.
 */
static bool dispatch_fallback(void)
{
	if (is_stalled() && scx_bpf_dsq_move_to_local(PENDING_DSQ, 0))
		return true;
	return scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0 &&
	       scx_bpf_dsq_move_to_local(FALLBACK_DSQ, 0);
}

/* Maximum number of pending tasks that reclaim() looks at. */
#define RECLAIM_MAX 16

/*
 * If @cpu would otherwise go idle, run a pending task of @cpu that was not enqueued by a wakeup.
 * Usually its slice had expired, and another task needed the CPU only briefly. A task whose record
 * the policy has already read is left to the policy.
 */
__noinline int reclaim(s32 cpu)
{
	u64 seen = *(volatile u64 *)&shared.seen, enq_seq;
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;
	struct rl_task *t;

	if (!state || !state->may_reclaim)
		return false;
	state->may_reclaim = 0;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, PENDING_DSQ, 0) {
		if (state->nr_looked_at++ >= RECLAIM_MAX) {
			state->may_reclaim = 1;
			break;
		}
		if (scx_bpf_task_cpu(p) != cpu || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
		enq_seq = t ? *(volatile u64 *)&t->enq_seq : 0;
		if (!t || !t->slice_expired || enq_seq <= seen || !claim(t, enq_seq))
			continue;
		count(nr_cancelled);
		count(nr_kept);
		begin_slice(p, t);
		state->may_reclaim = 1;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, t->slice_ns ?: config.slice_ns);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/* Dispatch a task on @cpu. Decided tasks and fallback tasks take turns, so that neither kind
 * starves. */
__noinline int dispatch_next(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	bool is_fallback_first = state && state->turn++ % 2;

	drain(cpu);
	return (is_fallback_first && dispatch_fallback()) || dispatch_decided(cpu) ||
	       (!is_fallback_first && dispatch_fallback());
}

/* Maximum slice with which prev continues while the policy may have another task to run. */
#define MOMENT_NS (1 * NSEC_PER_MSEC)

/* Whether the policy may have a task to run instead of prev. */
static bool any_task_waits(void)
{
	return *(volatile u64 *)&shared.nr_waiting || scx_bpf_dsq_nr_queued(PENDING_DSQ) > 0 ||
	       is_undrained();
}

/* Start another slice of prev, for which the kernel does not call ops.running(). If prev was being
 * preempted, the preempting task has left the CPU again. */
static void continue_prev(struct task_struct *prev, struct rl_task *t)
{
	struct rl_cpu *state = cpu_state(scx_bpf_task_cpu(prev));

	if (state)
		state->is_preempted = false;
	begin_slice(prev, t);
	end_standing(t);
	if (!is_urgent(prev))
		note_current(scx_bpf_task_cpu(prev), t);
}

/*
 * Let prev continue, because there is no other task that this CPU can run. prev gets a slice, but
 * at most MOMENT_NS if the policy may have another task to run. Returns false if there is no prev,
 * or if prev is not runnable.
 */
static bool extend_prev(struct task_struct *prev)
{
	struct rl_task *t;
	u64 slice = config.slice_ns;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (t && t->slice_ns)
		slice = t->slice_ns;
	if (any_task_waits() && slice > MOMENT_NS)
		slice = MOMENT_NS;
	scx_bpf_task_set_slice(prev, slice);
	if (t)
		continue_prev(prev, t);
	count(nr_kept);
	return true;
}

/* Maximum time for which prev keeps its CPU because it precedes all other tasks: 1/20 of
 * ops.timeout_ms. prev_is_first() divides it by one plus the number of tasks in the CPU's queue. */
#define PREV_FIRST_MAX_NS (TIMEOUT_MS * NSEC_PER_MSEC / 20)

/* Larger than any vtime. */
#define NO_VTIME (~0ULL)

/* Return the dsq_vtime of a queue's first task, NO_VTIME if the queue is empty. For a preempted
 * task, return the dsq_vtime that it would have if it were queued by its advanced vtime. Call it
 * under RCU. */
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

/* Whether @vtime precedes all tasks decided for @cpu or for any CPU; false if there are none. */
static bool is_before_decided(s32 cpu, u64 vtime)
{
	u64 of_own, of_any;

	bpf_rcu_read_lock();
	of_own = first_vtime(cpu);
	of_any = first_vtime(SHARED_DSQ);
	bpf_rcu_read_unlock();
	return vtime < of_own && vtime < of_any && (of_own & of_any) != NO_VTIME;
}

/* Whether a task is in the local DSQ of @cpu. Draining decisions releases the run queue lock, so
 * another CPU may have inserted a task meanwhile. */
static bool has_local(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

/*
 * Whether prev, whose slice has expired, precedes all tasks decided for this CPU or for any CPU. If
 * so, prev gets another slice: if two tasks on one CPU simply took turns, their weights would have
 * no effect. False if there are no such tasks (see extend_prev()). Also false if the decision on
 * prev has no weight (rl_decision.weight), because the vtime of prev then does not advance. Also
 * false during a stall, while a task is in FALLBACK_DSQ or in the local DSQ, and after
 * PREV_FIRST_MAX_NS.
 */
static bool prev_is_first(s32 cpu, struct task_struct *prev)
{
	u64 max_ns = PREV_FIRST_MAX_NS;
	struct rl_task *t;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED) || is_stalled() ||
	    scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0)
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (!t || !t->weight)
		return false;
	drain(cpu);
	if (has_local(cpu))
		return false;
	max_ns /= 1 + scx_bpf_dsq_nr_queued(cpu);
	if (scx_monotonic_now() - t->start_ns > max_ns)
		return false;
	if (!is_before_decided(cpu, advanced_vtime(prev, t) + VTIME_FIRST))
		return false;
	continue_prev(prev, t);
	scx_bpf_task_set_slice(prev, t->slice_ns ?: config.slice_ns);
	count(nr_kept);
	if (scx_bpf_dsq_nr_queued(cpu) > 0)
		share_rest(cpu);
	return true;
}

/* This CPU has found no decided task that may run on it. If the policy holds tasks, let the policy
 * decide on the next one. */
static void remind(void)
{
	if (*(volatile u64 *)&shared.nr_waiting) {
		shared.nr_spare = 0;
		wake_user();
	}
}

#endif /* __RL_DISPATCH_BPF_H */
