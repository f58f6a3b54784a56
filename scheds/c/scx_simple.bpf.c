/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_simple: a minimal scheduler that is still useful.
 *
 * There is one queue for the whole machine, ordered by weighted virtual time (scx/fair.bpf.h), or
 * FIFO with --fifo. On wakeup a task goes directly to an idle CPU if there is one, otherwise to the
 * queue. A CPU whose local DSQ is empty takes the first task of the queue that may run there. A
 * wakeup does not preempt a running task, and the queue ignores the topology, so scx_simple suits
 * machines with one last-level cache. It is the scheduler to read first.
 *
 * With --cgroups, a task's share of the machine takes the place of its weight. The share is the
 * product of the relative weights on all levels of the cgroup hierarchy (scx/cgroup_vtime.bpf.h).
 */
#include <scx/cgroup_vtime.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/fair.bpf.h>
#include <scx/immed.bpf.h>
#include "scx_simple.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

const volatile bool fifo_sched;
const volatile bool use_cgroups;

/* With --fifo or --cgroups, only the DSQ and the slice of this queue matter. */
static struct scx_fair_queue queue;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scx_cgroup_task);
} cgroup_tasks SEC(".maps");

SCX_PERCPU_COUNTERS(stats, struct simple_stats);

/* Return the cgroup state of a task; NULL without --cgroups, or if the state cannot be created.
 * ops.init_task() creates it. If the creation failed, the next call tries again, and the task
 * counts as a member of the root cgroup. */
static struct scx_cgroup_task *cgroup_task(struct task_struct *p)
{
	if (!use_cgroups)
		return NULL;
	return bpf_task_storage_get(&cgroup_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static void insert_local(struct task_struct *p, u64 enq_flags)
{
	scx_count(stats, local);
	if (!fifo_sched && !use_cgroups)
		scx_fair_bypass(&queue, p);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
}

s32 BPF_STRUCT_OPS(simple_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	cpu = scx_select_cpu(p, prev_cpu, &wake_flags, SHARED_DSQ, &is_idle);
	if (is_idle)
		insert_local(p, scx_immed_unless_sync(cpu, wake_flags));
	return cpu;
}

void BPF_STRUCT_OPS(simple_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Per-CPU kernel threads bypass the shared queue, because other tasks depend on them. */
	if (scx_task_is_percpu_kthread(p)) {
		insert_local(p, enq_flags);
		return;
	}

	scx_count(stats, global);
	if (fifo_sched)
		scx_insert_fifo(p, SHARED_DSQ, scx_fair_slice_shared_ns(&queue), enq_flags);
	else if (use_cgroups)
		scx_bpf_dsq_insert_vtime(p, SHARED_DSQ, scx_fair_slice_shared_ns(&queue),
					 scx_cgroup_task_key(p, SHARED_DSQ), enq_flags);
	else
		scx_fair_insert(&queue, p, enq_flags);
	scx_kick_for_queued(p, enq_flags);
}

/* Like scx_fair_dispatch(), but with virtual times that advance by CPU time divided by share. */
static void dispatch_by_share(s32 cpu, struct task_struct *prev)
{
	struct scx_cgroup_task *t = prev ? cgroup_task(prev) : NULL;

	scx_vclock_advance(SHARED_DSQ);
	if (t && prev->scx.flags & SCX_TASK_QUEUED) {
		scx_cgroup_task_charge(prev, t, SHARED_DSQ);
		if (scx_fair_precedes(&queue, cpu, prev->scx.dsq_vtime)) {
			scx_bpf_task_set_slice(prev, scx_fair_slice_shared_ns(&queue));
			return;
		}
	}
	scx_dispatch_from(SHARED_DSQ);
}

void BPF_STRUCT_OPS(simple_dispatch, s32 cpu, struct task_struct *prev)
{
	if (fifo_sched)
		scx_dispatch_from(SHARED_DSQ);
	else if (use_cgroups)
		dispatch_by_share(cpu, prev);
	else
		scx_fair_dispatch(&queue, cpu, prev);
}

void BPF_STRUCT_OPS(simple_runnable, struct task_struct *p, u64 enq_flags)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (!t)
		return;
	scx_vclock_advance(SHARED_DSQ);
	scx_cgroup_task_runnable(p, t);
	scx_cgroup_task_place(p, t, SHARED_DSQ, false);
}

void BPF_STRUCT_OPS(simple_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (t)
		scx_cgroup_task_quiescent(t);
	else
		scx_fair_quiescent(&queue, p);
}

void BPF_STRUCT_OPS(simple_running, struct task_struct *p)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (t)
		scx_cgroup_task_running(p, t);
}

void BPF_STRUCT_OPS(simple_stopping, struct task_struct *p, bool runnable)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (t)
		scx_cgroup_task_charge(p, t, SHARED_DSQ);
}

void BPF_STRUCT_OPS(simple_set_weight, struct task_struct *p, u32 weight)
{
	if (!use_cgroups)
		scx_fair_set_weight(p);
}

void BPF_STRUCT_OPS(simple_enable, struct task_struct *p)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (t)
		scx_cgroup_task_place(p, t, SHARED_DSQ, true);
	else
		scx_fair_enable(&queue, p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (t)
		scx_cgroup_task_set(t, scx_init_task_cgroup(args));
	scx_fair_init_task(p);
	return 0;
}

SCX_CGROUP_OPS(simple)

void BPF_STRUCT_OPS(simple_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct scx_cgroup_task *t = cgroup_task(p);

	if (!t)
		return;
	scx_cgroup_task_set(t, to);
	scx_cgroup_task_place(p, t, SHARED_DSQ, true);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init)
{
	scx_vclock_init(SCX_SLICE_DFL);
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
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_fair_weight(&queue));
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
	/* User space clears this one with --fifo. */
	.quiescent = (void *)simple_quiescent,
	/* Without --cgroups, user space clears these three, and the cgroup callbacks. */
	.runnable = (void *)simple_runnable,
	.running = (void *)simple_running,
	.stopping = (void *)simple_stopping,
	.set_weight = (void *)simple_set_weight,
	.enable = (void *)simple_enable,
	.init_task = (void *)simple_init_task,
	SCX_CGROUP_CALLBACKS(simple),
	.cgroup_move = (void *)simple_cgroup_move,
	.init = (void *)simple_init,
	.exit = (void *)simple_exit,
	.dump = (void *)simple_dump,
	.dump_task = (void *)simple_dump_task,
	.name = "simple",
};
