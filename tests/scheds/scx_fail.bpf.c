/* SPDX-License-Identifier: GPL-2.0-only */
/* A FIFO scheduler that fails on request, for tests of the runner. */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>

char _license[] SEC("license") = "GPL";

/* Return value of ops.init(): 0 or a negative errno. */
const volatile s32 init_error;
/* The scheduler fails at enqueue error_after, loses tasks from enqueue stall_after on, and exits
 * with exit_code at enqueue exit_after. 0 means never. */
const volatile u64 error_after;
const volatile u64 stall_after;
const volatile u64 exit_after;
const volatile u64 exit_code;

u64 nr_enqueued;

/* Without this callback, the kernel would dispatch tasks directly to idle CPUs, without
 * ops.enqueue(). */
s32 BPF_STRUCT_OPS(fail_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

void BPF_STRUCT_OPS(fail_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 nr = __sync_add_and_fetch(&nr_enqueued, 1);

	if (nr == error_after)
		scx_bpf_error("failing after %llu enqueues as asked", nr);
	if (nr == exit_after)
		scx_bpf_exit(exit_code, "leaving after %llu enqueues as asked", nr);
	/* Lose only tasks of low weight. The scheduler's own process has to run to report the exit.
	 * Its weight is 100, or more while the runner has raised its priority. */
	if (stall_after && nr >= stall_after && !(p->flags & PF_KTHREAD) &&
	    p->scx.weight < SCX_WEIGHT_DFL)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(fail_init)
{
	return init_error;
}

void BPF_STRUCT_OPS(fail_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(fail_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("fail: %llu enqueued", nr_enqueued);
}

SCX_OPS(fail_ops) = {
	.select_cpu = (void *)fail_select_cpu,
	.enqueue = (void *)fail_enqueue,
	.init = (void *)fail_init,
	.exit = (void *)fail_exit,
	.dump = (void *)fail_dump,
	/* With a shorter timeout, a slow guest could cause a stall without --stall-after. */
	.timeout_ms = 5000,
	.name = "fail",
};
