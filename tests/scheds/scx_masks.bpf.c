/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scheduler written for the headers of the kernel's tools/sched_ext, with CPU masks as kptrs: a
 * mask of the preferred CPUs, and a scratch mask for each CPU.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

const volatile u64 slice_ns = 5 * NSEC_PER_MSEC;
const volatile u64 error_after;
/* The CPUs below this number are preferred. */
const volatile u32 nr_preferred = 2;

u64 nr_enqueued, nr_preferred_idle, nr_other_idle;

UEI_DEFINE(uei);

private(MASKS) struct bpf_cpumask __kptr *preferred;

struct cpu_ctx {
	struct bpf_cpumask __kptr *scratch;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_ctx);
} cpu_ctxs SEC(".maps");

/* Claim an idle preferred CPU that @p may use. Return a negative errno if there is none. */
static s32 pick_preferred(struct task_struct *p)
{
	struct bpf_cpumask *mask, *wanted;
	struct cpu_ctx *cctx;
	u32 zero = 0;
	s32 cpu = -EBUSY;

	bpf_rcu_read_lock();
	cctx = bpf_map_lookup_elem(&cpu_ctxs, &zero);
	mask = cctx ? cctx->scratch : NULL;
	wanted = preferred;
	if (mask && wanted) {
		bpf_cpumask_and(mask, p->cpus_ptr, cast_mask(wanted));
		cpu = scx_bpf_pick_idle_cpu(cast_mask(mask), 0);
	}
	bpf_rcu_read_unlock();
	return cpu;
}

s32 BPF_STRUCT_OPS(masks_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = pick_preferred(p);

	if (cpu >= 0) {
		__sync_fetch_and_add(&nr_preferred_idle, 1);
		scx_bpf_dispatch(p, SCX_DSQ_LOCAL, slice_ns, 0);
		return cpu;
	}
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	if (is_idle) {
		__sync_fetch_and_add(&nr_other_idle, 1);
		scx_bpf_dispatch(p, SCX_DSQ_LOCAL, slice_ns, 0);
	}
	return cpu;
}

void BPF_STRUCT_OPS(masks_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 nr = __sync_add_and_fetch(&nr_enqueued, 1);

	if (nr == error_after)
		scx_bpf_error("failing at enqueue %llu", nr);
	scx_bpf_dispatch(p, SHARED_DSQ, slice_ns, enq_flags);
}

void BPF_STRUCT_OPS(masks_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_consume(SHARED_DSQ);
}

/* Store a mask with the first @nr_cpus CPUs in the empty @slot. */
static s32 fill_slot(struct bpf_cpumask **slot, u32 nr_cpus)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 i;

	if (!mask)
		return -ENOMEM;
	bpf_for(i, 0, nr_cpus)
		bpf_cpumask_set_cpu(i, mask);
	mask = bpf_kptr_xchg(slot, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(masks_init)
{
	s32 nr_cpus = scx_bpf_nr_cpu_ids();
	struct cpu_ctx *cctx;
	u32 zero = 0;
	s32 cpu, ret;

	bpf_for(cpu, 0, nr_cpus) {
		cctx = bpf_map_lookup_percpu_elem(&cpu_ctxs, &zero, cpu);
		if (!cctx)
			return -ENOENT;
		ret = fill_slot(&cctx->scratch, 0);
		if (ret)
			return ret;
	}
	ret = fill_slot(&preferred, nr_preferred);
	if (ret)
		return ret;
	return scx_bpf_create_dsq(SHARED_DSQ, -1);
}

void BPF_STRUCT_OPS(masks_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

void BPF_STRUCT_OPS(masks_dump, struct scx_dump_ctx *dctx)
{
	struct scx_event_stats events;

	__COMPAT_scx_bpf_events(&events, sizeof(events));
	scx_bpf_dump("masks: %u CPUs preferred, %llu enqueued, %lld times bypassed", nr_preferred,
		     nr_enqueued, scx_read_event(&events, SCX_EV_BYPASS_ACTIVATE));
}

/* clang-format off */
SCX_OPS_DEFINE(masks_ops,
	       .select_cpu = (void *)masks_select_cpu,
	       .enqueue = (void *)masks_enqueue,
	       .dispatch = (void *)masks_dispatch,
	       .init = (void *)masks_init,
	       .exit = (void *)masks_exit,
	       .dump = (void *)masks_dump,
	       .timeout_ms = 20000U,
	       .name = "masks");
/* clang-format on */
