/* SPDX-License-Identifier: GPL-2.0-only */
/* The task that runs on a CPU, and its CPU time. A scheduler that seldom needs them reads them with
 * these functions, instead of keeping a copy in ops.running() and ops.stopping(): the calls of
 * these two callbacks are a large part of the cost of a context switch. */
#ifndef __SCX_CURR_BPF_H
#define __SCX_CURR_BPF_H

#include <scx/common.bpf.h>
#include <scx/time.h>

extern const struct rq runqueues __ksym;

/* Return the task that runs on @cpu if it is a runnable task of the sched_ext class, else NULL. The
 * caller has to release it by scx_put_curr(). Call it only from callbacks that are not sleepable,
 * which run under RCU. */
static inline struct task_struct *scx_get_curr(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);

	if (!curr || !(curr->scx.flags & SCX_TASK_QUEUED))
		return NULL;
	/* Before 6.18, the verifier does not trust the pointer. */
	return bpf_ksym_exists(scx_bpf_cpu_curr___new) ? curr : bpf_task_from_pid(curr->pid);
}

static inline void scx_put_curr(struct task_struct *curr)
{
	if (!bpf_ksym_exists(scx_bpf_cpu_curr___new))
		bpf_task_release(curr);
}

/* Return the CPU time of @curr, the task that runs on @cpu, ns: se.sum_exec_runtime, which the
 * kernel updates at ticks and context switches, plus the time from that update to the last update
 * of the clock of the run queue. In ops.enqueue(), the clock of the task's CPU is up to date; the
 * clocks of other CPUs lag by at most one tick. */
static inline u64 scx_curr_exec_ns(s32 cpu, const struct task_struct *curr)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);
	u64 exec_ns = curr->se.sum_exec_runtime;

	return rq ? exec_ns + time_delta(rq->clock_task, curr->se.exec_start) : exec_ns;
}

#endif /* __SCX_CURR_BPF_H */
