/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that must stay where they are for now. They reach ops.enqueue() on 6.12, and later if the
 * scheduler has SCX_OPS_ENQ_MIGRATION_DISABLED; else the kernel puts them into their CPU's local
 * queue by itself.
 *
 * Before 6.19 a scheduler with ops.cpu_release() needs that flag. What the trampolines that call
 * callbacks do to the running task, the kernel takes for the task's own doing: it would leave the
 * task that a real-time task has just interrupted behind that one.
 */
#ifndef __SCX_MIGRATION_BPF_H
#define __SCX_MIGRATION_BPF_H

#include <scx/common.bpf.h>

/*
 * How often the trampoline that calls a callback disables migration of the running task: once, or,
 * since 6.18 without CONFIG_PREEMPT_RCU, never.
 */
static u32 scx_nr_disabled_by_trampoline = 1;

/* To be called in ops.dispatch(): an idle task never disables its migration itself. */
static inline void scx_learn_trampoline(void)
{
	struct task_struct *curr = bpf_get_current_task_btf();

	if (curr->flags & PF_IDLE && curr->migration_disabled != scx_nr_disabled_by_trampoline)
		scx_nr_disabled_by_trampoline = curr->migration_disabled;
}

/*
 * In ops.enqueue(), with its @enq_flags. Where scx_bpf_reenqueue_local() has called it out of
 * ops.cpu_release(), two trampolines have been passed.
 */
static inline bool scx_task_is_migration_disabled(const struct task_struct *p, u64 enq_flags)
{
	u32 nr_trampolines = 0;

	if (p == bpf_get_current_task_btf())
		nr_trampolines = enq_flags & SCX_ENQ_REENQ ? 2 : 1;
	return p->migration_disabled > nr_trampolines * scx_nr_disabled_by_trampoline;
}

#endif /* __SCX_MIGRATION_BPF_H */
