/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking decisions in, and putting each task into the queue that was decided. */
#ifndef __RL_DECIDE_BPF_H
#define __RL_DECIDE_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 1 << 20);
} rl_decisions SEC(".maps");

_Static_assert(RL_IN_FLIGHT_MAX * (sizeof(struct rl_decision) + 8) <= 1 << 20, "room");

/* So many decisions are taken in at a time: interrupts are off meanwhile. */
#define DRAIN_MAX 256

/* So that user space sees when the CPUs are about to run dry. */
static void note_spare(void)
{
	shared.nr_spare = scx_bpf_dsq_nr_queued(SHARED_DSQ);
}

/* Where a decision sends a task, all things considered. */
struct target {
	u64 dsq_id;
	s32 cpu; /* RL_CPU_ANY: no certain one */
	bool is_bounced;
};

static bool may_run_on(const struct task_struct *p, s32 cpu)
{
	return cpu >= 0 && cpu < nr_cpu_ids && test_cpu(shared.online, cpu) &&
	       bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* A task that may run on one CPU only waits in its queue, where no other has to pass it by. */
static void target_of(struct target *to, const struct task_struct *p, const struct rl_decision *d)
{
	to->is_bounced = false;
	to->cpu = d->cpu;
	to->dsq_id = d->cpu;
	if (p->nr_cpus_allowed == 1) {
		to->cpu = bpf_cpumask_first(p->cpus_ptr);
		to->is_bounced = d->cpu != RL_CPU_ANY && d->cpu != to->cpu;
		to->dsq_id = to->cpu;
		if (!test_cpu(shared.online, to->cpu)) {
			/* On its way out: the kernel takes it from there. */
			to->dsq_id = SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(p);
			to->is_bounced = true;
		}
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

/* One try of move_held(), which see. */
__noinline int try_move_held(struct task_struct *p __arg_trusted, struct rl_task *t __arg_nonnull,
			     u64 dsq_id, u64 slice, u64 vtime)
{
	struct bpf_iter_scx_dsq it;
	bool moved = false;

	/* The iterator goes no further than to tasks that are there now, so a task that is enqueued
	 * anew after the look at its generation is not moved by this decision. */
	if (!bpf_iter_scx_dsq_new(&it, HELD_DSQ, 0) && !*(volatile u64 *)&t->generation) {
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
 * Moves a task whose generation the caller has claimed. The decision may be quicker than
 * ops.enqueue() that has asked for it: the task is inserted when that callback is over. Moving
 * takes the lock that is held until then, so the second try finds the task. The third is for one
 * that was moved to another CPU's run queue meanwhile.
 */
static bool move_held(struct task_struct *p, struct rl_task *t, u64 dsq_id, u64 slice, u64 vtime)
{
	return try_move_held(p, t, dsq_id, slice, vtime) ||
	       try_move_held(p, t, dsq_id, slice, vtime) ||
	       try_move_held(p, t, dsq_id, slice, vtime);
}

/* Has CPU @cpu look for work before what it runs has used up its slice; that goes on later. */
static void preempt(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);
	struct rl_cpu *state = cpu_state(cpu);

	/* When our thread is done, the CPU looks anyway. */
	if (curr && scx_task_is_own(curr))
		return;
	if (state)
		state->gives_way = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Wakes the CPU that is to run a task which was just moved. */
static void kick_for(struct task_struct *p, const struct target *to, s32 this_cpu, u32 flags)
{
	struct rl_cpu *state = cpu_state(this_cpu);

	if (to->cpu == RL_CPU_ANY) {
		if (state && !state->left_one && bpf_cpumask_test_cpu(this_cpu, p->cpus_ptr))
			state->left_one = true;
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

/* Does as the decision says, if the task still waits for it. In ops.dispatch() of @this_cpu. */
__noinline int apply(struct task_struct *p __arg_trusted, const struct rl_decision *d __arg_nonnull,
		     s32 this_cpu)
{
	u64 slice = d->slice_ns ?: config.slice_ns, vtime = d->vtime ?: shared.nr_drained;
	struct rl_task *t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
	struct target to;
	bool preempts;

	if (!t || !d->generation || !claim(t, d->generation)) {
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
	__builtin_memcpy(t->words, d->words, sizeof(t->words));
	t->granted_at_ns = p->se.sum_exec_runtime;
	if (!move_held(p, t, to.dsq_id, slice, vtime)) {
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

static long take_in(struct bpf_dynptr *record, void *ctx)
{
	s32 this_cpu = *(s32 *)ctx;
	struct rl_cpu *state = cpu_state(this_cpu);
	struct rl_decision d;
	struct task_struct *p;

	/* Else it is not one of ours: its writer has counted it as sent. */
	if (!bpf_dynptr_read(&d, sizeof(d), record, 0, 0)) {
		p = bpf_task_from_pid(d.pid);
		if (p) {
			apply(p, &d, this_cpu);
			bpf_task_release(p);
		} else {
			count(nr_late);
		}
	}
	/* One CPU at a time is here: the ring sees to it. */
	shared.nr_drained++;
	return !state || ++state->nr_taken_in >= DRAIN_MAX;
}

/*
 * Takes in what was decided, for CPU @cpu, which looks for work. If another CPU is at it, that one
 * looks again when it is done; so whoever sends a decision, and whoever looks for one, can rely on
 * its being seen. True if a task is in the queue of all CPUs that no CPU was woken for.
 */
__noinline int drain(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	int i;

	if (!state || !is_undrained())
		return false;
	state->nr_taken_in = state->left_one = 0;
	bpf_for(i, 0, 4) {
		if (bpf_user_ringbuf_drain(&rl_decisions, take_in, &cpu, BPF_RB_NO_WAKEUP) < 0 ||
		    !is_undrained())
			break;
		if (state->nr_taken_in >= DRAIN_MAX) {
			/* Others shall go on with the rest. */
			kick_any_idle();
			break;
		}
	}
	note_spare();
	return state->left_one;
}

#endif /* __RL_DECIDE_BPF_H */
