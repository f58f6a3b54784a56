/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps, and the variables that user space sets. */
#ifndef __SCXTOP_MAPS_BPF_H
#define __SCXTOP_MAPS_BPF_H

#include <scx/types.bpf.h>
#include <bpf/bpf_helpers.h>
#include "intf.h"

/* The LLC (lower half) and the node (upper half) of each CPU. Changed on CPU hotplug. */
u64 places[TOP_CPUS_MAX] SEC(".data.top_places");

/* Whether tasks have counters: a trace alone needs none. */
const volatile u32 with_counters;

/* What user space sets while the programs run. */
volatile struct top_control control SEC(".data.top_control");

/* Whether an insertion into a DSQ was ever counted. */
u32 has_insertions;

/* The possible CPUs. User space sets the size, and read_cpus fills in the entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct top_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct top_observed_cpu);
} observed_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct top_lost);
} losses SEC(".maps");

/* What the programs have observed of a task. */
struct top_observed {
	u64 woken_ns; /* time of its last wakeup, until it runs; 0: none */
	u64 dsq_id; /* the DSQ that it was last inserted into */
	u64 sum_exec_ns; /* se.sum_exec_runtime at the last reading */
	u32 has_dsq; /* dsq_id is valid */
	u32 wakeups[TOP_BUCKETS]; /* latencies of its wakeups */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct top_observed);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TOP_DSQS_MAX);
	__type(key, u64);
	__type(value, struct top_dsq);
} dsqs SEC(".maps");

/* Insertions, by the address of the task: a kprobe gets its task as a plain number, which
 * bpf_task_storage_get() does not accept. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TOP_INSERTED_MAX);
	__type(key, u64);
	__type(value, struct top_inserted);
} inserted SEC(".maps");

/*
 * Records of a trace. Each CPU has a ring of ring_size records, so that CPUs do not contend for a
 * lock. User space sets the sizes of the maps: `rings` has an entry per CPU, and `events` has
 * ring_size entries per CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct top_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct top_event);
} events SEC(".maps");

/* Number of records in the ring of a CPU, a power of two. */
const volatile u32 ring_size = 1;

static inline struct top_lost *this_cpu_losses(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&losses, &zero);
}

#endif /* __SCXTOP_MAPS_BPF_H */
