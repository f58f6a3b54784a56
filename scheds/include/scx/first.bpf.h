/* SPDX-License-Identifier: GPL-2.0-only */
/* A DSQ of a CPU and a DSQ of a group of CPUs, ordered by the same virtual time: a CPU takes the
 * earliest task of both. */
#ifndef __SCX_FIRST_BPF_H
#define __SCX_FIRST_BPF_H

#include <scx/common.bpf.h>
#include <scx/immed.bpf.h>

/* Whether @a precedes @b; either may be NULL. Call it under RCU. */
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

/* Move the first task of both DSQs that may run on this CPU to its local DSQ. */
static inline bool scx_dispatch_first(u64 cpu_dsq_id, u64 dsq_id)
{
	s32 nr_own = scx_bpf_dsq_nr_queued(cpu_dsq_id);
	bool own_first = false;

	/* The DSQ of a CPU is usually empty. */
	if (nr_own > 0) {
		bpf_rcu_read_lock();
		own_first = scx_is_before(scx_bpf_dsq_peek(cpu_dsq_id), scx_bpf_dsq_peek(dsq_id));
		bpf_rcu_read_unlock();
	}
	if (own_first && scx_dispatch_from(cpu_dsq_id))
		return true;
	if (scx_dispatch_from(dsq_id))
		return true;
	return nr_own > 0 && scx_dispatch_from(cpu_dsq_id);
}

#endif /* __SCX_FIRST_BPF_H */
