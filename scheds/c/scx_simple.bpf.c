/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_simple: a minimal scheduler that is still useful.
 *
 * One queue for the whole machine, ordered by weighted virtual time (scx/fair.bpf.h), or FIFO
 * with -f. On wakeup a task goes directly to an idle CPU if there is one, otherwise to the queue. A
 * CPU whose local DSQ is empty takes the first task of the queue that may run on it. No
 * preemption, no topology: suitable for machines with one last-level cache, and the place
 * to start reading.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/fair.bpf.h>
#include "scx_simple.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

const volatile bool fifo_sched;

/* In FIFO order, only its DSQ and slices are used. */
static struct scx_fair_queue queue;

SCX_PERCPU_COUNTERS(stats, struct simple_stats);

static void insert_local(struct task_struct *p, u64 enq_flags)
{
	scx_count(stats, local);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

s32 BPF_STRUCT_OPS(simple_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		insert_local(p, 0);
	return cpu;
}

void BPF_STRUCT_OPS(simple_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Other tasks depend on per-CPU kernel threads, so those skip the shared queue. */
	if (scx_task_is_percpu_kthread(p)) {
		insert_local(p, enq_flags);
		return;
	}

	scx_count(stats, global);
	if (fifo_sched)
		scx_bpf_dsq_insert(p, SHARED_DSQ, scx_fair_slice_ns(&queue), enq_flags);
	else
		scx_fair_insert(&queue, p, enq_flags);
}

void BPF_STRUCT_OPS(simple_dispatch, s32 cpu, struct task_struct *prev)
{
	if (fifo_sched)
		scx_bpf_dsq_move_to_local(SHARED_DSQ, 0);
	else
		scx_fair_dispatch(&queue, cpu, prev);
}

void BPF_STRUCT_OPS(simple_runnable, struct task_struct *p, u64 enq_flags)
{
	if (!fifo_sched)
		scx_fair_runnable(&queue, p);
}

void BPF_STRUCT_OPS(simple_quiescent, struct task_struct *p, u64 deq_flags)
{
	if (!fifo_sched)
		scx_fair_quiescent(&queue, p);
}

void BPF_STRUCT_OPS(simple_running, struct task_struct *p)
{
	if (!fifo_sched)
		scx_fair_running(p);
}

void BPF_STRUCT_OPS(simple_stopping, struct task_struct *p, bool runnable)
{
	if (!fifo_sched)
		scx_fair_stopping(p);
}

void BPF_STRUCT_OPS(simple_enable, struct task_struct *p)
{
	scx_fair_enable(&queue, p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	scx_fair_init_task(p);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init)
{
	return scx_fair_init(&queue, SHARED_DSQ, SCX_SLICE_DFL);
}

void BPF_STRUCT_OPS(simple_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(simple_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("simple: %s order, vtime_now=%llu, %d queued, runnable_weight=%llu",
		     fifo_sched ? "fifo" : "vtime", queue.vtime_now,
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), queue.runnable_weight);
}

void BPF_STRUCT_OPS(simple_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	scx_bpf_dump("simple: weight=%u vtime=%llu (now%+lld) slice_ns=%llu", p->scx.weight,
		     p->scx.dsq_vtime, (s64)(p->scx.dsq_vtime - queue.vtime_now), p->scx.slice);
}

SCX_OPS(simple_ops) = {
	.select_cpu = (void *)simple_select_cpu,
	.enqueue = (void *)simple_enqueue,
	.dispatch = (void *)simple_dispatch,
	.runnable = (void *)simple_runnable,
	.quiescent = (void *)simple_quiescent,
	.running = (void *)simple_running,
	.stopping = (void *)simple_stopping,
	.enable = (void *)simple_enable,
	.init_task = (void *)simple_init_task,
	.init = (void *)simple_init,
	.exit = (void *)simple_exit,
	.dump = (void *)simple_dump,
	.dump_task = (void *)simple_dump_task,
	.name = "simple",
};
