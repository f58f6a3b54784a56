/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_fifo: first in, first out.
 *
 * On wakeup a task goes directly to an idle CPU if there is one. Otherwise, and when its slice ends
 * while other tasks wait, it goes to the end of the only queue of the machine, which per-CPU kernel
 * threads bypass. A CPU whose local DSQ is empty takes the first task of the queue that may run on
 * the CPU. Weights are ignored, tasks are not preempted before their slices end, and the only
 * option besides those of all schedulers is --slice-us. This is the smallest BPF scheduler of this
 * tree with a user-space side in Rust. Copy it to start your own.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

/*
 * Time within which all waiting tasks should run once, even on a single CPU. More than 8000 tasks
 * need more time, because of MIN_SLICE_NS. The value is well below the timeouts of the kernel's
 * watchdog (30 s) and of RCU stall warnings (21 s).
 */
#define MAX_WAIT_NS (8 * NSEC_PER_SEC)

/* Slices shrink to no less than this. The kernel checks slices at ticks, which are at least 1 ms
 * apart. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

/* Maximum slice, set by --slice-us. */
const volatile u64 slice_ns = 20 * NSEC_PER_MSEC;

SCX_PERCPU_COUNTERS(counts, struct fifo_counts);

s32 BPF_STRUCT_OPS(fifo_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu;

	cpu = scx_select_cpu(p, prev_cpu, &wake_flags, SHARED_DSQ, &is_idle);
	if (is_idle) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns,
				   scx_immed_unless_sync(cpu, wake_flags));
		scx_count(counts, nr_local);
	}
	return cpu;
}

/* Return the slice of a task. It shrinks as the queue grows, to bound the wait of the last task. */
static u64 shared_slice_ns(void)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(SHARED_DSQ);

	return scx_slice_shared(slice_ns, MAX_WAIT_NS, nr_queued > 0 ? nr_queued : 0, MIN_SLICE_NS);
}

void BPF_STRUCT_OPS(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Other tasks depend on per-CPU kernel threads, so these bypass the shared queue. */
	if (scx_task_is_percpu_kthread(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		scx_count(counts, nr_kthreads);
		return;
	}
	scx_insert_fifo(p, SHARED_DSQ, shared_slice_ns(), enq_flags);
	scx_kick_for_queued(p, enq_flags);
	scx_count(counts, nr_queued);
}

void BPF_STRUCT_OPS(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_dispatch_from(SHARED_DSQ);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(fifo_init)
{
	return scx_bpf_create_dsq(SHARED_DSQ, -1);
}

void BPF_STRUCT_OPS(fifo_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(fifo_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("fifo: slice_ns=%llu, %d queued", slice_ns, scx_bpf_dsq_nr_queued(SHARED_DSQ));
}

SCX_OPS(fifo_ops) = {
	.select_cpu = (void *)fifo_select_cpu,
	.enqueue = (void *)fifo_enqueue,
	.dispatch = (void *)fifo_dispatch,
	.init = (void *)fifo_init,
	.exit = (void *)fifo_exit,
	.dump = (void *)fifo_dump,
	.name = "fifo",
};
