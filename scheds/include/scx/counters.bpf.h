/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of each CPU: a struct of u64 that user space sums up. Callbacks on one CPU do not
 * interrupt each other, so a plain increment is enough.
 */
#ifndef __SCX_COUNTERS_BPF_H
#define __SCX_COUNTERS_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

/* Defines the map @name, one @counters for each CPU. */
#define SCX_PERCPU_COUNTERS(name, counters)              \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, 1);                  \
		__type(key, u32);                        \
		__type(value, counters);                 \
	} name SEC(".maps")

/* The counters of this CPU in map @name; never NULL, but the verifier wants it checked. */
#define scx_counters(name)                                                       \
	({                                                                       \
		u32 __zero = 0;                                                  \
		(__typeof__((name).value))bpf_map_lookup_elem(&(name), &__zero); \
	})

/* Adds one to @member of this CPU's counters. */
#define scx_count(name, member)                                    \
	({                                                         \
		__typeof__((name).value) __c = scx_counters(name); \
		if (__c)                                           \
			__c->member++;                             \
	})

#endif /* __SCX_COUNTERS_BPF_H */
