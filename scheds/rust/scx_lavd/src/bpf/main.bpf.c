/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_lavd: precedence for tasks that other tasks wait for.
 *
 * Each task has a latency criticality (criticality.h). It grows with the frequencies at which the
 * task waits for other tasks and wakes other tasks. It is larger if the task runs briefly or was
 * woken by an interrupt, and a task inherits part of the criticality of its waker and its wakees.
 *
 * A task waits in the DSQ of its compute domain (the CPUs of one node and last-level cache that are
 * of the same kind, big or little), or of its CPU if it is pinned. The DSQs are ordered by
 * deadline. The deadline of a task is its virtual time plus a request. The virtual time shares CPU
 * time by weight, and the request is inversely proportional to the criticality. While a task
 * sleeps, its virtual time falls behind that of its domain, but by no more than a credit, which
 * grows with the criticality (scx/deadline.bpf.h).
 *
 * While the load is low, few CPUs are used (compact.bpf.h). The more tasks wait, the shorter the
 * slice. A task that needs a longer slice gets it while no other task waits (slice.h). A task that
 * probably holds a lock gets one more slice to release it (futex.bpf.h).
 */
#include <scx/common.bpf.h>

/* Members of a task's context. */
#define SCX_DL_TASK_MEMBERS                                                       \
	u64 woke_at_ns; /* when it last woke another task (note_waker()) */       \
	u64 ran_at_ns; /* when it last started to run */                          \
	u64 queued_at_ns;                                                         \
	u64 slice_used_ns; /* duration of its last run */                         \
	u32 wake_freq; /* how often it wakes other tasks, per second, averaged */ \
	u32 run_freq; /* how often it starts to run, per second, averaged */      \
	s32 waker_pid; /* 0: an interrupt, or unknown */                          \
	s32 prev_cpu;                                                             \
	s32 suggested_cpu; /* by ops.select_cpu(); -1: it was not called */       \
	u16 lat_cri; /* latency criticality: lavd_lat_cri() */                    \
	u16 perf_cri; /* performance criticality: lavd_perf_cri() */              \
	u16 of_waker; /* criticality of the waker */                              \
	u16 of_wakee; /* largest criticality of its wakees since last update */   \
	u16 boost; /* LAVD_BOOST_* of its wakeup */                               \
	bool holds_lock; /* it probably holds a lock (futex.bpf.h) */             \
	bool needs_lock_boost; /* it was preempted, or its slice expired, while it held a lock */

#include <scx/context.bpf.h>
#include <scx/cpufreq.bpf.h>
#include <scx/cpus.bpf.h>
#include <scx/deadline.bpf.h>
#include <scx/direct.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/migration.bpf.h>
#include "intf.h"
#include "criticality.h"
#include "compact.h"
#include "slice.h"
#include "state.bpf.h"
#include "track.bpf.h"
#include "slice.bpf.h"
#include "futex.bpf.h"
#include "compact.bpf.h"
#include "round.bpf.h"
#include "sample.bpf.h"
#include "preempt.bpf.h"

char _license[] SEC("license") = "GPL";

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long. The
 * scheduler itself lets no task wait nearly as long, but the host may halt the CPUs of a virtual
 * machine. */
#define TIMEOUT_MS 30000

/* Maximum credit that a new task gets from its parent, ns. */
#define FORK_CREDIT_NS (40 * NSEC_PER_MSEC)

/* Claim an idle CPU for a task. If the task should use only active CPUs (compact.bpf.h), this is an
 * active CPU. Otherwise it is any CPU, preferably of the primary domain or, on a big.LITTLE machine
 * without a primary domain, of the kind that suits the task. Returns a negative number if there is
 * no such CPU. */
static s32 pick_idle(struct task_struct *p, const struct scx_dl_task *t, s32 prev_cpu,
		     u64 wake_flags)
{
	u32 kind = is_perf_critical(t) ? LAVD_BIG : LAVD_LITTLE;
	const struct cpumask *active = confines(p, t);
	const struct scx_mask *place;
	s32 cpu;

	if (config.ignores_sync)
		wake_flags &= ~SCX_WAKE_SYNC;
	if (active)
		return scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, active, 0);
	if (lavd_is_big_little && !scx_has_primary) {
		place = bpf_map_lookup_elem(&lavd_kinds, &kind);
		if (place && place->mask) {
			cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags,
						     (const struct cpumask *)place->mask, 0);
			if (cpu >= 0)
				return cpu;
		}
	}
	return scx_pick_idle(p, prev_cpu, wake_flags);
}

/* Insert the task into the local DSQ of its CPU (in ops.select_cpu(): of the CPU that is returned).
 * There it precedes all tasks in other DSQs. */
static void insert_local(struct task_struct *p, struct scx_dl_task *t, u64 slice, u64 enq_flags)
{
	t->queued_at_ns = scx_bpf_now();
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL, slice, enq_flags);
}

s32 BPF_STRUCT_OPS(lavd_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = -EBUSY;

	if ((u32)p->nr_cpus_allowed < scx_cpus.nr_cpu_ids &&
	    !bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr))
		prev_cpu = bpf_cpumask_first(p->cpus_ptr);
	if (!t)
		return prev_cpu;
	scx_dl_select_cpu(t, wake_flags, p->scx.weight, LAVD_FREQ_MAX);
	if (wake_flags & SCX_WAKE_TTWU)
		note_wakeup(p, t, wake_flags & SCX_WAKE_SYNC, t->woken_at_ns);
	if (scx_any_idle()) {
		wake_flags = scx_queue_wake_flags(wake_flags);
		cpu = pick_idle(p, t, prev_cpu, wake_flags);
	}
	t->suggested_cpu = cpu < 0 ? prev_cpu : cpu;
	if (cpu < 0)
		return prev_cpu;
	update_criticality(p, t, SCX_ENQ_WAKEUP, scx_bpf_now());
	insert_local(p, t, first_slice_ns(t, cpu, 0), scx_immed_unless_sync(cpu, wake_flags));
	return cpu;
}

/* Run the task on an idle CPU of @active or, if @active is NULL, as it is for a pinned task, on any
 * idle CPU that the task may use. Returns false if no such CPU was found.
 * There is no search if ops.select_cpu() has already searched, unless the task should move to a
 * better CPU (scx_should_move()). */
static bool run_on_idle(struct task_struct *p, struct scx_dl_task *t, const struct cpumask *active,
			s32 prev_cpu, u64 enq_flags)
{
	s32 cpu;

	if (!active)
		cpu = scx_claim_on_enqueue(p, prev_cpu, enq_flags, false, false);
	else if (enq_flags & SCX_ENQ_CPU_SELECTED && !scx_should_move(prev_cpu, p))
		return false;
	else
		cpu = scx_bpf_select_cpu_and(p, prev_cpu, 0, active, 0);
	if (cpu < 0)
		return false;
	t->queued_at_ns = scx_bpf_now();
	scx_dl_run_on(p, t, cpu, prev_cpu, first_slice_ns(t, cpu, 0), enq_flags);
	return true;
}

/* Kick an idle CPU of @active, or any idle CPU if @active is NULL. A CPU may have become idle
 * since the last search. Returns whether a CPU was kicked. */
static bool kick_idle(struct task_struct *p, const struct cpumask *active)
{
	s32 cpu;

	if (!active)
		return scx_kick_idle_for(p);
	cpu = scx_bpf_select_cpu_and(p, scx_bpf_task_cpu(p), 0, active, 0);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/* If an interrupt wakes up a new task (LAVD_NEW_NS), give the task its full credit, even if it has
 * slept too briefly to earn it. Otherwise, CPU-bound tasks that were created at the same time and
 * have not run yet would precede it. */
static void favour_new(const struct task_struct *p, struct scx_dl_task *t, u64 enq_flags)
{
	u64 vtime = scx_dl_now(t) - lavd_credit_ns(t->lat_cri);

	if (enq_flags & SCX_ENQ_WAKEUP && !t->waker_pid && p->se.sum_exec_runtime <= LAVD_NEW_NS &&
	    time_after(t->vtime, vtime))
		t->vtime = vtime;
}

/* Run the task at once if it may preempt the task of its CPU (scx_dl_run_at_once()). Otherwise
 * queue it for its CPU or domain, by its deadline, and kick an idle CPU (kick_idle()). If there is
 * none, and the task may preempt, kick a CPU whose task has a later deadline. */
static void queue(struct task_struct *p, struct scx_dl_task *t, s32 cpu,
		  const struct cpumask *active, u64 enq_flags)
{
	u64 until, slice;
	bool preempts;

	scx_dl_set_node(t, scx_node_of(where_to_wait(p, cpu)));
	favour_new(p, t, enq_flags);
	scx_dl_place(t, p->scx.weight, lavd_credit_ns(t->lat_cri));
	until = deadline(t);
	slice = first_slice_ns(t, cpu, scx_nr_waiting(t->node));
	preempts = may_preempt(t, enq_flags);
	/* A probable lock holder is not preempted this way, because the kernel would not call
	 * ops.dispatch(), which lets the holder continue (extends_for_lock()). */
	if (preempts && !cpu_state(cpu)->holds_lock &&
	    scx_dl_run_at_once(p, t, slice, until, enq_flags)) {
		count(nr_preempt);
		return;
	}
	scx_dl_insert(p, t, slice, until, enq_flags);
	if (!kick_idle(p, active) && preempts)
		preempt(p, t, cpu, until);
}

void BPF_STRUCT_OPS(lavd_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	const struct cpumask *active;
	u64 now = scx_bpf_now();

	if (!t) {
		scx_dl_insert_local(p, t, SCX_DSQ_LOCAL, config.slice_min_ns, enq_flags);
		return;
	}
	scx_dl_enqueue(p, t, enq_flags, p->scx.weight, LAVD_FREQ_MAX);
	/* ops.select_cpu() was not called, because the task is pinned or its migration is
	 * disabled. */
	if (enq_flags & SCX_ENQ_WAKEUP && !(enq_flags & SCX_ENQ_CPU_SELECTED)) {
		note_wakeup(p, t, false, now);
		t->suggested_cpu = -1;
	}
	/* A task that is enqueued again (SCX_ENQ_REENQ) may not have run since the last update,
	 * which used up the boosts of its wakeup. Another update would drop these boosts. */
	if (!(enq_flags & SCX_ENQ_REENQ))
		update_criticality(p, t, enq_flags, now);
	/* A task whose migration is disabled must not wait, because other tasks may depend on
	 * it. */
	if (scx_task_is_migration_disabled(p, enq_flags)) {
		insert_local(p, t, SCX_MIGRATION_DISABLED_SLICE_NS, enq_flags);
		return;
	}
	/* A task that is enqueued again because its CPU was busy may use any CPU, since real-time
	 * tasks may occupy all active CPUs. */
	active = lavd_compacts && !(enq_flags & SCX_ENQ_REENQ) ? confines(p, t) : NULL;
	if (run_on_idle(p, t, active, cpu, enq_flags))
		return;
	/* SCX_ENQ_LAST: the CPU has found no other task, so @p continues. */
	if (enq_flags & SCX_ENQ_LAST) {
		insert_local(p, t, first_slice_ns(t, cpu, 0), enq_flags);
		return;
	}
	t->queued_at_ns = now;
	queue(p, t, cpu, active, enq_flags);
}

static void keep_running(s32 cpu, struct task_struct *prev, const struct scx_dl_task *t)
{
	scx_bpf_task_set_slice(prev, slice_ns(t, cpu));
	scx_cpufreq_note(cpu, true);
}

void BPF_STRUCT_OPS(lavd_dispatch, s32 cpu, struct task_struct *prev)
{
	struct scx_dl_task *t = NULL;

	scx_learn_trampoline();
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		t = scx_dl_task(prev);
	if (scx_balance(cpu)) {
		count(nr_stolen);
		return;
	}
	if (t) {
		/* The boosts of prev's last wakeup no longer apply. */
		update_criticality(prev, t, 0, scx_bpf_now());
		scx_dl_charge_prev(prev, t, cpu, prev->scx.weight, lavd_credit_ns(t->lat_cri));
		/* The kernel calls ops.dispatch() before it enqueues prev again. Without this
		 * check, two tasks on a CPU would take turns, whatever their weights. */
		if (extends_for_lock(t, cpu) ||
		    scx_precedes(deadline(t), cpu, SCX_NODE_DSQ | scx_node_of(cpu))) {
			keep_running(cpu, prev, t);
			return;
		}
	}
	if (scx_queue_dispatch(cpu))
		return;
	/* If prev should move to another CPU, it gets no new slice. The kernel then enqueues it
	 * again (SCX_ENQ_LAST), and ops.enqueue() moves it. */
	if (t && !scx_should_move(cpu, prev)) {
		scx_dl_alone(t, config.slice_max_ns, prev->scx.weight);
		keep_running(cpu, prev, t);
	} else if (scx_steal(cpu)) {
		count(nr_stolen);
	}
}

/* Count a task that starts to run on @cpu. */
static void count_start(const struct scx_dl_task *t, s32 cpu)
{
	bool critical = t->lat_cri >= lavd_system.avg_lat_cri;
	struct lavd_counts *counts = scx_counters(lavd_counters);

	if (!counts)
		return;
	counts->nr_sched++;
	if (critical)
		counts->nr_lat_cri++;
	if (scx_node_of(cpu) != scx_node_of(t->prev_cpu))
		counts->nr_x_migration++;
	if (!lavd_is_big_little)
		return;
	if (is_perf_critical(t))
		counts->nr_perf_cri++;
	if (!is_big(cpu))
		return;
	counts->nr_big++;
	if (critical)
		counts->nr_lat_cri_on_big++;
	if (is_perf_critical(t))
		counts->nr_perf_cri_on_big++;
}

void BPF_STRUCT_OPS(lavd_running, struct task_struct *p)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = scx_bpf_now(), dsq_id;

	scx_cpufreq_note_at(cpu, false, now);
	note_busy(cpu, now);
	if (!t)
		return;
	dsq_id = t->has_waited ? (t->pinned_to ? cpu : SCX_NODE_DSQ | t->node) : SCX_DSQ_LOCAL;
	if (scx_dl_running(p, t, cpu, p->scx.weight) && !t->holds_lock)
		scx_running_set(cpu, deadline(t), scx_dl_stretch_ns(t), p->scx.weight);
	cpu_state(cpu)->is_boosted = false;
	cpu_state(cpu)->holds_lock = t->holds_lock;
	/* A task that runs briefly keeps the slice with which it was queued. */
	if (t->avg_runtime_ns >= config.slice_min_ns)
		scx_bpf_task_set_slice(p, slice_ns(t, cpu));
	note_start(t, cpu);
	count_start(t, cpu);
	take_sample(p, t, cpu, now, dsq_id);
	t->run_freq = scx_average_freq(t->run_freq, time_delta(now, t->ran_at_ns), NSEC_PER_SEC,
				       LAVD_FREQ_MAX);
	t->ran_at_ns = now;
	t->prev_cpu = cpu;
}

void BPF_STRUCT_OPS(lavd_tick, struct task_struct *p)
{
	shorten_slice(p, scx_bpf_task_cpu(p));
}

void BPF_STRUCT_OPS(lavd_stopping, struct task_struct *p, bool runnable)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = scx_bpf_now();

	scx_cpufreq_note_at(cpu, true, now);
	note_idle(cpu, now);
	scx_dl_stopping(p, t, cpu, p->scx.weight, runnable);
	if (t)
		t->slice_used_ns = time_delta(now, t->ran_at_ns);
}

/* A task of a higher class has taken the CPU. Used only on kernels without SCX_ENQ_IMMED. */
void BPF_STRUCT_OPS(lavd_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(lavd_enable, struct task_struct *p)
{
	scx_dl_enable(p);
}

void BPF_STRUCT_OPS(lavd_disable, struct task_struct *p)
{
	scx_dl_disable(p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lavd_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct scx_dl_task *t = scx_dl_init_task(p, args->fork, FORK_CREDIT_NS);

	if (t)
		t->prev_cpu = scx_bpf_task_cpu(p);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lavd_init)
{
	scx_cpufreq_init();
	lavd_round_at_ns = scx_bpf_now();
	return scx_queues_init() ?: init_state() ?: start_rounds();
}

void BPF_STRUCT_OPS(lavd_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(lavd_dump, struct scx_dump_ctx *dctx)
{
	scx_queues_dump();
	scx_bpf_dump("latency criticality: average %llu, maximum %llu\n", lavd_system.avg_lat_cri,
		     lavd_system.max_lat_cri);
	scx_bpf_dump("load %llu, active CPUs %llu, mode %llu\n", lavd_system.load,
		     lavd_system.nr_active, lavd_system.mode);
}

SCX_OPS(lavd_ops) = {
	.select_cpu = (void *)lavd_select_cpu,
	.enqueue = (void *)lavd_enqueue,
	.dispatch = (void *)lavd_dispatch,
	.running = (void *)lavd_running,
	.tick = (void *)lavd_tick,
	.stopping = (void *)lavd_stopping,
	.cpu_release = (void *)lavd_cpu_release,
	.enable = (void *)lavd_enable,
	.disable = (void *)lavd_disable,
	.init_task = (void *)lavd_init_task,
	.init = (void *)lavd_init,
	.exit = (void *)lavd_exit,
	.dump = (void *)lavd_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "lavd",
};
