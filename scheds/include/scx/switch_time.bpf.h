/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time of a context switch, for programs of the tracepoint sched_switch. If several programs
 * observe a switch, the first one reads the clock, and the others get the same time. So records of
 * different tools agree to the nanosecond. For this, the tools share a map: before it loads its
 * programs, user space calls share_switch_times() of the crate scx_utils.
 */
#ifndef __SCX_SWITCH_TIME_BPF_H
#define __SCX_SWITCH_TIME_BPF_H

#include "types.bpf.h"
#include "time.bpf.h"

/* The last observed switch of a CPU. */
struct scx_switch_time {
	u64 nr_switches; /* the kernel's number of this switch on this CPU, from 1 on */
	u64 time_ns; /* of the monotonic clock */
};

/* A tool finds the map of another tool by its name. The name has 15 characters, because the kernel
 * would cut a longer one. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scx_switch_time);
} scx_switch_time SEC(".maps");

struct rq___switch_time {
	u64 nr_switches;
} __attribute__((preserve_access_index));

extern const struct rq runqueues __ksym;

/* Return the time of the current context switch of this CPU, ns of the monotonic clock. Only for
 * programs of the tracepoint sched_switch, where the kernel has already counted the switch. */
static inline u64 scx_switch_time_ns(void)
{
	struct rq___switch_time *rq = (struct rq___switch_time *)bpf_this_cpu_ptr(&runqueues);
	struct scx_switch_time *last;
	u32 zero = 0;

	last = bpf_map_lookup_elem(&scx_switch_time, &zero);
	if (!last)
		return scx_monotonic_now();
	if (last->nr_switches != rq->nr_switches) {
		last->nr_switches = rq->nr_switches;
		last->time_ns = scx_monotonic_now();
	}
	return last->time_ns;
}

#endif /* __SCX_SWITCH_TIME_BPF_H */
