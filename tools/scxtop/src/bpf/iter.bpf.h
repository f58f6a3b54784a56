/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs that user space runs to read CPUs, tasks, and the depths of DSQs. */
#ifndef __SCXTOP_ITER_BPF_H
#define __SCXTOP_ITER_BPF_H

#include <scx/iter.bpf.h>
#include "counters.bpf.h"

/* Absent in kernels without sched_ext. */
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym __weak;

static void describe(struct top_task *r, struct task_struct *p)
{
	r->pid = p->pid;
	r->tgid = p->tgid;
	r->prio = p->prio;
	r->class = class_of(p);
	r->start_ns = counted(p)->start_time;
	copy_comm(r->comm, p);
	r->weight = 0;
	r->slice_ns = r->dsq_vtime = 0;
	if (!bpf_core_field_exists(p->scx) || r->class != TOP_CLASS_EXT)
		return;
	r->weight = p->scx.weight;
	r->slice_ns = p->scx.slice;
	r->dsq_vtime = p->scx.dsq_vtime;
}

static void fill(struct top_task *r, struct task_struct *p, struct top_observed *t)
{
	u64 clock = rq_clock();

	r->run_ns = run_ns(p, clock);
	r->wait_ns = wait_ns(p, clock);
	r->nr_switches = counted(p)->sched_info.pcount;
	r->nr_sleeps = counted(p)->nvcsw;
	r->nr_preemptions = counted(p)->nivcsw;
	r->nr_migrations = counted(p)->se.nr_migrations;
	r->cpu = cpu_of(p);
	r->dsq_id = t->dsq_id;
	r->has_dsq = t->has_dsq;
	__builtin_memcpy(r->wakeups, t->wakeups, sizeof(r->wakeups));
	describe(r, p);
}

/* The record to write, which is too large for the stack of BPF programs. One is enough, because
 * user space runs one iterator at a time. */
static struct top_task record;

/* Write a struct top_task for each task that is runnable or has run since the last struct was
 * written for it; for all tasks if control.is_complete is set. */
SEC("iter/task")
int read_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct top_observed *t;
	u64 sum_exec_ns;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	record.state = task_state(p);
	sum_exec_ns = counted(p)->se.sum_exec_runtime;
	if (!control.is_complete && record.state == TOP_SLEEPING && sum_exec_ns == t->sum_exec_ns)
		return 0;
	fill(&record, p, t);
	/* If the buffer is full, the kernel calls the program again for this task. */
	if (!bpf_seq_write(ctx->meta->seq, &record, sizeof(record)))
		t->sum_exec_ns = sum_exec_ns;
	return 0;
}

/* Fill in the counters of the CPUs. */
SEC("syscall")
int read_cpus(void *ctx)
{
	u64 clock = rq_clock();
	int cpu;

	bpf_for(cpu, 0, control.nr_cpus)
		read_cpu(cpu, clock);
	return 0;
}

/* A variable, not the context of read_depths: before 7.0, contexts cannot be accessed at variable
 * offsets. */
struct top_depths dsq_depths SEC(".data.top_depths");

/* Fill in the depths of the DSQs. */
SEC("syscall")
int read_depths(void *ctx)
{
	u32 i;

	for (i = 0; i < TOP_DEPTHS_MAX && i < dsq_depths.nr; i++)
		dsq_depths.depths[i] = bpf_ksym_exists(scx_bpf_dsq_nr_queued) ?
					       scx_bpf_dsq_nr_queued(dsq_depths.dsq_ids[i]) :
					       -ENOENT;
	return 0;
}

#endif /* __SCXTOP_ITER_BPF_H */
