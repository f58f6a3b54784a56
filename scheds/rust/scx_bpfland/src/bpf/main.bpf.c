/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_bpfland: tasks that wake up often go first.
 *
 * On wakeup a task goes directly to an idle CPU if there is one (scx/cpus.bpf.h). Otherwise it
 * waits in the DSQ of its NUMA node, or of its CPU if it is pinned or sticky (is_sticky()), ordered
 * by deadline: its virtual time plus its weighted CPU time since it last slept
 * (scx/deadline.bpf.h). The virtual time of a task that sleeps falls behind, by at most a credit
 * that grows with its wakeup frequency and shrinks with the number of waiting tasks. So a task that
 * wakes up often, runs briefly and sleeps again has an early deadline, and preempts tasks that
 * compute. Each task is charged for all of its CPU time, so CPU time is shared by weight.
 */
#include <scx/common.bpf.h>
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

const volatile struct bpfland_config config SEC(".rodata.config");

SCX_PERCPU_COUNTERS(bpfland_counters, struct bpfland_counts);
#define count(what) scx_count(bpfland_counters, what)

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long.
 * Without --local-pcpu, the scheduler itself lets no task wait nearly as long, but the host may
 * halt the CPUs of a virtual machine. */
#define TIMEOUT_MS 20000

/* If the tasks that wait on a node would take at least this time, ns, to run for
 * config.slice_max_ns each, tasks get only the minimum credit. */
#define PRESSURE_NS (NSEC_PER_SEC / 2)

/* Upper bound of wakeup frequencies, per second. */
#define FREQ_MAX 640

/* Wakeup frequency, per second, up to which a task has a credit of config.lag_ns. */
#define FREQ_UNIT 10

/* Minimum slice, because shorter slices would be mostly overhead. */
#define MIN_SLICE_NS (100 * 1000ULL)

/* With config.sticky, tasks with a shorter average runtime than this wait for their CPU. */
#define STICKY_RUN_NS (10 * 1000ULL)

static u64 slice_ns(const struct task_struct *p, u64 nr)
{
	u64 min_ns = config.slice_min_ns > MIN_SLICE_NS ? config.slice_min_ns : MIN_SLICE_NS;

	return scx_dl_slice_ns(config.slice_max_ns, min_ns, p->scx.weight, nr);
}

/*
 * Return the maximum lag of a task, ns of virtual time: a credit that grows with its wakeup
 * frequency, and shrinks with the number of waiting tasks. It does not depend on the weight: for
 * the same virtual time, a task of larger weight gets more CPU time anyway. Unless the task is
 * waking up, it may lag further: by the maximum distance from its virtual time to its deadline
 * (deadline()), plus the cost of one slice. With a smaller bound, the virtual time of a task of
 * small weight would be raised before its turn comes, and shares would not follow the weights.
 */
static u64 lag_ns(const struct task_struct *p, const struct scx_dl_task *t, u64 nr, u64 enq_flags)
{
	u64 freq = scx_dl_wakeup_freq(t, enq_flags), threshold, ns;

	if (nr * config.slice_max_ns >= PRESSURE_NS || freq < FREQ_UNIT)
		freq = FREQ_UNIT;
	threshold = PRESSURE_NS / (config.slice_max_ns ?: 1) + 1;
	freq = freq * threshold / (threshold + nr);
	ns = config.lag_ns * (freq > FREQ_UNIT ? freq : FREQ_UNIT) / FREQ_UNIT;
	if (!(enq_flags & SCX_ENQ_WAKEUP))
		ns += scx_vtime_cost(config.lag_ns + config.slice_max_ns, p->scx.weight);
	return ns;
}

/* Return the deadline of a task: its virtual time, plus its CPU time since it last slept (at most
 * config.lag_ns) divided by its weight. The deadline is bounded by scx_dl_limit(). */
static u64 deadline(const struct task_struct *p, const struct scx_dl_task *t)
{
	u64 awake_ns = t->awake_ns < config.lag_ns ? t->awake_ns : config.lag_ns;

	return scx_dl_limit(t, t->vtime + scx_vtime_cost(awake_ns, p->scx.weight));
}

/* Whether the task waits for @cpu only, because its average runtime is so short that a migration
 * does not pay off. False for a new task, which has no average yet, and for a task that the kernel
 * enqueues again (SCX_ENQ_REENQ) because its CPU is busy, for example with a real-time task. */
static bool is_sticky(const struct task_struct *p, const struct scx_dl_task *t, s32 cpu,
		      u64 enq_flags)
{
	return config.sticky && t->avg_runtime_ns && t->avg_runtime_ns < STICKY_RUN_NS &&
	       !(enq_flags & SCX_ENQ_REENQ) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Queue the task for its CPU or node, by its deadline. A sticky task is queued like a pinned one.
 * In the local DSQ it would precede all other tasks, and two sticky tasks that wake each other
 * would keep the CPU forever. */
static void queue(struct task_struct *p, struct scx_dl_task *t, s32 cpu, u64 enq_flags)
{
	u32 node = scx_node_of(cpu);
	u64 nr = scx_nr_waiting(node);

	if (is_sticky(p, t, cpu, enq_flags))
		t->pinned_to = cpu + 1;
	scx_dl_set_node(t, node);
	scx_dl_place(t, p->scx.weight, lag_ns(p, t, nr, enq_flags));
	if (scx_dl_queue(p, t, cpu, slice_ns(p, nr), deadline(p, t), enq_flags))
		count(nr_preemptions);
	if (t->pinned_to)
		count(nr_direct_dispatches);
	else
		count(nr_shared_dispatches);
}

/* Insert the task into the local DSQ of its CPU (in ops.select_cpu(): of the CPU that is returned).
 * There it precedes all tasks in other DSQs. */
static void insert_local(struct task_struct *p, struct scx_dl_task *t, u64 slice, u64 enq_flags)
{
	scx_dl_insert_local(p, t, SCX_DSQ_LOCAL, slice, enq_flags);
}

static s32 pick_idle(struct task_struct *p, s32 prev_cpu, u64 *wake_flags)
{
	s32 cpu = -EBUSY;
	u64 flags;

	if (scx_is_throttled())
		return cpu;
	if (scx_any_idle()) {
		*wake_flags = scx_queue_wake_flags(*wake_flags);
		flags = *wake_flags & ~(config.ignores_sync ? SCX_WAKE_SYNC : 0);
		cpu = config.prefers_fastest ? scx_pick_fastest_idle(p, prev_cpu) :
					       scx_pick_idle(p, prev_cpu, flags);
	}
	if (cpu < 0)
		count(nr_idle_misses);
	return cpu;
}

s32 BPF_STRUCT_OPS(bpfland_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu;

	if (!bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr))
		prev_cpu = bpf_cpumask_first(p->cpus_ptr);
	if (t) {
		scx_dl_select_cpu(t, wake_flags, p->scx.weight, FREQ_MAX);
		/* queue() may have set pinned_to because the task was sticky. A pinned task does
		 * not get here, because the kernel does not call ops.select_cpu() for it. */
		if (config.sticky)
			t->pinned_to = 0;
	}
	cpu = pick_idle(p, prev_cpu, &wake_flags);
	if (cpu < 0)
		return prev_cpu;
	insert_local(p, t, slice_ns(p, 0), scx_immed_unless_sync(cpu, wake_flags));
	count(nr_direct_dispatches);
	return cpu;
}

/* Whether the task bypasses the queue, because other tasks may depend on it or because of an
 * option. If so, it is counted. */
static bool bypasses_queue(const struct task_struct *p, u64 enq_flags)
{
	if (config.local_kthreads && scx_task_is_percpu_kthread(p)) {
		count(nr_kthread_dispatches);
		return true;
	}
	if (scx_task_is_migration_disabled(p, enq_flags) ||
	    (!scx_is_throttled() && config.local_pcpu && scx_task_is_pinned(p))) {
		count(nr_direct_dispatches);
		return true;
	}
	return false;
}

/* Run the task on an idle CPU, if scx_claim_on_enqueue() finds one. Returns whether it does. */
static bool run_on_idle(struct task_struct *p, struct scx_dl_task *t, s32 prev_cpu, u64 enq_flags)
{
	bool stays = config.sticky && scx_bpf_task_running(p);
	s32 cpu;

	if (scx_is_throttled())
		return false;
	cpu = scx_claim_on_enqueue(p, prev_cpu, enq_flags, stays, config.prefers_fastest);
	if (cpu < 0) {
		if (cpu == -EBUSY)
			count(nr_idle_misses);
		return false;
	}
	scx_dl_run_on(p, t, cpu, prev_cpu, slice_ns(p, 0), enq_flags);
	count(nr_direct_dispatches);
	return true;
}

void BPF_STRUCT_OPS(bpfland_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (t)
		scx_dl_enqueue(p, t, enq_flags, p->scx.weight, FREQ_MAX);
	if (!t || bypasses_queue(p, enq_flags)) {
		insert_local(p, t, scx_bypass_slice_ns(p, enq_flags, slice_ns(p, 0)), enq_flags);
		return;
	}
	if (run_on_idle(p, t, cpu, enq_flags))
		return;
	/* SCX_ENQ_LAST: the CPU has found no other task, so @p continues. */
	if (enq_flags & SCX_ENQ_LAST && !scx_is_throttled()) {
		insert_local(p, t, slice_ns(p, 0), enq_flags);
		return;
	}
	queue(p, t, cpu, enq_flags);
}

static void keep_running(s32 cpu, struct task_struct *prev)
{
	scx_bpf_task_set_slice(prev, slice_ns(prev, scx_nr_waiting(scx_node_of(cpu))));
	scx_cpufreq_note(cpu, true);
	count(nr_keep_running);
}

void BPF_STRUCT_OPS(bpfland_dispatch, s32 cpu, struct task_struct *prev)
{
	struct scx_dl_task *t = NULL;

	scx_learn_trampoline();
	if (scx_is_throttled())
		return;
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		t = scx_dl_task(prev);
	if (scx_balance(cpu)) {
		count(nr_queue_dispatches);
		return;
	}
	if (t) {
		scx_dl_charge_prev(prev, t, cpu, prev->scx.weight,
				   lag_ns(prev, t, scx_nr_waiting(scx_node_of(cpu)), 0));
		/* The kernel calls ops.dispatch() before it enqueues prev again. Without this
		 * check, two tasks on a CPU would take turns, whatever their weights. */
		if ((config.local_pcpu && scx_task_is_pinned(prev)) ||
		    scx_precedes(deadline(prev, t), cpu, SCX_NODE_DSQ | scx_node_of(cpu))) {
			keep_running(cpu, prev);
			return;
		}
	}
	if (scx_queue_dispatch(cpu) || (!t && scx_steal(cpu))) {
		count(nr_queue_dispatches);
		return;
	}
	/* If prev should move to another CPU, it gets no new slice. The kernel then enqueues it
	 * again (SCX_ENQ_LAST), and ops.enqueue() moves it. */
	if (t && !scx_should_move(cpu, prev)) {
		scx_dl_alone(t, config.slice_max_ns, prev->scx.weight);
		keep_running(cpu, prev);
	}
}

void BPF_STRUCT_OPS(bpfland_running, struct task_struct *p)
{
	struct scx_dl_task *t = scx_dl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);

	count(nr_started);
	scx_cpufreq_note(cpu, false);
	/* With local_pcpu, a pinned task is not preempted: bpfland_dispatch() lets it continue. */
	if (t && scx_dl_running(p, t, cpu, p->scx.weight) &&
	    !(config.local_pcpu && scx_task_is_pinned(p)))
		scx_running_set(cpu, deadline(p, t), scx_dl_stretch_ns(t), p->scx.weight);
}

void BPF_STRUCT_OPS(bpfland_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);

	count(nr_stopped);
	scx_cpufreq_note(cpu, true);
	scx_dl_stopping(p, scx_dl_task(p), cpu, p->scx.weight, runnable);
}

/* A task of a higher class has taken the CPU. Used only on kernels without SCX_ENQ_IMMED. */
void BPF_STRUCT_OPS(bpfland_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(bpfland_enable, struct task_struct *p)
{
	scx_dl_enable(p);
}

void BPF_STRUCT_OPS(bpfland_disable, struct task_struct *p)
{
	scx_dl_disable(p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(bpfland_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	scx_dl_init_task(p, args->fork, config.lag_ns);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(bpfland_init)
{
	scx_cpufreq_init();
	return scx_queues_init() ?: scx_throttle_init();
}

void BPF_STRUCT_OPS(bpfland_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(bpfland_dump, struct scx_dump_ctx *dctx)
{
	scx_queues_dump();
}

SCX_OPS(bpfland_ops) = {
	.select_cpu = (void *)bpfland_select_cpu,
	.enqueue = (void *)bpfland_enqueue,
	.dispatch = (void *)bpfland_dispatch,
	.running = (void *)bpfland_running,
	.stopping = (void *)bpfland_stopping,
	.cpu_release = (void *)bpfland_cpu_release,
	.enable = (void *)bpfland_enable,
	.disable = (void *)bpfland_disable,
	.init_task = (void *)bpfland_init_task,
	.init = (void *)bpfland_init,
	.exit = (void *)bpfland_exit,
	.dump = (void *)bpfland_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "bpfland",
};
