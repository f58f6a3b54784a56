/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_flatcg: cgroup weights, honoured at every level by one queue.
 *
 * The hierarchy is flattened: a task's share of the machine is the product of the relative weights
 * of the task and of all cgroups above it (scx/cgroup.bpf.h). A weight is relative to the sum of
 * the weights of all runnable tasks and active cgroups that have the same parent. A cgroup is
 * active while it has runnable tasks, at any depth. A task's virtual time advances by its CPU time
 * divided by its share, and one queue for the whole machine serves the task with the smallest
 * virtual time. So the cost of a decision does not depend on the number of cgroups, and tasks that
 * may run only on some CPUs compete by the same rule as all other tasks.
 */
#include <scx/cgroup_max.bpf.h>
#include <scx/cgroup_vtime.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/kick.bpf.h>
#include "scx_flatcg.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0
/* Tasks whose cgroups have used up a quota, ordered by the time of the next check of each task. */
#define PARKED_DSQ 1

/* Period of the timer that checks parked tasks, while any cgroup has a quota. */
#define UNPARK_NS (5 * NSEC_PER_MSEC)

/* Maximum time between two checks of a parked task, since quotas may change. */
#define RECHECK_NS (100 * NSEC_PER_MSEC)

/* Maximum time for which a quota holds a task back. This time and the wait in the shared queue
 * (about 8 s at most) add up to well below the timeout of the kernel's watchdog (30 s). */
#define PARKED_MAX_NS (8 * NSEC_PER_SEC)

/* Minimum slice: the period of the tick with HZ=1000. With shorter slices, the overhead of context
 * switches would grow. */
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

/* Maximum cost of a slice, ns of virtual time: a task with 1/100 of the machine runs for 10 ms at
 * most. So tasks with small shares run often and briefly, rather than rarely and for long. */
#define SLICE_COST_NS (1 * NSEC_PER_SEC)

const volatile u64 slice_max_ns = 20 * NSEC_PER_MSEC;

SCX_PERCPU_COUNTERS(stats, struct flatcg_stats);

struct task_ctx {
	bool is_parked; /* from park() until the task runs, sleeps or is enqueued again */
	u64 parked_ns; /* when the task was parked */
	/* The task's virtual time while it is parked. Meanwhile p->scx.dsq_vtime is the time of its
	 * next check, because PARKED_DSQ is ordered by these times. */
	u64 vtime;
	struct scx_cgroup_task cg;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed, the next call tries again, and the task counts as a member of the root
 * cgroup. */
static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static void charge(struct task_struct *p, struct task_ctx *tctx)
{
	scx_cgroup_max_charge(&tctx->cg, p->se.sum_exec_runtime - tctx->cg.charged_ns);
	if (!scx_cgroup_task_charge(p, &tctx->cg, SHARED_DSQ))
		scx_count(stats, limited);
}

static void insert_local(struct task_struct *p, u64 enq_flags)
{
	scx_count(stats, local);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_max_ns, enq_flags);
}

/* If the quotas of the task's cgroups allow it to run, return 0, and reduce *@slice_ns to what is
 * left of the quotas, but not below MIN_SLICE_NS. Otherwise, return the time of the next check.
 * Quotas do not apply to kernel threads and exiting tasks. */
static u64 parked_until(const struct task_struct *p, const struct task_ctx *tctx, u64 *slice_ns)
{
	u64 now, until;

	if (p->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	now = scx_bpf_now();
	until = scx_cgroup_max_until(&tctx->cg, now, slice_ns);
	*slice_ns = *slice_ns > MIN_SLICE_NS ? *slice_ns : MIN_SLICE_NS;
	return time_after(until, now + RECHECK_NS) ? now + RECHECK_NS : until;
}

s32 BPF_STRUCT_OPS(flatcg_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 slice = slice_max_ns;
	bool is_idle = false;
	s32 cpu;

	if (!tctx || parked_until(p, tctx, &slice))
		return prev_cpu;
	cpu = scx_select_cpu(p, prev_cpu, &wake_flags, SHARED_DSQ, &is_idle);
	if (is_idle) {
		scx_count(stats, local);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, scx_immed_unless_sync(cpu, wake_flags));
	}
	return cpu;
}

static u64 share_slice_ns(const struct task_struct *p, const struct task_ctx *tctx)
{
	u64 share = scx_cgroup_task_share(&tctx->cg, p->scx.weight);

	return scx_share_slice(slice_max_ns, share, SLICE_COST_NS, MIN_SLICE_NS);
}

/* Park a task until its next check, at @until. Meanwhile it does not count as runnable, so that its
 * share goes to other tasks. */
static void park(struct task_struct *p, struct task_ctx *tctx, u64 until, u64 enq_flags)
{
	scx_count(stats, parked);
	tctx->is_parked = true;
	tctx->parked_ns = scx_bpf_now();
	tctx->vtime = p->scx.dsq_vtime;
	scx_cgroup_task_quiescent(&tctx->cg);
	scx_bpf_dsq_insert_vtime(p, PARKED_DSQ, slice_max_ns, until, enq_flags);
}

/* Clear the parked state of a task that runs, sleeps or is enqueued again. Called only from
 * callbacks for this task, which the kernel serializes. */
static void end_park(struct task_struct *p, struct task_ctx *tctx)
{
	if (!tctx->is_parked)
		return;
	tctx->is_parked = false;
	scx_bpf_task_set_dsq_vtime(p, tctx->vtime);
}

void BPF_STRUCT_OPS(flatcg_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 until, slice;

	/* Per-CPU kernel threads bypass the shared queue, because other tasks depend on them. */
	if (!tctx || scx_task_is_percpu_kthread(p)) {
		insert_local(p, enq_flags);
		return;
	}
	end_park(p, tctx);
	slice = share_slice_ns(p, tctx);
	until = parked_until(p, tctx, &slice);
	if (until) {
		park(p, tctx, until, enq_flags);
		return;
	}
	scx_count(stats, queued);
	scx_bpf_dsq_insert_vtime(p, SHARED_DSQ, slice, scx_cgroup_task_key(p, SHARED_DSQ),
				 enq_flags);
	/* SCX_ENQ_LAST: ops.dispatch() found no other task, so the CPU goes idle unless it is
	 * kicked to look again. This is rare: the task that preceded @p has just left the queue, or
	 * a quota of @p's cgroups has just been refilled. */
	if (enq_flags & SCX_ENQ_LAST)
		scx_kick_cpu(scx_bpf_task_cpu(p), 0);
	scx_kick_for_queued(p, enq_flags);
}

/*
 * Whether @prev, whose slice has expired, precedes all waiting tasks that may run on @cpu; true if
 * there are none. The kernel calls ops.dispatch() before it enqueues @prev again. Without this
 * check, two tasks on a CPU would take turns, whatever their shares.
 */
static bool is_first(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	bool first = true;

	bpf_for_each(scx_dsq, p, SHARED_DSQ, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		first = time_before(prev->scx.dsq_vtime, p->scx.dsq_vtime);
		break;
	}
	return first;
}

/* Let @prev continue, if the quotas of its cgroups allow this and no waiting task precedes it.
 * Returns whether @prev continues. */
static bool keep(s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tctx = task_ctx(prev);
	u64 slice;

	if (!tctx)
		return false;
	charge(prev, tctx);
	slice = share_slice_ns(prev, tctx);
	if (parked_until(prev, tctx, &slice) || !is_first(cpu, prev))
		return false;
	scx_count(stats, kept);
	scx_bpf_task_set_slice(prev, slice);
	return true;
}

void BPF_STRUCT_OPS(flatcg_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_vclock_advance(SHARED_DSQ);
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && keep(cpu, prev))
		return;
	scx_dispatch_from(SHARED_DSQ);
}

void BPF_STRUCT_OPS(flatcg_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	scx_vclock_advance(SHARED_DSQ);
	scx_cgroup_task_runnable(p, &tctx->cg);
	if (enq_flags & SCX_ENQ_WAKEUP)
		scx_cgroup_task_place(p, &tctx->cg, SHARED_DSQ, false);
}

void BPF_STRUCT_OPS(flatcg_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	end_park(p, tctx);
	scx_cgroup_task_quiescent(&tctx->cg);
}

void BPF_STRUCT_OPS(flatcg_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	end_park(p, tctx);
	/* A parked task does not count as runnable. For other tasks, this call has no effect. */
	scx_cgroup_task_runnable(p, &tctx->cg);
	scx_cgroup_task_running(p, &tctx->cg);
}

void BPF_STRUCT_OPS(flatcg_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		charge(p, tctx);
}

void BPF_STRUCT_OPS(flatcg_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		scx_cgroup_task_place(p, &tctx->cg, SHARED_DSQ, true);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(flatcg_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		scx_cgroup_task_set(&tctx->cg, scx_init_task_cgroup(args));
	return 0;
}

/* ---- cgroups ------------------------------------------------------------- */

SCX_CGROUP_WEIGHT_OPS(flatcg)

struct unpark {
	struct bpf_timer timer;
	u32 nr_quotas; /* at the last expiry; 1 at the start */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct unpark);
} unparks SEC(".maps");

/* Check a parked task: move it to the shared queue if its quotas allow it to run, or if it has been
 * parked for PARKED_MAX_NS. Otherwise the task stays parked until its next check. */
static void unpark(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 now)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 until, slice = slice_max_ns;
	s32 cpu;

	if (!tctx)
		return;
	until = parked_until(p, tctx, &slice);
	if (until && time_before(now, tctx->parked_ns + PARKED_MAX_NS)) {
		scx_bpf_dsq_move_set_vtime(it, until);
		scx_bpf_dsq_move_vtime(it, p, PARKED_DSQ, 0);
		return;
	}
	tctx->vtime = scx_vclock_limit_credit(tctx->vtime, SHARED_DSQ);
	scx_bpf_dsq_move_set_slice(it, slice);
	scx_bpf_dsq_move_set_vtime(it, tctx->vtime);
	if (!scx_bpf_dsq_move_vtime(it, p, SHARED_DSQ, 0))
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_kick_cpu(cpu, 0);
}

/* Whether the timer is armed. */
static u32 is_unparking;

/* Start the timer if a cgroup has a quota, but never postpone the expiry of an armed timer. */
static void start_unpark(struct unpark *timer)
{
	if (!READ_ONCE(scx_nr_quotas) || __sync_lock_test_and_set(&is_unparking, 1))
		return;
	timer->nr_quotas = 1;
	bpf_timer_start(&timer->timer, UNPARK_NS, 0);
}

/* Check the parked tasks that are due. The timer runs while any cgroup has a quota. When the last
 * quota has been removed, the timer expires twice more, and all parked tasks are checked: a CPU
 * that saw the quota may park a task just after the first of these checks. */
static int unpark_all(void *map, u32 *key, struct unpark *timer)
{
	u32 nr_quotas = READ_ONCE(scx_nr_quotas);
	bool continues = nr_quotas || timer->nr_quotas;
	u64 now = scx_bpf_now();
	struct task_struct *p;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, PARKED_DSQ, 0) {
		if (nr_quotas && time_after(p->scx.dsq_vtime, now))
			break;
		unpark(BPF_FOR_EACH_ITER, p, now);
	}
	bpf_rcu_read_unlock();
	timer->nr_quotas = nr_quotas;
	if (continues) {
		bpf_timer_start(&timer->timer, UNPARK_NS, 0);
		return 0;
	}
	/* A full barrier: either the CPU that sets a quota now sees that the timer has stopped, or
	 * start_unpark() sees the quota. */
	__sync_lock_test_and_set(&is_unparking, 0);
	start_unpark(timer);
	return 0;
}

static s32 init_unpark(void)
{
	u32 zero = 0;
	struct unpark *timer = bpf_map_lookup_elem(&unparks, &zero);
	s32 err;

	if (!timer)
		return -ENOENT;
	err = bpf_timer_init(&timer->timer, &unparks, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&timer->timer, unpark_all);
}

static void check_unpark(void)
{
	u32 zero = 0;
	struct unpark *timer = bpf_map_lookup_elem(&unparks, &zero);

	if (timer)
		start_unpark(timer);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(flatcg_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	s32 err = scx_cgroup_do_init(cgrp, args);

	if (err)
		return err;
	scx_cgroup_max_init(cgrp, args);
	check_unpark();
	return 0;
}

void BPF_STRUCT_OPS(flatcg_cgroup_exit, struct cgroup *cgrp)
{
	scx_cgroup_max_exit(cgrp);
	scx_cgroup_do_exit(cgrp);
}

void BPF_STRUCT_OPS(flatcg_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		    u64 burst_us)
{
	scx_cgroup_max_set(cgrp, period_us, quota_us, burst_us);
	check_unpark();
}

/* A task takes neither its debt nor its credit to the new cgroup: it starts there like a new
 * task. */
void BPF_STRUCT_OPS(flatcg_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx)
		return;
	scx_count(stats, moved);
	scx_cgroup_task_set(&tctx->cg, to);
	scx_cgroup_task_place(p, &tctx->cg, SHARED_DSQ, true);
}

/* ---- life cycle ---------------------------------------------------------- */

s32 BPF_STRUCT_OPS_SLEEPABLE(flatcg_init)
{
	s32 err;

	scx_vclock_init(slice_max_ns);
	err = scx_bpf_create_dsq(SHARED_DSQ, -1);
	err = err ?: scx_bpf_create_dsq(PARKED_DSQ, -1);
	return err ?: init_unpark();
}

void BPF_STRUCT_OPS(flatcg_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(flatcg_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("flatcg: vclock=%llu, %d queued, %d parked, %u cgroups", scx_vclock,
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_bpf_dsq_nr_queued(PARKED_DSQ),
		     scx_nr_cgroups);
}

void BPF_STRUCT_OPS(flatcg_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		scx_bpf_dump("flatcg: cgroup=%llu weight=%u share=%llu/2^32 vtime=vclock%+lld",
			     tctx->cg.id, p->scx.weight,
			     scx_cgroup_task_share(&tctx->cg, p->scx.weight),
			     (s64)(p->scx.dsq_vtime - scx_vclock));
}

SCX_OPS(flatcg_ops) = {
	.select_cpu = (void *)flatcg_select_cpu,
	.enqueue = (void *)flatcg_enqueue,
	.dispatch = (void *)flatcg_dispatch,
	.runnable = (void *)flatcg_runnable,
	.quiescent = (void *)flatcg_quiescent,
	.running = (void *)flatcg_running,
	.stopping = (void *)flatcg_stopping,
	.enable = (void *)flatcg_enable,
	.init_task = (void *)flatcg_init_task,
	SCX_CGROUP_CALLBACKS(flatcg),
	.cgroup_move = (void *)flatcg_cgroup_move,
	.cgroup_set_bandwidth = (void *)flatcg_cgroup_set_bandwidth,
	.init = (void *)flatcg_init,
	.exit = (void *)flatcg_exit,
	.dump = (void *)flatcg_dump,
	.dump_task = (void *)flatcg_dump_task,
	/* Without this flag, the kernel would let the only runnable task of a CPU continue, even if
	 * the quotas of its cgroups are used up. */
	.flags = SCX_OPS_ENQ_LAST,
	.name = "flatcg",
};
