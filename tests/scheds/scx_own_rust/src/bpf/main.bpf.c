/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy is not asked about tasks of little weight: they are served in order of arrival. */
#include <rustland/rustland.bpf.h>

/* The least weight that the policy is asked about. */
const volatile u32 weight_min;

/* Tasks that it was not asked about for that. */
u64 nr_background SEC(".data.own");

void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->scx.weight >= weight_min) {
		RL_DEFAULT(enqueue, p, enq_flags);
		return;
	}
	__sync_fetch_and_add(&nr_background, 1);
	rl_serve_unasked(p, enq_flags);
}

RL_OPS(own_ops, .enqueue = (void *)own_enqueue);
