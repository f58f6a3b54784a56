/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks of low weight bypass the policy: they are served in FIFO order. */
#include <rustland/rustland.bpf.h>

/* The lowest weight that is subject to the policy. */
const volatile u32 weight_min;

/* Number of enqueues that bypassed the policy because of a low weight. */
u64 nr_background SEC(".data.own");

void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->scx.weight >= weight_min) {
		RL_DEFAULT(enqueue, p, enq_flags);
		return;
	}
	__sync_fetch_and_add(&nr_background, 1);
	rl_enqueue_fallback(p, enq_flags);
}

RL_OPS(own_ops, .enqueue = (void *)own_enqueue);
