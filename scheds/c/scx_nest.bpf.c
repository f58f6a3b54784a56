/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_nest: keeps the work on few CPUs, so that these stay warm and the other CPUs can sleep
 * deeply.
 *
 * A CPU in constant use has a high frequency and a warm cache. CPUs that are used in rotation have
 * neither. So each CPU belongs to one of two nests, or to none:
 *
 *  - The primary nest consists of the CPUs in use. A task that wakes up is placed on an idle
 *    primary CPU if possible: the CPU that the task is attached to (where it has run twice in a
 *    row), its previous CPU, with --idle-cores a CPU of a fully idle core, or else the idle primary
 *    CPU with the lowest number.
 *  - The reserve nest consists of up to r_max CPUs that were in use recently. If no primary CPU is
 *    idle, the task is placed on an idle reserve CPU, which then joins the primary nest.
 *
 * If no CPU of either nest is idle, the task is placed on an idle CPU of no nest, rather than made
 * to wait. That CPU joins the primary nest if the task is impatient, else the reserve nest unless
 * the reserve nest is full. A task is impatient if it found no idle primary CPU on r_impatient
 * wakeups in a row. A CPU that takes a task from the queue, or whose task continues when its slice
 * ends, joins the primary nest too. Thus the primary nest grows with the load. It shrinks by
 * compaction: a CPU that was idle for p_remove_ns, or whose last task has exited, is demoted to the
 * reserve nest, or to no nest if the reserve nest is full.
 *
 * Tasks that find no idle CPU wait in one queue by weighted virtual time, as in scx_simple.
 */
#include <scx/common.bpf.h>
#include <scx/barrier.h>
#include <scx/exit_info.bpf.h>
#include <scx/fair.bpf.h>
#include <scx/immed.bpf.h>
#include "scx_nest.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0

const volatile u64 p_remove_ns = 2 * NSEC_PER_MSEC;
const volatile u32 r_max = 5;
/* A task becomes impatient after this number of consecutive wakeups on which it found no idle
 * primary CPU; 0: never. */
const volatile u32 r_impatient = 2;
const volatile u64 slice_ns; /* 0: the kernel's default */
const volatile bool find_fully_idle;

private(NESTS) struct bpf_cpumask __kptr *primary;
private(NESTS) struct bpf_cpumask __kptr *reserve;
/* Number of CPUs in each nest. */
u32 nr_primary, nr_reserve;

static struct scx_fair_queue queue;

SCX_PERCPU_COUNTERS(stats, struct nest_stats);

struct task_ctx {
	u32 attached_to; /* CPU + 1; 0: none */
	u32 nr_misses; /* consecutive wakeups without an idle primary CPU */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed, the next call tries again. */
static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

struct cpu_ctx {
	struct bpf_timer compaction;
	u32 is_armed; /* the timer is pending, or is about to be started */
	u64 idle_since_ns; /* when the primary CPU became idle; 0 once it has got a task */
};

/* One entry per possible CPU. User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_ctx);
} cpu_ctxs SEC(".maps");

static struct cpu_ctx *cpu_ctx(s32 cpu)
{
	return bpf_map_lookup_elem(&cpu_ctxs, &cpu);
}

/* ---- membership ---------------------------------------------------------- */

static bool is_primary(s32 cpu)
{
	struct bpf_cpumask *mask = primary;

	return mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask));
}

/* Add @cpu to the reserve nest. Returns false if the nest is full, or already has @cpu. */
static bool add_reserve(s32 cpu)
{
	struct bpf_cpumask *mask = reserve;

	if (!mask || bpf_cpumask_test_cpu(cpu, cast_mask(mask)))
		return false;
	if (nr_reserve >= r_max) {
		scx_count(stats, reserved_at_capacity);
		return false;
	}
	if (bpf_cpumask_test_and_set_cpu(cpu, mask))
		return false;
	__sync_fetch_and_add(&nr_reserve, 1);
	return true;
}

static void promote(s32 cpu)
{
	struct bpf_cpumask *to = primary, *from = reserve;

	if (!to || !from || bpf_cpumask_test_cpu(cpu, cast_mask(to)))
		return;
	if (bpf_cpumask_test_and_clear_cpu(cpu, from))
		__sync_fetch_and_sub(&nr_reserve, 1);
	if (!bpf_cpumask_test_and_set_cpu(cpu, to)) {
		__sync_fetch_and_add(&nr_primary, 1);
		scx_count(stats, promoted_to_primary);
	}
}

/* Move @cpu from the primary nest to the reserve nest, or to no nest if the reserve nest is full.
 * Returns false if @cpu is not in the primary nest, as when another CPU has just demoted it. */
static bool demote(s32 cpu)
{
	struct bpf_cpumask *mask = primary;

	if (!mask || !bpf_cpumask_test_and_clear_cpu(cpu, mask))
		return false;
	__sync_fetch_and_sub(&nr_primary, 1);
	if (add_reserve(cpu))
		scx_count(stats, demoted_to_reserved);
	return true;
}

/* ---- compaction ---------------------------------------------------------- */

/* Start the timer of @ctx, unless the timer is already armed. */
static void arm_compaction(struct cpu_ctx *ctx, u64 after_ns)
{
	if (!scx_ordered(__sync_lock_test_and_set(&ctx->is_armed, 1)))
		bpf_timer_start(&ctx->compaction, after_ns, 0);
}

/*
 * Timer callback of @cpu: demote the CPU if it has been idle for p_remove_ns. The timer is not
 * cancelled when the CPU gets a task: that would cost a start and a cancellation for each short
 * idle period, while the timer expires at most twice per p_remove_ns.
 */
static int compact(void *map, s32 *cpu, struct cpu_ctx *ctx)
{
	u64 idle_since_ns, idle_ns;

	/* Clear the flag before the check, so that a CPU that becomes idle later arms the timer. */
	scx_ordered(__sync_lock_test_and_set(&ctx->is_armed, 0));
	idle_since_ns = READ_ONCE(ctx->idle_since_ns);
	if (!idle_since_ns) {
		scx_count(stats, cancelled_compaction);
		return 0;
	}
	idle_ns = time_delta(scx_monotonic_now(), idle_since_ns);
	if (idle_ns < p_remove_ns) {
		arm_compaction(ctx, p_remove_ns - idle_ns);
		return 0;
	}
	/* The verifier treats this callback as sleepable, because the program that sets the
	 * callback is sleepable. */
	bpf_rcu_read_lock();
	if (demote(*cpu))
		scx_count(stats, callback_compacted);
	bpf_rcu_read_unlock();
	return 0;
}

/* Note that @cpu becomes idle. @prev is its last task, or NULL. */
static void note_idle(s32 cpu, const struct task_struct *prev)
{
	struct cpu_ctx *ctx = cpu_ctx(cpu);

	if (!ctx || !is_primary(cpu))
		return;
	/* A task that exits does not come back: demote its CPU at once, unless no other CPU is in
	 * the primary nest. */
	if (prev && prev->flags & PF_EXITING && nr_primary > 1) {
		if (demote(cpu))
			scx_count(stats, eagerly_compacted);
		return;
	}
	if (ctx->idle_since_ns)
		return;
	WRITE_ONCE(ctx->idle_since_ns, scx_monotonic_now());
	scx_count(stats, scheduled_compaction);
	arm_compaction(ctx, p_remove_ns);
}

static void note_busy(s32 cpu)
{
	struct cpu_ctx *ctx = cpu_ctx(cpu);

	if (ctx && ctx->idle_since_ns)
		ctx->idle_since_ns = 0;
}

/* ---- placement ----------------------------------------------------------- */

static bool claim_primary(const struct task_struct *p, s32 cpu)
{
	return cpu >= 0 && is_primary(cpu) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* Claim the idle CPU of @mask with the lowest number, so that tasks stay together. Returns a
 * negative number if no CPU of @mask is idle. */
static s32 claim_first(const struct cpumask *mask)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u32 cpu = bpf_cpumask_first_and(mask, idle);

	scx_bpf_put_idle_cpumask(idle);
	if (cpu >= scx_bpf_nr_cpu_ids())
		return -EBUSY;
	if (scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	/* Another CPU has just claimed @cpu. */
	return scx_bpf_pick_idle_cpu(mask, 0);
}

/* Claim an idle CPU of @nest that @p may use, and count it in one of the two counters. Returns a
 * negative number if there is none. */
static s32 claim_in(const struct task_struct *p, struct bpf_cpumask *nest, u64 *nr_fully_idle,
		    u64 *nr_any_idle)
{
	struct bpf_cpumask *mask = nest ? bpf_cpumask_create() : NULL;
	s32 cpu = -EBUSY;

	if (!mask)
		return cpu;
	bpf_cpumask_and(mask, cast_mask(nest), p->cpus_ptr);
	if (find_fully_idle)
		cpu = scx_bpf_pick_idle_cpu(cast_mask(mask), SCX_PICK_IDLE_CORE);
	if (cpu >= 0) {
		(*nr_fully_idle)++;
	} else {
		cpu = claim_first(cast_mask(mask));
		if (cpu >= 0)
			(*nr_any_idle)++;
	}
	bpf_cpumask_release(mask);
	return cpu;
}

/* Claim an idle primary CPU for @p. Returns a negative number if there is none. */
static s32 claim_in_primary(struct task_struct *p, s32 prev_cpu, struct task_ctx *tctx,
			    struct nest_stats *c)
{
	s32 attached_cpu = (s32)tctx->attached_to - 1;

	if (claim_primary(p, attached_cpu)) {
		c->wakeup_attached++;
		return attached_cpu;
	}
	if (claim_primary(p, prev_cpu)) {
		c->wakeup_prev_primary++;
		return prev_cpu;
	}
	return claim_in(p, primary, &c->wakeup_fully_idle_primary, &c->wakeup_any_idle_primary);
}

/* Claim an idle CPU outside of the primary nest for @p, and update the nests. Returns a negative
 * number if there is none. */
static s32 claim_in_others(struct task_struct *p, struct task_ctx *tctx, struct nest_stats *c)
{
	bool is_impatient = r_impatient && ++tctx->nr_misses >= r_impatient;
	s32 cpu;

	if (is_impatient) {
		c->task_impatient++;
		tctx->nr_misses = 0;
	}
	cpu = claim_in(p, reserve, &c->wakeup_fully_idle_reserve, &c->wakeup_any_idle_reserve);
	if (cpu >= 0) {
		promote(cpu);
		return cpu;
	}
	cpu = claim_first(p->cpus_ptr);
	if (cpu < 0)
		return cpu;
	/* A primary CPU has become idle in the meantime. */
	if (is_primary(cpu)) {
		c->wakeup_any_idle_primary++;
		return cpu;
	}
	c->wakeup_idle_other++;
	if (is_impatient)
		promote(cpu);
	else if (add_reserve(cpu))
		c->promoted_to_reserved++;
	return cpu;
}

s32 BPF_STRUCT_OPS(nest_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	struct nest_stats *c = scx_counters(stats);
	s32 cpu;

	if (!tctx || !c)
		return prev_cpu;
	cpu = claim_in_primary(p, prev_cpu, tctx, c);
	if (cpu >= 0)
		tctx->nr_misses = 0;
	else
		cpu = claim_in_others(p, tctx, c);
	if (cpu < 0)
		return prev_cpu;
	if (cpu == prev_cpu)
		tctx->attached_to = cpu + 1;
	note_busy(cpu);
	scx_fair_bypass(&queue, p);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, queue.slice_ns, SCX_ENQ_IMMED);
	return cpu;
}

void BPF_STRUCT_OPS(nest_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* Per-CPU kernel threads bypass the shared queue, because other tasks depend on them. */
	if (scx_task_is_percpu_kthread(p)) {
		scx_fair_bypass(&queue, p);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, queue.slice_ns, enq_flags);
		return;
	}
	scx_fair_insert(&queue, p, enq_flags);
	scx_kick_for_queued(p, enq_flags);
}

void BPF_STRUCT_OPS(nest_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_fair_dispatch(&queue, cpu, prev)) {
		scx_count(stats, consumed);
		promote(cpu);
		return;
	}
	scx_count(stats, not_consumed);
	if (prev && prev->scx.flags & SCX_TASK_QUEUED) {
		scx_bpf_task_set_slice(prev, queue.slice_ns);
		promote(cpu);
	} else {
		note_idle(cpu, prev);
	}
}

/* ---- accounting and life cycle ------------------------------------------- */

void BPF_STRUCT_OPS(nest_quiescent, struct task_struct *p, u64 deq_flags)
{
	scx_fair_quiescent(&queue, p);
}

void BPF_STRUCT_OPS(nest_running, struct task_struct *p)
{
	note_busy(scx_bpf_task_cpu(p));
}

void BPF_STRUCT_OPS(nest_set_weight, struct task_struct *p, u32 weight)
{
	scx_fair_set_weight(p);
}

void BPF_STRUCT_OPS(nest_enable, struct task_struct *p)
{
	scx_fair_enable(&queue, p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(nest_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	task_ctx(p);
	scx_fair_init_task(p);
	return 0;
}

static s32 init_timers(void)
{
	s32 nr_cpus = scx_bpf_nr_cpu_ids(), cpu;

	bpf_for(cpu, 0, nr_cpus) {
		struct cpu_ctx *ctx = cpu_ctx(cpu);

		if (!ctx || bpf_timer_init(&ctx->compaction, &cpu_ctxs, CLOCK_MONOTONIC) ||
		    bpf_timer_set_callback(&ctx->compaction, compact))
			return -ENOMEM;
	}
	return 0;
}

/* Store an empty mask in @slot. */
static s32 init_nest(struct bpf_cpumask **slot)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(slot, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(nest_init)
{
	s32 err = init_nest(&primary) ?: init_nest(&reserve) ?: init_timers();

	return err ?: scx_fair_init(&queue, SHARED_DSQ, slice_ns ?: SCX_SLICE_DFL);
}

void BPF_STRUCT_OPS(nest_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(nest_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("nest: %u primary, %u reserve, %d queued", nr_primary, nr_reserve,
		     scx_bpf_dsq_nr_queued(SHARED_DSQ));
}

void BPF_STRUCT_OPS(nest_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct bpf_cpumask *mask = reserve;

	if (is_primary(cpu))
		scx_bpf_dump("nest: primary");
	else if (mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask)))
		scx_bpf_dump("nest: reserve");
}

SCX_OPS(nest_ops) = {
	.select_cpu = (void *)nest_select_cpu,
	.enqueue = (void *)nest_enqueue,
	.dispatch = (void *)nest_dispatch,
	.quiescent = (void *)nest_quiescent,
	.running = (void *)nest_running,
	.set_weight = (void *)nest_set_weight,
	.enable = (void *)nest_enable,
	.init_task = (void *)nest_init_task,
	.init = (void *)nest_init,
	.exit = (void *)nest_exit,
	.dump = (void *)nest_dump,
	.dump_cpu = (void *)nest_dump_cpu,
	.name = "nest",
};
