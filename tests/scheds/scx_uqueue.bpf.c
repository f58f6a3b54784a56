/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler with a policy in user space, written for the headers of the kernel's
 * tools/sched_ext. Tasks and decisions are passed through BPF queues (BPF_MAP_TYPE_QUEUE).
 */
#include <scx/common.bpf.h>
#include "scx_uqueue.h"

char _license[] SEC("license") = "GPL";

#define READY_DSQ 0

/* Maximum number of decisions that one dispatch() processes. */
#define NR_TAKEN_MAX 16

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
const volatile u64 error_after;
/* TGID of the policy process, which must not wait for its own decisions. */
const volatile s32 user_tgid;

u64 nr_enqueued, nr_decided, nr_stale, nr_bypassed;

UEI_DEFINE(uei);

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, UQUEUE_LEN);
	__type(value, struct uqueue_task);
} to_user SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, UQUEUE_LEN);
	__type(value, struct uqueue_decision);
} from_user SEC(".maps");

struct task_ctx {
	u64 queued_seq; /* seq of the last enqueue sent to user space; 0 after ops.dequeue() */
	u64 sum_exec_runtime; /* ns, at the last enqueue or at ops.init_task() */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Send @p to user space. Return false if @p must bypass user space, or if the queue is full. */
static bool ask_user(struct task_struct *p, u64 seq)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	struct uqueue_task task = {
		.pid = p->pid,
		.weight = p->scx.weight,
		.seq = seq,
	};

	if (!tctx || (p->flags & PF_KTHREAD))
		return false;
	task.ran_ns = p->se.sum_exec_runtime - tctx->sum_exec_runtime;
	tctx->sum_exec_runtime = p->se.sum_exec_runtime;
	tctx->queued_seq = seq;
	if (!bpf_map_push_elem(&to_user, &task, 0))
		return true;
	tctx->queued_seq = 0;
	return false;
}

void BPF_STRUCT_OPS(uqueue_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 seq = __sync_add_and_fetch(&nr_enqueued, 1);

	if (unlikely(seq == error_after))
		scx_bpf_error("failing at enqueue %llu", seq);

	if (p->tgid == user_tgid) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
	} else if (!ask_user(p, seq)) {
		__sync_fetch_and_add(&nr_bypassed, 1);
		scx_bpf_dsq_insert(p, READY_DSQ, slice_ns, enq_flags);
	}
}

void BPF_STRUCT_OPS(uqueue_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	if (tctx)
		tctx->queued_seq = 0;
}

/* Insert the chosen task into READY_DSQ, if its enqueue is still pending. */
static void apply(const struct uqueue_decision *decision)
{
	struct task_struct *p = bpf_task_from_pid(decision->pid);
	struct task_ctx *tctx;
	s32 cpu;

	if (!p)
		return;
	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);
	if (tctx && tctx->queued_seq == decision->seq) {
		__sync_fetch_and_add(&nr_decided, 1);
		scx_bpf_dsq_insert(p, READY_DSQ, slice_ns, 0);
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (cpu >= 0)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	} else {
		__sync_fetch_and_add(&nr_stale, 1);
	}
	bpf_task_release(p);
}

void BPF_STRUCT_OPS(uqueue_dispatch, s32 cpu, struct task_struct *prev)
{
	struct uqueue_decision decision;
	u32 i;

	bpf_for(i, 0, NR_TAKEN_MAX) {
		if (bpf_map_pop_elem(&from_user, &decision))
			break;
		apply(&decision);
	}
	scx_bpf_dsq_move_to_local(READY_DSQ);
}

s32 BPF_STRUCT_OPS(uqueue_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->sum_exec_runtime = p->se.sum_exec_runtime;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(uqueue_init)
{
	return scx_bpf_create_dsq(READY_DSQ, -1);
}

void BPF_STRUCT_OPS(uqueue_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

void BPF_STRUCT_OPS(uqueue_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("uqueue: %llu enqueued, %llu decided", nr_enqueued, nr_decided);
}

/* clang-format off */
SCX_OPS_DEFINE(uqueue_ops,
	       .enqueue = (void *)uqueue_enqueue,
	       .dequeue = (void *)uqueue_dequeue,
	       .dispatch = (void *)uqueue_dispatch,
	       .init_task = (void *)uqueue_init_task,
	       .init = (void *)uqueue_init,
	       .exit = (void *)uqueue_exit,
	       .dump = (void *)uqueue_dump,
	       .flags = SCX_OPS_KEEP_BUILTIN_IDLE,
	       .timeout_ms = 20000U,
	       .name = "uqueue");
/* clang-format on */
