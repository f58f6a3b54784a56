/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of CPUs that user space passes to schedulers that select CPUs with cpus.bpf.h.
 * scx_utils::placement fills it. */
#ifndef __SCX_CPUS_H
#define __SCX_CPUS_H

#include "types.h"

enum {
	SCX_CPUS_MAX = 8192, /* the largest NR_CPUS of the kernel's architectures */
	SCX_CPU_WORDS = SCX_CPUS_MAX / 64,
	SCX_NODES_MAX = 128,
};

/* Capacity of the fastest CPUs. */
#define SCX_CAPACITY_MAX 1024

struct scx_cpu {
	u16 sibling; /* another CPU of the same core, or the CPU itself if there is none */
	u16 llc; /* index of the CPU's last-level cache */
	u16 node; /* index of the CPU's group: a NUMA node, a part of one, or all CPUs */
	u16 capacity; /* up to SCX_CAPACITY_MAX; 0: offline */
	u16 by_capacity; /* in cpu[i]: id of the CPU with rank i, where rank 0 is the fastest */
	u16 is_little; /* 1: the CPU is of a kind that is built for low power */
};

/* Set by user space before it loads the BPF programs, in section .rodata.scx_cpus. */
struct scx_cpus {
	u64 throttle_ns; /* length of an idle phase (throttle.bpf.h); 0: no throttling */
	u64 throttle_run_ns; /* length of a running phase */
	s32 perf_level; /* level requested for all CPUs, 0 to 1024; <0: by utilization */
	u32 nr_cpu_ids; /* all possible CPU ids are smaller */
	u32 nr_online;
	u32 nr_nodes; /* number of groups */
	u32 has_smt;
	u32 is_hybrid; /* capacities differ */
	s32 node_id[SCX_NODES_MAX]; /* the kernel's id of the NUMA node; -1: any */
	/* For each group, the groups of its NUMA node: near_nr groups, from index near_first on. */
	u16 near_first[SCX_NODES_MAX];
	u16 near_nr[SCX_NODES_MAX];
	struct scx_cpu cpu[SCX_CPUS_MAX];
};

/* A bit for each CPU, 1 if the CPU is in the primary domain. If all are 0, there is no primary
 * domain. In section .data.scx_primary. */
struct scx_primary {
	u64 words[SCX_CPU_WORDS];
};

#endif /* __SCX_CPUS_H */
