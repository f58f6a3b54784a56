/* SPDX-License-Identifier: GPL-2.0-only */
/* Dispatch from two DSQs that are ordered by the same virtual time: the DSQ of a CPU and the DSQ of
 * a group of CPUs. Tasks of the group that may not run on the CPU do not count. Otherwise, if such
 * a task waited for another CPU at the head of the group's DSQ, the tasks behind it would precede
 * tasks of the CPU's DSQ with a smaller virtual time. */
#ifndef __SCX_FIRST_BPF_H
#define __SCX_FIRST_BPF_H

#include <scx/common.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/pinned.bpf.h>

/* Maximum number of tasks that scx_first_allowed() tests. Each step takes the lock of the DSQ. */
#define SCX_FIRST_MAX 64

/* Whether one of the first SCX_FIRST_MAX tasks in the DSQ may run on @cpu. If so, set *@vtime to
 * the virtual time of the first such task. This is a global function, verified only once. */
__noinline int scx_first_allowed(u64 dsq_id, s32 cpu, u64 *vtime)
{
	struct task_struct *p;
	u32 nr = 0;

	if (!vtime)
		return false;
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (nr++ >= SCX_FIRST_MAX)
			break;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			*vtime = p->scx.dsq_vtime;
			return true;
		}
	}
	return false;
}

/* Like scx_first_allowed(), but faster if the first task in the DSQ may run on @cpu, as it usually
 * may. */
static inline bool scx_first_for(u64 dsq_id, s32 cpu, u64 *vtime)
{
	const struct task_struct *first;
	bool is_empty, is_allowed;

	bpf_rcu_read_lock();
	first = scx_bpf_dsq_peek(dsq_id);
	is_empty = !first;
	is_allowed = first && bpf_cpumask_test_cpu(cpu, first->cpus_ptr);
	if (is_allowed)
		*vtime = first->scx.dsq_vtime;
	bpf_rcu_read_unlock();
	return is_allowed || (!is_empty && scx_first_allowed(dsq_id, cpu, vtime));
}

/* Whether @vtime precedes all tasks of both DSQs that may run on @cpu; false if there are none. The
 * id of the DSQ of a CPU is the CPU number. */
static inline bool scx_precedes(u64 vtime, s32 cpu, u64 dsq_id)
{
	u64 own = 0, any = 0;
	bool has_own = scx_first_for(cpu, cpu, &own), has_any = scx_first_for(dsq_id, cpu, &any);

	return (has_own || has_any) && (!has_own || time_before(vtime, own)) &&
	       (!has_any || time_before(vtime, any));
}

/* Whether a task of either DSQ, whatever its affinity, has a virtual time of at most @vtime. Unlike
 * scx_precedes(), this does not call bpf_rcu_read_lock(), because the unlock would invalidate the
 * RCU pointers of the caller. So call it only from non-sleepable callbacks, which run under RCU. */
static inline bool scx_is_preceded(u64 vtime, u64 cpu_dsq_id, u64 dsq_id)
{
	struct task_struct *own = scx_bpf_dsq_peek(cpu_dsq_id), *any = scx_bpf_dsq_peek(dsq_id);

	return (own && time_before_eq(own->scx.dsq_vtime, vtime)) ||
	       (any && time_before_eq(any->scx.dsq_vtime, vtime));
}

/* In ops.dispatch() of @cpu: of the tasks in both DSQs that may run on @cpu, move the earliest to
 * the local DSQ. Returns whether there is such a task. */
static inline bool scx_dispatch_earlier(s32 cpu, u64 dsq_id)
{
	u64 own = 0, any = 0;
	bool has_any = scx_first_for(dsq_id, cpu, &any);

	if (!has_any || (scx_first_for(cpu, cpu, &own) && time_before_eq(own, any)))
		return scx_dispatch_from(cpu) || scx_dispatch_from(dsq_id);
	return scx_dispatch_from(dsq_id) || scx_dispatch_from(cpu);
}

/* Like scx_dispatch_earlier(), but faster if the DSQ of the CPU is empty, as it usually is. */
static inline bool scx_dispatch_first(s32 cpu, u64 dsq_id)
{
	if (scx_pinned_wait(cpu))
		return scx_dispatch_earlier(cpu, dsq_id);
	return scx_dispatch_from(dsq_id);
}

#endif /* __SCX_FIRST_BPF_H */
