/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that bypass the policy, because the policy thread may depend on them: threads of the
 * scheduler's own process, and per-CPU kernel threads. If their CPU is busy on wakeup, they preempt
 * its current task, which usually resumes with the rest of its slice, but at least MIN_REST_NS.
 */
#ifndef __RL_BYPASS_BPF_H
#define __RL_BYPASS_BPF_H

static bool is_urgent(const struct task_struct *p)
{
	return scx_task_is_own(p) || scx_task_is_percpu_kthread(p);
}

/* Minimum slice of a task that resumes. Like any slice, it ends only at a tick. */
#define MIN_REST_NS (100 * 1000ULL)

/* A task that is not preempted overruns its slice until the next tick, by up to 4 ms with HZ=250.
 * So a preempted task still resumes unless it has overrun its slice by more than this time. */
#define OVERRUN_MAX_NS (4 * NSEC_PER_MSEC)

static bool is_preemptible(s32 cpu)
{
	return test_cpu(shared.online, cpu) && !is_taken_by_higher_class(cpu);
}

/* Whether the current task of @cpu is already being preempted. */
static bool is_being_preempted(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);

	return state && *(volatile u32 *)&state->is_preempted;
}

/* Return a CPU other than @cpu that @p may preempt, and whose current task is not being preempted
 * already. If there is none, return @cpu if it is preemptible, else a CPU whose current task is
 * being preempted already, else @cpu. */
static s32 other_preemptible_cpu(struct task_struct *p, s32 cpu)
{
	s32 other, second = cpu;

	bpf_for(other, 0, nr_cpu_ids) {
		if (other == cpu || !bpf_cpumask_test_cpu(other, p->cpus_ptr) ||
		    !is_preemptible(other))
			continue;
		if (!is_being_preempted(other))
			return other;
		second = other;
	}
	return is_preemptible(cpu) ? cpu : second;
}

static s32 select_cpu_for_own(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	/* If the policy thread wakes up on an idle CPU, publish the CPU: it is free for a task as
	 * soon as the policy has decided. */
	if ((u32)p->pid == policy_pid)
		shared.free_cpu = is_idle ? cpu + 1 : 0;
	if (!is_idle) {
		/* No CPU is idle: prefer the waker's CPU, which needs no kick. */
		cpu = bpf_get_smp_processor_id();
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			cpu = prev_cpu;
		return is_preemptible(cpu) ? cpu : other_preemptible_cpu(p, cpu);
	}
	clear_cpu(shared.idle, cpu);
	/* Linux 7.2 treats the CPU as busy once a task was enqueued there, even if that task still
	 * waits for the policy. With SCX_ENQ_IMMED alone, the kernel would then re-enqueue @p.
	 * SCX_ENQ_PREEMPT avoids this. */
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, SCX_ENQ_PREEMPT | SCX_ENQ_IMMED);
	count(nr_kernel);
	return cpu;
}

/* Run @p on @cpu at once. */
static void preempt_with(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	struct rl_cpu *state = cpu_state(cpu);

	if (state)
		state->is_preempted = true;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, SCX_SLICE_DFL, enq_flags | SCX_ENQ_PREEMPT);
}

/*
 * Return the CPU on which to run @p, a thread of the scheduler's own process that woke up on @cpu
 * or has to leave it. On Linux 7.2, SCX_ENQ_IMMED in *@immed makes the thread leave a CPU at once
 * when a task of a higher class runs there. It is not set for a thread that finds no CPU to move
 * to, because the kernel would enqueue this thread again and again.
 *
 * The kernel also re-enqueues a thread with SCX_ENQ_IMMED if a second task is in the local DSQ. So
 * two threads must not follow each other from one CPU to the next: neither would ever run. The
 * second thread finds that the current task of the first thread's CPU is already being preempted,
 * and takes another CPU.
 */
static s32 cpu_for_own(struct task_struct *p, s32 cpu, u64 enq_flags, u64 *immed)
{
	s32 to = cpu;

	if (scx_task_is_migration_disabled(p, enq_flags))
		return cpu;
	if (enq_flags & SCX_ENQ_REENQ || !is_preemptible(cpu) || is_being_preempted(cpu))
		to = other_preemptible_cpu(p, cpu);
	if (to != cpu || !(enq_flags & SCX_ENQ_REENQ))
		*immed = is_preemptible(to) ? SCX_ENQ_IMMED : 0;
	return to;
}

static void enqueue_urgent(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 immed = 0;

	count(nr_kernel);
	if (enq_flags & (SCX_ENQ_WAKEUP | SCX_ENQ_REENQ)) {
		/* A per-CPU kernel thread cannot leave a CPU that runs a task of a higher class. */
		if (scx_task_is_own(p))
			cpu = cpu_for_own(p, cpu, enq_flags, &immed);
		preempt_with(p, cpu, enq_flags | immed);
		return;
	}
	/* A thread of the scheduler's own process that was preempted by another urgent task goes to
	 * the end of the local DSQ, so it runs before all tasks that wait in other DSQs. */
	if (t && t->resumes && scx_task_is_own(p)) {
		t->resumes = false;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	/* In most cases the slice has expired. Queue the task like other fallback tasks, without
	 * preemption. */
	enqueue_fallback(p, enq_flags);
}

/* In ops.stopping(): if @p was preempted, note that it is to resume. Per-CPU kernel threads do not
 * resume. */
static void note_preempted(struct task_struct *p, struct rl_task *t, bool runnable)
{
	struct rl_cpu *state = cpu_state(scx_bpf_task_cpu(p));

	if (!state || !state->is_preempted)
		return;
	state->is_preempted = false;
	if (runnable && (!is_urgent(p) || scx_task_is_own(p)))
		t->resumes = true;
}

/* In ops.enqueue(): if @p is to resume, requeue it on its CPU, unless it has overrun its slice by
 * more than OVERRUN_MAX_NS. Returns whether it was requeued. */
static bool resume(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	u64 ran_ns, rest_ns = t->slice_ns;
	struct rl_cpu *state;

	if (!t->resumes)
		return false;
	t->resumes = false;
	if (rest_ns != SCX_SLICE_INF) {
		ran_ns = p->se.sum_exec_runtime - t->granted_at_ns;
		if (ran_ns > rest_ns + OVERRUN_MAX_NS)
			return false;
		rest_ns = ran_ns + MIN_REST_NS < rest_ns ? rest_ns - ran_ns : MIN_REST_NS;
	}
	state = cpu_state(scx_bpf_task_cpu(p));
	if (!state)
		return false;
	/* After nested preemptions, tasks resume in LIFO order. The run queue lock protects
	 * nr_resumed. */
	scx_bpf_dsq_insert_vtime(p, scx_bpf_task_cpu(p), rest_ns,
				 VTIME_RESUMED_LAST - state->nr_resumed++ % VTIME_RESUMED_LAST,
				 enq_flags);
	return true;
}

#endif /* __RL_BYPASS_BPF_H */
