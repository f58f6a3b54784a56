/* SPDX-License-Identifier: GPL-2.0-only */
/* Dispatch from two DSQs that are ordered by the same virtual time: the DSQ of a CPU and the DSQ of
 * a group of CPUs. The CPU first looks in the DSQ whose first task has the smaller virtual time. */
#ifndef __SCX_FIRST_BPF_H
#define __SCX_FIRST_BPF_H

#include <scx/common.bpf.h>
#include <scx/immed.bpf.h>

/* Whether @a is to run before @b: @a is a task, and @b is NULL or does not have a smaller virtual
 * time. Call it under RCU. */
static inline bool scx_is_before(struct task_struct *a, struct task_struct *b)
{
	return a && (!b || time_before_eq(a->scx.dsq_vtime, b->scx.dsq_vtime));
}

/* Whether @vtime precedes all tasks of both DSQs; false if both are empty. */
static inline bool scx_precedes(u64 vtime, u64 cpu_dsq_id, u64 dsq_id)
{
	struct task_struct *own, *any, *first;
	bool is_first;

	bpf_rcu_read_lock();
	own = scx_bpf_dsq_peek(cpu_dsq_id);
	any = scx_bpf_dsq_peek(dsq_id);
	first = scx_is_before(own, any) ? own : any;
	is_first = first && time_before(vtime, first->scx.dsq_vtime);
	bpf_rcu_read_unlock();
	return is_first;
}

/* Whether a task of either DSQ has a virtual time of at most @vtime. Unlike scx_precedes(), this
 * does not call bpf_rcu_read_lock(), because the unlock would invalidate the RCU pointers of the
 * caller. So call it only from callbacks that are not sleepable, which run under RCU. */
static inline bool scx_is_preceded(u64 vtime, u64 cpu_dsq_id, u64 dsq_id)
{
	struct task_struct *own = scx_bpf_dsq_peek(cpu_dsq_id), *any = scx_bpf_dsq_peek(dsq_id);

	return (own && time_before_eq(own->scx.dsq_vtime, vtime)) ||
	       (any && time_before_eq(any->scx.dsq_vtime, vtime));
}

/* Move a task that may run on this CPU to the CPU's local DSQ. The DSQ with the earlier first task
 * is searched before the other DSQ. Returns whether a task was moved. */
static inline bool scx_dispatch_earlier(u64 cpu_dsq_id, u64 dsq_id)
{
	struct task_struct *any;
	bool own_first;

	bpf_rcu_read_lock();
	any = scx_bpf_dsq_peek(dsq_id);
	own_first = !any || scx_is_before(scx_bpf_dsq_peek(cpu_dsq_id), any);
	bpf_rcu_read_unlock();
	if (own_first)
		return scx_dispatch_from(cpu_dsq_id) || scx_dispatch_from(dsq_id);
	return scx_dispatch_from(dsq_id) || scx_dispatch_from(cpu_dsq_id);
}

/* Like scx_dispatch_earlier(), but faster if the DSQ of the CPU is empty, as it usually is. */
static inline bool scx_dispatch_first(u64 cpu_dsq_id, u64 dsq_id)
{
	if (scx_bpf_dsq_nr_queued(cpu_dsq_id) > 0)
		return scx_dispatch_earlier(cpu_dsq_id, dsq_id);
	return scx_dispatch_from(dsq_id);
}

#endif /* __SCX_FIRST_BPF_H */
