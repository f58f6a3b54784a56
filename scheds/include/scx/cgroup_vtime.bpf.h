/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time by shares (cgroup.bpf.h), for schedulers that keep tasks in a DSQ ordered by it.
 *
 * A task's virtual time advances by its CPU time divided by its share; that of the machine by the
 * CPU time of all tasks, since all shares add up to one. So the two stay together as long as each
 * task gets its share. Three cases are not so simple, and handled here:
 *  - A task has a share that it cannot use, because it would need several CPUs, or its CPUs are
 *    shared by too many such tasks: it falls behind, and the others get ahead.
 *  - CPUs are idle: what their tasks use is nobody's loss, and is not held against them later.
 *  - A share is so small that the kernel's watchdog would not wait for the task's turn.
 *
 * A cgroup has a virtual time too, that of its tasks together. A task that is new, wakes up or is
 * moved starts there: a cgroup does not get more by forking, sleeping in turns, or being replaced.
 */
#ifndef __SCX_CGROUP_VTIME_BPF_H
#define __SCX_CGROUP_VTIME_BPF_H

#include "cgroup.bpf.h"

/*
 * How far a task's virtual time may be ahead of the machine's, for each CPU up to SCX_VCLOCK_CPUS.
 * That is how long a task waits on one busy CPU, 8 s at most, well below the kernel's watchdog
 * (30 s); on all of them it waits for 2 s. A share below 1/2000 gets more for this reason.
 */
#define SCX_VCLOCK_AHEAD_NS (2 * NSEC_PER_SEC)
#define SCX_VCLOCK_CPUS 4

/*
 * How far it may be behind: what a task may catch up on that ran all the time, but not on as many
 * CPUs as its share is. And how far the machine's may be behind a task that waits and precedes all
 * others. Half, so that a task that is not behind all tasks that wait is not behind this limit
 * either.
 */
#define SCX_VCLOCK_BEHIND_NS (SCX_VCLOCK_AHEAD_NS / 2)

/* Virtual time of the machine. Atomic increments; lost by chance where it is set. */
static u64 scx_vclock;

/* When the queue became empty, as far as is known, 0 if it is not; and scx_vclock then. */
static u64 scx_vclock_empty_ns, scx_vclock_when_empty;

static u32 scx_vclock_nr_cpus = 1;
static u64 scx_vclock_credit_ns; /* what a task may catch up on after it has slept */

/* From ops.init(): @slice_ns is what a task may catch up on, in time that passes. */
static inline void scx_vclock_init(u64 slice_ns)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();

	scx_vclock_nr_cpus = bpf_cpumask_weight(online);
	scx_bpf_put_cpumask(online);
	scx_vclock_credit_ns = slice_ns * scx_vclock_nr_cpus;
}

static inline u64 scx_vclock_scale(u64 ns)
{
	u32 nr = scx_vclock_nr_cpus;

	return ns * (nr < SCX_VCLOCK_CPUS ? nr : SCX_VCLOCK_CPUS);
}

/*
 * What to compare the virtual time of a task with, if it competes with those in @dsq_id. If these
 * are all behind the machine's time, they run on too few CPUs for their shares, but compete with
 * each other there.
 */
static inline u64 scx_vclock_now(u64 dsq_id)
{
	const struct task_struct *first = scx_bpf_dsq_peek(dsq_id);
	u64 now = READ_ONCE(scx_vclock);

	return first && time_before(first->scx.dsq_vtime, now) ? first->scx.dsq_vtime : now;
}

/*
 * From ops.dispatch() and ops.runnable(). While no task waits, time passes as fast as on a busy
 * machine. It also follows a queue that is far ahead, since tasks with large shares are too few to
 * use them. Not atomic: the next call makes up for a lost update.
 */
static inline void scx_vclock_advance(u64 dsq_id)
{
	const struct task_struct *first = scx_bpf_dsq_peek(dsq_id);
	u64 now, since = scx_vclock_empty_ns;

	if (first) {
		scx_vclock_empty_ns = 0;
		scx_vclock =
			time_max(scx_vclock,
				 first->scx.dsq_vtime - scx_vclock_scale(SCX_VCLOCK_AHEAD_NS) / 2);
		return;
	}
	now = scx_bpf_now();
	if (since) {
		now = scx_vclock_when_empty + time_delta(now, since) * scx_vclock_nr_cpus;
		scx_vclock = time_max(scx_vclock, now);
	} else {
		scx_vclock_when_empty = scx_vclock;
		scx_vclock_empty_ns = now;
	}
}

/* From ops.running(), before anything is charged. */
static inline void scx_cgroup_task_running(struct task_struct *p, struct scx_cgroup_task *t)
{
	t->charged_ns = p->se.sum_exec_runtime;
	t->share = scx_cgroup_task_share(t, p->scx.weight);
}

/*
 * From ops.stopping(), and for prev in ops.dispatch(): charge the CPU time since the last call.
 * Returns false if it was not charged in full, for the sake of the maximum wait. The share changes
 * as others sleep and wake up: the mean of both ends is used, since with that of the end alone, a
 * task whose slices end when a timer wakes up others would pay more than one that runs on.
 */
static inline bool scx_cgroup_task_charge(struct task_struct *p, struct scx_cgroup_task *t,
					  u64 dsq_id)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->charged_ns, now = scx_vclock_now(dsq_id);
	u64 min = now - scx_vclock_scale(SCX_VCLOCK_BEHIND_NS);
	u64 max = now + scx_vclock_scale(SCX_VCLOCK_AHEAD_NS);
	u64 share = scx_cgroup_charge(t, p->scx.weight, ran_ns, min, max);
	u64 before = time_max(p->scx.dsq_vtime, min);
	u64 after = before + (scx_share_cost(ran_ns, share) + scx_share_cost(ran_ns, t->share)) / 2;
	bool in_full = !time_after(after, max);

	t->charged_ns = p->se.sum_exec_runtime;
	t->share = share;
	if (!in_full) {
		after = time_max(before, max);
		ran_ns = scx_share_paid(after - before, share);
	}
	scx_bpf_task_set_dsq_vtime(p, after);
	__sync_fetch_and_add(&scx_vclock, ran_ns);
	return in_full;
}

/* @vtime, of a task that did not want to run or was not let: with a limited credit. */
static inline u64 scx_vclock_limit_credit(u64 vtime, u64 dsq_id)
{
	return scx_vtime_limit_credit(vtime, scx_vclock_now(dsq_id), scx_vclock_credit_ns);
}

/* Set the virtual time of a task that wakes up (@is_new: is new, or comes from another cgroup). */
static inline void scx_cgroup_task_place(struct task_struct *p, const struct scx_cgroup_task *t,
					 u64 dsq_id, bool is_new)
{
	u64 vtime =
		is_new ? scx_vclock_now(dsq_id) : scx_vclock_limit_credit(p->scx.dsq_vtime, dsq_id);

	vtime = scx_vtime_limit_credit(vtime, scx_cgroup_task_vtime(t), scx_vclock_credit_ns);
	scx_bpf_task_set_dsq_vtime(p, vtime);
}

/* From ops.enqueue(): where to insert the task. */
static inline u64 scx_cgroup_task_key(const struct task_struct *p, u64 dsq_id)
{
	return scx_vtime_limit_debt(p->scx.dsq_vtime, scx_vclock_now(dsq_id),
				    scx_vclock_scale(SCX_VCLOCK_AHEAD_NS));
}

#endif /* __SCX_CGROUP_VTIME_BPF_H */
