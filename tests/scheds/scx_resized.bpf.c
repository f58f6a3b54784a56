/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler written for the headers of the kernel's tools/sched_ext, with arrays that user space
 * resizes to the number of CPUs. Each CPU has a DSQ, a time slice and counters.
 */
#include <scx/common.bpf.h>
#include "scx_resized.h"

char _license[] SEC("license") = "GPL";

/* The DSQ of kernel threads, and of tasks for which next_cpu_for() finds no CPU. */
#define SHARED_DSQ (1 << 20)

const volatile u32 nr_cpu_ids = 1;
const volatile u64 error_after;

/* Both arrays have @nr_cpu_ids elements. */
const volatile u64 RESIZABLE_ARRAY(rodata, slice_of_cpu);
struct cpu_stat RESIZABLE_ARRAY(data, cpu_stats);

u64 nr_enqueued;
u64 next_cpu;

UEI_DEFINE(uei);

static struct cpu_stat *lookup_cpu(s32 cpu)
{
	return ARRAY_ELEM_PTR(cpu_stats, cpu, nr_cpu_ids);
}

static u64 slice_of(s32 cpu)
{
	const volatile u64 *slice = ARRAY_ELEM_PTR(slice_of_cpu, cpu, nr_cpu_ids);

	return slice ? *slice : SCX_SLICE_DFL;
}

/* Return the next CPU in round-robin order if it is online and @p may use it, else -1. */
static s32 next_cpu_for(struct task_struct *p)
{
	s32 cpu = __sync_fetch_and_add(&next_cpu, 1) % nr_cpu_ids;
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool good = bpf_cpumask_test_cpu(cpu, online) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);

	scx_bpf_put_cpumask(online);
	return good ? cpu : -1;
}

void BPF_STRUCT_OPS(resized_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 nr = __sync_add_and_fetch(&nr_enqueued, 1);
	struct cpu_stat *stat;
	s32 cpu;

	if (unlikely(nr == error_after))
		scx_bpf_error("failing at enqueue %llu", nr);

	cpu = p->flags & PF_KTHREAD ? -1 : next_cpu_for(p);
	if (cpu < 0) {
		scx_bpf_dsq_insert(p, SHARED_DSQ, SCX_SLICE_DFL, enq_flags);
		return;
	}
	stat = lookup_cpu(cpu);
	if (stat)
		__sync_fetch_and_add(&stat->nr_given, 1);
	scx_bpf_dsq_insert(p, cpu, slice_of(cpu), enq_flags);
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Serve the shared DSQ first, then the CPU's own DSQ. Then serve the DSQs of other CPUs, because
 * tasks there would stall if those CPUs stayed busy. */
void BPF_STRUCT_OPS(resized_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 i;

	if (scx_bpf_dsq_move_to_local(SHARED_DSQ, 0) || scx_bpf_dsq_move_to_local(cpu, 0))
		return;
	bpf_for(i, 0, nr_cpu_ids)
		if (scx_bpf_dsq_move_to_local(i, 0))
			return;
}

void BPF_STRUCT_OPS(resized_running, struct task_struct *p)
{
	struct cpu_stat *stat = lookup_cpu(scx_bpf_task_cpu(p));

	if (stat)
		WRITE_ONCE(stat->started_at, scx_bpf_now());
}

void BPF_STRUCT_OPS(resized_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_stat *stat = lookup_cpu(scx_bpf_task_cpu(p));
	u64 length_ms, i = 0, *count;

	if (!stat)
		return;
	length_ms = time_delta(scx_bpf_now(), READ_ONCE(stat->started_at)) / NSEC_PER_MSEC;
	while (i < 3 && length_ms) {
		length_ms /= 4;
		i++;
	}
	count = MEMBER_VPTR(*stat, .nr_by_length[i]);
	if (count)
		(*count)++;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(resized_init)
{
	u32 i;
	s32 ret;

	bpf_for(i, 0, nr_cpu_ids) {
		ret = scx_bpf_create_dsq(i, -1);
		if (ret)
			return ret;
	}
	return scx_bpf_create_dsq(SHARED_DSQ, -1);
}

void BPF_STRUCT_OPS(resized_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

void BPF_STRUCT_OPS(resized_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	const struct cpu_stat *stat = lookup_cpu(cpu);

	if (stat)
		scx_bpf_dump("resized: %llu tasks were given to CPU %d", stat->nr_given, cpu);
}

/* clang-format off */
SCX_OPS_DEFINE(resized_ops,
	       .enqueue = (void *)resized_enqueue,
	       .dispatch = (void *)resized_dispatch,
	       .running = (void *)resized_running,
	       .stopping = (void *)resized_stopping,
	       .init = (void *)resized_init,
	       .exit = (void *)resized_exit,
	       .dump_cpu = (void *)resized_dump_cpu,
	       .timeout_ms = 20000U,
	       .name = "resized");
/* clang-format on */
