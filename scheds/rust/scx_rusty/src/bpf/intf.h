/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of scx_rusty agree on. */
#ifndef __SCX_RUSTY_INTF_H
#define __SCX_RUSTY_INTF_H

#include <scx/types.h>

enum {
	RUSTY_CPUS_MAX = 8192, /* the kernel's own limit */
	RUSTY_DOMS_MAX = 256,
	RUSTY_DOM_WORDS = RUSTY_DOMS_MAX / 64,
	RUSTY_NODES_MAX = 64,
	RUSTY_NO_DOM = 0xffff, /* of a CPU that is offline */
};

/* Written before the load. Domains of a node have ids in a row. */
struct rusty_config {
	u32 nr_doms;
	u32 nr_nodes;
	u32 greedy_threshold; /* so many wait at least in a domain that is stolen from; 0: never */
	u32 greedy_threshold_x_numa; /* the same of other nodes' domains */
	u32 kthreads_local;
	u32 fifo_sched;
	u32 direct_greedy_numa;
	u32 perf; /* SCX_CPUPERF_ONE is all there is; 0: not ours to say */
	u64 credit_ns; /* of who has slept: so far behind the others he may be */
	u64 half_life_ns; /* of duty cycles */
	u32 first_dom[RUSTY_NODES_MAX + 2]; /* of each node; then nr_doms */
	s32 node_id[RUSTY_NODES_MAX]; /* the kernel's; -1: none */
	u16 node_of_dom[RUSTY_DOMS_MAX];
	u16 dom_of_cpu[RUSTY_CPUS_MAX];
};

/* What the tuner changes, at any time. */
struct rusty_tune {
	u64 slice_ns;
};

/* Runnable tasks of a domain, without those of the scheduler's own process, which would always find
 * itself when it reads this; written by BPF. */
struct rusty_demand {
	u64 weight;
	u64 nr;
};

/* Domains that may be used by others: the argument of rusty_set_greedy(). */
struct rusty_greedy {
	u64 direct[RUSTY_DOM_WORDS];
	u64 kick[RUSTY_DOM_WORDS];
};

/* The argument of rusty_migrate(). */
struct rusty_migration {
	s32 pid;
	u32 dom;
	u64 until_ns; /* not any more then, by the monotonic clock */
};

/* A task that ran lately, as the iterator rusty_loads() writes it. */
struct rusty_load {
	s32 pid;
	u32 dom;
	u32 weight;
	u32 is_kworker;
	u64 duty_cycle; /* fixed point, SCX_RAVG_FRAC_BITS */
	u64 preferred_nodes; /* of its memory policy, the kernel's ids; 0: none */
	u64 allowed[RUSTY_DOM_WORDS];
};

/* Events on one CPU. They only grow. */
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
