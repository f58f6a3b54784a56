/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One name and one prototype for each kfunc or feature that differs between the kernels from 6.12
 * to 7.2.
 *
 * A wrapper has the name and the arguments that the newest kernel uses, tries the newest kfunc
 * first and documents what it does on an older kernel. Functions whose interface differs from that
 * of a kfunc are named scx_*, not scx_bpf_*. The kfunc is chosen at load time: bpf_ksym_exists()
 * and bpf_core_*_exists() become constants, and the verifier drops the branches not taken. So the
 * choice costs nothing at run time, and a wrapper may name kfuncs that the kernel lacks. The
 * kernel's version is never tested, because distributions backport kfuncs.
 *
 * Not wrapped, because there is no fallback: sub-schedulers, and callbacks and kfuncs that take
 * cids instead of CPU numbers (7.1); scx_bpf_tid_to_task() (7.2); scx_bpf_locked_rq() (6.18).
 *
 * Differences that no wrapper can hide:
 *  - scx_bpf_select_cpu_dfl() from ops.enqueue() aborts the scheduler on 6.12.
 *  - Since 6.15, a callback that holds the lock of one CPU's run queue aborts the scheduler if it
 *    calls scx_bpf_cpuperf_set() for another CPU.
 *  - On 7.2, the kernel calls ops.dequeue() whenever a task is dispatched from a user DSQ. On 6.12,
 *    it does so only if a task is dequeued before it is dispatched.
 */
#ifndef __SCX_COMPAT_BPF_H
#define __SCX_COMPAT_BPF_H

#include "kfuncs.bpf.h"
#include <bpf/bpf_core_read.h>

/* ---- inserting into a DSQ ------------------------------------------------ */

/*
 * Insert @p into a FIFO DSQ. @slice is in ns; with 0, @p keeps its remaining slice. Returns whether
 * @p was inserted. Before 6.19, the kernel does not report this, and the result is always true.
 */
static inline bool scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		return scx_bpf_dsq_insert___v2___new(p, dsq_id, slice, enq_flags);
	if (bpf_ksym_exists(scx_bpf_dsq_insert___void))
		scx_bpf_dsq_insert___void(p, dsq_id, slice, enq_flags);
	else
		scx_bpf_dispatch___old(p, dsq_id, slice, enq_flags);
	return true;
}

/* Insert @p into a user DSQ ordered by @vtime. Returns the same as scx_bpf_dsq_insert(). */
static inline bool scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
					    u64 enq_flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = dsq_id,
		.slice = slice,
		.vtime = vtime,
		.enq_flags = enq_flags,
	};

	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime___new))
		return __scx_bpf_dsq_insert_vtime___new(p, &args);
	if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___void))
		scx_bpf_dsq_insert_vtime___void(p, dsq_id, slice, vtime, enq_flags);
	else
		scx_bpf_dispatch_vtime___old(p, dsq_id, slice, vtime, enq_flags);
	return true;
}

/* ---- taking from a DSQ --------------------------------------------------- */

/*
 * Move the first task that may run on this CPU from @dsq_id to the local DSQ. Returns false if
 * there is no such task. @enq_flags are ignored before 7.1.
 */
static inline bool scx_bpf_dsq_move_to_local(u64 dsq_id, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq_id, enq_flags);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(dsq_id);
	return scx_bpf_consume___old(dsq_id);
}

/* The address of the iterator that the innermost bpf_for_each() of libbpf declares. */
#define BPF_FOR_EACH_ITER (&___it)

/*
 * Within bpf_for_each(scx_dsq, p, …): move @p to the DSQ @dsq_id. @it is BPF_FOR_EACH_ITER. Returns
 * false if @p is no longer in the DSQ of the iteration. On 6.12, this kfunc and the next three are
 * named scx_bpf_dispatch_*from_dsq*().
 */
static inline bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
				    u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move___new))
		return scx_bpf_dsq_move___new(it, p, dsq_id, enq_flags);
	return scx_bpf_dispatch_from_dsq___old(it, p, dsq_id, enq_flags);
}

static inline bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					  u64 dsq_id, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_vtime___new))
		return scx_bpf_dsq_move_vtime___new(it, p, dsq_id, enq_flags);
	return scx_bpf_dispatch_vtime_from_dsq___old(it, p, dsq_id, enq_flags);
}

/* Set the slice (ns) or the vtime that the next scx_bpf_dsq_move*() of this iteration gives to the
 * moved task. */
static inline void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_set_slice___new))
		scx_bpf_dsq_move_set_slice___new(it, slice);
	else
		scx_bpf_dispatch_from_dsq_set_slice___old(it, slice);
}

static inline void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_set_vtime___new))
		scx_bpf_dsq_move_set_vtime___new(it, vtime);
	else
		scx_bpf_dispatch_from_dsq_set_vtime___old(it, vtime);
}

/*
 * Return the first task of a user DSQ, or NULL. No lock is held afterwards, so another CPU may take
 * the task at any moment. Before 6.19 this uses the iterator, which takes the DSQ's lock.
 */
static inline struct task_struct *scx_bpf_dsq_peek(u64 dsq_id)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p = NULL;

	if (bpf_ksym_exists(scx_bpf_dsq_peek___new))
		return scx_bpf_dsq_peek___new(dsq_id);

	if (!bpf_iter_scx_dsq_new(&it, dsq_id, 0))
		p = bpf_iter_scx_dsq_next(&it);
	bpf_iter_scx_dsq_destroy(&it);
	return p;
}

/* ---- re-enqueueing ------------------------------------------------------- */

/* Whether scx_bpf_reenqueue_local() may be called from any callback. Before 6.19 it may be called
 * from ops.cpu_release() only. */
static inline bool scx_can_reenqueue_anywhere(void)
{
	return bpf_ksym_exists(scx_bpf_reenqueue_local___v2___new);
}

/* Send the tasks of this CPU's local DSQ through ops.enqueue() again. */
static inline void scx_bpf_reenqueue_local(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___v2___new))
		scx_bpf_reenqueue_local___v2___new();
	else
		scx_bpf_reenqueue_local___v1();
}

/*
 * Re-enqueue the tasks of a DSQ. Before 7.1 this works for SCX_DSQ_LOCAL only, with the limits of
 * scx_bpf_reenqueue_local(). For any other DSQ it then returns false and does nothing.
 */
static inline bool scx_dsq_reenq(u64 dsq_id, u64 reenq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_reenq___new)) {
		scx_bpf_dsq_reenq___new(dsq_id, reenq_flags);
		return true;
	}
	if (dsq_id != SCX_DSQ_LOCAL)
		return false;
	scx_bpf_reenqueue_local();
	return true;
}

/* ---- tasks --------------------------------------------------------------- */

/* Set the remaining slice of @p, ns. Before 6.19, this writes the member directly. Newer kernels
 * accept such a write, but warn about it, so this calls the kfunc there. */
static inline void scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice___new))
		scx_bpf_task_set_slice___new(p, slice);
	else
		p->scx.slice = slice;
}

static inline void scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime___new))
		scx_bpf_task_set_dsq_vtime___new(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

/* Return the cgroup of @p, which must be the task that the current callback is called for. Without
 * CONFIG_EXT_GROUP_SCHED, return the root cgroup. Release the cgroup with bpf_cgroup_release(). */
static inline struct cgroup *scx_bpf_task_cgroup(struct task_struct *p)
{
	if (bpf_ksym_exists(scx_bpf_task_cgroup___group))
		return scx_bpf_task_cgroup___group(p);
	return bpf_cgroup_from_id(1);
}

/*
 * Return the element of @p in the task storage @map, NULL on failure. If there is no such element,
 * create it. The allocator of 7.2 does not wait for locks, and fails if another CPU holds one. So
 * this tries up to 16 times: without the element, ops.init_task() might have to fail, and with it
 * the fork.
 */
#define scx_create_task_storage(map, p)                                                   \
	({                                                                                \
		__typeof__((map).value) __element = NULL;                                 \
		int __i;                                                                  \
		bpf_for(__i, 0, 16) {                                                     \
			__element = bpf_task_storage_get(&(map), p, NULL,                 \
							 BPF_LOCAL_STORAGE_GET_F_CREATE); \
			if (__element)                                                    \
				break;                                                    \
		}                                                                         \
		__element;                                                                \
	})

/* ---- cgroups ------------------------------------------------------------- */

/* Whether the kernel calls ops.cgroup_set_idle() (since 6.19). */
static inline bool scx_reports_cgroup_idle(void)
{
	return bpf_core_field_exists(struct sched_ext_ops, cgroup_set_idle);
}

/* Whether cpu.idle of @cgrp is set. Always false on kernels that do not report changes of cpu.idle,
 * because a value that was read once might be out of date. */
static inline bool scx_cgroup_is_idle(struct cgroup *cgrp)
{
	void *subsys = (void *)cgrp + bpf_core_field_offset(cgrp->subsys);
	struct task_group *tg = NULL;

	if (!scx_reports_cgroup_idle())
		return false;
	bpf_probe_read_kernel(&tg, sizeof(tg), subsys + CPU_CGRP_ID * sizeof(tg));
	return BPF_CORE_READ(tg, idle) != 0;
}

/* Whether the kernel reports cpu.max to ops.cgroup_init(), and its changes to
 * ops.cgroup_set_bandwidth() (since 6.17). */
static inline bool scx_reports_cgroup_max(void)
{
	return bpf_core_field_exists(struct scx_cgroup_init_args, bw_quota_us);
}

/* Return the cgroup of the task in ops.init_task(), NULL without CONFIG_EXT_GROUP_SCHED. */
static inline struct cgroup *scx_init_task_cgroup(struct scx_init_task_args *args)
{
	return bpf_core_field_exists(args->cgroup) ? args->cgroup : NULL;
}

/* ---- CPUs ---------------------------------------------------------------- */

/* Return the task that runs on @cpu, or NULL if there is no such CPU. Call it under RCU. Before
 * 6.18, the task is read from the run queue. Since 6.18, the kfunc that returns the run queue is
 * deprecated. */
static inline struct task_struct *scx_bpf_cpu_curr(s32 cpu)
{
	struct rq *rq;

	if (bpf_ksym_exists(scx_bpf_cpu_curr___new))
		return scx_bpf_cpu_curr___new(cpu);
	rq = scx_bpf_cpu_rq___old(cpu);
	return rq ? rq->curr : NULL;
}

/* Claim an idle CPU within @mask. Returns a negative errno if there is none. As in the built-in
 * selection of 6.12, CPUs of fully idle cores come before other idle CPUs, and within each of these
 * groups, @prev_cpu comes first. With SCX_PICK_IDLE_CORE in @flags, only CPUs of fully idle cores
 * are considered. */
static inline s32 __scx_pick_idle_in(const struct cpumask *mask, s32 prev_cpu, u64 flags)
{
	bool prev_allowed = bpf_cpumask_test_cpu(prev_cpu, mask);
	const struct cpumask *idle_cores;
	bool prev_core_idle;
	s32 cpu;

	idle_cores = scx_bpf_get_idle_smtmask();
	prev_core_idle = prev_allowed && bpf_cpumask_test_cpu(prev_cpu, idle_cores);
	scx_bpf_put_idle_cpumask(idle_cores);

	if (prev_core_idle && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	cpu = scx_bpf_pick_idle_cpu(mask, SCX_PICK_IDLE_CORE);
	if (cpu >= 0 || (flags & SCX_PICK_IDLE_CORE))
		return cpu;
	if (prev_allowed && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
		return prev_cpu;
	return scx_bpf_pick_idle_cpu(mask, 0);
}

/*
 * Pick and claim an idle CPU that is in @cpus_allowed and in p->cpus_ptr. Returns a negative errno
 * if there is none. @flags: SCX_PICK_IDLE_*. Call it only from ops.select_cpu() and ops.enqueue().
 * Before 6.16, __scx_pick_idle_in() replaces the kfunc, and @wake_flags is ignored.
 */
static inline s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					 const struct cpumask *cpus_allowed, u64 flags)
{
	struct scx_bpf_select_cpu_and_args args = {
		.prev_cpu = prev_cpu,
		.wake_flags = wake_flags,
		.flags = flags,
	};
	struct bpf_cpumask *mask;
	s32 cpu;

	if (bpf_ksym_exists(__scx_bpf_select_cpu_and___new))
		return __scx_bpf_select_cpu_and___new(p, cpus_allowed, &args);
	if (bpf_ksym_exists(scx_bpf_select_cpu_and___args5))
		return scx_bpf_select_cpu_and___args5(p, prev_cpu, wake_flags, cpus_allowed, flags);

	mask = bpf_cpumask_create();
	if (!mask)
		return -ENOMEM;
	bpf_cpumask_and(mask, p->cpus_ptr, cpus_allowed);
	cpu = __scx_pick_idle_in((const struct cpumask *)mask, prev_cpu, flags);
	bpf_cpumask_release(mask);
	return cpu;
}

/* ---- NUMA nodes (6.15) --------------------------------------------------- */

/* Return the number of possible node ids; 1 if the kernel does not report it. */
static inline u32 scx_bpf_nr_node_ids(void)
{
	return bpf_ksym_exists(scx_bpf_nr_node_ids___new) ? scx_bpf_nr_node_ids___new() : 1;
}

static inline s32 scx_bpf_cpu_node(s32 cpu)
{
	return bpf_ksym_exists(scx_bpf_cpu_node___new) ? scx_bpf_cpu_node___new(cpu) : 0;
}

/*
 * The CPUs of one node. Schedulers that call these functions must set
 * SCX_OPS_BUILTIN_IDLE_PER_NODE, which was added to the kernel together with the kfuncs. On kernels
 * without the kfuncs, @node is ignored and the functions refer to the CPUs of the whole machine.
 */
static inline const struct cpumask *scx_bpf_get_idle_cpumask_node(s32 node)
{
	if (bpf_ksym_exists(scx_bpf_get_idle_cpumask_node___new))
		return scx_bpf_get_idle_cpumask_node___new(node);
	return scx_bpf_get_idle_cpumask();
}

static inline const struct cpumask *scx_bpf_get_idle_smtmask_node(s32 node)
{
	if (bpf_ksym_exists(scx_bpf_get_idle_smtmask_node___new))
		return scx_bpf_get_idle_smtmask_node___new(node);
	return scx_bpf_get_idle_smtmask();
}

static inline s32 scx_bpf_pick_idle_cpu_node(const struct cpumask *cpus_allowed, s32 node,
					     u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_pick_idle_cpu_node___new))
		return scx_bpf_pick_idle_cpu_node___new(cpus_allowed, node, flags);
	return scx_bpf_pick_idle_cpu(cpus_allowed, flags);
}

static inline s32 scx_bpf_pick_any_cpu_node(const struct cpumask *cpus_allowed, s32 node, u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_pick_any_cpu_node___new))
		return scx_bpf_pick_any_cpu_node___new(cpus_allowed, node, flags);
	return scx_bpf_pick_any_cpu(cpus_allowed, flags);
}

/* ---- event counters (6.15) ----------------------------------------------- */

/* Upper bound of the number of counters in the kernel's struct scx_event_stats (7.2 has 13). */
#define SCX_EVENTS_MAX 64

struct scx_event_buf {
	s64 counters[SCX_EVENTS_MAX];
};

/* Fill @buf. Returns false, and leaves @buf unchanged, if the kernel has no event counters. */
static inline bool scx_events_read(struct scx_event_buf *buf)
{
	if (!bpf_ksym_exists(scx_bpf_events___new))
		return false;
	__builtin_memset(buf, 0, sizeof(*buf));
	scx_bpf_events___new((struct scx_event_stats *)buf, sizeof(*buf));
	return true;
}

/* Return counter @name (SCX_EV_*) of a filled buffer, 0 if the kernel lacks it. */
#define scx_event_count(buf, name)                                                        \
	({                                                                                \
		u32 __off = bpf_core_field_exists(struct scx_event_stats, name) ?         \
				    bpf_core_field_offset(struct scx_event_stats, name) : \
				    sizeof(*(buf));                                       \
		u32 __idx = __off / sizeof((buf)->counters[0]);                           \
		__idx < SCX_EVENTS_MAX ? (buf)->counters[__idx] : 0;                      \
	})

#endif /* __SCX_COMPAT_BPF_H */
