/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel does not count: latencies of wakeups and of DSQs, insertions into DSQs, and
 * migrations between LLCs and nodes. Each observation takes CPU time of the observed task. So if
 * there are many context switches, events are observed only in a part of each interval between two
 * snapshots: the window (collect/window.rs).
 *
 * The counters of a task are in task storage, which is allocated where no run queue is locked: when
 * a task is forked, and by the iterator. The allocator may wake kswapd, which would deadlock
 * within a context switch.
 */
#ifndef __SCXTOP_COUNTERS_BPF_H
#define __SCXTOP_COUNTERS_BPF_H

#include "histogram.h"
#include "kernel.bpf.h"

static inline struct top_observed *observed_of(struct task_struct *p)
{
	struct top_observed *t = bpf_task_storage_get(&tasks, p, NULL, 0);
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

	/* Hide the range from the compiler. It would otherwise omit the mask, which the verifier
	 * needs. */
	barrier_var(bucket);
	__sync_fetch_and_add(&buckets[bucket & (TOP_BUCKETS - 1)], 1);
}

/* Whether @time_ns, the start of a latency, is in the current window. A latency that began
 * before the window is not counted. */
static inline bool is_in_window(u64 time_ns)
{
	return time_ns > control.observed_since_ns;
}

/* Count the migration of @p to @cpu, which is about to happen. */
static void count_migration(struct task_struct *p, u32 cpu)
{
	u32 zero = 0, from = cpu_of(p) & (TOP_CPUS_MAX - 1), to = cpu & (TOP_CPUS_MAX - 1);
	struct top_observed_cpu *c = bpf_map_lookup_percpu_elem(&observed_cpus, &zero, cpu);

	if (!c)
		return;
	__sync_fetch_and_add(&c->nr_migrations, 1);
	if ((u32)places[from] != (u32)places[to])
		__sync_fetch_and_add(&c->nr_migrations_llc, 1);
	if (places[from] >> 32 != places[to] >> 32)
		__sync_fetch_and_add(&c->nr_migrations_node, 1);
}

/* End the stay of @next in its DSQ. The latency is not counted if @next has left the ext class,
 * because then @next has not waited for its turn in the DSQ. */
static void leave_dsq(struct top_observed *t, struct task_struct *next, u64 now)
{
	u64 key = (u64)next;
	struct top_inserted *in = bpf_map_lookup_elem(&inserted, &key);
	struct top_dsq *dsq;

	if (!in)
		return;
	t->dsq_id = in->dsq_id;
	t->has_dsq = 1;
	dsq = bpf_map_lookup_elem(&dsqs, &in->dsq_id);
	if (dsq && is_in_window(in->time_ns) && class_of(next) == TOP_CLASS_EXT)
		count_latency(dsq->latency, now - in->time_ns);
	bpf_map_delete_elem(&inserted, &key);
}

static void forget_insertion(struct task_struct *p)
{
	u64 key = (u64)p;

	if (has_insertions)
		bpf_map_delete_elem(&inserted, &key);
}

/* Count the latencies that end now, because @next begins to run. */
static void count_in(struct task_struct *next, u64 now)
{
	struct top_observed_cpu *c;
	struct top_observed *t;
	u64 woken_ns;
	u32 zero = 0;

	if (!next->pid)
		return;
	t = observed_of(next);
	if (!t)
		return;
	if (has_insertions)
		leave_dsq(t, next, now);
	woken_ns = t->woken_ns;
	if (!woken_ns)
		return;
	t->woken_ns = 0;
	c = bpf_map_lookup_elem(&observed_cpus, &zero);
	if (!c || !is_in_window(woken_ns))
		return;
	count_latency(t->wakeups, now - woken_ns);
	count_latency(c->wakeups, now - woken_ns);
}

static void count_wakeup(struct task_struct *p, u64 now)
{
	struct top_observed *t = observed_of(p);

	/* A task that is woken on its way to sleep continues to run. */
	if (t && !counted(p)->on_cpu)
		t->woken_ns = now;
}

/* The initial value of an entry of the map dsqs. It is too large for the stack. */
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
