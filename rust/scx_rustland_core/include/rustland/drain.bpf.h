/* SPDX-License-Identifier: GPL-2.0-only */
/* Drains the ring of decisions, and moves each task that is still pending to the queue that the
 * policy chose, or to another one: see target_of(). */
#ifndef __RL_DRAIN_BPF_H
#define __RL_DRAIN_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 1 << 20);
} rl_decisions SEC(".maps");

_Static_assert(RL_IN_FLIGHT_MAX * (sizeof(struct rl_decision) + 8) <= 1 << 20,
	       "RL_IN_FLIGHT_MAX records fit into the ring");

/* Maximum number of decisions that one call of drain() drains. It is limited because interrupts are
 * disabled during the call. */
#define DRAIN_MAX 256

/* Publish the number of tasks decided for any CPU, so that user space sees when none is left. */
static void note_spare(void)
{
	shared.nr_spare = scx_bpf_dsq_nr_queued(SHARED_DSQ);
}

/* Where a decided task goes, which may differ from what the policy decided. */
struct target {
	u64 dsq_id;
	s32 cpu; /* or RL_CPU_ANY */
	bool is_bounced; /* see rl_counters.nr_bounced */
};

static bool may_run_on(const struct task_struct *p, s32 cpu)
{
	return cpu >= 0 && cpu < nr_cpu_ids && test_cpu(shared.online, cpu) &&
	       bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Whether shared.online has none of the CPUs that @p may use. The last of these CPUs is then going
 * offline. If @p is in the local DSQ of that CPU, the kernel changes the affinity of @p. */
static bool is_stranded(const struct task_struct *p)
{
	s32 first = bpf_cpumask_first(p->cpus_ptr), cpu;

	bpf_for(cpu, first, nr_cpu_ids) {
		if (may_run_on(p, cpu))
			return false;
	}
	return true;
}

/* Determine the target of a decision. A pinned task goes to the queue of its CPU, so that no other
 * CPU has to skip it. */
static void target_of(struct target *to, const struct task_struct *p, const struct rl_decision *d)
{
	to->is_bounced = false;
	to->cpu = d->cpu;
	to->dsq_id = d->cpu;
	if (is_stranded(p)) {
		to->cpu = scx_bpf_task_cpu(p);
		to->dsq_id = SCX_DSQ_LOCAL_ON | to->cpu;
		to->is_bounced = true;
		return;
	}
	if (p->nr_cpus_allowed == 1) {
		to->cpu = bpf_cpumask_first(p->cpus_ptr);
		to->is_bounced = d->cpu != RL_CPU_ANY && d->cpu != to->cpu;
		to->dsq_id = to->cpu;
		return;
	}
	if (d->cpu != RL_CPU_ANY) {
		to->is_bounced = !may_run_on(p, d->cpu) || is_taken_by_higher_class(d->cpu);
		if (!to->is_bounced && (!(d->flags & RL_IF_IDLE) ||
					(test_cpu(shared.idle, d->cpu) && may_wake_idle_for(p))))
			return;
	}
	to->cpu = RL_CPU_ANY;
	to->dsq_id = SHARED_DSQ;
}

/* One attempt of move_pending(). Returns whether the task was moved. */
__noinline int try_move_pending(struct task_struct *p __arg_trusted,
				struct rl_task *t __arg_nonnull, u64 dsq_id, u64 slice, u64 vtime)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	/* The iterator covers only the tasks that are in the DSQ when it is created, so a task that
	 * is enqueued again after the check of its enq_seq is not moved by this decision. */
	if (!bpf_iter_scx_dsq_new(&it, PENDING_DSQ, 0) && !*(volatile u64 *)&t->enq_seq) {
		scx_bpf_dsq_move_set_slice(&it, slice);
		if ((dsq_id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON) {
			moved = scx_bpf_dsq_move(&it, p, dsq_id, 0);
		} else {
			scx_bpf_dsq_move_set_vtime(&it, vtime);
			moved = scx_bpf_dsq_move_vtime(&it, p, dsq_id, 0);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return moved;
}

/*
 * Move a task whose enqueue the caller has claimed. The kernel inserts the task into PENDING_DSQ
 * after ops.enqueue() has returned, and the decision may arrive before that. The first attempt then
 * fails, but it waits for the run queue lock, which is held until the insertion, so the second
 * attempt finds the task. The third attempt is for a task that migrated to another run queue
 * between the first two attempts.
 */
static bool move_pending(struct task_struct *p, struct rl_task *t, u64 dsq_id, u64 slice, u64 vtime)
{
	return try_move_pending(p, t, dsq_id, slice, vtime) ||
	       try_move_pending(p, t, dsq_id, slice, vtime) ||
	       try_move_pending(p, t, dsq_id, slice, vtime);
}

/* Preempt the current task of @cpu before its slice has expired. The preempted task resumes
 * later. */
static void preempt(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);
	struct rl_cpu *state = cpu_state(cpu);

	/* A thread of the scheduler's own process sleeps soon, and the CPU then dispatches the
	 * next task. */
	if (curr && scx_task_is_own(curr))
		return;
	if (state)
		state->is_preempted = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Kick a CPU for a task that was just moved, or leave the task to @this_cpu, which is looking for
 * work (kick_for_left()). */
static void kick_for(struct task_struct *p, const struct target *to, s32 this_cpu, u32 flags)
{
	struct rl_cpu *state = cpu_state(this_cpu);

	if (to->cpu == RL_CPU_ANY) {
		if (state && !state->left_pid && bpf_cpumask_test_cpu(this_cpu, p->cpus_ptr))
			state->left_pid = p->pid;
		else
			kick_idle_for(p);
	} else if (to->cpu != this_cpu) {
		if (claim_idle(to->cpu))
			kick_idle(to->cpu);
		else if (flags & RL_PREEMPT_CPU)
			preempt(to->cpu);
		else
			scx_bpf_kick_cpu(to->cpu, SCX_KICK_IDLE);
	}
}

/* Apply a decision, if the task is still pending. Called from ops.dispatch() of @this_cpu. */
__noinline int apply(struct task_struct *p __arg_trusted, const struct rl_decision *d __arg_nonnull,
		     s32 this_cpu)
{
	u64 slice = d->slice_ns ?: config.slice_ns, vtime = d->vtime ?: shared.nr_drained;
	struct rl_task *t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
	struct target to;
	bool preempts;

	if (!t || !d->enq_seq || !claim(t, d->enq_seq)) {
		count(nr_late);
		return 0;
	}
	target_of(&to, p, d);
	vtime += VTIME_FIRST;
	preempts = to.cpu != RL_CPU_ANY && d->flags & RL_PREEMPT_CPU;
	if (preempts)
		vtime = VTIME_PREEMPTING;
	t->slice_ns = slice;
	t->vtime = d->vtime;
	t->weight = d->vtime ? d->weight : 0;
	t->standing_until_ns = d->flags & RL_STANDING ? scx_bpf_now() + STANDING_NS : 0;
	__builtin_memcpy(t->ctx, d->ctx, sizeof(t->ctx));
	t->granted_at_ns = p->se.sum_exec_runtime;
	t->may_leave = d->cpu == RL_CPU_ANY || d->flags & (RL_IF_IDLE | RL_PREEMPT_CPU);
	if (!move_pending(p, t, to.dsq_id, slice, vtime)) {
		count(nr_cancelled);
		count(nr_late);
		return 0;
	}
	count(nr_dispatched);
	if (preempts)
		count(nr_preempting);
	if (to.is_bounced)
		count(nr_bounced);
	kick_for(p, &to, this_cpu, d->flags);
	return 0;
}

static long drain_one(struct bpf_dynptr *record, void *ctx)
{
	s32 this_cpu = *(s32 *)ctx;
	struct rl_cpu *state = cpu_state(this_cpu);
	struct rl_decision d;
	struct task_struct *p;

	/* Ignore a record that is too short. scx_rustland_core writes no such record. */
	if (!bpf_dynptr_read(&d, sizeof(d), record, 0, 0)) {
		p = bpf_task_from_pid(d.pid);
		if (p) {
			apply(p, &d, this_cpu);
			bpf_task_release(p);
		} else {
			count(nr_late);
		}
	}
	/* The increment need not be atomic, because only one CPU at a time drains the ring. */
	shared.nr_drained++;
	return !state || ++state->nr_drained >= DRAIN_MAX;
}

/*
 * Like is_undrained(), for a CPU that has just released the ring. Another CPU may have found the
 * ring busy, and left the newest decisions to this CPU. The barrier between the release and the
 * read of nr_sent ensures that this CPU sees these decisions. The function is not inlined, because
 * a test checks the order of its memory accesses.
 */
static __noinline bool is_undrained_after_release(void)
{
	scx_full_barrier();
	return is_undrained();
}

/*
 * Drain the decisions on @cpu, which looks for work. If another CPU is draining, that CPU checks
 * for new decisions when it is done, so no decision is missed. ops.dispatch() calls kick_for_left()
 * afterwards.
 */
__noinline int drain(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	bool is_rest = is_undrained();
	int i;

	if (!state || !is_rest)
		return 0;
	state->nr_drained = 0;
	bpf_for(i, 0, 4) {
		is_rest = false;
		if (bpf_user_ringbuf_drain(&rl_decisions, drain_one, &cpu, BPF_RB_NO_WAKEUP) < 0)
			break;
		is_rest = is_undrained_after_release();
		if (!is_rest || state->nr_drained >= DRAIN_MAX)
			break;
	}
	/* Let another CPU drain the rest. */
	if (is_rest)
		kick_any_idle();
	note_spare();
	return 0;
}

/* Kick an idle CPU for the task that kick_for() left to @cpu, if that task is still in
 * SHARED_DSQ. */
__noinline int kick_for_left(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;

	if (!state || !state->left_pid)
		return 0;
	p = scx_bpf_dsq_nr_queued(SHARED_DSQ) > 0 ? bpf_task_from_pid(state->left_pid) : NULL;
	state->left_pid = 0;
	if (!p)
		return 0;
	if (p->scx.dsq && p->scx.dsq->id == SHARED_DSQ)
		kick_idle_for(p);
	bpf_task_release(p);
	return 0;
}

#endif /* __RL_DRAIN_BPF_H */
