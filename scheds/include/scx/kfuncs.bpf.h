/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations of the kernel functions (kfuncs) that schedulers call.
 *
 * A kfunc whose prototype is the same on every kernel from 6.12 on is declared under its own name,
 * weak if the kernel's configuration may exclude it. A kfunc that was added, removed or changed
 * after 6.12, or that has a fallback, is declared weak with a suffix for its variant. libbpf strips
 * the last ___suffix before it looks the symbol up. A ___v2 before that suffix is part of the
 * kernel's name. Schedulers call such a kfunc through its wrapper in compat.bpf.h (scx_bpf_now():
 * time.bpf.h), never directly.
 *
 * A weak declaration that does not match the kernel's prototype stays unresolved without an error:
 * bpf_ksym_exists() is just false. Therefore tests/vm/test_compat.py checks that every declaration
 * is resolved if the kernel has the kfunc.
 */
#ifndef __SCX_KFUNCS_BPF_H
#define __SCX_KFUNCS_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

/* ---- sched_ext: one prototype on all kernels ----------------------------- */
extern s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				  bool *is_idle) __ksym;
extern u32 scx_bpf_dispatch_nr_slots(void) __ksym;
extern void scx_bpf_dispatch_cancel(void) __ksym;
extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
extern void scx_bpf_destroy_dsq(u64 dsq_id) __ksym;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern bool scx_bpf_task_running(const struct task_struct *p) __ksym;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern u32 scx_bpf_nr_cpu_ids(void) __ksym;
extern const struct cpumask *scx_bpf_get_possible_cpumask(void) __ksym;
extern const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
extern void scx_bpf_put_cpumask(const struct cpumask *cpumask) __ksym;
extern const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
extern const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym;
extern void scx_bpf_put_idle_cpumask(const struct cpumask *cpumask) __ksym;
extern bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym;
extern s32 scx_bpf_pick_any_cpu(const struct cpumask *cpus_allowed, u64 flags) __ksym;
extern u32 scx_bpf_cpuperf_cap(s32 cpu) __ksym;
extern u32 scx_bpf_cpuperf_cur(s32 cpu) __ksym;
extern void scx_bpf_cpuperf_set(s32 cpu, u32 perf) __ksym;
extern void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz)
	__ksym;
extern void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
extern void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;

/* DSQ iterator, for bpf_for_each(scx_dsq, p, dsq_id, flags). */
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

/* ---- sched_ext: several variants, called through wrappers ---------------- */

/* Insert into a DSQ. Named scx_bpf_dispatch() in 6.12, scx_bpf_dsq_insert() since 6.13; returns
 * bool since 6.19. */
extern bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, u64 dsq_id, u64 slice,
					  u64 enq_flags) __ksym __weak;
extern void scx_bpf_dsq_insert___void(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
	__ksym __weak;
extern void scx_bpf_dispatch___old(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
	__ksym __weak;

/* Insert into a DSQ by vtime. Named scx_bpf_dispatch_vtime() in 6.12; since 6.19 the arguments are
 * in a struct, and the kfunc returns bool. */
extern bool __scx_bpf_dsq_insert_vtime___new(struct task_struct *p,
					     struct scx_bpf_dsq_insert_vtime_args *args) __ksym
__weak;
extern void scx_bpf_dsq_insert_vtime___void(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
					    u64 enq_flags) __ksym __weak;
extern void scx_bpf_dispatch_vtime___old(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
					 u64 enq_flags) __ksym __weak;

/* Move to the local DSQ. Named scx_bpf_consume() in 6.12; enq_flags since 7.1. */
extern bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id) __ksym __weak;
extern bool scx_bpf_consume___old(u64 dsq_id) __ksym __weak;

/* Move between DSQs within an iteration, renamed in 6.13. */
extern bool scx_bpf_dsq_move___new(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
				   u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dispatch_from_dsq___old(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					    u64 dsq_id, u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_move_vtime___new(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					 u64 dsq_id, u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dispatch_vtime_from_dsq___old(struct bpf_iter_scx_dsq *it,
						  struct task_struct *p, u64 dsq_id, u64 enq_flags)
	__ksym __weak;
extern void scx_bpf_dsq_move_set_slice___new(struct bpf_iter_scx_dsq *it, u64 slice) __ksym __weak;
extern void scx_bpf_dispatch_from_dsq_set_slice___old(struct bpf_iter_scx_dsq *it, u64 slice) __ksym
__weak;
extern void scx_bpf_dsq_move_set_vtime___new(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym __weak;
extern void scx_bpf_dispatch_from_dsq_set_vtime___old(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym
__weak;

/* Pick an idle CPU within a mask. Since 6.16; the arguments are in a struct since 6.19. */
extern s32 __scx_bpf_select_cpu_and___new(struct task_struct *p, const struct cpumask *cpus_allowed,
					  struct scx_bpf_select_cpu_and_args *args) __ksym __weak;
extern s32 scx_bpf_select_cpu_and___args5(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					  const struct cpumask *cpus_allowed, u64 flags) __ksym
__weak;

/* Re-enqueue the tasks of the local DSQ. Before 6.19, callable from ops.cpu_release() only. Since
 * 6.19, callable from any callback, and without a return value. */
extern void scx_bpf_reenqueue_local___v2___new(void) __ksym __weak;
extern u32 scx_bpf_reenqueue_local___v1(void) __ksym __weak;
/* Since 7.1. */
extern void scx_bpf_dsq_reenq___new(u64 dsq_id, u64 reenq_flags) __ksym __weak;

/* Since 6.19. On older kernels, the wrappers write to p->scx. */
extern bool scx_bpf_task_set_slice___new(struct task_struct *p, u64 slice) __ksym __weak;
extern bool scx_bpf_task_set_dsq_vtime___new(struct task_struct *p, u64 vtime) __ksym __weak;

/* Since 6.19. On older kernels, the wrapper takes one step of the DSQ iterator. */
extern struct task_struct *scx_bpf_dsq_peek___new(u64 dsq_id) __ksym __weak;
/* Since 6.18. On older kernels, the wrapper reads scx_bpf_cpu_rq(cpu)->curr. */
extern struct task_struct *scx_bpf_cpu_curr___new(s32 cpu) __ksym __weak;
/* Deprecated since 6.18. */
extern struct rq *scx_bpf_cpu_rq___old(s32 cpu) __ksym __weak;

/* With CONFIG_EXT_GROUP_SCHED only. */
extern struct cgroup *scx_bpf_task_cgroup___group(struct task_struct *p) __ksym __weak;

/* Since 6.15. */
extern void scx_bpf_events___new(struct scx_event_stats *events, size_t events__sz) __ksym __weak;

/* Since 6.14. */
extern u64 scx_bpf_now___new(void) __ksym __weak;

/* Idle tracking per NUMA node. Since 6.15. */
extern u32 scx_bpf_nr_node_ids___new(void) __ksym __weak;
extern s32 scx_bpf_cpu_node___new(s32 cpu) __ksym __weak;
extern const struct cpumask *scx_bpf_get_idle_cpumask_node___new(s32 node) __ksym __weak;
extern const struct cpumask *scx_bpf_get_idle_smtmask_node___new(s32 node) __ksym __weak;
extern s32 scx_bpf_pick_idle_cpu_node___new(const struct cpumask *cpus_allowed, s32 node, u64 flags)
	__ksym __weak;
extern s32 scx_bpf_pick_any_cpu_node___new(const struct cpumask *cpus_allowed, s32 node, u64 flags)
	__ksym __weak;

/* ---- generic kfuncs, except those of bpf_for(), which libbpf declares ----- */
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern struct cgroup *bpf_cgroup_from_id(u64 cgid) __ksym;
extern struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
extern struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

/* Cgroup iterator, for bpf_for_each(css, pos, root, BPF_CGROUP_ITER_*). */
extern int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
			    unsigned int flags) __ksym __weak;
extern struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym __weak;
extern void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym __weak;

/* Allocated objects. The *_impl() kfuncs are called through objects.bpf.h. The verifier fills in
 * @meta and @off. */
extern void *bpf_obj_new_impl(u64 local_type_id, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *obj, void *meta) __ksym;
extern void *bpf_refcount_acquire_impl(void *obj, void *meta) __ksym;
extern int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			       bool (*less)(struct bpf_rb_node *a, const struct bpf_rb_node *b),
			       void *meta, u64 off) __ksym;
extern struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)
	__ksym;
extern struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym;
extern int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				    void *meta, u64 off) __ksym;
extern int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				   void *meta, u64 off) __ksym;
extern struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head) __ksym;

/* Arena memory. Before 7.2 only sleepable programs may call these kfuncs. */
extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *addr, u32 page_cnt, int node_id,
					   u64 flags) __ksym __weak;
extern void bpf_arena_free_pages(void *map, void __arena *ptr, u32 page_cnt) __ksym __weak;

extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *cpumask) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *cpumask) __ksym;
extern u32 bpf_cpumask_first(const struct cpumask *cpumask) __ksym;
extern u32 bpf_cpumask_first_zero(const struct cpumask *cpumask) __ksym;
extern u32 bpf_cpumask_first_and(const struct cpumask *src1, const struct cpumask *src2) __ksym;
extern void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
extern void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
extern bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
extern bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask) __ksym;
extern void bpf_cpumask_setall(struct bpf_cpumask *cpumask) __ksym;
extern void bpf_cpumask_clear(struct bpf_cpumask *cpumask) __ksym;
extern bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *src1,
			    const struct cpumask *src2) __ksym;
extern void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *src1,
			   const struct cpumask *src2) __ksym;
extern void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *src1,
			    const struct cpumask *src2) __ksym;
extern bool bpf_cpumask_equal(const struct cpumask *src1, const struct cpumask *src2) __ksym;
extern bool bpf_cpumask_intersects(const struct cpumask *src1, const struct cpumask *src2) __ksym;
extern bool bpf_cpumask_subset(const struct cpumask *src1, const struct cpumask *src2) __ksym;
extern bool bpf_cpumask_empty(const struct cpumask *cpumask) __ksym;
extern bool bpf_cpumask_full(const struct cpumask *cpumask) __ksym;
extern void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src) __ksym;
extern u32 bpf_cpumask_any_distribute(const struct cpumask *src) __ksym;
extern u32 bpf_cpumask_any_and_distribute(const struct cpumask *src1, const struct cpumask *src2)
	__ksym;
extern u32 bpf_cpumask_weight(const struct cpumask *cpumask) __ksym;

#endif /* __SCX_KFUNCS_BPF_H */
