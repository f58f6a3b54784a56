/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_central: one CPU makes all scheduling decisions, so that the other CPUs need no tick.
 *
 * Each tick interrupts the virtual machine or computation that a CPU runs. Here a timer on the
 * central CPU takes the place of the ticks of all other CPUs. All tasks wait in one FIFO. A CPU
 * without a task requests one: it sets its bit in `waiting` and preempts the central CPU's task.
 * The central CPU then goes through the queue and gives each task to a waiting CPU. The task gets
 * an infinite slice, so that the kernel can stop the tick of its CPU (nohz_full). Once per
 * millisecond the timer looks for tasks that have run for a slice while others wait, and preempts
 * them. While the central CPU makes no decisions, because a real-time task runs there or the CPU
 * goes offline, the timer gives tasks to the waiting CPUs.
 *
 * A wakee is enqueued on the run queue of the central CPU if it may run there, so that no other CPU
 * is interrupted. The central CPU itself runs the tasks that are left when it has served the
 * waiting CPUs. Its tasks have finite slices, so it keeps its tick. After a decision, it continues
 * its current task for the rest of the slice.
 *
 * Two kinds of tasks stay on their CPU without a decision: per-CPU kernel threads, and tasks with
 * migration disabled. Per-CPU kernel threads also preempt the current task, because other tasks
 * depend on them.
 */
#include <scx/common.bpf.h>
#include <scx/barrier.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/kick.bpf.h>
#include <scx/migration.bpf.h>
#include "scx_central.h"

char _license[] SEC("license") = "GPL";

#define CENTRAL_DSQ 0

#define TIMER_NS (1 * NSEC_PER_MSEC)

/* The timer stops after this many consecutive expiries at which no task runs or waits. A single
 * expiry does not suffice, because a task that is being enqueued is not in the queue yet. */
#define IDLE_EXPIRIES 10

/* After this many consecutive expiries at which tasks and CPUs wait, although the central CPU was
 * kicked, the timer's callback gives the tasks to the CPUs. */
#define UNANSWERED_MAX 3

const volatile s32 central_cpu;
const volatile u64 slice_ns = 20 * NSEC_PER_MSEC;

/* The CPUs that have requested a task. */
private(WAITING) struct bpf_cpumask __kptr *waiting;

SCX_PERCPU_COUNTERS(stats, struct central_stats);

struct timer {
	struct bpf_timer timer;
	u32 is_armed; /* the timer is pending, or is about to be started */
	u32 nr_idle; /* consecutive expiries at which no task ran or waited */
	u32 nr_unanswered; /* consecutive expiries without a decision while tasks and CPUs wait */
};

struct cpu_ctx {
	u64 started_ns; /* when the CPU's task began to run; 0 while none runs */
};

/* One entry per possible CPU. User space sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_ctx);
} cpu_ctxs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timer);
} timers SEC(".maps");

/* Return how long the task of @cpu has been running, ns, at least 1; 0 if no task runs. */
static u64 ran_ns(s32 cpu)
{
	const struct cpu_ctx *cctx = bpf_map_lookup_elem(&cpu_ctxs, &cpu);
	u64 started_ns = cctx ? READ_ONCE(cctx->started_ns) : 0;

	return started_ns ? time_delta(scx_bpf_now(), started_ns) + 1 : 0;
}

/* ---- enqueueing ---------------------------------------------------------- */

/* Whether a CPU could run a task at once: a CPU has requested a task, or the central CPU runs
 * none. */
static bool cpus_wait(void)
{
	struct bpf_cpumask *mask = waiting;

	return (mask && !bpf_cpumask_empty(cast_mask(mask))) || !ran_ns(central_cpu);
}

s32 BPF_STRUCT_OPS(central_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return bpf_cpumask_test_cpu(central_cpu, p->cpus_ptr) ? central_cpu : prev_cpu;
}

void BPF_STRUCT_OPS(central_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_count(stats, total);
	if (scx_task_is_percpu_kthread(p)) {
		scx_count(stats, local);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	if (scx_task_is_migration_disabled(p, enq_flags)) {
		scx_count(stats, local);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	scx_count(stats, queued);
	scx_insert_fifo(p, CENTRAL_DSQ, SCX_SLICE_INF, enq_flags);
	/* The kernel inserts @p only after this callback has returned. If a CPU requests a task
	 * between this check and the insertion, the timer handles the request. */
	if (cpus_wait())
		scx_kick_cpu(central_cpu, SCX_KICK_PREEMPT);
}

/* ---- decisions ----------------------------------------------------------- */

/* Return a CPU of @mask that @p may use, preferably the CPU that it is on; nr_cpu_ids or more if
 * there is none. */
static u32 choose(const struct task_struct *p, const struct cpumask *mask)
{
	u32 cpu = scx_bpf_task_cpu(p);

	if (bpf_cpumask_test_cpu(cpu, mask) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return cpu;
	return bpf_cpumask_first_and(mask, p->cpus_ptr);
}

/* Give queued tasks to the CPUs of @mask, which wait for tasks. A CPU that gets a task is removed
 * from @mask. */
static void serve(struct bpf_cpumask *mask)
{
	u32 nr_cpus = scx_bpf_nr_cpu_ids(), cpu;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, CENTRAL_DSQ, 0) {
		if (bpf_cpumask_empty(cast_mask(mask)))
			break;
		cpu = choose(p, cast_mask(mask));
		if (cpu >= nr_cpus) {
			scx_count(stats, mismatch);
			continue;
		}
		bpf_cpumask_clear_cpu(cpu, mask);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, SCX_ENQ_IMMED)) {
			scx_count(stats, dispatch);
			scx_kick_cpu(cpu, SCX_KICK_IDLE);
		} else {
			/* The task has left the queue. */
			bpf_cpumask_set_cpu(cpu, mask);
		}
	}
}

/* Select the task of the central CPU: @prev for the rest of its slice, then the first task of the
 * queue that may run here, or @prev again if there is none. */
static void dispatch_own(struct task_struct *prev)
{
	bool can_continue = prev && prev->scx.flags & SCX_TASK_QUEUED;
	u64 used_ns = can_continue ? ran_ns(central_cpu) : 0;

	if (can_continue && used_ns < slice_ns) {
		scx_bpf_task_set_slice(prev, slice_ns - used_ns);
		return;
	}
	if (scx_dispatch_from(CENTRAL_DSQ))
		scx_count(stats, own);
	else if (can_continue)
		scx_bpf_task_set_slice(prev, slice_ns);
}

/* Start the timer, unless it is armed. Call this on the central CPU: the timer expires on the CPU
 * that starts it, and must not interrupt any other CPU. */
static void arm(struct timer *t)
{
	if (!scx_ordered(__sync_lock_test_and_set(&t->is_armed, 1)))
		bpf_timer_start(&t->timer, TIMER_NS, BPF_F_TIMER_CPU_PIN);
}

static void decide(struct task_struct *prev)
{
	struct bpf_cpumask *mask = waiting;
	u32 zero = 0;
	struct timer *t = bpf_map_lookup_elem(&timers, &zero);

	if (t) {
		t->nr_unanswered = 0;
		arm(t);
	}
	if (mask)
		serve(mask);
	dispatch_own(prev);
}

/* Request a task for @cpu. If the previous task is still runnable, the kernel enqueues it
 * (SCX_OPS_ENQ_LAST). */
static void request(s32 cpu)
{
	struct bpf_cpumask *mask = waiting;

	if (!mask)
		return;
	scx_count(stats, request);
	bpf_cpumask_set_cpu(cpu, mask);
	scx_kick_cpu(central_cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(central_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_learn_trampoline();
	if (cpu == central_cpu)
		decide(prev);
	else
		request(cpu);
}

/* ---- preemption ---------------------------------------------------------- */

void BPF_STRUCT_OPS(central_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = bpf_map_lookup_elem(&cpu_ctxs, &cpu);
	struct bpf_cpumask *mask = waiting;

	if (cctx)
		WRITE_ONCE(cctx->started_ns, scx_bpf_now());
	/* The CPU requested a task, and then got a task that needs no decision. */
	if (mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask)))
		bpf_cpumask_clear_cpu(cpu, mask);
	if (cpu == central_cpu)
		scx_bpf_task_set_slice(p, slice_ns);
}

void BPF_STRUCT_OPS(central_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = bpf_map_lookup_elem(&cpu_ctxs, &cpu);

	if (cctx)
		WRITE_ONCE(cctx->started_ns, 0);
}

/* Preempt tasks that have used up a slice, except on the central CPU: each task whose CPU has
 * another task in its local DSQ, and up to @nr_queued of the remaining tasks. Returns whether any
 * CPU, the central CPU included, runs a task. */
static bool preempt_others(s32 nr_queued)
{
	s32 nr_cpus = scx_bpf_nr_cpu_ids(), cpu;
	bool is_busy = false;

	bpf_for(cpu, 0, nr_cpus) {
		u64 used_ns = ran_ns(cpu);

		is_busy |= used_ns > 0;
		if (cpu == central_cpu || used_ns <= slice_ns)
			continue;
		if (scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) <= 0 && nr_queued-- <= 0)
			continue;
		scx_count(stats, preempt);
		scx_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return is_busy;
}

/* Whether a real-time task has taken this CPU. */
static bool has_real_time_task(void)
{
	const struct task_struct *curr = bpf_get_current_task_btf();

	return curr->prio < MAX_RT_PRIO;
}

static int on_timer(void *map, int *key, struct timer *t)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(CENTRAL_DSQ);
	bool is_taken = has_real_time_task(), is_busy, waits;
	struct bpf_cpumask *mask;

	scx_count(stats, timer);
	/* If the timer is not armed below, the next decision arms it. */
	scx_ordered(__sync_lock_test_and_set(&t->is_armed, 0));
	is_busy = preempt_others(nr_queued);
	/* The verifier treats this callback as sleepable, because the program that sets the
	 * callback is sleepable. */
	bpf_rcu_read_lock();
	mask = waiting;
	waits = nr_queued > 0 && cpus_wait();
	t->nr_unanswered = waits ? t->nr_unanswered + 1 : 0;
	/* The kernel does not call ops.dispatch() on this CPU while a real-time task runs on it, or
	 * while the CPU begins to go offline. Going offline includes an RCU grace period, which may
	 * have to wait for a queued task. */
	if (mask && (is_taken || t->nr_unanswered > UNANSWERED_MAX))
		serve(mask);
	else if (waits)
		scx_kick_cpu(central_cpu, SCX_KICK_PREEMPT);
	bpf_rcu_read_unlock();
	t->nr_idle = is_busy || nr_queued > 0 || is_taken ? 0 : t->nr_idle + 1;
	if (t->nr_idle < IDLE_EXPIRIES)
		arm(t);
	return 0;
}

/* ---- life cycle ---------------------------------------------------------- */

static s32 init_waiting(void)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(&waiting, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

static s32 init_timer(void)
{
	u32 zero = 0;
	struct timer *t = bpf_map_lookup_elem(&timers, &zero);

	if (!t)
		return -ENOENT;
	return bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC) ?:
		       bpf_timer_set_callback(&t->timer, on_timer);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(central_init)
{
	return init_waiting() ?: init_timer() ?: scx_bpf_create_dsq(CENTRAL_DSQ, -1);
}

void BPF_STRUCT_OPS(central_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(central_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("central: CPU %d decides, %d queued", central_cpu,
		     scx_bpf_dsq_nr_queued(CENTRAL_DSQ));
}

void BPF_STRUCT_OPS(central_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct bpf_cpumask *mask = waiting;

	scx_bpf_dump("central: ran_ns=%llu%s", ran_ns(cpu),
		     mask && bpf_cpumask_test_cpu(cpu, cast_mask(mask)) ? ", waits" : "");
}

SCX_OPS(central_ops) = {
	.select_cpu = (void *)central_select_cpu,
	.enqueue = (void *)central_enqueue,
	.dispatch = (void *)central_dispatch,
	.running = (void *)central_running,
	.stopping = (void *)central_stopping,
	.init = (void *)central_init,
	.exit = (void *)central_exit,
	.dump = (void *)central_dump,
	.dump_cpu = (void *)central_dump_cpu,
	.name = "central",
};
