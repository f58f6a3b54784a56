/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks with deadlines (deadline.bpf.h): direct dispatch to idle CPUs, and queueing, followed by a
 * kick of an idle CPU or by preemption.
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

/* Run the task on @cpu, which was claimed for it. Call it from ops.enqueue(). */
static inline void scx_dl_run_on(struct task_struct *p, struct scx_dl_task *t, s32 cpu,
				 s32 prev_cpu, u64 slice_ns, u64 enq_flags)
{
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL_ON | cpu, slice_ns, enq_flags | SCX_ENQ_IMMED);
	if (cpu != prev_cpu || !scx_bpf_task_running(p))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * In ops.enqueue(), if no idle CPU was claimed for @p: run @p at once if possible
 * (scx_dl_run_at_once()), else queue it with @deadline, and kick a CPU that has become idle
 * meanwhile. If there is no such CPU, and @p is new or has just woken up, preempt the task that
 * runs on @cpu if scx_dl_should_preempt() is true. In an idle phase (throttle.bpf.h), only queue
 * @p. Returns whether a task is preempted.
 */
static inline bool scx_dl_queue(struct task_struct *p, struct scx_dl_task *t, s32 cpu, u64 slice_ns,
				u64 deadline, u64 enq_flags)
{
	if (!scx_is_throttled() && scx_dl_run_at_once(p, t, slice_ns, deadline, enq_flags))
		return true;
	scx_dl_insert(p, t, slice_ns, deadline, enq_flags);
	if (scx_is_throttled() || scx_kick_idle_for(p) ||
	    (t->has_begun && !(enq_flags & SCX_ENQ_WAKEUP)) ||
	    !scx_dl_should_preempt(t, cpu, deadline))
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return true;
}

#endif /* __SCX_DIRECT_BPF_H */
