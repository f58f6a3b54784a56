/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_rusty. */
#ifndef __SCX_RUSTY_INTF_H
#define __SCX_RUSTY_INTF_H

#include <scx/types.h>

enum {
	RUSTY_CPUS_MAX = 8192, /* the largest CONFIG_NR_CPUS of all architectures */
	RUSTY_DOMS_MAX = 256,
	RUSTY_DOM_WORDS = RUSTY_DOMS_MAX / 64,
	RUSTY_NODES_MAX = 64,
	RUSTY_NO_DOM = 0xffff, /* the domain of an offline CPU */
};

/* Set by user space before it loads the BPF programs. The ids of the domains of a node are
 * consecutive. */
struct rusty_config {
	u32 nr_doms;
	u32 nr_nodes;
	/* A CPU steals from a domain of its node if at least this many tasks wait there; 0: only
	 * rescue() takes tasks from there. */
	u32 greedy_threshold;
	u32 greedy_threshold_x_numa; /* the same for domains of other nodes */
	u32 kthreads_local;
	u32 fifo_sched;
	u32 direct_greedy_numa;
	u32 perf; /* performance level to request, up to SCX_CPUPERF_ONE; 0: none */
	u64 credit_ns; /* how far a task's vtime may be behind its domain's after a sleep, ns */
	u64 short_slice_ns; /* slice of tasks with a short average runtime: slice_ns() */
	u64 half_life_ns; /* half-life of duty cycles */
	u32 first_dom[RUSTY_NODES_MAX + 1]; /* first domain of each node, then nr_doms */
	u32 cgroups; /* honour the weights of cgroups */
	s32 node_id[RUSTY_NODES_MAX]; /* the kernel's ids of the nodes */
	u16 node_of_dom[RUSTY_DOMS_MAX];
	u16 dom_of_cpu[RUSTY_CPUS_MAX];
};

/* Changed at any time by the tuner (tuner.rs). */
struct rusty_tune {
	u64 slice_ns;
};

/* Runnable tasks of a domain, counted by BPF: the number of tasks, shifted left by
 * RUSTY_DEMAND_NR_SHIFT, plus the sum of their weights. Both are in one word, so that one atomic
 * operation updates them: there are at most 2^22 tasks, of weights up to 10000. Threads of the
 * scheduler's own process are not counted, because the thread that reads the numbers is always
 * runnable when it reads them. */
#define RUSTY_DEMAND_NR_SHIFT 40

/* Argument of rusty_set_greedy(): sets of domains, one bit for each domain. */
struct rusty_greedy {
	u64 direct[RUSTY_DOM_WORDS]; /* their idle CPUs may be used by wakees of other domains */
	u64 kick[RUSTY_DOM_WORDS]; /* their idle CPUs are kicked to steal tasks */
};

/* Argument of rusty_migrate(). */
struct rusty_migration {
	s32 pid;
	u32 dom;
	u64 until_ns; /* expiry, CLOCK_MONOTONIC */
};

/* A task that was runnable recently, as written by the iterator rusty_loads(). */
struct rusty_load {
	s32 pid;
	u32 dom; /* domain, or destination of a pending migration */
	u32 weight; /* the effective weight, if rusty_config.cgroups is set */
	u32 is_kworker;
	u64 duty_cycle; /* average share of time runnable, SCX_RAVG_FRAC_BITS fractional bits */
	u64 preferred_nodes; /* nodes of the memory policy, a bit for each kernel id; 0: none */
	u64 allowed[RUSTY_DOM_WORDS]; /* domains with a CPU in the task's affinity */
};

/* Event counters of one CPU. ClusterStats in stats.rs describes the events. */
struct rusty_counts {
	u64 wake_sync_prev_idle;
	u64 wake_sync;
	u64 prev_idle;
	u64 greedy_idle;
	u64 pinned;
	u64 direct;
	u64 greedy;
	u64 greedy_far;
	u64 dsq_dispatch;
	u64 greedy_local;
	u64 greedy_xnuma;
	u64 kick_greedy;
	u64 repatriate;
	u64 preempt;
	u64 dl_clamp;
	u64 dl_preset;
	u64 migrations;
	u64 task_get_err;
};

#endif /* __SCX_RUSTY_INTF_H */
