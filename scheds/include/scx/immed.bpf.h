/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that leave a CPU when a real-time task preempts them.
 *
 * A task that is preempted by a task of a higher class stays in its CPU's local DSQ, and waits
 * there while other CPUs may be idle. But if it was inserted there with SCX_ENQ_IMMED (7.2), the
 * kernel calls ops.enqueue() for it again, with SCX_ENQ_REENQ. On kernels without SCX_ENQ_IMMED,
 * its value is 0, and a scheduler needs ops.cpu_release() instead: see reenqueue_on_cpu_release()
 * in scx_utils.
 *
 * SCX_ENQ_IMMED is for tasks that can run at once: a task whose CPU turns out to be busy is
 * enqueued again too. A task keeps the flag until it is inserted again, even if ops.dispatch() lets
 * it continue.
 */
#ifndef __SCX_IMMED_BPF_H
#define __SCX_IMMED_BPF_H

#include <scx/common.bpf.h>
#include <scx/idle.bpf.h>
#include <scx/kick.bpf.h>

/* In ops.dispatch(): move the first task that may run on this CPU from @dsq_id to the local DSQ.
 * Returns whether there is such a task. */
static inline bool scx_dispatch_from(u64 dsq_id)
{
	return scx_bpf_dsq_move_to_local(dsq_id, SCX_ENQ_IMMED);
}

/*
 * In ops.dispatch(): whether a task of another class waits for @cpu. Every other class but the idle
 * class has precedence, so the kernel would run that task instead of one that is dispatched now. If
 * the CPU was idle, the dispatched task would then wait in the local DSQ, because the kernel calls
 * ops.cpu_release() only if a task of the scheduler ran. Needed only where
 * scx_can_reenqueue_anywhere() is false.
 */
static inline bool scx_other_class_waits(s32 cpu)
{
	struct rq *rq = scx_bpf_cpu_rq___old(cpu);

	return rq && rq->nr_running > rq->scx.nr_running;
}

/* In ops.select_cpu(): return the flags with which to insert the task into the local DSQ of @cpu:
 * SCX_ENQ_IMMED, or 0 for a sync wakeup on the waker's CPU. There the wakee has to wait until the
 * waker sleeps, and with the flag the kernel would enqueue it again. */
static inline u64 scx_immed_unless_sync(s32 cpu, u64 wake_flags)
{
	const struct task_struct *waker = bpf_get_current_task_btf();

	if (!(wake_flags & SCX_WAKE_SYNC) || cpu != (s32)bpf_get_smp_processor_id())
		return SCX_ENQ_IMMED;
	/* If an interrupt wakes the task up, the current task is not the waker, and is not about to
	 * sleep. The code does not detect every such case, but sets SCX_ENQ_IMMED if the wakee
	 * would wait for the idle task or for a real-time task. */
	return waker->flags & PF_IDLE || waker->prio < MAX_RT_PRIO ? SCX_ENQ_IMMED : 0;
}

/*
 * In ops.select_cpu(): return @wake_flags, but without SCX_WAKE_SYNC if tasks wait in the DSQ. On a
 * sync wakeup, if any CPU is idle, the kernel's idle CPU selection may choose the waker's CPU. In
 * the local DSQ of that CPU, the wakee precedes all tasks in other DSQs. So two tasks that wake
 * each other might keep the CPU forever, and tasks that may run only there would starve.
 */
static inline u64 scx_sync_unless_waiting(u64 wake_flags, u64 dsq_id)
{
	if (wake_flags & SCX_WAKE_SYNC && scx_bpf_dsq_nr_queued(dsq_id) > 0)
		return wake_flags & ~SCX_WAKE_SYNC;
	return wake_flags;
}

/* In ops.select_cpu(), for schedulers with one DSQ: the kernel's idle CPU selection, without
 * SCX_WAKE_SYNC if tasks wait in the DSQ. Sets *@is_idle and *@wake_flags, and returns the CPU. If
 * no CPU is idle, this is @prev_cpu. */
static inline s32 scx_select_cpu(struct task_struct *p, s32 prev_cpu, u64 *wake_flags, u64 dsq_id,
				 bool *is_idle)
{
	*is_idle = false;
	if (!scx_any_idle())
		return prev_cpu;
	*wake_flags = scx_sync_unless_waiting(*wake_flags, dsq_id);
	return scx_bpf_select_cpu_dfl(p, prev_cpu, *wake_flags, is_idle);
}

/* In ops.enqueue(): insert the task into a FIFO DSQ. A task that the kernel enqueues again
 * (SCX_ENQ_REENQ) was already dispatched, so it keeps its remaining slice and goes to the head of
 * the DSQ. */
static inline void scx_insert_fifo(struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_REENQ)
		scx_bpf_dsq_insert(p, dsq_id, 0, enq_flags | SCX_ENQ_HEAD);
	else
		scx_bpf_dsq_insert(p, dsq_id, slice_ns, enq_flags);
}

/* For schedulers whose DSQs are ordered by time of arrival: store the current time as the task's
 * time of arrival in p->scx.dsq_vtime. A task that the kernel enqueues again keeps its old one.
 * Call it from ops.enqueue(). If ops.select_cpu() inserts the task, call it there too, with 0 for
 * @enq_flags. */
static inline void scx_note_arrival(struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_REENQ))
		scx_bpf_task_set_dsq_vtime(p, scx_bpf_now());
}

/*
 * In ops.enqueue(), after the insertion into a DSQ of several CPUs: kick an idle CPU if @p is
 * enqueued again (SCX_ENQ_REENQ), or if @p is not pinned and ops.select_cpu() has not just searched
 * for an idle CPU. The kernel calls ops.select_cpu() only for wakeups and forks. If a task loses
 * its CPU at the end of its slice, because a pinned task waits for it, other CPUs may be idle.
 */
static inline void scx_kick_for_queued(const struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (!(enq_flags & SCX_ENQ_REENQ) &&
	    (enq_flags & SCX_ENQ_CPU_SELECTED || p->nr_cpus_allowed == 1))
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif /* __SCX_IMMED_BPF_H */
