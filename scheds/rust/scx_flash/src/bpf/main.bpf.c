/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_flash: completely fair, by virtual time.
 *
 * On wakeup a task goes directly to an idle CPU if there is one (scx/direct.bpf.h). Otherwise it
 * waits in the DSQ of its NUMA node, or of its CPU if it is pinned, ordered by virtual time
 * (scx/deadline.bpf.h), which advances by CPU time divided by weight. The weight of a task is the
 * weight of its nice value, times cpu.weight of its cgroup, divided by 100. The virtual time of a
 * task that sleeps falls behind, by at most a credit that grows with its wakeup frequency, so that
 * the task runs first when it wakes up.
 *
 * In round robin mode, tasks wait in order of arrival. In tickless mode, slices are infinite
 * (tickless.bpf.h).
 */
#include <scx/common.bpf.h>
#include <scx/cgroup.bpf.h>

#define SCX_DL_TASK_MEMBERS struct scx_cgroup_task cgroup;

#include <scx/cpufreq.bpf.h>
#include <scx/cpus.bpf.h>
#include <scx/deadline.bpf.h>
#include <scx/direct.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/throttle.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

const volatile struct flash_config config SEC(".rodata.config");

SCX_PERCPU_COUNTERS(flash_counters, struct flash_counts);
#define count(what) scx_count(flash_counters, what)

#include "tickless.bpf.h"

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long. The
 * scheduler itself lets no task wait nearly as long, but the host may halt the CPUs of a virtual
 * machine. */
#define TIMEOUT_MS 20000

/* Upper bound of wakeup frequencies, per second. */
#define FREQ_MAX 1000

/* Wakeup frequency, per second, up to which the credit is config.lag_ns. At higher frequencies, the
 * credit is proportional to the frequency. */
#define FREQ_UNIT 10

/* Minimum slice, because shorter slices would be mostly overhead. */
#define MIN_SLICE_NS (100 * 1000ULL)

/* With config.wakeup_throttle, tasks with a shorter average runtime than this get a later
 * deadline. */
#define SHORT_RUN_NS (10 * 1000ULL)

static u32 weight_of(const struct task_struct *p, const struct scx_dl_task *t)
{
	u32 weight = scx_cgroup_task_weight(&t->cgroup);

	if (weight == SCX_WEIGHT_DFL)
		return p->scx.weight;
	return scx_weight_clamp(p->scx.weight * weight / SCX_WEIGHT_DFL);
}

static u64 slice_ns(u32 weight)
{
	if (config.tickless)
		return SCX_SLICE_INF;
	return scx_dl_slice_ns(config.slice_ns, MIN_SLICE_NS, weight, 0);
}

/* Return the maximum lag of a task, ns of virtual time. It does not depend on the weight: for the
 * same virtual time, a task of larger weight gets more CPU time anyway. */
static u64 credit_ns(const struct scx_dl_task *t, u64 enq_flags)
{
	u32 freq = scx_dl_wakeup_freq(t, enq_flags);

	return config.lag_ns * (freq > FREQ_UNIT ? freq : FREQ_UNIT) / FREQ_UNIT;
}

/* Return the deadline of a task: its virtual time or, with config.wakeup_throttle, a later time for
 * a task with a short average runtime that is not a per-CPU kernel thread. The virtual time itself
 * does not change, so the task runs later but keeps its share. */
static u64 deadline(const struct task_struct *p, const struct scx_dl_task *t)
{
	if (!config.wakeup_throttle || !t->avg_runtime_ns || t->avg_runtime_ns >= SHORT_RUN_NS ||
	    scx_task_is_percpu_kthread(p))
		return t->vtime;
	return scx_dl_limit(t, time_max(t->vtime, scx_dl_now(t)) + config.lag_ns);
}

/* Queue the task for its CPU or node, by its deadline, or in round robin mode by the time of its
 * arrival. */
static void queue(struct task_struct *p, struct scx_dl_task *t, s32 cpu, u32 weight, u64 enq_flags)
{
	u64 until, slice = slice_ns(weight);

	scx_dl_set_node(t, scx_node_of(cpu));
	if (config.rr) {
		/* A task that has already been dispatched keeps the rest of its slice. */
		if (enq_flags & SCX_ENQ_REENQ)
			slice = 0;
		until = p->scx.dsq_vtime;
	} else {
		scx_dl_place(t, weight, credit_ns(t, enq_flags));
		until = deadline(p, t);
	}
	if (scx_dl_queue(p, t, cpu, slice, until, enq_flags))
		count(nr_preemptions);
	count(nr_shared_dispatches);
}

s32 BPF_STRUCT_OPS(flash_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	u32 weight;
	s32 cpu;

	if (!bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr))
		prev_cpu = bpf_cpumask_first(p->cpus_ptr);
	if (!t)
		return prev_cpu;
	weight = weight_of(p, t);
	scx_dl_select_cpu(t, wake_flags, weight, FREQ_MAX);
	if (scx_is_throttled() || !scx_any_idle())
		return prev_cpu;
	/* Do not let the wakee wait for the waker, which may continue after a sync wakeup. */
	cpu = scx_pick_idle(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC);
	if (cpu < 0)
		return prev_cpu;
	if (config.rr)
		scx_note_arrival(p, 0);
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL, slice_ns(weight), SCX_ENQ_IMMED);
	count(nr_direct_dispatches);
	return cpu;
}

/* Whether the task bypasses the queue, because other tasks may depend on it. If so, it is
 * counted. */
static bool bypasses_queue(const struct task_struct *p, u64 enq_flags)
{
	if (config.local_kthreads && scx_task_is_percpu_kthread(p)) {
		count(nr_kthread_dispatches);
		return true;
	}
	if (!scx_task_is_migration_disabled(p, enq_flags))
		return false;
	count(nr_direct_dispatches);
	return true;
}

/* Run the task on an idle CPU, if scx_claim_on_enqueue() finds one. Returns whether it does. */
static bool run_on_idle(struct task_struct *p, struct scx_dl_task *t, s32 prev_cpu, u32 weight,
			u64 enq_flags)
{
	s32 cpu;

	if (scx_is_throttled())
		return false;
	cpu = scx_claim_on_enqueue(p, prev_cpu, enq_flags, false, false);
	if (cpu < 0)
		return false;
	scx_dl_run_on(p, t, cpu, prev_cpu, slice_ns(weight), enq_flags);
	count(nr_direct_dispatches);
	return true;
}

void BPF_STRUCT_OPS(flash_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u32 weight;

	if (!t) {
		scx_dl_insert_local(p, t, SCX_DSQ_LOCAL, slice_ns(p->scx.weight), enq_flags);
		return;
	}
	weight = weight_of(p, t);
	scx_dl_enqueue(p, t, enq_flags, weight, FREQ_MAX);
	if (config.rr)
		scx_note_arrival(p, enq_flags);
	if (!bypasses_queue(p, enq_flags)) {
		if (run_on_idle(p, t, cpu, weight, enq_flags))
			return;
		/* SCX_ENQ_LAST: the CPU has found no other task, so @p continues. */
		if (!(enq_flags & SCX_ENQ_LAST) || scx_is_throttled()) {
			queue(p, t, cpu, weight, enq_flags);
			return;
		}
	}
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL,
			    scx_bypass_slice_ns(p, enq_flags, slice_ns(weight)), enq_flags);
}

static void keep_running(s32 cpu, struct task_struct *prev, u32 weight)
{
	scx_bpf_task_set_slice(prev, slice_ns(weight));
	scx_cpufreq_note(cpu, true);
	tickless_turn(cpu, true);
}

void BPF_STRUCT_OPS(flash_dispatch, s32 cpu, struct task_struct *prev)
{
	struct scx_dl_task *t = NULL;
	u32 weight = 0;

	scx_learn_trampoline();
	if (scx_is_throttled())
		return;
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		t = scx_dl_task(prev);
	if (scx_balance(cpu))
		return;
	if (t) {
		weight = weight_of(prev, t);
		scx_dl_charge_prev(prev, t, cpu, weight, credit_ns(t, 0));
		/* The kernel calls ops.dispatch() before it enqueues prev again. Without this
		 * check, two tasks on a CPU would take turns, whatever their weights. */
		if (!config.rr &&
		    scx_precedes(deadline(prev, t), cpu, SCX_NODE_DSQ | scx_node_of(cpu))) {
			keep_running(cpu, prev, weight);
			return;
		}
	}
	if (scx_queue_dispatch(cpu) || (!t && scx_steal(cpu)))
		return;
	/* If prev should move to another CPU, it gets no new slice. The kernel then enqueues it
	 * again (SCX_ENQ_LAST), and ops.enqueue() moves it. */
	if (t && !scx_should_move(cpu, prev)) {
		scx_dl_alone(t, config.slice_ns, weight);
		keep_running(cpu, prev, weight);
	}
}

void BPF_STRUCT_OPS(flash_running, struct task_struct *p)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u32 weight;

	count(nr_started);
	scx_cpufreq_note(cpu, false);
	tickless_turn(cpu, true);
	if (!t)
		return;
	weight = weight_of(p, t);
	if (scx_dl_running(p, t, cpu, weight) && !config.rr)
		scx_running_set(cpu, deadline(p, t), scx_dl_stretch_ns(t), weight);
}

void BPF_STRUCT_OPS(flash_stopping, struct task_struct *p, bool runnable)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);

	count(nr_stopped);
	scx_cpufreq_note(cpu, true);
	tickless_turn(cpu, false);
	scx_dl_stopping(p, t, cpu, t ? weight_of(p, t) : p->scx.weight, runnable);
}

/* A task of a higher class has taken the CPU. Used only on kernels without SCX_ENQ_IMMED. */
void BPF_STRUCT_OPS(flash_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(flash_enable, struct task_struct *p)
{
	scx_dl_enable(p);
}

void BPF_STRUCT_OPS(flash_disable, struct task_struct *p)
{
	scx_dl_disable(p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(flash_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct scx_dl_task *t = scx_dl_init_task(p, args->fork, config.lag_ns);

	if (t)
		scx_cgroup_task_set(&t->cgroup, scx_init_task_cgroup(args));
	return 0;
}

SCX_CGROUP_OPS(flash)

void BPF_STRUCT_OPS(flash_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct scx_dl_task *t = scx_dl_task(p);

	if (t)
		scx_cgroup_task_set(&t->cgroup, to);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(flash_init)
{
	scx_cpufreq_init();
	return scx_queues_init() ?: scx_throttle_init() ?: tickless_init();
}

void BPF_STRUCT_OPS(flash_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(flash_dump, struct scx_dump_ctx *dctx)
{
	scx_queues_dump();
}

SCX_OPS(flash_ops) = {
	.select_cpu = (void *)flash_select_cpu,
	.enqueue = (void *)flash_enqueue,
	.dispatch = (void *)flash_dispatch,
	.running = (void *)flash_running,
	.stopping = (void *)flash_stopping,
	.cpu_release = (void *)flash_cpu_release,
	.enable = (void *)flash_enable,
	.disable = (void *)flash_disable,
	.init_task = (void *)flash_init_task,
	SCX_CGROUP_CALLBACKS(flash),
	.cgroup_move = (void *)flash_cgroup_move,
	.init = (void *)flash_init,
	.exit = (void *)flash_exit,
	.dump = (void *)flash_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "flash",
};
