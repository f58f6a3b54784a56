/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names that BPF sources written for the kernel's own sched_ext headers use: thin wrappers around
 * the names of this library (docs/upstream.md).
 */
#ifndef __SCX_UPSTREAM_BPF_H
#define __SCX_UPSTREAM_BPF_H

#include "compat.bpf.h"

/* Define the table of callbacks. The arguments after @name initialize its members. */
#define SCX_OPS_DEFINE(name, members...) \
	SEC(".struct_ops.link") struct sched_ext_ops name = { members }

/* The running kernel's value of an enumerator of enums.bpf.h, 0 if the kernel lacks it. */
#define __COMPAT_ENUM_OR_ZERO(type, name) SCX_ENUM(type, name##___k)

/* ---- names and arguments of older kernels ---------------------------------- */

#define scx_bpf_dispatch(p, dsq_id, slice, enq_flags) \
	scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags)
#define scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, enq_flags) \
	scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags)
#define scx_bpf_consume(dsq_id) scx_bpf_dsq_move_to_local(dsq_id, 0)
#define scx_bpf_dispatch_from_dsq(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move(it, p, dsq_id, enq_flags)
#define scx_bpf_dispatch_vtime_from_dsq(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move_vtime(it, p, dsq_id, enq_flags)
#define scx_bpf_dispatch_from_dsq_set_slice(it, slice) scx_bpf_dsq_move_set_slice(it, slice)
#define scx_bpf_dispatch_from_dsq_set_vtime(it, vtime) scx_bpf_dsq_move_set_vtime(it, vtime)

#define scx_bpf_cpu_rq(cpu) scx_bpf_cpu_rq___old(cpu)

/* Sources for kernels before 7.1 pass @dsq_id only. (enq_flags + 0) then becomes (+ 0). */
#define scx_bpf_dsq_move_to_local(dsq_id, enq_flags...) \
	scx_bpf_dsq_move_to_local(dsq_id, (enq_flags + 0))

/* ---- wrappers with the prefix __COMPAT_ ------------------------------------ */

#define __COMPAT_scx_bpf_dsq_move(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move(it, p, dsq_id, enq_flags)
#define __COMPAT_scx_bpf_dsq_move_vtime(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move_vtime(it, p, dsq_id, enq_flags)
#define __COMPAT_scx_bpf_dsq_move_set_slice(it, slice) scx_bpf_dsq_move_set_slice(it, slice)
#define __COMPAT_scx_bpf_dsq_move_set_vtime(it, vtime) scx_bpf_dsq_move_set_vtime(it, vtime)
#define __COMPAT_scx_bpf_task_cgroup(p) scx_bpf_task_cgroup(p)

/*
 * Whether ops.select_cpu() has been called before this enqueue. On a kernel without
 * SCX_ENQ_CPU_SELECTED, the result is always true. Such a kernel calls ops.select_cpu() for each
 * wakeup of a task that may use several CPUs.
 */
static inline bool __COMPAT_is_enq_cpu_selected(u64 enq_flags)
{
	return !SCX_ENQ_CPU_SELECTED || (enq_flags & SCX_ENQ_CPU_SELECTED);
}

/* Fill @events of @size bytes, with zeros if the kernel has no event counters. */
static __always_inline void __COMPAT_scx_bpf_events(struct scx_event_stats *events, size_t size)
{
	__builtin_memset(events, 0, size);
	if (bpf_ksym_exists(scx_bpf_events___new))
		scx_bpf_events___new(events, size);
}

/* Counter @name of @events, 0 if the kernel has no such counter. */
#define scx_read_event(events, name) (bpf_core_field_exists((events)->name) ? (events)->name : 0)

#endif /* __SCX_UPSTREAM_BPF_H */
