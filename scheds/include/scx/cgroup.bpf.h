/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tree of cgroups with their weights, and the shares computed from them (cgroup.h).
 *
 * A scheduler that includes this file
 *  - defines the callbacks with SCX_CGROUP_OPS(), and adds them to its table of callbacks with
 *    SCX_CGROUP_CALLBACKS();
 *  - says which of cpu.weight, cpu.idle and cpu.max it implements: in its struct scx_sched (C) or
 *    by Scheduler::cgroup_controls() (Rust);
 *  - keeps a struct scx_cgroup_task for each task, and calls the functions scx_cgroup_task_*() as
 *    their comments say;
 *  - applies the weights of the cgroups in one of three ways: it charges CPU time with
 *    scx_cgroup_charge() and scx_share_cost() instead of scx_vtime_cost(), or it uses effective
 *    weights (cgroup.h) instead of the tasks' own weights, or it scales each task's weight by
 *    scx_cgroup_task_weight() / SCX_WEIGHT_DFL. The last way ignores the upper levels of the tree,
 *    and does not need ops.runnable() and ops.quiescent().
 *
 * The load of a cgroup is the sum of the weights of its runnable tasks and its active child
 * cgroups. A cgroup is active while it or one of its descendants has a runnable task. A wakeup
 * changes the load of the task's own cgroup. Usually that cgroup is already active, and the loads
 * of its ancestors do not change. All sums are updated atomically, without a lock.
 */
#ifndef __SCX_CGROUP_BPF_H
#define __SCX_CGROUP_BPF_H

#include "common.bpf.h"
#include "cgroup.h"

/* Maximum number of cgroups and of levels. Cgroups beyond either limit count as part of their
 * parents. */
#define SCX_CGROUPS_MAX 65536
#define SCX_CGROUP_DEPTH_MAX 32

/* Slot of the root cgroup. On a kernel without cgroup callbacks, all tasks belong to it. */
#define SCX_CGROUP_ROOT 0

struct scx_cgroup {
	u64 id; /* the kernel's id of the cgroup; 0: the slot is free */
	u32 parent; /* slot */
	u32 is_gone; /* 1: removed, but the slot is kept while a task is still runnable */
	u32 weight; /* cpu.weight */
	u32 is_idle; /* cpu.idle */
	s64 load; /* sum of the weights of runnable tasks and active child cgroups */
	s64 tasks; /* part of load: sum of the weights of runnable tasks directly in the cgroup */
	s64 in_parent; /* weight that the cgroup adds to its parent's load */
	u64 vtime; /* virtual time that all tasks of the cgroup advance together */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCX_CGROUPS_MAX);
	__type(key, u32);
	__type(value, struct scx_cgroup);
} scx_cgroups SEC(".maps");

/* Map of cgroup ids to slots. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * SCX_CGROUPS_MAX);
	__type(key, u64);
	__type(value, u32);
} scx_cgroup_slots SEC(".maps");

/* Number of slots in use, except the root's. */
u32 scx_nr_cgroups;
/* Slot at which the search for a free slot starts. */
static u32 scx_cgroup_next;

/* A task's place in the tree. */
struct scx_cgroup_task {
	u32 slot;
	u64 id; /* id of the slot's cgroup, to detect that the slot was freed or reused */
	u32 counted; /* weight that the task adds to the load of counted_slot; 0: none */
	u32 counted_slot;
	/* CPU time and share when the task was last charged or began to run
	 * (cgroup_vtime.bpf.h). */
	u64 charged_ns;
	u64 share;
};

static inline struct scx_cgroup *scx_cgroup_get(u32 slot)
{
	return bpf_map_lookup_elem(&scx_cgroups, &slot);
}

static inline u64 scx_cgroup_id(struct cgroup *cgrp)
{
	return BPF_CORE_READ(cgrp, kn, id);
}

/* Return the slot of a cgroup, the root's if the cgroup is unknown. */
static inline u32 scx_cgroup_slot(u64 id)
{
	u32 *slot = bpf_map_lookup_elem(&scx_cgroup_slots, &id);

	return slot ? *slot : SCX_CGROUP_ROOT;
}

/* ---- loads --------------------------------------------------------------- */

/* Return the weight of a cgroup. If cpu.idle is set, it is 1, the smallest weight. The kernel's
 * fair class gives an idle cgroup about a third of that weight. */
static inline u32 scx_cgroup_weight(const struct scx_cgroup *cg)
{
	return READ_ONCE(cg->is_idle) ? 1 : READ_ONCE(cg->weight);
}

/* Return the weight that the cgroup should add to its parent's load, given its current load. */
static inline s64 scx_cgroup_due_in_parent(const struct scx_cgroup *cg)
{
	return READ_ONCE(cg->load) > 0 ? scx_cgroup_weight(cg) : 0;
}

/*
 * Update in_parent after a change of load or weight, and return what to add to the parent's load.
 * Several CPUs may do this at once. Each CPU returns only the differences that its own exchanges
 * made, so no difference is added to the parent twice. A CPU repeats the exchange if load or weight
 * has changed meanwhile, so the last CPU to check leaves the correct value.
 */
static inline s64 scx_cgroup_settle(struct scx_cgroup *cg)
{
	s64 change = 0, due;
	int i;

	bpf_for(i, 0, 64) {
		due = scx_cgroup_due_in_parent(cg);
		change += due - __sync_lock_test_and_set(&cg->in_parent, due);
		if (scx_cgroup_due_in_parent(cg) == due)
			break;
	}
	return change;
}

/* Free the slot of a removed cgroup, unless a dying task of the cgroup is still runnable. */
static inline void scx_cgroup_try_free(struct scx_cgroup *cg)
{
	if (READ_ONCE(cg->load) > 0 || !__sync_bool_compare_and_swap(&cg->is_gone, 1, 0))
		return;
	WRITE_ONCE(cg->id, 0);
	__sync_fetch_and_sub(&scx_nr_cgroups, 1);
}

/* Add @change to the load of a cgroup. If this makes the cgroup active or inactive, update the load
 * of its parent too, and so on up to the root. This is a global function, so that the verifier
 * checks it only once. */
__weak int scx_cgroup_add_load(u32 slot, s64 change)
{
	int level;

	bpf_for(level, 0, SCX_CGROUP_DEPTH_MAX + 1) {
		struct scx_cgroup *cg = scx_cgroup_get(slot);
		u32 parent;
		s64 before;

		if (!cg || !change)
			break;
		parent = cg->parent;
		before = __sync_fetch_and_add(&cg->load, change);
		if (slot == SCX_CGROUP_ROOT || (before > 0) == (before + change > 0))
			break;
		change = scx_cgroup_settle(cg);
		if (READ_ONCE(cg->is_gone))
			scx_cgroup_try_free(cg);
		slot = parent;
	}
	return 0;
}

/* ---- shares -------------------------------------------------------------- */

/* Return the share of the machine that all runnable tasks directly in a cgroup have together. */
__weak u64 scx_cgroup_share(u32 slot)
{
	struct scx_cgroup *cg = scx_cgroup_get(slot);
	u64 share = SCX_SHARE_ALL, weight;
	int level;

	if (!cg)
		return share;
	weight = cg->tasks;
	bpf_for(level, 0, SCX_CGROUP_DEPTH_MAX + 1) {
		share = scx_share_part(share, weight, cg->load);
		if (slot == SCX_CGROUP_ROOT)
			break;
		weight = scx_cgroup_weight(cg);
		slot = cg->parent;
		cg = scx_cgroup_get(slot);
		if (!cg)
			break;
	}
	return share;
}

/* Return the effective weight (cgroup.h) of a task of @weight that is directly in a cgroup. */
__weak u64 scx_cgroup_effective_weight(u32 slot, u32 weight)
{
	struct scx_cgroup *cg = scx_cgroup_get(slot);
	u64 share = SCX_SHARE_ALL;
	int level;

	bpf_for(level, 0, SCX_CGROUP_DEPTH_MAX + 1) {
		if (!cg || slot == SCX_CGROUP_ROOT)
			break;
		share = scx_share_part(share, weight, cg->load);
		weight = scx_cgroup_weight(cg);
		slot = cg->parent;
		cg = scx_cgroup_get(slot);
	}
	return scx_effective_weight(weight, share);
}

/* ---- tasks --------------------------------------------------------------- */

/* Set the cgroup of a task. Call it from ops.init_task() with scx_init_task_cgroup(), and from
 * ops.cgroup_move(). */
static inline void scx_cgroup_task_set(struct scx_cgroup_task *t, struct cgroup *cgrp)
{
	struct scx_cgroup *cg;

	t->slot = cgrp ? scx_cgroup_slot(scx_cgroup_id(cgrp)) : SCX_CGROUP_ROOT;
	cg = scx_cgroup_get(t->slot);
	t->id = cg ? cg->id : 0;
}

/* Return the slot in which the task is counted as runnable. If it is not counted, return the slot
 * of its cgroup, or the root's slot if the cgroup is gone: on kernels before 7.0, a dying task may
 * outlive its cgroup. */
static inline u32 scx_cgroup_task_slot(const struct scx_cgroup_task *t)
{
	struct scx_cgroup *cg;

	if (t->counted)
		return t->counted_slot;
	cg = scx_cgroup_get(t->slot);
	return cg && cg->id == t->id ? t->slot : SCX_CGROUP_ROOT;
}

/* Return the weight of the task's own cgroup, for schedulers that do not use shares: cpu.weight, or
 * 1 if cpu.idle is set. For a task in the root cgroup or in a cgroup that is gone, return the
 * default weight. */
static inline u32 scx_cgroup_task_weight(const struct scx_cgroup_task *t)
{
	struct scx_cgroup *cg = scx_cgroup_get(t->slot);

	if (!cg || t->slot == SCX_CGROUP_ROOT || cg->id != t->id)
		return SCX_WEIGHT_DFL;
	return scx_cgroup_weight(cg);
}

/* Stop counting the task as runnable. Call it from ops.quiescent(). */
static inline void scx_cgroup_task_quiescent(struct scx_cgroup_task *t)
{
	struct scx_cgroup *cg = scx_cgroup_get(t->counted_slot);
	s64 weight = t->counted;

	if (!weight || !cg)
		return;
	t->counted = 0;
	__sync_fetch_and_add(&cg->tasks, -weight);
	scx_cgroup_add_load(t->counted_slot, -weight);
}

/* Count the task as runnable. Call it from ops.runnable(). Per-CPU kernel threads are not counted,
 * because other tasks depend on them and they must not be delayed to enforce their share. */
static inline void scx_cgroup_task_runnable(const struct task_struct *p, struct scx_cgroup_task *t)
{
	u32 weight = scx_task_is_percpu_kthread(p) ? 0 : p->scx.weight;
	u32 slot = scx_cgroup_task_slot(t);
	struct scx_cgroup *cg = scx_cgroup_get(slot);

	if (t->counted || !weight || !cg)
		return;
	t->counted_slot = slot;
	t->counted = weight;
	__sync_fetch_and_add(&cg->tasks, weight);
	scx_cgroup_add_load(slot, weight);
}

/* Return the share of the machine that a task of this weight has: the whole machine if the task is
 * not counted as runnable. */
static inline u64 scx_cgroup_task_share(const struct scx_cgroup_task *t, u32 weight)
{
	u32 slot = scx_cgroup_task_slot(t);
	struct scx_cgroup *cg = scx_cgroup_get(slot);

	if (!cg || !t->counted)
		return SCX_SHARE_ALL;
	return scx_share_part(scx_cgroup_share(slot), weight, cg->tasks);
}

/* Return the effective weight (cgroup.h) of a task of this weight: its own weight if the task is
 * not counted as runnable. */
static inline u64 scx_cgroup_task_effective(const struct scx_cgroup_task *t, u32 weight)
{
	u32 slot = t->counted ? scx_cgroup_task_slot(t) : SCX_CGROUP_ROOT;

	return scx_cgroup_effective_weight(slot, weight);
}

/* Return the virtual time of a task's cgroup. A new task starts at most a credit (vtime.h) behind
 * it, so a cgroup gains nothing by replacing its tasks with new ones. */
static inline u64 scx_cgroup_task_vtime(const struct scx_cgroup_task *t)
{
	struct scx_cgroup *cg = scx_cgroup_get(scx_cgroup_task_slot(t));

	return cg ? READ_ONCE(cg->vtime) : 0;
}

/*
 * Charge @ran_ns of CPU time of a task of this weight to its cgroup: advance the cgroup's virtual
 * time, but keep it within [@min, @max]. Returns the share of the task, from which the scheduler
 * computes the cost in the task's own virtual time (scx_share_cost()). If the task is not counted
 * as runnable, nothing is charged to the cgroup, and the share is the whole machine.
 */
static inline u64 scx_cgroup_charge(const struct scx_cgroup_task *t, u32 weight, u64 ran_ns,
				    u64 min, u64 max)
{
	u32 slot = scx_cgroup_task_slot(t);
	struct scx_cgroup *cg = scx_cgroup_get(slot);
	u64 share, vtime;

	if (!cg || !t->counted)
		return SCX_SHARE_ALL;
	share = scx_cgroup_share(slot);
	vtime = time_max(cg->vtime, min) + scx_share_cost(ran_ns, share);
	/* The update need not be atomic: if one is lost, at most the cost of a slice is missing,
	 * which is little compared with @max - @min. */
	WRITE_ONCE(cg->vtime, time_before(vtime, max) ? vtime : max);
	return scx_share_part(share, weight, cg->tasks);
}

/* ---- callbacks ----------------------------------------------------------- */

struct scx_cgroup_search {
	u64 id;
	u32 slot;
};

static long scx_cgroup_try_claim(u32 i, void *ctx)
{
	struct scx_cgroup_search *search = ctx;
	u32 slot = (scx_cgroup_next + i) % SCX_CGROUPS_MAX;
	struct scx_cgroup *cg = scx_cgroup_get(slot);

	if (!cg || slot == SCX_CGROUP_ROOT || !__sync_bool_compare_and_swap(&cg->id, 0, search->id))
		return 0;
	search->slot = slot;
	return 1;
}

/* Claim a free slot, preferably one that was not used recently. Return the slot, or the root's if
 * no slot is free. */
static inline u32 scx_cgroup_claim(u64 id)
{
	struct scx_cgroup_search search = { .id = id, .slot = SCX_CGROUP_ROOT };

	bpf_loop(SCX_CGROUPS_MAX, scx_cgroup_try_claim, &search, 0);
	if (search.slot != SCX_CGROUP_ROOT) {
		scx_cgroup_next = search.slot + 1;
		__sync_fetch_and_add(&scx_nr_cgroups, 1);
	}
	return search.slot;
}

static inline s32 scx_cgroup_do_init(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 id = scx_cgroup_id(cgrp);
	u32 parent, slot = SCX_CGROUP_ROOT;
	struct scx_cgroup *cg;
	s32 err;

	if (!cgrp->level) {
		cg = scx_cgroup_get(SCX_CGROUP_ROOT);
		if (cg)
			cg->id = id;
		return 0;
	}
	parent = scx_cgroup_slot(BPF_CORE_READ(cgrp, self.parent, cgroup, kn, id));
	if (cgrp->level <= SCX_CGROUP_DEPTH_MAX)
		slot = scx_cgroup_claim(id);
	if (slot == SCX_CGROUP_ROOT)
		slot = parent;
	cg = scx_cgroup_get(slot);
	if (cg && cg->id == id) {
		struct scx_cgroup *above = scx_cgroup_get(parent);

		cg->parent = parent;
		cg->weight = args->weight;
		cg->is_idle = scx_cgroup_is_idle(cgrp);
		cg->vtime = above ? above->vtime : 0;
	}
	err = bpf_map_update_elem(&scx_cgroup_slots, &id, &slot, BPF_ANY);
	/* The kernel does not call ops.cgroup_exit() after a failure of ops.cgroup_init(). */
	if (err && cg && cg->id == id) {
		cg->is_gone = 1;
		scx_cgroup_try_free(cg);
	}
	return err;
}

static inline void scx_cgroup_do_exit(struct cgroup *cgrp)
{
	u64 id = scx_cgroup_id(cgrp);
	struct scx_cgroup *cg = scx_cgroup_get(scx_cgroup_slot(id));

	bpf_map_delete_elem(&scx_cgroup_slots, &id);
	if (!cgrp->level || !cg || cg->id != id)
		return;
	__sync_lock_test_and_set(&cg->is_gone, 1);
	scx_cgroup_try_free(cg);
}

/* Update the loads above a cgroup whose weight has changed. */
static inline void scx_cgroup_reweigh(struct scx_cgroup *cg)
{
	scx_cgroup_add_load(cg->parent, scx_cgroup_settle(cg));
}

/* Return the entry of a cgroup, NULL if the cgroup is the root or counts as part of its parent. */
static inline struct scx_cgroup *scx_cgroup_own(struct cgroup *cgrp)
{
	u64 id = scx_cgroup_id(cgrp);
	struct scx_cgroup *cg = scx_cgroup_get(scx_cgroup_slot(id));

	return cgrp->level && cg && cg->id == id ? cg : NULL;
}

static inline void scx_cgroup_do_set_weight(struct cgroup *cgrp, u32 weight)
{
	struct scx_cgroup *cg = scx_cgroup_own(cgrp);

	if (!cg)
		return;
	WRITE_ONCE(cg->weight, scx_weight_clamp(weight));
	scx_cgroup_reweigh(cg);
}

static inline void scx_cgroup_do_set_idle(struct cgroup *cgrp, bool idle)
{
	struct scx_cgroup *cg = scx_cgroup_own(cgrp);

	if (!cg)
		return;
	WRITE_ONCE(cg->is_idle, idle);
	scx_cgroup_reweigh(cg);
}

/*
 * Define the callbacks that maintain the tree. The scheduler defines ops.cgroup_move() itself,
 * because only the scheduler can find the struct scx_cgroup_task of a task. ops.cgroup_prep_move()
 * and ops.cgroup_cancel_move() are not needed, because a move changes only the task. The kernel
 * calls ops.quiescent() before it moves a runnable task, and ops.runnable() afterwards.
 */
#define SCX_CGROUP_OPS(name)                                                  \
	s32 BPF_STRUCT_OPS_SLEEPABLE(name##_cgroup_init, struct cgroup *cgrp, \
				     struct scx_cgroup_init_args *args)       \
	{                                                                     \
		return scx_cgroup_do_init(cgrp, args);                        \
	}                                                                     \
	void BPF_STRUCT_OPS(name##_cgroup_exit, struct cgroup *cgrp)          \
	{                                                                     \
		scx_cgroup_do_exit(cgrp);                                     \
	}                                                                     \
	SCX_CGROUP_WEIGHT_OPS(name)

#define SCX_CGROUP_WEIGHT_OPS(name)                                                    \
	void BPF_STRUCT_OPS(name##_cgroup_set_weight, struct cgroup *cgrp, u32 weight) \
	{                                                                              \
		scx_cgroup_do_set_weight(cgrp, weight);                                \
	}                                                                              \
	void BPF_STRUCT_OPS(name##_cgroup_set_idle, struct cgroup *cgrp, bool idle)    \
	{                                                                              \
		scx_cgroup_do_set_idle(cgrp, idle);                                    \
	}

#define SCX_CGROUP_CALLBACKS(name)                                                            \
	.cgroup_init = (void *)name##_cgroup_init, .cgroup_exit = (void *)name##_cgroup_exit, \
	.cgroup_set_weight = (void *)name##_cgroup_set_weight,                                \
	.cgroup_set_idle = (void *)name##_cgroup_set_idle

#endif /* __SCX_CGROUP_BPF_H */
