/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scxtop reads the kernel's counters (kernel.bpf.h, iter.bpf.h), keeps further counters
 * (counters.bpf.h), and records traces (trace.bpf.h). The programs here attach to the kernel's
 * events and pass them to the further counters and to the trace.
 *
 * Insertions into DSQs are observed by kprobes, not by fentry programs: since 7.1 the kernel passes
 * the kfuncs that insert tasks an argument that is not in their prototype, and an fentry program
 * would clobber it.
 */
#include <scx/types.bpf.h>
#include "pt_regs.bpf.h"
#include <scx/switch_time.bpf.h>
#include <scx/time.bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "counters.bpf.h"
#include "trace.bpf.h"
#include "insert.bpf.h"
#include "iter.bpf.h"

char _license[] SEC("license") = "GPL";

/* Return the state in which @prev was switched out; 0 if it is still runnable. */
static u32 state_of(bool preempt, struct task_struct *prev, u32 prev_state)
{
	/*
	 * A task that was about to sleep with a signal pending is runnable again. Linux 6.12
	 * shows this only in the task's state, not in @prev_state.
	 */
	if (preempt || !prev_state || !prev->__state)
		return 0;
	return prev_state;
}

/* Attached within windows (counters.bpf.h) and while a trace is recorded, like on_wakeup_new and
 * on_migrate. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u64 now = scx_switch_time_ns();

	if (control.observed_since_ns)
		count_in(next, now);
	trace_switch(prev, next, state_of(preempt, prev, prev_state), now);
	return 0;
}

/* Attached only within windows. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	if (control.observed_since_ns)
		count_wakeup(p, scx_monotonic_now());
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	u64 now = scx_monotonic_now();

	if (control.observed_since_ns)
		count_wakeup(p, now);
	trace_task(TOP_EVENT_WAKEUP_NEW, p, NULL, cpu_of(p), now);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *p, int dest_cpu)
{
	if (control.observed_since_ns)
		count_migration(p, dest_cpu);
	trace_task(TOP_EVENT_MIGRATE, p, NULL, dest_cpu, scx_monotonic_now());
	return 0;
}

/* Attached only while a trace is recorded. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	trace_task(TOP_EVENT_WAKING, p, bpf_get_current_task_btf(), 0, scx_monotonic_now());
	return 0;
}

extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/*
 * trace_task() for a program that is called with preemption enabled, as the following ones are on
 * recent kernels. If the program were preempted, the records that follow on this CPU would be held
 * up behind the incomplete one.
 */
static void trace_preemptible(enum top_event_kind kind, struct task_struct *p,
			      struct task_struct *other)
{
	bpf_preempt_disable();
	trace_task(kind, p, other, 0, scx_monotonic_now());
	bpf_preempt_enable();
}

/* Attached only while a trace is recorded. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	trace_preemptible(TOP_EVENT_EXEC, p, NULL);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (with_counters)
		bpf_task_storage_get(&tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	trace_preemptible(TOP_EVENT_FORK, child, parent);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *p)
{
	/* Insertions are kept by the task's address, which another task may get. */
	forget_insertion(p);
	trace_preemptible(TOP_EVENT_EXIT, p, NULL);
	return 0;
}
