/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DSQ for each CPU, in which tasks wait for that CPU only, such as pinned tasks. Its id is the
 * CPU number. Such a DSQ is usually empty, and a query of the kernel is expensive, so a flag tells
 * whether it may have tasks.
 */
#ifndef __SCX_PINNED_BPF_H
#define __SCX_PINNED_BPF_H

#include <scx/barrier.h>
#include <scx/common.bpf.h>
#include <scx/cpus.h>

/* Whether the DSQ of a CPU may have tasks. */
static bool scx_has_pinned[SCX_CPUS_MAX];

/* In ops.enqueue(): insert the task into the DSQ of @cpu. */
static inline void scx_pinned_insert(struct task_struct *p, u32 cpu, u64 slice_ns, u64 vtime,
				     u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, cpu, slice_ns, vtime, enq_flags);
	scx_has_pinned[cpu % SCX_CPUS_MAX] = true;
}

/* Whether the DSQ of this CPU has tasks. Call it from ops.dispatch(). */
static inline bool scx_pinned_wait(u32 cpu)
{
	bool *has_pinned = &scx_has_pinned[cpu % SCX_CPUS_MAX];

	if (!*has_pinned)
		return false;
	/* Clear the flag before the check: scx_pinned_insert() may set it again meanwhile. */
	*has_pinned = false;
	scx_full_barrier();
	*has_pinned = scx_bpf_dsq_nr_queued(cpu) > 0 || *has_pinned;
	return *has_pinned;
}

/* Whether the DSQ of @cpu has tasks, for any CPU and from any callback. This function does not
 * clear the flag, since it may run without the lock of @cpu's run queue. scx_pinned_insert() sets
 * the flag before the kernel inserts the task, and clearing the flag in between would hide the task
 * from @cpu. */
static inline bool scx_has_pinned_waiting(u32 cpu)
{
	return scx_has_pinned[cpu % SCX_CPUS_MAX] && scx_bpf_dsq_nr_queued(cpu) > 0;
}

#endif /* __SCX_PINNED_BPF_H */
