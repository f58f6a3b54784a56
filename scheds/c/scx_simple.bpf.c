/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_simple: a minimal scheduler that is still useful.
 *
 * One queue for the whole machine, ordered by weighted virtual time, or FIFO with -f. On
 * wakeup a task goes directly to an idle CPU if there is one, otherwise to the queue. A
 * CPU whose local DSQ is empty takes the first task of the queue that may run on it. No
 * preemption, no topology: suitable for machines with one last-level cache, and the place
 * to start reading.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include "scx_simple.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

/*
 * How long a task waits at most, roughly, whatever the weights and the number of runnable
 * tasks: half of it for the slices of others, half for their weights. Well below the
 * kernel's watchdog (30 s) and RCU stall warnings (21 s).
 */
#define MAX_WAIT_NS (8 * NSEC_PER_SEC)

/* Shorter slices are all overhead, and below the tick of most kernels. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

const volatile bool fifo_sched;

/* Virtual time of the machine: the smallest vtime in the queue, but it never goes back. */
static u64 vtime_now;

/* Sum of the weights of all runnable tasks. Like vtime, not maintained for FIFO order. */
static u64 runnable_weight;

SCX_PERCPU_COUNTERS(stats, struct simple_stats);

struct task_ctx {
	u64 sum_exec_runtime; /* of the task when it began to run, ns */
	u32 runnable_weight; /* what it has added to the machine's runnable_weight */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

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

/* Slices shrink as the queue grows, so that the last task runs in time. */
static u64 slice_ns(void)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(SHARED_DSQ);

	return scx_slice_shared(SCX_SLICE_DFL, MAX_WAIT_NS / 2, nr_queued > 0 ? nr_queued : 0,
				MIN_SLICE_NS);
}

/* A task that has had more than its share is queued further back, but within a bound. */
static u64 queue_vtime(const struct task_struct *p)
{
	u64 max_ahead_ns = scx_vtime_max_ahead(MAX_WAIT_NS / 2, runnable_weight);

	return scx_vtime_limit_debt(p->scx.dsq_vtime, vtime_now, max_ahead_ns);
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
		scx_bpf_dsq_insert(p, SHARED_DSQ, slice_ns(), enq_flags);
	else
		scx_bpf_dsq_insert_vtime(p, SHARED_DSQ, slice_ns(), queue_vtime(p), enq_flags);
}

/* Virtual time of a running task, including its CPU time since ops.running(). */
static u64 vtime_of_running(struct task_struct *p)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	u64 ran_ns = tctx ? p->se.sum_exec_runtime - tctx->sum_exec_runtime : 0;

	return p->scx.dsq_vtime + scx_vtime_cost(ran_ns, p->scx.weight);
}

/*
 * Whether @prev, whose slice has expired, still precedes all tasks queued for @cpu. The
 * check is needed because the kernel calls ops.dispatch() before it enqueues @prev again:
 * without it, two tasks on a CPU would take turns, whatever their weights.
 */
static bool prev_is_first(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	bool ahead = false;

	if (fifo_sched || !prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	bpf_for_each(scx_dsq, p, SHARED_DSQ, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		ahead = time_before(vtime_of_running(prev), p->scx.dsq_vtime);
		break;
	}
	return ahead;
}

/*
 * Only the queue advances virtual time, not the running tasks: a task of small weight that
 * is alone on a CPU is soon far ahead of all tasks that share another one.
 */
static void advance_vtime(void)
{
	const struct task_struct *first = fifo_sched ? NULL : scx_bpf_dsq_peek(SHARED_DSQ);

	/* Not atomic: the next update makes up for a lost one. */
	if (first)
		vtime_now = time_max(vtime_now, first->scx.dsq_vtime);
}

void BPF_STRUCT_OPS(simple_dispatch, s32 cpu, struct task_struct *prev)
{
	advance_vtime();
	if (prev_is_first(cpu, prev))
		scx_bpf_task_set_slice(prev, slice_ns());
	else
		scx_bpf_dsq_move_to_local(SHARED_DSQ, 0);
}

/* A weight change takes effect when the task becomes runnable again. */
void BPF_STRUCT_OPS(simple_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx;
	u64 vtime;

	if (fifo_sched)
		return;
	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	vtime = scx_vtime_limit_credit(p->scx.dsq_vtime, vtime_now, SCX_SLICE_DFL);
	/* After a long sleep the task may catch up on one slice at most. */
	scx_bpf_task_set_dsq_vtime(p, vtime);
	if (tctx) {
		tctx->runnable_weight = p->scx.weight;
		__sync_fetch_and_add(&runnable_weight, tctx->runnable_weight);
	}
}

void BPF_STRUCT_OPS(simple_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx;

	if (fifo_sched)
		return;
	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	if (tctx)
		__sync_fetch_and_sub(&runnable_weight, tctx->runnable_weight);
}

void BPF_STRUCT_OPS(simple_running, struct task_struct *p)
{
	struct task_ctx *tctx;

	if (fifo_sched)
		return;
	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	if (tctx)
		tctx->sum_exec_runtime = p->se.sum_exec_runtime;
}

/* Charge the CPU time consumed, not the slice, which a task that yields gives up unused. */
void BPF_STRUCT_OPS(simple_stopping, struct task_struct *p, bool runnable)
{
	if (!fifo_sched)
		scx_bpf_task_set_dsq_vtime(p, vtime_of_running(p));
}

void BPF_STRUCT_OPS(simple_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, vtime_now);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	if (!bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -ENOMEM;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(simple_init)
{
	return scx_bpf_create_dsq(SHARED_DSQ, -1);
}

void BPF_STRUCT_OPS(simple_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(simple_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("simple: %s order, vtime_now=%llu, %d queued, runnable_weight=%llu",
		     fifo_sched ? "fifo" : "vtime", vtime_now, scx_bpf_dsq_nr_queued(SHARED_DSQ),
		     runnable_weight);
}

void BPF_STRUCT_OPS(simple_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	scx_bpf_dump("simple: weight=%u vtime=%llu (now%+lld) slice_ns=%llu", p->scx.weight,
		     p->scx.dsq_vtime, (s64)(p->scx.dsq_vtime - vtime_now), p->scx.slice);
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
