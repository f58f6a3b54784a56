/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that leave a CPU when a real-time task takes it.
 *
 * A task that is preempted by a task of another class stays in its CPU's local DSQ, and waits there
 * while other CPUs may be idle. A kernel with SCX_ENQ_IMMED (7.2) calls ops.enqueue() instead, with
 * SCX_ENQ_REENQ, for a task that was inserted into the local DSQ with this flag. On other kernels
 * the flag is 0, and ops.cpu_release() does it: see reenqueue_on_cpu_release() in scx_utils.
 *
 * The flag is for tasks that run at once: a task that finds its CPU busy is enqueued again, too.
 */
#ifndef __SCX_IMMED_BPF_H
#define __SCX_IMMED_BPF_H

#include <scx/common.bpf.h>
#include <scx/kick.bpf.h>

/* In ops.dispatch(): move the first task that may run on this CPU from @dsq_id to the local DSQ.
 * Returns whether there is one. */
static inline bool scx_dispatch_from(u64 dsq_id)
{
	return scx_bpf_dsq_move_to_local(dsq_id, SCX_ENQ_IMMED);
}

/* In ops.select_cpu(): the flags with which to insert the task into the local DSQ of @cpu, which
 * was idle, or is the waker's in a sync wakeup; then the task waits for the waker to sleep. */
static inline u64 scx_immed_unless_sync(s32 cpu, u64 wake_flags)
{
	return wake_flags & SCX_WAKE_SYNC && cpu == (s32)bpf_get_smp_processor_id() ? 0 :
										      SCX_ENQ_IMMED;
}

/* In ops.enqueue(), after the task is queued: kick an idle CPU for a task that has left its CPU.
 * For schedulers that need no kick otherwise, because ops.select_cpu() finds idle CPUs. */
static inline void scx_kick_for_reenqueued(const struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (!(enq_flags & SCX_ENQ_REENQ))
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif /* __SCX_IMMED_BPF_H */
