/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own counters of CPUs and tasks. The kernel maintains them at each switch anyway, so
 * reading them costs the observed tasks nothing. rq_cpu_time needs CONFIG_SCHEDSTATS, and
 * sched_info needs CONFIG_SCHED_INFO, which CONFIG_SCHEDSTATS selects.
 *
 * Times are read from the clocks of the run queues, which advance with the monotonic clock but have
 * another origin. A run queue's clock advances only when the kernel updates it, for example at
 * ticks, so the clock of an idle CPU may be far behind. Therefore times are compared with the clock
 * of the CPU that reads them.
 */
#ifndef __SCXTOP_KERNEL_BPF_H
#define __SCXTOP_KERNEL_BPF_H

#include "class.bpf.h"

struct sched_info___top {
	unsigned long pcount; /* times it was switched in */
	unsigned long long run_delay; /* waiting time, ns, until it was last switched in */
	unsigned long long last_arrival; /* when it was last switched in */
	unsigned long long last_queued; /* when it began to wait; 0: it does not wait */
} __attribute__((preserve_access_index));

struct sched_entity___top {
	u64 sum_exec_runtime;
	u64 nr_migrations;
} __attribute__((preserve_access_index));

/* Embedded in task_struct if CONFIG_THREAD_INFO_IN_TASK is set, as on x86, arm64, riscv, s390 and
 * powerpc. */
struct thread_info___top {
	u32 cpu;
} __attribute__((preserve_access_index));

struct task_struct___top {
	struct thread_info___top thread_info;
	unsigned int on_cpu; /* u8 in 7.2; libbpf adapts the size of unsigned members only */
	struct sched_entity___top se;
	struct sched_info___top sched_info;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_time;
} __attribute__((preserve_access_index));

struct rq___top {
	u64 nr_switches;
	struct task_struct *curr;
	u64 clock;
	unsigned long long rq_cpu_time; /* CPU time of tasks that were switched out, ns */
} __attribute__((preserve_access_index));

extern const struct rq runqueues __ksym;

static inline struct task_struct___top *counted(struct task_struct *p)
{
	return (struct task_struct___top *)p;
}

static inline u32 cpu_of(struct task_struct *p)
{
	return counted(p)->thread_info.cpu;
}

/* The clock of this CPU's run queue, which usually lags by at most one tick. */
static inline u64 rq_clock(void)
{
	return ((struct rq___top *)bpf_this_cpu_ptr(&runqueues))->clock;
}

/* The time from @start to @end; 0 if @end is earlier, which is possible because the clocks of two
 * CPUs may differ. */
static inline u64 between(u64 start, u64 end)
{
	return (s64)(end - start) > 0 ? end - start : 0;
}

/* Estimate how long @p has run since the kernel last updated the counters of @p, ns: the time from
 * the last update of the clock of its run queue to @clock. Return 0 if @p does not run. */
static inline u64 unaccounted_ns(struct task_struct *p, u64 clock)
{
	struct rq___top *rq = (struct rq___top *)bpf_per_cpu_ptr(&runqueues, cpu_of(p));

	return rq && counted(p)->on_cpu ? between(rq->clock, clock) : 0;
}

static inline u64 run_ns(struct task_struct *p, u64 clock)
{
	return counted(p)->se.sum_exec_runtime + unaccounted_ns(p, clock);
}

static inline u64 wait_ns(struct task_struct *p, u64 clock)
{
	u64 since = counted(p)->sched_info.last_queued;

	return counted(p)->sched_info.run_delay + (since ? between(since, clock) : 0);
}

static inline enum top_state task_state(struct task_struct *p)
{
	if (counted(p)->on_cpu)
		return TOP_RUNNING;
	return counted(p)->sched_info.last_queued ? TOP_WAITING : TOP_SLEEPING;
}

/* Maximum number of attempts to read a CPU without a context switch meanwhile. */
#define TOP_CPU_TRIES 4

static void read_cpu(u32 cpu, u64 clock)
{
	struct rq___top *rq = (struct rq___top *)bpf_per_cpu_ptr(&runqueues, cpu);
	struct top_cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	struct task_struct *curr;
	u64 nr_switches, busy_ns;
	int i;

	if (!rq || !c)
		return;
	for (i = 0; i < TOP_CPU_TRIES; i++) {
		nr_switches = rq->nr_switches;
		curr = rq->curr;
		busy_ns = rq->rq_cpu_time;
		c->pid = curr->pid;
		if (c->pid)
			busy_ns += between(counted(curr)->sched_info.last_arrival, clock);
		c->class = class_of(curr);
		copy_comm(c->comm, curr);
		if (nr_switches == rq->nr_switches)
			break;
	}
	c->nr_switches = nr_switches;
	c->busy_ns = busy_ns;
}

#endif /* __SCXTOP_KERNEL_BPF_H */
