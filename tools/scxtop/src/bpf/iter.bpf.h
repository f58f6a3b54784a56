/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space reads by running a program: tasks, and depths of DSQs. */
#ifndef __SCXTOP_ITER_BPF_H
#define __SCXTOP_ITER_BPF_H

#include "counters.bpf.h"

/* Absent in kernels without sched_ext. */
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym __weak;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct seq_file {
} __attribute__((preserve_access_index));

/* Add the time in the current state up to @now. */
static void add_current(struct top_task *t, u64 now)
{
	if (!t->since_ns || (s64)(now - t->since_ns) < 0)
		return;
	if (t->state == TOP_RUNNING)
		t->run_ns += now - t->since_ns;
	else if (t->state == TOP_WAITING)
		t->wait_ns += now - t->since_ns;
}

struct task_struct___start {
	u64 start_time;
} __attribute__((preserve_access_index));

static void complete(struct top_task *t, struct task_struct *p)
{
	t->pid = p->pid;
	t->tgid = p->tgid;
	t->prio = p->prio;
	t->class = class_of(p);
	t->start_ns = BPF_CORE_READ((struct task_struct___start *)p, start_time);
	bpf_probe_read_kernel(t->comm, sizeof(t->comm), p->comm);
	if (!bpf_core_field_exists(p->scx) || t->class != TOP_CLASS_EXT)
		return;
	t->weight = p->scx.weight;
	t->slice_ns = p->scx.slice;
	t->dsq_vtime = p->scx.dsq_vtime;
}

/* A record too large for the stack of BPF programs. User space runs one iterator at a time. */
static struct top_task record;

/* Write a struct top_task for each task that was active since control.active_since_ns. */
SEC("iter/task")
int read_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct top_task *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || (t->last_ns < control.active_since_ns && !t->since_ns))
		return 0;
	__builtin_memcpy(&record, t, sizeof(record));
	add_current(&record, scx_monotonic_now());
	complete(&record, p);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

/* Not the context of read_depths: before 7.0 that has no variable offsets. */
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
