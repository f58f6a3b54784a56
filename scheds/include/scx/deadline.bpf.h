/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that are queued by a deadline: weighted virtual time plus an amount that the policy adds.
 *
 * A task's virtual time is kept in its context. p->scx.dsq_vtime is the deadline, which the kernel
 * stores when the task is inserted. If dsq_vtime were used as the virtual time too, each insertion
 * would charge the task the amount that the policy adds, and shares would not follow the weights.
 *
 * Each NUMA node, or smaller group of CPUs (cpus.h), has its own virtual time, because the loads of
 * the nodes may differ. A task that changes nodes keeps its lag behind the node's virtual time, or
 * its lead over it. The lag of a task that has slept is limited to a maximum credit (vtime.h),
 * which the scheduler chooses.
 *
 * A scheduler calls scx_dl_NAME() from its callback NAME: select_cpu, enqueue, running, stopping,
 * enable, disable, init_task. To queue a task, it calls scx_dl_place(), then scx_dl_queue() of
 * direct.bpf.h or scx_dl_insert(). To dispatch tasks, it uses scx_dl_charge_prev() and the
 * functions of queues.bpf.h. ops.runnable() and ops.quiescent() are not used: they would do so
 * little work here that calling them would cost as much as the work.
 */
#ifndef __SCX_DEADLINE_BPF_H
#define __SCX_DEADLINE_BPF_H

#include <scx/average.h>
#include <scx/cpus.bpf.h>
#include <scx/preempt.bpf.h>
#include <scx/queues.bpf.h>

/*
 * Approximate maximum time that a task waits because of its debt (vtime.h), whatever the weights of
 * the runnable tasks. The wait may be longer if SCX_DL_AHEAD_MIN_NS allows a larger debt. The task
 * also waits for the slices of the tasks that precede it. The value is well below ops.timeout_ms of
 * the schedulers (at least 20 s).
 */
#define SCX_DL_MAX_WAIT_NS (1 * NSEC_PER_SEC)

/*
 * Lower bound of the maximum lead in scx_dl_limit(), in ns of virtual time: about the cost of one
 * run of a task while many tasks are runnable. With a smaller maximum, part of each run would not
 * be charged, and virtual time would advance too slowly: a task that was queued with a larger lead,
 * before the load grew, would wait for many turns of all other tasks.
 */
#define SCX_DL_AHEAD_MIN_NS (10 * NSEC_PER_MSEC)

/* The slice of a task that is queued is shortened if the waiting tasks would otherwise take longer
 * than this to run once each, but not below SCX_DL_SHORT_SLICE_NS. */
#define SCX_DL_ROUND_NS (4 * NSEC_PER_SEC)
#define SCX_DL_SHORT_SLICE_NS (5 * NSEC_PER_MSEC)

/* The unit of time of wakeup frequencies: wakeups per second. */
#define SCX_WAKEUP_FREQ_NS NSEC_PER_SEC

/* Virtual time of the tasks that wait for one CPU only (scx_dl_task.pinned_to), for each CPU. It is
 * separate from the node's, because more tasks may compete for that CPU than for the other CPUs of
 * the node. */
static u64 scx_dl_pinned_vtime[SCX_CPUS_MAX];

/* Further members of a task's context. A scheduler that needs some defines this macro before it
 * includes this file. */
#ifndef SCX_DL_TASK_MEMBERS
#define SCX_DL_TASK_MEMBERS
#endif

struct scx_dl_task {
	u64 vtime;
	u64 sum_exec_ns; /* p->se.sum_exec_runtime at the start of the run or the last charge */
	u64 awake_ns; /* CPU time charged since the last wakeup */
	u64 avg_runtime_ns; /* average of awake_ns at the times when the task stops running */
	u64 woken_at_ns;
	u32 wakeup_freq; /* per second, averaged */
	u32 runnable_weight; /* weight that the task has added to its queue's runnable_weight */
	u32 node;
	/* CPU + 1 if the task waits for this CPU only, else 0. Below, such a task is called pinned:
	 * it may use no other CPU, or the scheduler queues it as if that were so. */
	u32 pinned_to;
	u32 fork_credit_ns; /* credit of a new task, from its parent */
	bool has_begun; /* sum_exec_ns is valid */
	bool has_waited; /* was queued, or preempted another task (scx_dl_run_at_once()) */
	bool woken_sync; /* the last wakeup was a sync wakeup */
	SCX_DL_TASK_MEMBERS
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scx_dl_task);
} scx_dl_tasks SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed (scx_create_task_storage()), the next call tries again. */
static inline struct scx_dl_task *scx_dl_task(struct task_struct *p)
{
	return bpf_task_storage_get(&scx_dl_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Return the slice of a task of @weight while @nr other tasks wait: @max_ns scaled by weight and
 * divided by @nr, at least @min_ns. It is at most SCX_DL_MAX_WAIT_NS, to bound the wait of the
 * other tasks. */
static inline u64 scx_dl_slice_ns(u64 max_ns, u64 min_ns, u32 weight, s32 nr)
{
	u64 slice_ns = scx_weight_scale(max_ns, weight) / (nr > 1 ? nr : 1);

	if (slice_ns > SCX_DL_MAX_WAIT_NS)
		return SCX_DL_MAX_WAIT_NS;
	return slice_ns > min_ns ? slice_ns : min_ns;
}

/* Return the slice of a task that is queued: @slice_ns, or less if many tasks wait. An infinite
 * slice stays infinite. */
static inline u64 scx_dl_shared_slice_ns(const struct scx_dl_task *t, u64 slice_ns)
{
	u64 nr;
	s32 nr_pinned;

	if (slice_ns <= SCX_DL_SHORT_SLICE_NS || slice_ns == SCX_SLICE_INF)
		return slice_ns;
	nr = scx_nr_waiting(t->node);
	if (t->pinned_to) {
		nr_pinned = scx_bpf_dsq_nr_queued(t->pinned_to - 1);
		nr += nr_pinned > 0 ? nr_pinned : 0;
	}
	return scx_slice_shared(slice_ns, SCX_DL_ROUND_NS, nr, SCX_DL_SHORT_SLICE_NS);
}

/* Insert the task into the DSQ of its node, or of its CPU if it is pinned, by its deadline. A task
 * that may preempt the task of its CPU goes through scx_dl_run_at_once() first. */
static inline void scx_dl_insert(struct task_struct *p, struct scx_dl_task *t, u64 slice_ns,
				 u64 deadline, u64 enq_flags)
{
	slice_ns = scx_dl_shared_slice_ns(t, slice_ns);
	t->has_waited = true;
	scx_queue_insert(p, t->node, t->pinned_to, slice_ns, deadline, enq_flags);
}

/* ---- virtual time ---------------------------------------------------------- */

/* Move the task to another node. It keeps its lag or lead. */
static inline void scx_dl_set_node(struct scx_dl_task *t, u32 node)
{
	struct scx_queue *from = scx_queue(t->node), *to = scx_queue(node);

	if (from == to)
		return;
	t->vtime += to->vtime_now - from->vtime_now;
	__sync_fetch_and_sub(&from->runnable_weight, t->runnable_weight);
	__sync_fetch_and_add(&to->runnable_weight, t->runnable_weight);
	t->node = node;
}

/* Return the current wakeup frequency of the task, per second. Unless @enq_flags say that the task
 * wakes up now, the frequency is at most one wakeup in the time since the last wakeup, so that a
 * task that computes for a long time does not keep its old average. */
static inline u32 scx_dl_wakeup_freq(const struct scx_dl_task *t, u64 enq_flags)
{
	u64 since_ns, freq;

	if (enq_flags & SCX_ENQ_WAKEUP)
		return t->wakeup_freq;
	since_ns = time_delta(scx_bpf_now(), t->woken_at_ns);
	freq = SCX_WAKEUP_FREQ_NS / (since_ns ?: 1);
	return freq < t->wakeup_freq ? freq : t->wakeup_freq;
}

/* Return the address of the virtual time that the task advances: the CPU's if the task is pinned,
 * else the node's. The virtual time is the latest vtime of the tasks that have started to run
 * with has_waited set. */
static inline u64 *scx_dl_vtime_now(const struct scx_dl_task *t)
{
	if (t->pinned_to)
		return &scx_dl_pinned_vtime[(t->pinned_to - 1) % SCX_CPUS_MAX];
	return &scx_queue(t->node)->vtime_now;
}

/* Return the virtual time with which the task's virtual time is compared. For a pinned task, it is
 * at least the node's virtual time, since the task competes with the tasks of the node too. */
static inline u64 scx_dl_now(const struct scx_dl_task *t)
{
	u64 now = scx_queue(t->node)->vtime_now;

	return t->pinned_to ? time_max(*scx_dl_vtime_now(t), now) : now;
}

/* Return @vtime, but limit its lead over scx_dl_now(): with the maximum lead, the task waits for
 * about SCX_DL_MAX_WAIT_NS. The maximum lead is at least SCX_DL_AHEAD_MIN_NS. */
static inline u64 scx_dl_limit(const struct scx_dl_task *t, u64 vtime)
{
	const struct scx_queue *queue = scx_queue(t->node);
	u64 now = scx_dl_now(t), ahead_ns;

	/* Usually no division is needed. */
	if (time_before(vtime, now + SCX_DL_AHEAD_MIN_NS))
		return vtime;
	ahead_ns = scx_vtime_max_ahead(SCX_DL_MAX_WAIT_NS, queue->runnable_weight);
	if (ahead_ns < SCX_DL_AHEAD_MIN_NS)
		ahead_ns = SCX_DL_AHEAD_MIN_NS;
	return scx_vtime_limit_debt(vtime, now, ahead_ns);
}

/* Bound the virtual time of a task before it is queued: at most @credit_ns behind scx_dl_now(),
 * since the task may have slept, and at most as far ahead as scx_dl_limit() allows. The credit of a
 * task of large weight is limited further: with it, the task precedes other tasks for at most
 * SCX_DL_MAX_WAIT_NS of CPU time. */
static inline void scx_dl_place(struct scx_dl_task *t, u32 weight, u64 credit_ns)
{
	u64 max_ns = scx_vtime_cost(SCX_DL_MAX_WAIT_NS, weight);

	if (credit_ns > max_ns)
		credit_ns = max_ns;
	t->vtime = scx_dl_limit(t, scx_vtime_limit_credit(t->vtime, scx_dl_now(t), credit_ns));
}

/* Return the minimum stretch (preempt.bpf.h) of a task that @t may preempt. */
static inline u64 scx_dl_stretch_min_ns(const struct scx_dl_task *t)
{
	return t->woken_sync ? SCX_SYNC_STRETCH_MIN_NS : SCX_STRETCH_MIN_NS;
}

/* Whether the task, just queued with this deadline, should preempt the task that runs on @cpu. */
static inline bool scx_dl_should_preempt(const struct scx_dl_task *t, s32 cpu, u64 deadline)
{
	return scx_should_preempt(cpu, deadline, scx_dl_stretch_min_ns(t));
}

/* In ops.enqueue(), instead of scx_dl_insert(): run the wakee at once if it precedes the task that
 * runs on its CPU and all tasks that wait for that CPU (scx_preempts_at_once()). Returns whether
 * the wakee runs at once. */
static inline bool scx_dl_run_at_once(struct task_struct *p, struct scx_dl_task *t, u64 slice_ns,
				      u64 deadline, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (t->node != scx_node_of(cpu) ||
	    !scx_preempts_at_once(p, enq_flags, deadline, scx_dl_stretch_min_ns(t), cpu,
				  SCX_NODE_DSQ | t->node))
		return false;
	/* It precedes all queued tasks, so it advances virtual time like a task that has waited:
	 * see scx_dl_running(). */
	t->has_waited = true;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_AT_ONCE);
	return true;
}

/* Charge the CPU time that a task has used since it started to run or was last charged. */
static inline void scx_dl_charge(const struct task_struct *p, struct scx_dl_task *t, u32 weight)
{
	u64 ran_ns = t->has_begun ? p->se.sum_exec_runtime - t->sum_exec_ns : 0;

	t->sum_exec_ns = p->se.sum_exec_runtime;
	t->awake_ns += ran_ns;
	t->vtime += scx_vtime_cost(ran_ns, weight);
}

/*
 * In ops.dispatch(): charge prev, which may continue on @cpu, and bound its virtual time as if it
 * were queued. If prev was dispatched directly to an idle CPU, it may come from another node, or
 * may have slept for a long time. Without the bound, it would precede all other tasks until its
 * virtual time had caught up with theirs.
 */
static inline void scx_dl_charge_prev(const struct task_struct *prev, struct scx_dl_task *t,
				      s32 cpu, u32 weight, u64 credit_ns)
{
	scx_dl_charge(prev, t, weight);
	scx_dl_set_node(t, scx_node_of(cpu));
	scx_dl_place(t, weight, credit_ns);
}

/* Limit the debt of a task that continues because no other task waits: it takes no CPU time from
 * other tasks, so it owes at most the cost of one slice. */
static inline void scx_dl_alone(struct scx_dl_task *t, u64 slice_ns, u32 weight)
{
	t->vtime = scx_vtime_limit_debt(t->vtime, scx_dl_now(t), scx_vtime_cost(slice_ns, weight));
}

/* ---- callbacks -------------------------------------------------------------- */

/* Set the weight that the task adds to the load of its node, 0 while it is not runnable. There is
 * no call when a queued task is dequeued, because such a task is either enqueued again soon, or
 * leaves the class and reaches scx_dl_disable(). */
static inline void scx_dl_set_load(struct scx_dl_task *t, u32 weight)
{
	if (weight == t->runnable_weight)
		return;
	__sync_fetch_and_add(&scx_queue(t->node)->runnable_weight,
			     (u64)weight - t->runnable_weight);
	t->runnable_weight = weight;
}

/* Note a wakeup of the task. @freq_max bounds the wakeup frequency, per second. */
static inline void scx_dl_note_wakeup(struct scx_dl_task *t, u32 freq_max, bool is_sync)
{
	u64 now = scx_bpf_now();

	t->awake_ns = 0;
	t->woken_sync = is_sync;
	t->wakeup_freq = scx_average_freq(t->wakeup_freq, time_delta(now, t->woken_at_ns),
					  SCX_WAKEUP_FREQ_NS, freq_max);
	t->woken_at_ns = now;
}

/* In ops.select_cpu(): count the task as runnable and, on a wakeup, note the wakeup. @freq_max
 * bounds the wakeup frequency, per second. */
static inline void scx_dl_select_cpu(struct scx_dl_task *t, u64 wake_flags, u32 weight,
				     u32 freq_max)
{
	scx_dl_set_load(t, weight);
	if (wake_flags & SCX_WAKE_TTWU)
		scx_dl_note_wakeup(t, freq_max, wake_flags & SCX_WAKE_SYNC);
}

/* In ops.enqueue(): count the task as runnable, and set pinned_to if it may use one CPU only. In
 * this case, its wakeup is noted here, because ops.select_cpu() is not called for it. A scheduler
 * that queues other tasks like pinned ones sets their pinned_to after this call. */
static inline void scx_dl_enqueue(const struct task_struct *p, struct scx_dl_task *t, u64 enq_flags,
				  u32 weight, u32 freq_max)
{
	bool is_pinned = scx_task_is_pinned(p);

	scx_dl_set_load(t, weight);
	t->pinned_to = is_pinned ? bpf_cpumask_first(p->cpus_ptr) + 1 : 0;
	if (enq_flags & SCX_ENQ_WAKEUP && is_pinned)
		scx_dl_note_wakeup(t, freq_max, false);
}

/* Return the stretch of @t, ns (preempt.bpf.h). */
static inline u64 scx_dl_stretch_ns(const struct scx_dl_task *t)
{
	return scx_stretch_ns(t->avg_runtime_ns, t->awake_ns);
}

/* Note that a task starts to run. Returns whether a queued task may preempt it. If so, a scheduler
 * with preemption calls scx_running_set() with the deadline of the running task. */
static inline bool scx_dl_running(const struct task_struct *p, struct scx_dl_task *t, s32 cpu,
				  u32 weight)
{
	u64 *now = scx_dl_vtime_now(t);

	/* If the affinity or the nice value of a running task changes, the kernel calls
	 * ops.stopping() as if the task slept, and then ops.running() without an enqueue. */
	scx_dl_set_load(t, weight);
	t->sum_exec_ns = p->se.sum_exec_runtime;
	t->has_begun = true;
	/* Only tasks that waited advance virtual time: a task of small weight that is alone on a
	 * CPU is soon far ahead of all other tasks. The update need not be atomic: the next one
	 * makes up for a lost one. */
	if (t->has_waited)
		*now = time_max(*now, t->vtime);
	t->has_waited = false;
	scx_dl_set_node(t, scx_node_of(cpu));
	return scx_dl_stretch_ns(t) >= SCX_STRETCH_MIN_NS;
}

/* Note that a task stops running. @t may be NULL. */
static inline void scx_dl_stopping(const struct task_struct *p, struct scx_dl_task *t, s32 cpu,
				   u32 weight, bool runnable)
{
	scx_running_clear(cpu);
	if (!t)
		return;
	scx_dl_charge(p, t, weight);
	t->avg_runtime_ns = scx_average(t->avg_runtime_ns, t->awake_ns);
	if (!runnable)
		scx_dl_set_load(t, 0);
}

static inline void scx_dl_disable(struct task_struct *p)
{
	struct scx_dl_task *t = scx_dl_task(p);

	if (t)
		scx_dl_set_load(t, 0);
}

static inline void scx_dl_enable(struct task_struct *p)
{
	struct scx_dl_task *t = scx_dl_task(p);

	if (!t)
		return;
	t->node = scx_node_of(scx_bpf_task_cpu(p));
	t->vtime = scx_queue(t->node)->vtime_now - t->fork_credit_ns;
	t->fork_credit_ns = 0;
}

/*
 * Give half of the parent's credit, but at most @credit_max_ns < 2^32, to the new task @t. So the
 * commands of a shell that has slept start as soon as the shell itself would run. A task that forks
 * again and again without sleeping runs out of credit.
 */
static inline void scx_dl_share_credit(struct scx_dl_task *t, u64 credit_max_ns)
{
	struct scx_dl_task *parent =
		bpf_task_storage_get(&scx_dl_tasks, bpf_get_current_task_btf(), NULL, 0);
	u64 now;

	if (!parent)
		return;
	now = scx_dl_now(parent);
	/* If the parent slept and was then dispatched directly, its credit is still unlimited. */
	parent->vtime = scx_vtime_limit_credit(parent->vtime, now, 2 * credit_max_ns);
	t->fork_credit_ns = time_delta(now, parent->vtime) / 2;
	parent->vtime += t->fork_credit_ns;
}

/* Create the context of a task. If @is_fork, give it credit of the parent, at most @credit_max_ns
 * (scx_dl_share_credit()). Returns NULL if the context cannot be created. */
static inline struct scx_dl_task *scx_dl_init_task(struct task_struct *p, bool is_fork,
						   u64 credit_max_ns)
{
	struct scx_dl_task *t = scx_create_task_storage(scx_dl_tasks, p);

	if (t && is_fork)
		scx_dl_share_credit(t, credit_max_ns);
	return t;
}

#endif /* __SCX_DEADLINE_BPF_H */
