/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption on wakeup: a task that has just been queued preempts the running task of a CPU if the
 * deadline of the queued task is earlier.
 *
 * A scheduler calls scx_running_set() from ops.running() if the task may be preempted at all, and
 * scx_running_clear() from ops.stopping(). scx_rusty reads the running task instead (curr.bpf.h).
 */
#ifndef __SCX_PREEMPT_BPF_H
#define __SCX_PREEMPT_BPF_H

#include <scx/common.bpf.h>
#include <scx/cpus.h>
#include <scx/first.bpf.h>

/*
 * Minimum stretch (scx_stretch_ns()) of a task that a queued task may preempt. With a smaller
 * minimum, tasks that run only briefly before they sleep, such as the worker threads of a server,
 * would preempt each other while they hold locks.
 */
#define SCX_STRETCH_MIN_NS (4 * NSEC_PER_MSEC)

/* Like SCX_STRETCH_MIN_NS, but for a queued task whose last wakeup was a sync wakeup. A waker and a
 * wakee that exchange messages run better one after the other, so such a wakee preempts only
 * CPU-bound tasks. */
#define SCX_SYNC_STRETCH_MIN_NS (40 * NSEC_PER_MSEC)

/* The task that runs on a CPU. */
struct scx_running {
	u64 deadline; /* as of the start of the run; 0: no task, or one not to be preempted */
	u64 since_ns; /* when the task started to run */
	u64 stretch_ns; /* scx_stretch_ns(), as of the start of the run */
	u32 weight;
};

static struct scx_running scx_running[SCX_CPUS_MAX];

static inline struct scx_running *scx_running_on(s32 cpu)
{
	return &scx_running[(u32)cpu % SCX_CPUS_MAX];
}

/* Return the stretch of a task, ns: how long it computes before it sleeps. This is an average or,
 * if longer, the CPU time since the last wakeup. The average of a task that has just begun to
 * compute is still short. */
static inline u64 scx_stretch_ns(u64 avg_runtime_ns, u64 awake_ns)
{
	return awake_ns > avg_runtime_ns ? awake_ns : avg_runtime_ns;
}

/* Note that a task with this deadline, stretch and weight starts to run on @cpu. */
static inline void scx_running_set(s32 cpu, u64 deadline, u64 stretch_ns, u32 weight)
{
	struct scx_running *running = scx_running_on(cpu);

	running->since_ns = scx_bpf_now();
	running->stretch_ns = stretch_ns;
	running->weight = weight;
	running->deadline = deadline ?: 1;
}

static inline void scx_running_clear(s32 cpu)
{
	scx_running_on(cpu)->deadline = 0;
}

/*
 * Whether a task with this deadline should preempt the task that runs on @cpu. The deadline of the
 * running task advances with its CPU time. A task with a stretch below @stretch_min_ns is not
 * preempted: it is likely to sleep soon anyway, and may hold a lock that other tasks wait for.
 */
static inline bool scx_should_preempt(s32 cpu, u64 deadline, u64 stretch_min_ns)
{
	const struct scx_running *running = scx_running_on(cpu);
	u64 ran_ns;

	if (!running->deadline || running->stretch_ns < stretch_min_ns)
		return false;
	ran_ns = time_delta(scx_bpf_now(), running->since_ns);
	return time_before(deadline, running->deadline + scx_vtime_cost(ran_ns, running->weight));
}

/* Flags with which to insert a wakee into the local DSQ if scx_preempts_at_once(). */
#define SCX_ENQ_AT_ONCE (SCX_ENQ_PREEMPT | SCX_ENQ_IMMED)

/*
 * In ops.enqueue(), before the task is queued: whether a wakee that should preempt the running task
 * of its CPU may be inserted into SCX_DSQ_LOCAL with SCX_ENQ_AT_ONCE, instead of being queued and
 * preempting that task by scx_bpf_kick_cpu(). This saves an interrupt: a kick first interrupts the
 * calling CPU, which then interrupts the other CPU.
 *
 * The kernel does not call ops.dispatch() in this case, so the task has to be the one that
 * ops.dispatch() would choose after a kick: one that precedes all tasks in the two given DSQs,
 * while the local DSQ is empty.
 */
static inline bool scx_may_run_at_once(struct task_struct *p, u64 deadline, u64 cpu_dsq_id,
				       u64 dsq_id)
{
	s32 cpu = scx_bpf_task_cpu(p);

	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
	       scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) <= 0 &&
	       !scx_is_preceded(deadline, cpu_dsq_id, dsq_id);
}

/* Whether the task should preempt the running task of its CPU (scx_should_preempt()) and may run at
 * once (scx_may_run_at_once()). If true, the CPU counts as not preemptible until a task starts to
 * run there. */
static inline bool scx_preempts_at_once(struct task_struct *p, u64 enq_flags, u64 deadline,
					u64 stretch_min_ns, u64 cpu_dsq_id, u64 dsq_id)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (!(enq_flags & SCX_ENQ_WAKEUP) || !scx_should_preempt(cpu, deadline, stretch_min_ns) ||
	    !scx_may_run_at_once(p, deadline, cpu_dsq_id, dsq_id))
		return false;
	scx_running_clear(cpu);
	return true;
}

#endif /* __SCX_PREEMPT_BPF_H */
