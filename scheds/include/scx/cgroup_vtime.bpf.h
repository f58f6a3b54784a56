/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual time by shares (cgroup.bpf.h), for schedulers with a DSQ ordered by virtual time.
 *
 * A task's virtual time advances by its CPU time divided by its share. The machine's virtual time
 * advances by the CPU time of all tasks, since all shares add up to one. So a task's virtual time
 * keeps up with the machine's as long as the task gets its share. Three cases are handled here:
 *  - A task cannot use its share, because the share is more than one CPU, or because the CPUs that
 *    the task may use are too few for the shares of all tasks on these CPUs. Such a task falls
 *    behind the machine's virtual time, and the other tasks get ahead of the machine's virtual
 *    time.
 *  - CPUs are idle. A running task then takes no CPU time from other tasks, so its CPU time does
 *    not count against it later.
 *  - A share is so small that the task would wait longer than the kernel's watchdog allows.
 *
 * A cgroup has a virtual time too, which all its tasks advance together. A task that is new, wakes
 * up or is moved to the cgroup starts at most a credit (scx_vclock_credit_ns) behind the cgroup's
 * virtual time. So a cgroup gains nothing by forking, by letting its tasks sleep alternately, or by
 * replacing its tasks.
 */
#ifndef __SCX_CGROUP_VTIME_BPF_H
#define __SCX_CGROUP_VTIME_BPF_H

#include "cgroup.bpf.h"

/*
 * Maximum lead of a task's virtual time over the machine's, per online CPU. Only the first
 * SCX_VCLOCK_CPUS CPUs count, so the total is 8 s at most (scx_vclock_scale()). If only one CPU is
 * busy, the machine's virtual time advances as fast as real time, and a task waits for 8 s at most,
 * well below the timeout of the kernel's watchdog (30 s). If all CPUs are busy, a task waits for
 * 2 s at most. Because of this limit, a task gets more CPU time than its share if one slice costs
 * more than the maximum lead: for example, on a machine with one CPU, a slice of 1 ms with a share
 * below 1/2000.
 */
#define SCX_VCLOCK_AHEAD_NS (2 * NSEC_PER_SEC)
#define SCX_VCLOCK_CPUS 4

/*
 * Maximum lag of a task's virtual time behind the machine's, scaled by CPUs like the maximum lead.
 * A task whose share is more than one CPU falls behind although it runs all the time, and can make
 * up for at most this lag later. The machine's virtual time lags behind the first waiting task by
 * at most the same time (scx_vclock_advance()): half of the maximum lead, so that the other half is
 * left for the tasks that wait behind the first.
 */
#define SCX_VCLOCK_BEHIND_NS (SCX_VCLOCK_AHEAD_NS / 2)

/* Virtual time of the machine. CPU time is added atomically, but an addition is lost if another CPU
 * sets the variable at the same time (scx_vclock_advance()). */
static u64 scx_vclock;

/* Time since which the queue has been empty, 0 if it is not empty, and scx_vclock at that time. */
static u64 scx_vclock_empty_ns, scx_vclock_when_empty;

static u32 scx_vclock_nr_cpus = 1;
static u64 scx_vclock_credit_ns; /* maximum credit (vtime.h) of a task after a sleep */

/* Initialize the virtual time. Call it from ops.init(). @slice_ns is the maximum credit of a task
 * after a sleep, in real time. While all CPUs are busy, virtual time advances faster than real time
 * by a factor of the number of CPUs. */
static inline void scx_vclock_init(u64 slice_ns)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();

	scx_vclock_nr_cpus = bpf_cpumask_weight(online);
	scx_bpf_put_cpumask(online);
	scx_vclock_credit_ns = slice_ns * scx_vclock_nr_cpus;
}

/* Return @ns times the number of online CPUs, of which at most SCX_VCLOCK_CPUS count. */
static inline u64 scx_vclock_scale(u64 ns)
{
	u32 nr = scx_vclock_nr_cpus;

	return ns * (nr < SCX_VCLOCK_CPUS ? nr : SCX_VCLOCK_CPUS);
}

/*
 * Return the virtual time that a task of the queue @dsq_id is compared with: the machine's or the
 * first waiting task's, whichever is earlier. The first waiting task is far behind the machine's
 * virtual time if the CPUs that the waiting tasks may use are too few for their shares. The waiting
 * tasks then compete only with each other.
 */
static inline u64 scx_vclock_now(u64 dsq_id)
{
	const struct task_struct *first = scx_bpf_dsq_peek(dsq_id);
	u64 now = READ_ONCE(scx_vclock);

	return first && time_before(first->scx.dsq_vtime, now) ? first->scx.dsq_vtime : now;
}

/*
 * Advance the virtual time of the machine. Call it from ops.dispatch() and ops.runnable(). While no
 * task waits, virtual time advances as if all CPUs were busy. If tasks cannot use their large
 * shares in full, the queued tasks get ahead, and the machine's virtual time follows the first
 * queued task. The update need not be atomic: the next call makes up for a lost one.
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

/* Note the CPU time and share with which a task starts to run. Call it from ops.running(), before
 * any charge. */
static inline void scx_cgroup_task_running(struct task_struct *p, struct scx_cgroup_task *t)
{
	t->charged_ns = p->se.sum_exec_runtime;
	t->share = scx_cgroup_task_share(t, p->scx.weight);
}

/*
 * Charge the CPU time since the task started to run or was last charged. Call it from
 * ops.stopping(), and for prev from ops.dispatch(). Returns false if the time was not charged in
 * full, to bound the wait of the task.
 * The share changes as other tasks sleep and wake up, so the task is charged the mean of the costs
 * at its initial and its final share. With the final share alone, a task that is always stopped
 * just after a timer has woken up other tasks would be charged too much, because its share is then
 * small.
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

/* Return @vtime, the virtual time of a task that has slept or was held back, but limit its lag to
 * the maximum credit. */
static inline u64 scx_vclock_limit_credit(u64 vtime, u64 dsq_id)
{
	return scx_vtime_limit_credit(vtime, scx_vclock_now(dsq_id), scx_vclock_credit_ns);
}

/* Set the virtual time of a task that becomes runnable or, with @is_new, that is new or comes from
 * another cgroup. With @is_new, its old virtual time does not count. */
static inline void scx_cgroup_task_place(struct task_struct *p, const struct scx_cgroup_task *t,
					 u64 dsq_id, bool is_new)
{
	u64 vtime =
		is_new ? scx_vclock_now(dsq_id) : scx_vclock_limit_credit(p->scx.dsq_vtime, dsq_id);

	vtime = scx_vtime_limit_credit(vtime, scx_cgroup_task_vtime(t), scx_vclock_credit_ns);
	scx_bpf_task_set_dsq_vtime(p, vtime);
}

/* Return the virtual time at which to insert the task. Call it from ops.enqueue(). */
static inline u64 scx_cgroup_task_key(const struct task_struct *p, u64 dsq_id)
{
	return scx_vtime_limit_debt(p->scx.dsq_vtime, scx_vclock_now(dsq_id),
				    scx_vclock_scale(SCX_VCLOCK_AHEAD_NS));
}

#endif /* __SCX_CGROUP_VTIME_BPF_H */
