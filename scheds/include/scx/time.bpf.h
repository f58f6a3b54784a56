/* SPDX-License-Identifier: GPL-2.0-only */
/* The clock of BPF schedulers. Comparisons are in time.h. */
#ifndef __SCX_TIME_BPF_H
#define __SCX_TIME_BPF_H

#include "kfuncs.bpf.h"
#include "time.h"

/* The last time returned on each CPU, for kernels without scx_bpf_now(). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} scx_now_last SEC(".maps");

/*
 * Return the current time in ns, monotonic per CPU and nearly synchronous between CPUs. Since 6.14,
 * it is the run queue's clock, which is cheaper to read than bpf_ktime_get_ns(), but must not be
 * compared with it. Before 6.14, it is bpf_ktime_get_ns(), which may step back by a few ns when the
 * kernel adjusts the clock during the read. Such steps are suppressed.
 */
static inline u64 scx_bpf_now(void)
{
	u64 now, *last;
	u32 zero = 0;

	if (bpf_ksym_exists(scx_bpf_now___new))
		return scx_bpf_now___new();

	now = bpf_ktime_get_ns();
	last = bpf_map_lookup_elem(&scx_now_last, &zero);
	if (!last)
		return now;
	*last = time_max(now, *last);
	return *last;
}

/* Return CLOCK_MONOTONIC in ns, comparable with times of user space. More expensive than
 * scx_bpf_now(). */
static inline u64 scx_monotonic_now(void)
{
	return bpf_ktime_get_ns();
}

#endif /* __SCX_TIME_BPF_H */
