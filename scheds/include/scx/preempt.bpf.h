/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preemption on wakeup: a task that has just been queued preempts the task that runs on a CPU if
 * its deadline is earlier.
 *
 * ops.running() publishes the running task with scx_running_set(), if it may be preempted at all,
 * and ops.stopping() calls scx_running_clear().
 */
#ifndef __SCX_PREEMPT_BPF_H
#define __SCX_PREEMPT_BPF_H

#include <scx/common.bpf.h>
#include <scx/cpus.h>

/* The task that runs on a CPU. */
struct scx_running {
	u64 deadline; /* at its start; 0: not preemptible */
	u64 since_ns; /* when it started */
	u64 stretch_ns; /* its average runtime */
	u32 weight;
};

static struct scx_running scx_running[SCX_CPUS_MAX];

static inline struct scx_running *scx_running_on(s32 cpu)
{
	return &scx_running[(u32)cpu % SCX_CPUS_MAX];
}

/* Note that a task of @weight, which runs for @stretch_ns on average before it sleeps, starts to
 * run on @cpu. */
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
 * running task advances with its CPU time. A task that runs for less than @stretch_min_ns on
 * average is not preempted: it sleeps before a preemption would pay off, and may hold a lock that
 * others wait for.
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

#endif /* __SCX_PREEMPT_BPF_H */
