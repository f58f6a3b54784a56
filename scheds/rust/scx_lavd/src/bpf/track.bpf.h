/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracks which tasks wake a task and which tasks it wakes, and updates its criticality. */
#ifndef __LAVD_TRACK_BPF_H
#define __LAVD_TRACK_BPF_H

/* include/linux/sched.h */
#define PF_IO_WORKER 0x00000010

/* Several wakeups that a task causes within this time count as one. */
#define WAKE_INTERVAL_MIN_NS (NSEC_PER_MSEC / 2)

/* Return an average frequency, per second, but at most one event in the time since the last event.
 * Without this bound, a task that causes no further events would keep its old average. */
static u32 bounded_freq(u32 freq, u64 since_ns)
{
	/* Usually no division is needed. No overflow: @freq is at most LAVD_FREQ_MAX. */
	if (since_ns <= NSEC_PER_SEC && freq * since_ns <= NSEC_PER_SEC)
		return freq;
	return lavd_min(freq, NSEC_PER_SEC / (since_ns ?: 1));
}

/* Whether two tasks may belong to the same work: they have the same parent, and both or neither
 * are kernel threads. */
static bool work_together(const struct task_struct *p, const struct task_struct *waker)
{
	return p->real_parent == waker->real_parent && !((p->flags ^ waker->flags) & PF_KTHREAD);
}

/* Note that @waker wakes the task of @t at the time @now. The two tasks work together
 * (work_together()). */
static void note_waker(struct scx_dl_task *t, struct task_struct *waker, u64 now)
{
	struct scx_dl_task *w = bpf_task_storage_get(&scx_dl_tasks, waker, NULL, 0);
	u64 interval_ns;

	if (!w || w == t)
		return;
	interval_ns = time_delta(now, w->woke_at_ns);
	if (interval_ns >= WAKE_INTERVAL_MIN_NS) {
		w->wake_freq =
			scx_average_freq(w->wake_freq, interval_ns, NSEC_PER_SEC, LAVD_FREQ_MAX);
		w->woke_at_ns = now;
	}
	t->of_waker = w->lat_cri;
	if (t->lat_cri > w->of_wakee)
		w->of_wakee = t->lat_cri;
}

/* Note what wakes a task up at the time @now: an interrupt, or else the running task. */
static void note_wakeup(const struct task_struct *p, struct scx_dl_task *t, bool is_sync, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	enum scx_context context = scx_context();

	t->boost = LAVD_BOOST_WAKEUP + (is_sync ? LAVD_BOOST_SYNC : 0);
	t->waker_pid = 0;
	if (context == SCX_CONTEXT_HARDIRQ) {
		t->boost += LAVD_BOOST_HARDIRQ;
		return;
	}
	if (context == SCX_CONTEXT_SOFTIRQ) {
		t->boost += LAVD_BOOST_SOFTIRQ;
		return;
	}
	t->waker_pid = waker->pid;
	if (waker->prio < MAX_RT_PRIO)
		t->boost += LAVD_BOOST_RT_WAKER;
	if (work_together(p, waker))
		note_waker(t, waker, now);
}

/* Return the sum of the boosts that depend on the kind and on the affinity of a task. */
static u32 static_boost(const struct task_struct *p)
{
	u32 boost = 0;

	if (p->flags & PF_KTHREAD)
		boost += LAVD_BOOST_KTHREAD;
	if (p->flags & (PF_WQ_WORKER | PF_IO_WORKER))
		boost += LAVD_BOOST_WORKER;
	if (scx_task_is_pinned(p) || p->migration_disabled)
		boost += LAVD_BOOST_PINNED;
	else if ((u32)p->nr_cpus_allowed < scx_cpus.nr_online)
		boost += LAVD_BOOST_AFFINITIZED;
	return boost;
}

/* Update the criticality of a task. The boosts of its wakeup and of a lock, and the criticalities
 * of its waker and wakees, have been noted since the last update. They are used for this update
 * only, and then reset. */
static void update_criticality(const struct task_struct *p, struct scx_dl_task *t, u64 enq_flags,
			       u64 now)
{
	u32 wait_freq = scx_dl_wakeup_freq(t, enq_flags);
	u32 wake_freq = bounded_freq(t->wake_freq, time_delta(now, t->woke_at_ns));
	u32 boost = t->boost + static_boost(p), lat_cri;

	if (t->needs_lock_boost)
		boost += LAVD_BOOST_LOCK;
	lat_cri = lavd_lat_cri(wait_freq, wake_freq, t->avg_runtime_ns, p->scx.weight, boost);
	t->lat_cri = lavd_inherit(lat_cri, t->of_waker, t->of_wakee);
	t->boost = t->of_waker = t->of_wakee = 0;
	t->needs_lock_boost = false;
	if (lavd_is_big_little)
		t->perf_cri = lavd_perf_cri(wait_freq, wake_freq, t->run_freq, t->avg_runtime_ns,
					    p->scx.weight);
}

/* Whether the task has used more than its share: its virtual time is ahead of that of its domain
 * and, if the task is pinned, also ahead of that of its CPU. */
static bool is_greedy(const struct scx_dl_task *t)
{
	return time_after(t->vtime, scx_dl_now(t));
}

static bool is_perf_critical(const struct scx_dl_task *t)
{
	return !lavd_is_big_little || t->perf_cri > lavd_system.thr_perf_cri;
}

/* Return the deadline of a task: its virtual time, plus a request that depends on its criticality.
 * The deadline is bounded by scx_dl_limit(). */
static u64 deadline(const struct scx_dl_task *t)
{
	return scx_dl_limit(t, t->vtime + lavd_request_ns(t->awake_ns, t->lat_cri));
}

#endif /* __LAVD_TRACK_BPF_H */
