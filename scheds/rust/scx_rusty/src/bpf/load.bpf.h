/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF iterator with which user space reads the loads of tasks. */
#ifndef __RUSTY_LOAD_BPF_H
#define __RUSTY_LOAD_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct nodemask___rusty {
	unsigned long bits[1];
};

/* A typedef, because nodemask_t is a typedef in the kernel. */
typedef struct nodemask___rusty nodemask_t___rusty;

struct mempolicy {
	unsigned short mode;
	nodemask_t___rusty nodes;
};

struct task_struct___mempolicy {
	struct mempolicy *mempolicy;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* uapi/linux/mempolicy.h */
#define MPOL_PREFERRED 1
#define MPOL_BIND 2
#define MPOL_PREFERRED_MANY 5

/* The iterator skips tasks with a lower duty cycle. */
#define DUTY_CYCLE_MIN (SCX_RAVG_ONE / 1000)

/* Return the nodes that the task's memory policy prefers, by the kernel's ids; 0 if there are
 * none. */
static u64 preferred_nodes(struct task_struct *p)
{
	struct task_struct___mempolicy *with = (void *)p;
	struct mempolicy *policy;
	unsigned short mode;

	if (!bpf_core_field_exists(with->mempolicy))
		return 0;
	policy = BPF_CORE_READ(with, mempolicy);
	if (!policy)
		return 0;
	mode = BPF_CORE_READ(policy, mode);
	if (mode != MPOL_PREFERRED && mode != MPOL_BIND && mode != MPOL_PREFERRED_MANY)
		return 0;
	return BPF_CORE_READ(policy, nodes.bits[0]);
}

/* Write a record of each task that was runnable recently. */
SEC("iter/task")
int rusty_loads(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct rusty_load load = {};
	struct rusty_task *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&rusty_tasks, p, NULL, 0);
	if (!t)
		return 0;
	load.duty_cycle = rusty_duty_read(&t->duty, scx_bpf_now(), config.half_life_ns);
	if (load.duty_cycle < DUTY_CYCLE_MIN)
		return 0;
	load.pid = p->pid;
	/* A pending migration counts as done, so that the balancer does not repeat it. */
	load.dom = next_dom(t);
	load.weight = weight_of(p, t);
	load.is_kworker = !!(p->flags & PF_WQ_WORKER);
	load.preferred_nodes = preferred_nodes(p);
	__builtin_memcpy(load.allowed, t->allowed, sizeof(load.allowed));
	bpf_seq_write(ctx->meta->seq, &load, sizeof(load));
	return 0;
}

#endif /* __RUSTY_LOAD_BPF_H */
