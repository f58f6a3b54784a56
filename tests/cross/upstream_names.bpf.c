/* SPDX-License-Identifier: GPL-2.0-only */
/* Uses the names of docs/upstream.md that no scheduler of tests/scheds uses. This program is
 * compiled, but not run. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

struct item {
	struct bpf_list_node node;
	struct bpf_refcount refs;
	u64 value;
};

private(ITEMS) struct bpf_spin_lock items_lock;
private(ITEMS) struct bpf_list_head items __contains(item, node);

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
} arena SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bpf_timer);
} timers SEC(".maps");

UEI_DEFINE(uei);

static void lists(void)
{
	struct item *item = bpf_obj_new(typeof(*item)), *ref;
	struct bpf_list_node *node;

	if (!item)
		return;
	ref = bpf_refcount_acquire(item);
	bpf_spin_lock(&items_lock);
	bpf_list_push_back(&items, &item->node);
	node = bpf_list_pop_front(&items);
	bpf_spin_unlock(&items_lock);
	if (node)
		bpf_obj_drop(container_of(node, struct item, node));
	if (ref)
		bpf_obj_drop(ref);
}

static s32 arenas(void)
{
	u64 __arena *page = bpf_arena_alloc_pages(&arena, NULL, 1, -1, 0);

	if (!page)
		return -ENOMEM;
	cast_kern(page);
	WRITE_ONCE(page[1], 7);
	cast_user(page);
	bpf_arena_free_pages(&arena, (void __arena *)page, 1);
	return 0;
}

static u64 descendants(struct cgroup *cgrp)
{
	struct cgroup_subsys_state *pos;
	u64 sum = 0;

	bpf_rcu_read_lock();
	bpf_for_each(css, pos, &cgrp->self, BPF_CGROUP_ITER_DESCENDANTS_PRE)
		sum += pos->cgroup->level;
	bpf_rcu_read_unlock();
	return sum;
}

static int expired(void *map, int *key, struct bpf_timer *timer)
{
	return -ESRCH;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(names_init)
{
	struct cgroup *root = bpf_cgroup_from_id(1);
	struct bpf_timer *timer;
	u32 zero = 0;

	if (root) {
		bpf_printk("%llu", descendants(root));
		bpf_cgroup_release(root);
	}
	timer = bpf_map_lookup_elem(&timers, &zero);
	if (timer) {
		bpf_timer_init(timer, &timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(timer, expired);
	}
	return arenas();
}

void BPF_STRUCT_OPS(names_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 now = scx_bpf_now();
	struct cgroup *cgrp = __COMPAT_scx_bpf_task_cgroup(p);

	if (cgrp)
		bpf_cgroup_release(cgrp);
	lists();
	if (__COMPAT_is_enq_cpu_selected(enq_flags) &&
	    time_in_range_open(now, p->scx.dsq_vtime, now))
		enq_flags |= __COMPAT_ENUM_OR_ZERO(enum scx_enq_flags, SCX_ENQ_IMMED);
	scx_bpf_dispatch_vtime(p, 0, SCX_SLICE_DFL, now, enq_flags);
}

void BPF_STRUCT_OPS(names_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, 0, 0) {
		scx_bpf_dispatch_from_dsq_set_slice(BPF_FOR_EACH_ITER, 1);
		__COMPAT_scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, 1);
		__COMPAT_scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, 1);
		if (__COMPAT_scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0) ||
		    __COMPAT_scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, 1, 0))
			break;
	}
	scx_bpf_consume(1);
}

void BPF_STRUCT_OPS(names_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
	scx_bpf_exit(SCX_EXIT_UNREG, "kind %d", ei->kind);
}

SCX_OPS_DEFINE(names_ops, .enqueue = (void *)names_enqueue, .dispatch = (void *)names_dispatch,
	       .init = (void *)names_init, .exit = (void *)names_exit,
	       .flags = SCX_OPS_ENQ_EXITING | SCX_OPS_ALLOW_QUEUED_WAKEUP, .name = "names");
