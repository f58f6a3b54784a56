/* SPDX-License-Identifier: GPL-2.0-only */
/* The context in which a callback runs: a task, or an interrupt, such as that of a timer that wakes
 * up a task. */
#ifndef __SCX_CONTEXT_BPF_H
#define __SCX_CONTEXT_BPF_H

#include <scx/common.bpf.h>

enum scx_context {
	SCX_CONTEXT_TASK,
	SCX_CONTEXT_SOFTIRQ,
	SCX_CONTEXT_HARDIRQ, /* or NMI */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* x86, 6.12 to 6.14. */
struct pcpu_hot {
	int preempt_count;
};

/* arm64. */
struct thread_info___arm64 {
	u64 preempt_count;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

#pragma clang attribute pop

extern const struct pcpu_hot pcpu_hot __ksym __weak;
/* x86, since 6.15. */
extern const int __preempt_count __ksym __weak;

/* include/linux/preempt.h */
#define SCX_SOFTIRQ_SERVED 0x00000100
#define SCX_HARDIRQ_NMI_MASK 0x00ff0000

/* Return the kernel's preempt count of this CPU, 0 on architectures where it cannot be read. */
static inline u32 scx_preempt_count(void)
{
	struct task_struct___arm64 *current = (void *)bpf_get_current_task_btf();

	if (&__preempt_count)
		return *(const int *)bpf_this_cpu_ptr(&__preempt_count);
	if (&pcpu_hot)
		return ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	if (bpf_core_field_exists(current->thread_info.preempt_count))
		return BPF_CORE_READ(current, thread_info.preempt_count);
	return 0;
}

/* Return the current context. Where the preempt count cannot be read, this is always
 * SCX_CONTEXT_TASK. */
static inline enum scx_context scx_context(void)
{
	u32 count = scx_preempt_count();

	if (count & SCX_HARDIRQ_NMI_MASK)
		return SCX_CONTEXT_HARDIRQ;
	return count & SCX_SOFTIRQ_SERVED ? SCX_CONTEXT_SOFTIRQ : SCX_CONTEXT_TASK;
}

#endif /* __SCX_CONTEXT_BPF_H */
