/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Insertions into DSQs. The names of the kernel functions that insert tasks differ between kernels.
 * User space has a list of them (collect/insert.rs), and attaches the programs to those functions
 * that the running kernel has.
 */
#ifndef __SCXTOP_INSERT_BPF_H
#define __SCXTOP_INSERT_BPF_H

#include "counters.bpf.h"
#include "trace.bpf.h"

/* All local DSQs are counted as one. */
static u64 essential_dsq_id(u64 dsq_id)
{
	if ((dsq_id & SCX_DSQ_LOCAL_ON) == SCX_DSQ_LOCAL_ON)
		return SCX_DSQ_LOCAL;
	return dsq_id;
}

struct insertion {
	u64 dsq_id;
	u64 slice_ns;
	u64 vtime;
	u64 enq_flags;
	bool by_vtime;
};

static void on_insert(struct task_struct *p, const struct insertion *in)
{
	u64 now, dsq_id = essential_dsq_id(in->dsq_id);
	struct top_event *event;

	/* The probes stay attached between windows, because the kernel takes a long time to detach
	 * them. */
	if (!control.observed_since_ns && !control.is_tracing)
		return;
	now = scx_monotonic_now();
	if (control.observed_since_ns)
		count_insert((u64)p, dsq_id, in->by_vtime, in->vtime, now);
	event = begin_event(TOP_EVENT_INSERT, now);
	if (!event)
		return;
	event->dsq_id = dsq_id;
	event->vtime = in->vtime;
	event->slice_ns = in->slice_ns;
	event->enq_flags = in->enq_flags;
	event->task.pid = BPF_CORE_READ(p, pid);
	event->task.tgid = BPF_CORE_READ(p, tgid);
	event->task.prio = BPF_CORE_READ(p, prio);
	event->task.class = TOP_CLASS_EXT;
	BPF_CORE_READ_INTO(&event->task.comm, p, comm);
	end_event(event);
}

SEC("kprobe")
int BPF_KPROBE(on_insert_fifo, struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 enq_flags)
{
	struct insertion in = { .dsq_id = dsq_id, .slice_ns = slice_ns, .enq_flags = enq_flags };

	on_insert(p, &in);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(on_insert_vtime, struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 vtime,
	       u64 enq_flags)
{
	struct insertion in = {
		.dsq_id = dsq_id,
		.slice_ns = slice_ns,
		.vtime = vtime,
		.enq_flags = enq_flags,
		.by_vtime = true,
	};

	on_insert(p, &in);
	return 0;
}

SEC("kprobe")
int BPF_KPROBE(on_insert_args, struct task_struct *p, struct scx_bpf_dsq_insert_vtime_args *args)
{
	struct scx_bpf_dsq_insert_vtime_args a;
	struct insertion in = { .by_vtime = true };

	if (bpf_probe_read_kernel(&a, sizeof(a), args))
		return 0;
	in.dsq_id = a.dsq_id;
	in.slice_ns = a.slice;
	in.vtime = a.vtime;
	in.enq_flags = a.enq_flags;
	on_insert(p, &in);
	return 0;
}

/* A move between DSQs. A move that fails, because the task has left its DSQ meanwhile, is counted
 * too. The slice and the vtime are left out, because they are known only if they were set for this
 * move. */
SEC("kprobe")
int BPF_KPROBE(on_move, void *it, struct task_struct *p, u64 dsq_id, u64 enq_flags)
{
	struct insertion in = { .dsq_id = dsq_id, .enq_flags = enq_flags };

	on_insert(p, &in);
	return 0;
}

#endif /* __SCXTOP_INSERT_BPF_H */
