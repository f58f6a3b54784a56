/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Per-CPU counters. A struct of u64 members holds the counters of a CPU, and user space adds up the
 * structs of all CPUs. Callbacks that are not sleepable do not interrupt each other on a CPU, so
 * their increments need not be atomic.
 */
#ifndef __SCX_COUNTERS_BPF_H
#define __SCX_COUNTERS_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

/* Define the map @name with one struct of type @counters for each CPU. */
#define SCX_PERCPU_COUNTERS(name, counters)              \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, 1);                  \
		__type(key, u32);                        \
		__type(value, counters);                 \
	} name SEC(".maps")

/* Return this CPU's counters in the map @name. The result is never NULL, but the verifier requires
 * a check. */
#define scx_counters(name)                                                       \
	({                                                                       \
		u32 __zero = 0;                                                  \
		(__typeof__((name).value))bpf_map_lookup_elem(&(name), &__zero); \
	})

/* Add one to @member of this CPU's counters. */
#define scx_count(name, member)                                    \
	({                                                         \
		__typeof__((name).value) __c = scx_counters(name); \
		if (__c)                                           \
			__c->member++;                             \
	})

#endif /* __SCX_COUNTERS_BPF_H */
