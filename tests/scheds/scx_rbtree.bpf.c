/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler written for the headers of the kernel's tools/sched_ext, with its own queue: a
 * red-black tree of nodes, ordered by vtime.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define READY_DSQ 0

/* Maximum number of nodes that one dispatch() removes from the tree. */
#define NR_POPS_MAX 8

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
/* The number of the enqueue at which scx_bpf_error() is called; 0 means never. */
const volatile u64 error_after;

u64 nr_enqueued, nr_popped, nr_stale;
u64 vtime_now;

UEI_DEFINE(uei);

struct waiter {
	struct bpf_rb_node node;
	u64 vtime;
	u64 seq;
	s32 pid;
};

private(TREE) struct bpf_spin_lock tree_lock;
private(TREE) struct bpf_rb_root tree __contains(waiter, node);

struct task_ctx {
	u64 vtime;
	u64 started_at;
	/* Sequence number of the last enqueue into the tree; 0 after ops.dequeue(). */
	u64 queued_seq;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static struct task_ctx *lookup_task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static bool less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	const struct waiter *wa = container_of(a, struct waiter, node);
	const struct waiter *wb = container_of(b, struct waiter, node);

	return time_before(wa->vtime, wb->vtime);
}

s32 BPF_STRUCT_OPS(rbtree_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(rbtree_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 nr = __sync_add_and_fetch(&nr_enqueued, 1);
	struct task_ctx *tctx = lookup_task_ctx(p);
	struct waiter *w;

	if (unlikely(nr == error_after))
		scx_bpf_error("failing at enqueue %llu", nr);

	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}

	w = tctx ? bpf_obj_new(typeof(*w)) : NULL;
	if (!w) {
		scx_bpf_dsq_insert(p, READY_DSQ, slice_ns, enq_flags);
		return;
	}

	/* A sleeper gets at most one slice of credit. */
	if (time_before(tctx->vtime, READ_ONCE(vtime_now) - slice_ns))
		tctx->vtime = vtime_now - slice_ns;
	tctx->queued_seq = nr;
	w->vtime = tctx->vtime;
	w->seq = nr;
	w->pid = p->pid;

	bpf_spin_lock(&tree_lock);
	bpf_rbtree_add(&tree, &w->node, less);
	bpf_spin_unlock(&tree_lock);
}

void BPF_STRUCT_OPS(rbtree_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = lookup_task_ctx(p);

	if (tctx)
		tctx->queued_seq = 0;
}

/* Remove the first node of the tree, and move its task to READY_DSQ if the task still waits. Return
 * false if the tree is empty. */
static bool pop_one(void)
{
	struct bpf_rb_node *node;
	struct task_struct *p;
	struct task_ctx *tctx;
	struct waiter *w;
	u64 seq;
	s32 pid;

	bpf_spin_lock(&tree_lock);
	node = bpf_rbtree_first(&tree);
	if (!node) {
		bpf_spin_unlock(&tree_lock);
		return false;
	}
	node = bpf_rbtree_remove(&tree, node);
	bpf_spin_unlock(&tree_lock);
	if (!node)
		return true;

	w = container_of(node, struct waiter, node);
	if (time_after(w->vtime, vtime_now))
		WRITE_ONCE(vtime_now, w->vtime);
	pid = w->pid;
	seq = w->seq;
	bpf_obj_drop(w);

	p = bpf_task_from_pid(pid);
	if (!p)
		return true;
	tctx = lookup_task_ctx(p);
	if (tctx && tctx->queued_seq == seq) {
		__sync_fetch_and_add(&nr_popped, 1);
		scx_bpf_dsq_insert(p, READY_DSQ, slice_ns, 0);
		/* Kick the task's CPU, because the task may not be allowed on this CPU. */
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
	} else {
		__sync_fetch_and_add(&nr_stale, 1);
	}
	bpf_task_release(p);
	return true;
}

void BPF_STRUCT_OPS(rbtree_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 i;

	bpf_for(i, 0, NR_POPS_MAX) {
		if (scx_bpf_dsq_move_to_local(READY_DSQ))
			return;
		if (!pop_one())
			break;
	}
	scx_bpf_dsq_move_to_local(READY_DSQ);
}

void BPF_STRUCT_OPS(rbtree_running, struct task_struct *p)
{
	struct task_ctx *tctx = lookup_task_ctx(p);

	if (tctx)
		tctx->started_at = scx_bpf_now();
}

void BPF_STRUCT_OPS(rbtree_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = lookup_task_ctx(p);

	if (tctx)
		tctx->vtime += time_delta(scx_bpf_now(), tctx->started_at) * 100 / p->scx.weight;
}

s32 BPF_STRUCT_OPS(rbtree_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->vtime = vtime_now;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rbtree_init)
{
	return scx_bpf_create_dsq(READY_DSQ, -1);
}

void BPF_STRUCT_OPS(rbtree_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

void BPF_STRUCT_OPS(rbtree_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("rbtree: %llu enqueued, %llu popped", nr_enqueued, nr_popped);
}

/* clang-format off */
SCX_OPS_DEFINE(rbtree_ops,
	       .select_cpu = (void *)rbtree_select_cpu,
	       .enqueue = (void *)rbtree_enqueue,
	       .dequeue = (void *)rbtree_dequeue,
	       .dispatch = (void *)rbtree_dispatch,
	       .running = (void *)rbtree_running,
	       .stopping = (void *)rbtree_stopping,
	       .init_task = (void *)rbtree_init_task,
	       .init = (void *)rbtree_init,
	       .exit = (void *)rbtree_exit,
	       .dump = (void *)rbtree_dump,
	       /* Kernels before 7.2 reject the second flag, so <scx/common.h> has to clear it. */
	       .flags = SCX_OPS_ENQ_LAST | SCX_OPS_TID_TO_TASK,
	       .timeout_ms = 20000U,
	       .name = "rbtree");
/* clang-format on */
