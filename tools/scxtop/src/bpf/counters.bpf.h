/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The live counters of CPUs, tasks and DSQs.
 *
 * The counters of a task are in task storage, which is allocated where no run queue is locked: when
 * a task is forked, and by the iterator. The allocator may wake kswapd, which would deadlock
 * within a context switch.
 */
#ifndef __SCXTOP_COUNTERS_BPF_H
#define __SCXTOP_COUNTERS_BPF_H

#include "class.bpf.h"
#include "histogram.h"

static inline struct top_task *task_counters(struct task_struct *p)
{
	struct top_task *t = bpf_task_storage_get(&tasks, p, NULL, 0);
	struct top_lost *lost;

	if (t)
		return t;
	lost = this_cpu_losses();
	if (lost)
		lost->nr_tasks++;
	return NULL;
}

static inline void count_latency(u32 *buckets, u64 ns)
{
	/* The clocks of two CPUs may differ by a few ns. */
	u32 bucket = top_bucket((s64)ns < 0 ? 0 : ns);

	/* For the verifier: the compiler knows the range, and would omit the mask. */
	barrier_var(bucket);
	__sync_fetch_and_add(&buckets[bucket & (TOP_BUCKETS - 1)], 1);
}

/* End the current task's time on this CPU. */
static void account_cpu(struct top_cpu *c, u64 now)
{
	u64 ran_ns = now - c->switch_ns;

	if (!c->switch_ns || !c->pid)
		return;
	c->busy_ns += ran_ns;
	if (c->class == TOP_CLASS_EXT)
		c->ext_ns += ran_ns;
	else if (c->class == TOP_CLASS_RT || c->class == TOP_CLASS_DL)
		c->rt_ns += ran_ns;
}

static void count_out(struct top_cpu *c, struct task_struct *prev, bool is_runnable, u64 now)
{
	struct top_task *t;

	if (!prev->pid)
		return;
	if (is_runnable)
		c->nr_preemptions++;
	t = task_counters(prev);
	if (!t)
		return;
	if (t->state == TOP_RUNNING)
		t->run_ns += now - t->since_ns;
	t->last_ns = now;
	t->is_woken = 0;
	if (is_runnable) {
		t->nr_preemptions++;
		t->state = TOP_WAITING;
		t->since_ns = now;
	} else {
		t->state = TOP_SLEEPING;
		t->since_ns = 0;
	}
}

static void count_migration(struct top_cpu *c, u32 from, u32 to)
{
	/* For the verifier: the ids of CPUs are below TOP_CPUS_MAX. */
	from &= TOP_CPUS_MAX - 1;
	to &= TOP_CPUS_MAX - 1;
	c->nr_migrations++;
	if ((u32)places[from] != (u32)places[to])
		c->nr_migrations_llc++;
	if (places[from] >> 32 != places[to] >> 32)
		c->nr_migrations_node++;
}

/* End the stay of @next in its DSQ. Without a latency if sched_ext no longer schedules it: then
 * it did not wait for its turn. */
static void leave_dsq(struct top_task *t, struct task_struct *next, bool is_ext, u64 now)
{
	u64 key = (u64)next;
	struct top_inserted *in = bpf_map_lookup_elem(&inserted, &key);
	struct top_dsq *dsq;

	if (!in)
		return;
	t->dsq_id = in->dsq_id;
	t->has_dsq = 1;
	dsq = bpf_map_lookup_elem(&dsqs, &t->dsq_id);
	if (dsq && is_ext)
		count_latency(dsq->latency, now - in->time_ns);
	bpf_map_delete_elem(&inserted, &key);
}

static void forget_insertion(struct task_struct *p)
{
	u64 key = (u64)p;

	bpf_map_delete_elem(&inserted, &key);
}

static void count_in(struct top_cpu *c, struct task_struct *next, u32 cpu, u64 now)
{
	struct top_task *t;

	if (!next->pid)
		return;
	t = task_counters(next);
	if (!t)
		return;
	if (has_insertions)
		leave_dsq(t, next, c->class == TOP_CLASS_EXT, now);
	if (t->state == TOP_WAITING) {
		u64 wait_ns = now - t->since_ns;

		t->wait_ns += wait_ns;
		if (t->is_woken) {
			count_latency(t->wakeups, wait_ns);
			count_latency(c->wakeups, wait_ns);
		}
	}
	if (t->nr_switches && t->cpu != cpu) {
		t->nr_migrations++;
		count_migration(c, t->cpu, cpu);
	}
	t->cpu = cpu;
	t->nr_switches++;
	t->state = TOP_RUNNING;
	t->since_ns = t->last_ns = now;
	t->is_woken = 0;
}

static void count_switch(struct task_struct *prev, struct task_struct *next, bool is_runnable,
			 u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct top_cpu *c = this_cpu();

	if (!c)
		return;
	account_cpu(c, now);
	count_out(c, prev, is_runnable, now);
	c->nr_switches++;
	c->switch_ns = now;
	c->pid = next->pid;
	c->class = class_of(next);
	bpf_probe_read_kernel(c->comm, sizeof(c->comm), next->comm);
	count_in(c, next, cpu, now);
}

static void count_wakeup(struct task_struct *p, u64 now)
{
	struct top_task *t = task_counters(p);

	if (!t)
		return;
	t->nr_wakeups++;
	/* A task that is woken on its way to sleep keeps its state. */
	if (t->state != TOP_SLEEPING)
		return;
	t->state = TOP_WAITING;
	t->is_woken = 1;
	t->since_ns = t->last_ns = now;
}

/* Copied into new entries: too large for the stack. */
static const struct top_dsq fresh_dsq;

/* The range is approximate: CPUs may overwrite each other's values. */
static void extend_range(struct top_dsq *dsq, u64 vtime)
{
	u64 interval = control.interval;

	if (dsq->vtime_interval != interval) {
		dsq->vtime_interval = interval;
		dsq->vtime_min = dsq->vtime_max = vtime;
	} else if ((s64)(vtime - dsq->vtime_min) < 0) {
		dsq->vtime_min = vtime;
	} else if ((s64)(vtime - dsq->vtime_max) > 0) {
		dsq->vtime_max = vtime;
	}
}

static void count_insert(u64 task, u64 dsq_id, bool by_vtime, u64 vtime, u64 now)
{
	struct top_inserted in = { .time_ns = now, .dsq_id = dsq_id };
	struct top_dsq *dsq = bpf_map_lookup_elem(&dsqs, &dsq_id);
	struct top_lost *lost;

	if (!dsq) {
		bpf_map_update_elem(&dsqs, &dsq_id, &fresh_dsq, BPF_NOEXIST);
		dsq = bpf_map_lookup_elem(&dsqs, &dsq_id);
	}
	has_insertions = 1;
	if (!dsq || bpf_map_update_elem(&inserted, &task, &in, BPF_ANY)) {
		lost = this_cpu_losses();
		if (lost)
			lost->nr_dsqs++;
	}
	if (!dsq)
		return;
	__sync_fetch_and_add(&dsq->nr_inserts, 1);
	if (by_vtime)
		extend_range(dsq, vtime);
}

#endif /* __SCXTOP_COUNTERS_BPF_H */
