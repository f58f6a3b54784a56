/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks whose migration is disabled. Before 6.15, the kernel calls ops.enqueue() for them. Since
 * 6.15 it does so only if the scheduler sets SCX_OPS_ENQ_MIGRATION_DISABLED. Otherwise the kernel
 * inserts them into the local DSQ of their CPU, with a slice of 20 ms. For example, a task is
 * enqueued with its migration disabled if its slice ends while it executes a tracing BPF program.
 *
 * From 6.15 to 6.18, a scheduler with ops.cpu_release() needs that flag. The BPF trampoline,
 * through which the kernel calls a callback, disables migration of the current task. In
 * ops.cpu_release(), this is the task that a real-time task has just preempted. Without the flag,
 * the kernel would take it for migration-disabled and leave it queued behind the real-time task.
 */
#ifndef __SCX_MIGRATION_BPF_H
#define __SCX_MIGRATION_BPF_H

#include <scx/common.bpf.h>

/*
 * The amount by which the trampoline of a callback increments migration_disabled of the current
 * task: 0 since 6.18 without CONFIG_PREEMPT_RCU, else 1.
 */
static u32 scx_nr_disabled_by_trampoline = 1;

/* Learn the increment from the idle task, which never disables its own migration. Call it from
 * ops.dispatch(), where the current task may be the idle task. */
static inline void scx_learn_trampoline(void)
{
	struct task_struct *curr = bpf_get_current_task_btf();

	if (curr->flags & PF_IDLE && curr->migration_disabled != scx_nr_disabled_by_trampoline)
		scx_nr_disabled_by_trampoline = curr->migration_disabled;
}

/*
 * Whether the migration of a task is disabled. Call it from ops.enqueue(), with its @enq_flags. Two
 * trampolines are active when scx_bpf_reenqueue_local() calls ops.enqueue() from within
 * ops.cpu_release().
 */
static inline bool scx_task_is_migration_disabled(const struct task_struct *p, u64 enq_flags)
{
	u32 nr_trampolines = 0;

	if (p == bpf_get_current_task_btf())
		nr_trampolines = enq_flags & SCX_ENQ_REENQ ? 2 : 1;
	return p->migration_disabled > nr_trampolines * scx_nr_disabled_by_trampoline;
}

/* Maximum slice, ns, of a task that bypasses the queues because its migration is disabled. Such a
 * task soon enables its migration, and is queued as usual at the end of the slice. */
#define SCX_MIGRATION_DISABLED_SLICE_NS (500 * 1000ULL)

/* Return the slice, ns, of a task that is inserted into a local DSQ instead of a queue: @slice_ns,
 * but at most SCX_MIGRATION_DISABLED_SLICE_NS if the migration of the task is disabled. Call it
 * from ops.enqueue(), with its @enq_flags. */
static inline u64 scx_bypass_slice_ns(const struct task_struct *p, u64 enq_flags, u64 slice_ns)
{
	if (slice_ns > SCX_MIGRATION_DISABLED_SLICE_NS &&
	    scx_task_is_migration_disabled(p, enq_flags))
		return SCX_MIGRATION_DISABLED_SLICE_NS;
	return slice_ns;
}

#endif /* __SCX_MIGRATION_BPF_H */
