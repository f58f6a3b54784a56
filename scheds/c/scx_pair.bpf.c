/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_pair: the two CPUs of a pair never run tasks of different cgroups at the same time.
 *
 * CPUs form pairs, the hardware threads of a core by default. Each cgroup has a DSQ, in which its
 * tasks wait. Pairs serve the cgroups that have waiting tasks in turn: for the length of a turn
 * both CPUs run tasks of one cgroup only, or are idle. Core scheduling does the same under the
 * kernel's own scheduler, for groups of tasks that request it.
 *
 * If a pair may run no task of the cgroup that is next, the cgroup keeps its place for other pairs.
 *
 * Before a CPU takes a task from the DSQ of a cgroup, it claims the cgroup. This is possible only
 * while the other CPU of the pair neither claims nor runs another cgroup. The CPU releases the
 * claim when it has switched to a task that counts as a member of no cgroup (the idle task, a
 * kernel thread or a task of another class), and only kernel threads are in its local DSQ. Context
 * switches are recorded in the sched_switch tracepoint, because the previous task still runs for
 * some time after ops.dispatch() has found the next task.
 *
 * Kernel threads run at any time: other tasks depend on them, and they do not belong to any user.
 */
#include <scx/barrier.h>
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/kick.bpf.h>
#include "scx_pair.h"
#include "scx_pair_turns.bpf.h"

char _license[] SEC("license") = "GPL";

/* The DSQ of kernel threads that are not bound to one CPU, and of dying tasks whose cgroup is gone.
 * Every other DSQ has the id of its cgroup, and no cgroup has the id 0. */
#define KERNEL_DSQ 0

/* Maximum number of cgroups that a call of take_next() tries, and of DSQs that a call of
 * destroy_dsqs() destroys. */
#define TRIES_MAX 64

/* Maximum number of tasks of a cgroup that a call of has_task_for() looks at. */
#define LOOKS_MAX 16

const volatile u64 turn_ns = 20 * NSEC_PER_MSEC;
const volatile u32 nr_cpu_ids = 1;

/* The other CPU of each CPU's pair, or the CPU itself if it has no partner. */
const volatile u32 others[PAIR_CPUS_MAX];

SCX_PERCPU_COUNTERS(stats, struct pair_stats);

/* One CPU of a pair. Cgroups are identified by their ids, and 0 means none. */
struct side {
	u64 claim; /* the cgroup that is claimed for the CPU */
	u64 running; /* the cgroup of the task that the CPU runs */
	u64 is_waiting; /* the CPU waits to be kicked when the other CPU's claim changes */
	u64 is_idle; /* the CPU runs the idle task */
};

/* A pair. Its key in the map is its lower CPU. */
struct pair {
	struct bpf_spin_lock lock;
	u64 cgid; /* the cgroup whose turn it is */
	u64 until_ns;
	struct side sides[2]; /* the lower CPU, the higher one */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PAIR_CPUS_MAX);
	__type(key, u32);
	__type(value, struct pair);
} pairs SEC(".maps");

/* Number of enqueues so far, and its value when each CPU last looked for a task. */
static u64 nr_enqueued;
static u64 nr_seen[PAIR_CPUS_MAX];

static u8 is_kernel_turn[PAIR_CPUS_MAX];

/* For each CPU, the number of kernel threads that are bound to it and wait in its local DSQ. */
static u64 nr_bound[PAIR_CPUS_MAX];

struct task_ctx {
	u64 cgid;
	u64 waits_in; /* the cgroup that counts the task as waiting, 0 if none does */
	u32 bound_at; /* 1 + the CPU that counts the task in nr_bound, 0 if none does */
	bool is_ext; /* the task is in this scheduler's class */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* Return the cgroup of a task, 0 for kernel threads and tasks of other classes. */
static u64 cgid_of(struct task_struct *p)
{
	struct task_ctx *tctx;

	if (p->flags & PF_KTHREAD)
		return 0;
	tctx = task_ctx(p);
	return tctx && tctx->is_ext ? tctx->cgid : 0;
}

static u32 other_of(u32 cpu)
{
	return cpu < PAIR_CPUS_MAX ? others[cpu] : 0;
}

static struct pair *pair_of(u32 cpu)
{
	u32 other = other_of(cpu), key = cpu < other ? cpu : other;

	return bpf_map_lookup_elem(&pairs, &key);
}

static struct side *side_at(struct pair *pair, u32 i)
{
	/* Hide the value from the compiler. It would otherwise omit the mask below, which the
	 * verifiers of older kernels need. */
	barrier_var(i);
	return &pair->sides[i & 1];
}

static struct side *side_of(struct pair *pair, u32 cpu)
{
	return side_at(pair, cpu > other_of(cpu));
}

/* Return the side of the other CPU. If @cpu has no partner, that side is never in use. */
static struct side *other_side_of(struct pair *pair, u32 cpu)
{
	return side_at(pair, cpu <= other_of(cpu));
}

/* Whether a CPU may run tasks of @cgid beside @other, the other CPU of its pair. */
static bool is_compatible(const struct side *other, u64 cgid)
{
	return (!other->claim || other->claim == cgid) &&
	       (!other->running || other->running == cgid);
}

/* Whether @cpu may run tasks of @cgid now. The other CPU of its pair must not claim or run another
 * cgroup. */
static bool may_run(u32 cpu, u64 cgid)
{
	struct pair *pair = pair_of(cpu);

	return pair && is_compatible(other_side_of(pair, cpu), cgid);
}

/* ---- counts of waiting tasks --------------------------------------------- */

/* Count a task as waiting. The length of the DSQ does not tell whether tasks wait, because the
 * kernel inserts a task only after ops.enqueue() has returned. */
static void begin_wait(struct task_ctx *tctx, struct cgroup_ctx *cgrp)
{
	if (tctx->waits_in)
		return;
	tctx->waits_in = tctx->cgid;
	__sync_fetch_and_add(&cgrp->nr_waiting, 1);
}

/* Count a bound kernel thread as waiting in the local DSQ of @cpu. */
static void begin_bound_wait(struct task_ctx *tctx, u32 cpu)
{
	if (!tctx || cpu >= PAIR_CPUS_MAX)
		return;
	tctx->bound_at = cpu + 1;
	__sync_fetch_and_add(&nr_bound[cpu], 1);
}

static void end_bound_wait(struct task_ctx *tctx)
{
	u32 cpu = tctx->bound_at - 1;

	/* Not scx_bpf_task_cpu(), since the kernel may have moved the thread to another CPU. */
	if (cpu < PAIR_CPUS_MAX)
		__sync_fetch_and_sub(&nr_bound[cpu], 1);
	tctx->bound_at = 0;
}

static void end_wait(struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	struct cgroup_ctx *cgrp;

	if (!tctx)
		return;
	end_bound_wait(tctx);
	if (!tctx->waits_in)
		return;
	cgrp = bpf_map_lookup_elem(&cgroups, &tctx->waits_in);
	tctx->waits_in = 0;
	if (cgrp)
		__sync_fetch_and_sub(&cgrp->nr_waiting, 1);
}

/* ---- enqueue ------------------------------------------------------------- */

/* Kick an idle CPU that may run @p now, if there is one. The search starts at the CPU @start. The
 * kicked CPU stays marked as idle: if it looks for a task before @p is inserted, the next call of
 * this function kicks it again. Like has_task_for() and take(), this is a global function, so that
 * the verifier checks it only once. */
__noinline int wake_cpu_for(struct task_struct *p __arg_trusted, u64 cgid, s32 start)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u32 i, nr = bpf_cpumask_intersects(idle, p->cpus_ptr) ? nr_cpu_ids : 0;

	bpf_for(i, 0, nr) {
		u32 cpu = start + i;

		if (cpu >= nr_cpu_ids)
			cpu -= nr_cpu_ids;
		if (!bpf_cpumask_test_cpu(cpu, idle) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		    !may_run(cpu, cgid))
			continue;
		scx_kick_cpu(cpu, SCX_KICK_IDLE);
		break;
	}
	scx_bpf_put_idle_cpumask(idle);
	return 0;
}

/* If @cpu runs no task of a cgroup and has none in its local DSQ, release the claim of @cpu, and
 * kick the other CPU of the pair if that CPU waits for the release. */
static void release(u32 cpu)
{
	struct pair *pair = pair_of(cpu);
	struct side *side, *other;
	bool wakes = false;

	if (!pair || cpu >= PAIR_CPUS_MAX ||
	    scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > (s32)nr_bound[cpu])
		return;
	side = side_of(pair, cpu);
	other = other_side_of(pair, cpu);
	bpf_spin_lock(&pair->lock);
	if (!side->running) {
		side->claim = 0;
		wakes = other->is_waiting;
		other->is_waiting = false;
	}
	bpf_spin_unlock(&pair->lock);
	if (wakes)
		scx_kick_cpu(other_of(cpu), 0);
}

/* There is nothing to choose here, because tasks wait in the DSQ of their cgroup. */
s32 BPF_STRUCT_OPS(pair_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

static void enqueue_kernel(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags)
{
	s32 cpu;

	if (scx_task_is_percpu_kthread(p)) {
		scx_count(stats, kernel);
		begin_bound_wait(tctx, scx_bpf_task_cpu(p));
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, KERNEL_DSQ, SCX_SLICE_DFL, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	scx_kick_cpu(cpu < 0 ? scx_bpf_task_cpu(p) : cpu, 0);
}

void BPF_STRUCT_OPS(pair_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tctx = task_ctx(p);
	struct cgroup_ctx *cgrp = tctx ? bpf_map_lookup_elem(&cgroups, &tctx->cgid) : NULL;

	/* Count before anything else, so that a CPU that finds no task looks again: see
	 * pair_update_idle(). The barrier is between the count and the search for an idle CPU. */
	scx_ordered(__sync_fetch_and_add(&nr_enqueued, 1));
	if (tctx)
		end_bound_wait(tctx);
	/* Before 7.0, a dying task may outlive its cgroup. */
	if (p->flags & PF_KTHREAD || !tctx || !cgrp) {
		enqueue_kernel(p, tctx, enq_flags);
		return;
	}
	scx_count(stats, enqueued);
	begin_wait(tctx, cgrp);
	scx_bpf_dsq_insert(p, tctx->cgid, turn_ns, enq_flags);
	queue_turn(tctx->cgid, false);
	if (enq_flags & SCX_ENQ_REENQ) {
		scx_count(stats, reenqueued);
		release(cpu);
	}
	wake_cpu_for(p, tctx->cgid, cpu);
}

/* ---- dispatch ------------------------------------------------------------ */

/* Claim @cgid for @cpu. Returns false if the other CPU claims or runs another cgroup. The other CPU
 * then kicks @cpu when that changes. */
static bool claim(u32 cpu, struct pair *pair, u64 cgid)
{
	struct side *side = side_of(pair, cpu), *other = other_side_of(pair, cpu);
	bool is_free;

	bpf_spin_lock(&pair->lock);
	is_free = is_compatible(other, cgid);
	if (is_free)
		side->claim = cgid;
	side->is_waiting = !is_free;
	bpf_spin_unlock(&pair->lock);
	return is_free;
}

/* Claim @cgid and move one of its tasks to the local DSQ. Returns whether a task was moved. */
__noinline int take(u32 cpu, u64 cgid)
{
	struct pair *pair = pair_of(cpu);
	struct side *side;

	if (!pair || !claim(cpu, pair, cgid))
		return false;
	side = side_of(pair, cpu);
	if (scx_bpf_dsq_move_to_local(cgid, 0)) {
		scx_count(stats, dispatched);
		return true;
	}
	/* Claim the cgroup that the CPU still runs, until the next context switch. */
	bpf_spin_lock(&pair->lock);
	side->claim = side->running;
	bpf_spin_unlock(&pair->lock);
	release(cpu);
	return false;
}

/* Whether @cpu may run one of the first LOOKS_MAX tasks in the DSQ of @cgid. */
__noinline int has_task_for(u32 cpu, u64 cgid)
{
	struct task_struct *p;
	u32 nr_looks = 0;

	bpf_for_each(scx_dsq, p, cgid, 0) {
		if (nr_looks++ >= LOOKS_MAX)
			break;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return true;
	}
	return false;
}

/* Kick an idle CPU for the first task of a cgroup that this pair has skipped. While the cgroup was
 * in no queue, a CPU that was kicked for the task may have looked for the cgroup in vain. */
static void wake_cpu_for_skipped(u64 cgid)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, cgid, 0) {
		wake_cpu_for(p, cgid, scx_bpf_task_cpu(p));
		break;
	}
}

static void begin_turn(struct pair *pair, u64 cgid)
{
	scx_count(stats, turns);
	if (pair->cgid != cgid)
		scx_count(stats, switches);
	pair->cgid = cgid;
	pair->until_ns = scx_monotonic_now() + turn_ns;
}

/* Let @prev continue if @cpu can claim @cgid, the cgroup of @prev. This also sets side->running:
 * there is no context switch that would do so, and @prev may have been moved to another cgroup.
 * Returns whether @prev continues. */
static bool keep(u32 cpu, struct pair *pair, struct task_struct *prev, u64 cgid)
{
	if (!prev || !cgid || !claim(cpu, pair, cgid))
		return false;
	side_of(pair, cpu)->running = cgid;
	scx_count(stats, kept);
	scx_bpf_task_set_slice(prev, turn_ns);
	return true;
}

/* Claim @cgid for the other CPU of the pair, if that CPU is idle and may run a task of @cgid. The
 * caller kicks that CPU, which makes the claim again, or releases it: see pair_dispatch() and
 * note_running(). Until then, @cpu takes no task of another cgroup. Returns whether the claim was
 * made. */
static bool claim_for_other(u32 cpu, struct pair *pair, u64 cgid)
{
	struct side *other = other_side_of(pair, cpu);
	bool is_free;

	if (other_of(cpu) == cpu || !has_task_for(other_of(cpu), cgid))
		return false;
	bpf_spin_lock(&pair->lock);
	is_free = other->is_idle && !other->claim && !other->running;
	if (is_free)
		other->claim = cgid;
	bpf_spin_unlock(&pair->lock);
	return is_free;
}

/* Begin a turn of the next cgroup that has a task for the pair, on @cpu if possible. Call this only
 * if the other CPU neither claims nor runs a cgroup. Returns whether a turn has begun. */
static bool take_next(u32 cpu, struct pair *pair)
{
	/* At most half of the tries are for skipped cgroups. */
	u64 nr_first = nr_skipped < TRIES_MAX / 2 ? nr_skipped : TRIES_MAX / 2;
	u32 i;

	bpf_for(i, 0, TRIES_MAX) {
		u64 cgid = pop_turn(i < nr_first);
		bool has_task;

		if (!cgid)
			return false;
		if (!bpf_map_lookup_elem(&cgroups, &cgid))
			continue;
		has_task = take(cpu, cgid) || claim_for_other(cpu, pair, cgid);
		/* While tasks of the cgroup wait, other pairs may serve it too. */
		queue_turn(cgid, !has_task);
		if (!has_task) {
			wake_cpu_for_skipped(cgid);
			continue;
		}
		begin_turn(pair, cgid);
		scx_kick_cpu(other_of(cpu), SCX_KICK_IDLE);
		return true;
	}
	/* Look at the rest of the queue in the next call. */
	scx_kick_cpu(cpu, 0);
	return false;
}

/* Whether the other CPU claims or runs a cgroup. If so, the other CPU kicks this CPU when that
 * changes. */
static bool wait_for_other(u32 cpu, struct pair *pair)
{
	struct side *side = side_of(pair, cpu), *other = other_side_of(pair, cpu);
	bool is_busy;

	bpf_spin_lock(&pair->lock);
	is_busy = other->claim || other->running;
	side->is_waiting = is_busy;
	bpf_spin_unlock(&pair->lock);
	return is_busy;
}

static void dispatch(u32 cpu, struct pair *pair, struct task_struct *prev)
{
	u64 prev_cgid = prev && prev->scx.flags & SCX_TASK_QUEUED ? cgid_of(prev) : 0;
	bool ends = time_after(scx_monotonic_now(), pair->until_ns);
	u64 cgid = pair->cgid;

	if (ends && !others_wait(cgid)) {
		begin_turn(pair, cgid);
		ends = false;
	}
	if (cgid && !ends && bpf_map_lookup_elem(&cgroups, &cgid)) {
		if (take(cpu, cgid) || (prev_cgid == cgid && keep(cpu, pair, prev, cgid)))
			return;
	}
	if (wait_for_other(cpu, pair)) {
		scx_count(stats, waits);
		if (ends) {
			scx_count(stats, ended);
			scx_kick_cpu(other_of(cpu), SCX_KICK_PREEMPT);
		}
		return;
	}
	if (!take_next(cpu, pair) && keep(cpu, pair, prev, prev_cgid))
		begin_turn(pair, prev_cgid);
}

/* Dispatch a task of KERNEL_DSQ, but only in every second call, so that these tasks do not starve
 * the tasks of cgroups. Returns whether a task was dispatched. */
static bool dispatch_kernel(u32 cpu)
{
	if (cpu >= PAIR_CPUS_MAX)
		return false;
	is_kernel_turn[cpu] = !is_kernel_turn[cpu];
	if (!is_kernel_turn[cpu] || !scx_bpf_dsq_move_to_local(KERNEL_DSQ, 0))
		return false;
	scx_count(stats, kernel);
	return true;
}

/* Release the claim that the other CPU has made for @cpu, if @cpu takes no task of the cgroup. Keep
 * it while @cpu waits for the other CPU, which will kick @cpu. */
static void end_claim(u32 cpu, struct pair *pair)
{
	struct side *side = side_of(pair, cpu);

	if (side->claim && !side->running && !side->is_waiting)
		release(cpu);
}

void BPF_STRUCT_OPS(pair_dispatch, s32 cpu, struct task_struct *prev)
{
	struct pair *pair = pair_of(cpu);

	if (!pair || (u32)cpu >= PAIR_CPUS_MAX)
		return;
	if (!scx_can_reenqueue_anywhere() && scx_other_class_waits(cpu)) {
		end_claim(cpu, pair);
		return;
	}
	nr_seen[cpu] = nr_enqueued;
	if (dispatch_kernel(cpu))
		return;
	dispatch(cpu, pair, prev);
	end_claim(cpu, pair);
	if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) <= 0)
		dispatch_kernel(cpu);
}

/* Let @cpu look for a task again if one was enqueued since its last look. The CPU that enqueued the
 * task may not have seen @cpu as idle. */
void BPF_STRUCT_OPS(pair_update_idle, s32 cpu, bool is_idle)
{
	if (!is_idle || (u32)cpu >= PAIR_CPUS_MAX)
		return;
	/* The kernel has marked the CPU as idle. Pairs with the barrier of pair_enqueue(). */
	scx_full_barrier();
	if (nr_seen[cpu] != nr_enqueued)
		scx_kick_cpu(cpu, 0);
}

/* ---- what runs ----------------------------------------------------------- */

/* Note that @cpu now runs a task of @cgid, or of no cgroup if @cgid is 0, and whether this is the
 * idle task. Kick the other CPU if it waits for a change. */
static void note_running(u32 cpu, struct pair *pair, u64 cgid, bool is_idle)
{
	struct side *side = side_of(pair, cpu), *other = other_side_of(pair, cpu);
	bool wakes;

	bpf_spin_lock(&pair->lock);
	side->running = cgid;
	side->is_idle = is_idle;
	if (cgid)
		side->claim = cgid;
	wakes = other->is_waiting && cgid;
	if (wakes)
		other->is_waiting = false;
	bpf_spin_unlock(&pair->lock);
	if (wakes)
		scx_kick_cpu(other_of(cpu), 0);
	if (!cgid)
		release(cpu);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(pair_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct pair *pair = pair_of(cpu);
	u64 cgid = cgid_of(next);
	bool is_idle = next->flags & PF_IDLE;
	struct side *side;

	if (!pair)
		return 0;
	side = side_of(pair, cpu);
	if (cgid || side->running || side->claim || side->is_idle != is_idle)
		note_running(cpu, pair, cgid, is_idle);
	/* If a real-time task takes the CPU, enqueue the tasks in the CPU's local DSQ again, so
	 * that other CPUs can run them. */
	if (next->prio < MAX_RT_PRIO && scx_can_reenqueue_anywhere() && scx_this_cpu_is_online())
		scx_bpf_reenqueue_local();
	return 0;
}

/* Used only on kernels where pair_sched_switch() cannot re-enqueue. */
void BPF_STRUCT_OPS(pair_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* Call note_running() here too: when the scheduler is loaded, a running task is switched to this
 * class without a context switch. */
void BPF_STRUCT_OPS(pair_running, struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p);
	struct pair *pair = pair_of(cpu);

	end_wait(p);
	if (pair && !side_of(pair, cpu)->running && cgid_of(p))
		note_running(cpu, pair, cgid_of(p), false);
}

void BPF_STRUCT_OPS(pair_quiescent, struct task_struct *p, u64 deq_flags)
{
	end_wait(p);
}

void BPF_STRUCT_OPS(pair_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->is_ext = true;
}

/* If a running task changes to another class (for example, its policy becomes SCHED_FIFO), there is
 * no context switch that would record this. */
void BPF_STRUCT_OPS(pair_disable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	u32 cpu = scx_bpf_task_cpu(p);
	struct pair *pair = pair_of(cpu);

	if (tctx)
		tctx->is_ext = false;
	if (pair && scx_bpf_task_running(p))
		note_running(cpu, pair, 0, false);
}

/* ---- cgroups ------------------------------------------------------------- */

/* Minimum time for which the DSQ of a removed cgroup is kept, because a CPU that looked up the
 * cgroup just before its removal may still use the DSQ. */
#define DSQ_GRACE_NS NSEC_PER_SEC

struct gone {
	u64 cgid;
	u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, PAIR_CGROUPS_MAX);
	__type(value, struct gone);
} gone_cgroups SEC(".maps");

static void destroy_dsqs(void)
{
	struct gone gone;
	u32 i;

	bpf_for(i, 0, TRIES_MAX) {
		if (bpf_map_peek_elem(&gone_cgroups, &gone) ||
		    scx_monotonic_now() - gone.since_ns < DSQ_GRACE_NS ||
		    bpf_map_pop_elem(&gone_cgroups, &gone))
			break;
		scx_bpf_destroy_dsq(gone.cgid);
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pair_cgroup_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	struct cgroup_ctx init = {};
	u64 cgid = cgrp->kn->id;
	s32 err;

	destroy_dsqs();
	err = scx_bpf_create_dsq(cgid, -1);
	return err ?: bpf_map_update_elem(&cgroups, &cgid, &init, BPF_NOEXIST);
}

/* Move dying tasks that wait in the DSQ of a removed cgroup to KERNEL_DSQ, from which all CPUs take
 * tasks. */
static void rescue(u64 cgid)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, cgid, 0) {
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, KERNEL_DSQ, 0))
			scx_kick_cpu(scx_bpf_task_cpu(p), 0);
	}
}

void BPF_STRUCT_OPS(pair_cgroup_exit, struct cgroup *cgrp)
{
	struct gone gone = { .cgid = cgrp->kn->id, .since_ns = scx_monotonic_now() };

	bpf_map_delete_elem(&cgroups, &gone.cgid);
	rescue(gone.cgid);
	if (bpf_map_push_elem(&gone_cgroups, &gone, 0))
		scx_bpf_destroy_dsq(gone.cgid);
}

void BPF_STRUCT_OPS(pair_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		tctx->cgid = to->kn->id;
	/* The task must not continue beside a task of its old cgroup. */
	if (scx_bpf_task_running(p))
		scx_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pair_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx = scx_create_task_storage(task_ctxs, p);

	/* Without its context, the task could run beside tasks of other cgroups. */
	if (!tctx)
		return -ENOMEM;
	tctx->cgid = args->cgroup->kn->id;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(pair_init)
{
	return scx_bpf_create_dsq(KERNEL_DSQ, -1);
}

void BPF_STRUCT_OPS(pair_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(pair_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct pair *pair = pair_of(cpu);
	struct side *side;

	if (!pair)
		return;
	side = side_of(pair, cpu);
	scx_bpf_dump("pair: with CPU %u, turn of cgroup %llu, claims %llu, runs %llu, waits %llu",
		     other_of(cpu), pair->cgid, side->claim, side->running, side->is_waiting);
}

void BPF_STRUCT_OPS(pair_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx)
		scx_bpf_dump("pair: cgroup %llu, waits in %llu", tctx->cgid, tctx->waits_in);
}

SCX_OPS(pair_ops) = {
	.select_cpu = (void *)pair_select_cpu,
	.enqueue = (void *)pair_enqueue,
	.dispatch = (void *)pair_dispatch,
	.running = (void *)pair_running,
	.quiescent = (void *)pair_quiescent,
	.update_idle = (void *)pair_update_idle,
	.cpu_release = (void *)pair_cpu_release,
	.enable = (void *)pair_enable,
	.disable = (void *)pair_disable,
	.init_task = (void *)pair_init_task,
	.cgroup_init = (void *)pair_cgroup_init,
	.cgroup_exit = (void *)pair_cgroup_exit,
	.cgroup_move = (void *)pair_cgroup_move,
	.init = (void *)pair_init,
	.exit = (void *)pair_exit,
	.dump_cpu = (void *)pair_dump_cpu,
	.dump_task = (void *)pair_dump_task,
	.name = "pair",
};
