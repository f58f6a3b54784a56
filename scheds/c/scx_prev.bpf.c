/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_prev: a task stays on its CPU.
 *
 * A task that wakes up goes to its previous CPU if that CPU is idle, whatever runs on the other
 * threads of the core, and whichever task is the waker: the data of the task are probably still in
 * the caches of the core. If the previous CPU is not idle, the task goes to any idle CPU,
 * preferably of a fully idle core. If no CPU is idle, the task waits in one queue for the whole
 * machine, ordered by weighted virtual time (scx/fair.bpf.h), which all CPUs serve.
 *
 * The kernel's default selection (scx_bpf_select_cpu_dfl()), which scx_simple uses, prefers a fully
 * idle core to the previous CPU. On a sync wakeup, it usually prefers the waker's CPU to both,
 * unless the previous CPU is idle and shares a cache with the waker's CPU.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/fair.bpf.h>
#include <scx/immed.bpf.h>
#include "scx_prev.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

static struct scx_fair_queue queue;

SCX_PERCPU_COUNTERS(stats, struct prev_stats);

s32 BPF_STRUCT_OPS(prev_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = prev_cpu;

	if (bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr) &&
	    scx_bpf_test_and_clear_cpu_idle(prev_cpu)) {
		scx_count(stats, prev_cpu);
	} else {
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (cpu < 0) {
			scx_count(stats, select_fail);
			return prev_cpu;
		}
		scx_count(stats, idle_cpu);
	}
	scx_fair_bypass(&queue, p);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, SCX_ENQ_IMMED);
	return cpu;
}

void BPF_STRUCT_OPS(prev_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Per-CPU kernel threads bypass the shared queue, because other tasks depend on them. */
	if (scx_task_is_percpu_kthread(p)) {
		scx_count(stats, local);
		scx_fair_bypass(&queue, p);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	scx_count(stats, queued);
	scx_fair_insert(&queue, p, enq_flags);
	scx_kick_for_queued(p, enq_flags);
}

void BPF_STRUCT_OPS(prev_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_fair_dispatch(&queue, cpu, prev);
}

void BPF_STRUCT_OPS(prev_quiescent, struct task_struct *p, u64 deq_flags)
{
	scx_fair_quiescent(&queue, p);
}

void BPF_STRUCT_OPS(prev_set_weight, struct task_struct *p, u32 weight)
{
	scx_fair_set_weight(p);
}

void BPF_STRUCT_OPS(prev_enable, struct task_struct *p)
{
	scx_fair_enable(&queue, p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prev_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	scx_fair_init_task(p);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(prev_init)
{
	return scx_fair_init(&queue, SHARED_DSQ, SCX_SLICE_DFL);
}

void BPF_STRUCT_OPS(prev_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(prev_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("prev: vtime_now=%llu, %d queued, runnable_weight=%llu", queue.vtime_now,
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_fair_weight(&queue));
}

SCX_OPS(prev_ops) = {
	.select_cpu = (void *)prev_select_cpu,
	.enqueue = (void *)prev_enqueue,
	.dispatch = (void *)prev_dispatch,
	.quiescent = (void *)prev_quiescent,
	.set_weight = (void *)prev_set_weight,
	.enable = (void *)prev_enable,
	.init_task = (void *)prev_init_task,
	.init = (void *)prev_init,
	.exit = (void *)prev_exit,
	.dump = (void *)prev_dump,
	.name = "prev",
};
