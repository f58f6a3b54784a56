/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Direct dispatch of tasks with deadlines (deadline.bpf.h) to idle CPUs, so that they do not wait
 * in a DSQ; and kicks of CPUs for tasks that do.
 */
#ifndef __SCX_DIRECT_BPF_H
#define __SCX_DIRECT_BPF_H

#include <scx/cpus.bpf.h>
#include <scx/deadline.bpf.h>
#include <scx/throttle.bpf.h>

/* Insert the task into a local DSQ, where it precedes all tasks in other DSQs. @t may be NULL. */
static inline void scx_dl_insert_local(struct task_struct *p, struct scx_dl_task *t, u64 dsq_id,
				       u64 slice_ns, u64 enq_flags)
{
	if (t)
		t->has_waited = false;
	scx_bpf_dsq_insert(p, dsq_id, slice_ns, enq_flags);
}

/*
 * Claim an idle CPU for the task in ops.enqueue(), if the task should move away from its CPU,
 * @prev_cpu, or, unless @stays, if ops.select_cpu() was not called for it. A pinned task gets its
 * own CPU only. If @fastest, use scx_pick_fastest_idle(). Returns -EBUSY if a search found no idle
 * CPU, -EAGAIN if there was no search.
 */
static inline s32 scx_dl_claim_idle(struct task_struct *p, s32 prev_cpu, u64 enq_flags, bool stays,
				    bool fastest)
{
	s32 cpu;

	if (scx_task_is_pinned(p)) {
		/* While its affinity changes, the task may be on another CPU. */
		cpu = bpf_cpumask_first(p->cpus_ptr);
		return cpu == prev_cpu && scx_bpf_test_and_clear_cpu_idle(cpu) ? cpu : -EAGAIN;
	}
	if ((stays || enq_flags & SCX_ENQ_CPU_SELECTED) && !scx_should_move(prev_cpu, p))
		return -EAGAIN;
	return fastest ? scx_pick_fastest_idle(p, prev_cpu) : scx_pick_idle(p, prev_cpu, 0);
}

/* Run the task on @cpu, which was claimed for it. Call it from ops.enqueue(). */
static inline void scx_dl_run_on(struct task_struct *p, struct scx_dl_task *t, s32 cpu,
				 s32 prev_cpu, u64 slice_ns, u64 enq_flags)
{
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL_ON | cpu, slice_ns, enq_flags | SCX_ENQ_IMMED);
	if (cpu != prev_cpu || !scx_bpf_task_running(p))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * In ops.enqueue(), after the task is queued: kick a CPU that has become idle in the meantime, one
 * of the task's node if possible. The kernel inserts the task when ops.enqueue() returns, so a CPU
 * that becomes idle just then is missed: the task waits for the end of a slice. Returns whether a
 * CPU was kicked.
 */
static inline bool scx_dl_kick_idle(struct task_struct *p)
{
	s32 cpu;

	if (!scx_any_idle())
		return false;
	cpu = scx_bpf_select_cpu_and(p, scx_bpf_task_cpu(p), 0, p->cpus_ptr, 0);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/* The same. If no CPU is idle, and @p is new or has just woken up, preempt the task on @cpu if
 * @deadline, with which @p is queued, is earlier than the deadline of that task. Returns whether
 * the task was preempted. */
static inline bool scx_dl_kick(struct task_struct *p, const struct scx_dl_task *t, s32 cpu,
			       u64 deadline, u64 enq_flags)
{
	if (scx_is_throttled() || scx_dl_kick_idle(p) ||
	    (t->has_begun && !(enq_flags & SCX_ENQ_WAKEUP)) ||
	    !scx_dl_should_preempt(t, cpu, deadline))
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return true;
}

#endif /* __SCX_DIRECT_BPF_H */
