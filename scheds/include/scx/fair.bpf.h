/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue that shares CPUs by weight: a DSQ ordered by virtual time (vtime.h), and the accounting
 * of the virtual times of the queue and of each task.
 *
 * A scheduler calls scx_fair_NAME() from its callback NAME: quiescent, set_weight, enable,
 * init_task. From ops.init() it calls scx_fair_init() for each queue. In ops.enqueue() it inserts a
 * task with scx_fair_insert(), and in ops.dispatch() it calls scx_fair_dispatch(). If
 * ops.select_cpu() or ops.enqueue() inserts a task into a local DSQ instead, it calls
 * scx_fair_bypass().
 *
 * A task is charged for its CPU time, and counted as runnable, when it is inserted. So
 * ops.runnable(), ops.running() and ops.stopping() are not needed, which saves three of the seven
 * callbacks of a context switch.
 */
#ifndef __SCX_FAIR_BPF_H
#define __SCX_FAIR_BPF_H

#include <scx/common.bpf.h>
#include <scx/immed.bpf.h>

/*
 * Approximate maximum wait of a task, whatever the weights of the runnable tasks. One half bounds
 * the wait for the slices of the other tasks, as long as SCX_FAIR_MIN_SLICE_NS allows it. The other
 * half bounds the wait that results from the task's debt (vtime.h). The value is well below the
 * timeouts of the kernel's watchdog (30 s) and of RCU stall warnings (21 s).
 */
#define SCX_FAIR_MAX_WAIT_NS (8 * NSEC_PER_SEC)

/* Minimum slice: the period of the tick with HZ=1000. Shorter slices would be mostly overhead. */
#define SCX_FAIR_MIN_SLICE_NS (1 * NSEC_PER_MSEC)

struct scx_fair_queue {
	u64 dsq_id;
	u64 slice_ns; /* slice of a task, unless many tasks wait */
	/* Virtual time of the queue: the smallest vtime of a queued task, but never decreasing. */
	u64 vtime_now;
	/* The runnable tasks: their number, shifted by SCX_FAIR_NR_SHIFT, plus the sum of their
	 * weights. One word, so that a wakeup needs only one atomic operation. */
	u64 demand;
};

/* The weights of 4 million tasks, which is the limit of the kernel, have a sum below 2^36. */
#define SCX_FAIR_NR_SHIFT 40

struct scx_fair_task {
	u64 charged_ns; /* CPU time for which the task has been charged */
	bool is_known; /* charged_ns is valid */
	bool is_runnable; /* counted in the demand of the queue */
	u32 runnable_weight; /* weight when last counted or changed; 0: neither so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scx_fair_task);
} scx_fair_tasks SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed, as it may on 7.2 (scx_create_task_storage()), the next call tries again. Without
 * the context, the task's CPU time is not charged. */
static inline struct scx_fair_task *scx_fair_task(struct task_struct *p)
{
	return bpf_task_storage_get(&scx_fair_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Return the sum of the weights of all runnable tasks. */
static inline u64 scx_fair_weight(const struct scx_fair_queue *queue)
{
	return queue->demand & ((1ULL << SCX_FAIR_NR_SHIFT) - 1);
}

/* Return the slice of a task, ns. It shrinks as the queue grows, to bound the wait of the last
 * task. */
static inline u64 scx_fair_slice_shared_ns(const struct scx_fair_queue *queue)
{
	s32 nr_queued = scx_bpf_dsq_nr_queued(queue->dsq_id);

	return scx_slice_shared(queue->slice_ns, SCX_FAIR_MAX_WAIT_NS / 2,
				nr_queued > 0 ? nr_queued : 0, SCX_FAIR_MIN_SLICE_NS);
}

/* Like scx_fair_slice_shared_ns(), for a queue whose runnable tasks are counted. Unless there are
 * many, the slice does not shrink, and the slow lookup of the DSQ's length is not needed. */
static inline u64 scx_fair_slice_ns(const struct scx_fair_queue *queue)
{
	u64 nr_runnable = queue->demand >> SCX_FAIR_NR_SHIFT;

	if (nr_runnable * queue->slice_ns <= SCX_FAIR_MAX_WAIT_NS / 2)
		return queue->slice_ns;
	return scx_fair_slice_shared_ns(queue);
}

/* Return the virtual time of a task, including the CPU time for which it has not been charged. If
 * the weight of the task changes, scx_fair_set_weight() charges the CPU time until then at the old
 * weight. */
static inline u64 scx_fair_vtime(const struct task_struct *p, const struct scx_fair_task *task)
{
	u64 ran_ns;
	u32 weight;

	if (!task || !task->is_known)
		return p->scx.dsq_vtime;
	ran_ns = p->se.sum_exec_runtime - task->charged_ns;
	weight = task->runnable_weight ?: p->scx.weight;
	return p->scx.dsq_vtime + scx_vtime_cost(ran_ns, weight);
}

/* Note that the task has been charged for all of its CPU time. */
static inline void scx_fair_note_charged(const struct task_struct *p, struct scx_fair_task *task)
{
	if (!task)
		return;
	task->charged_ns = p->se.sum_exec_runtime;
	task->is_known = true;
}

/* Return what a runnable task of this weight adds to the demand of its queue. */
static inline u64 scx_fair_demand_of_one(u32 weight)
{
	return (1ULL << SCX_FAIR_NR_SHIFT) + weight;
}

/* Charge a task for its CPU time, which must be up to date (types.bpf.h), and count it as runnable.
 * Returns its virtual time, which the caller has to store. When the weight of a runnable task
 * changes, the kernel calls ops.quiescent(), and the task is then counted with its new weight. The
 * remaining slice is not a measure of the CPU time, because a yield sets the slice to 0. */
static inline u64 scx_fair_charge(struct scx_fair_queue *queue, struct task_struct *p)
{
	struct scx_fair_task *task = scx_fair_task(p);
	u64 vtime = scx_fair_vtime(p, task);

	if (!task)
		return vtime;
	scx_fair_note_charged(p, task);
	if (task->is_runnable)
		return vtime;
	task->is_runnable = true;
	task->runnable_weight = p->scx.weight;
	__sync_fetch_and_add(&queue->demand, scx_fair_demand_of_one(task->runnable_weight));
	/* After a long sleep the task may catch up on one slice at most. */
	return scx_vtime_limit_credit(vtime, queue->vtime_now, queue->slice_ns);
}

/* Insert a task into the queue, ordered by its virtual time. The lead of a task that has had more
 * CPU time than its share is bounded, so that the task does not wait too long. */
static inline void scx_fair_insert(struct scx_fair_queue *queue, struct task_struct *p,
				   u64 enq_flags)
{
	u64 vtime = scx_fair_charge(queue, p), max_ahead_ns;

	max_ahead_ns = scx_vtime_max_ahead(SCX_FAIR_MAX_WAIT_NS / 2, scx_fair_weight(queue));
	vtime = scx_vtime_limit_debt(vtime, queue->vtime_now, max_ahead_ns);
	scx_bpf_dsq_insert_vtime(p, queue->dsq_id, scx_fair_slice_ns(queue), vtime, enq_flags);
}

/* Account a task that is inserted into a local DSQ instead of the queue. */
static inline void scx_fair_bypass(struct scx_fair_queue *queue, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, scx_fair_charge(queue, p));
}

/* Whether @vtime precedes all queued tasks that may run on @cpu; false if there are none. */
static inline bool scx_fair_precedes(const struct scx_fair_queue *queue, s32 cpu, u64 vtime)
{
	struct task_struct *p;
	bool ahead = false;

	bpf_for_each(scx_dsq, p, queue->dsq_id, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		ahead = time_before(vtime, p->scx.dsq_vtime);
		break;
	}
	return ahead;
}

/* If the nice value or the affinity of a running task changes, the kernel calls ops.quiescent(),
 * but not ops.enqueue(). In ops.dispatch(), count prev again if this has happened. */
static inline void scx_fair_recount(struct scx_fair_queue *queue, struct task_struct *prev)
{
	const struct scx_fair_task *task = scx_fair_task(prev);

	if (task && !task->is_runnable)
		scx_fair_bypass(queue, prev);
}

/*
 * Whether @prev, whose slice has expired, still precedes all queued tasks that may run on @cpu.
 * This has to be checked, because the kernel calls ops.dispatch() before it enqueues @prev again.
 * Without the check, two tasks on a CPU would take turns, whatever their weights.
 */
static inline bool scx_fair_prev_is_first(struct scx_fair_queue *queue, s32 cpu,
					  struct task_struct *prev)
{
	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	scx_fair_recount(queue, prev);
	return scx_fair_precedes(queue, cpu, scx_fair_vtime(prev, scx_fair_task(prev)));
}

/* Advance the virtual time of the queue to the virtual time of its first task. Running tasks do not
 * advance it: a task of small weight that is alone on a CPU is soon far ahead of all tasks that
 * share another CPU. */
static inline void scx_fair_advance(struct scx_fair_queue *queue)
{
	const struct task_struct *first = scx_bpf_dsq_peek(queue->dsq_id);

	/* The update need not be atomic: the next one makes up for a lost one. */
	if (first)
		queue->vtime_now = time_max(queue->vtime_now, first->scx.dsq_vtime);
}

/* Move the first task that may run on @cpu to the CPU's local DSQ, or let @prev continue if it
 * precedes that task. Returns false if no queued task may run on @cpu. */
static inline bool scx_fair_dispatch(struct scx_fair_queue *queue, s32 cpu,
				     struct task_struct *prev)
{
	scx_fair_advance(queue);
	if (!scx_fair_prev_is_first(queue, cpu, prev))
		return scx_dispatch_from(queue->dsq_id);
	scx_bpf_task_set_slice(prev, scx_fair_slice_ns(queue));
	return true;
}

static inline void scx_fair_quiescent(struct scx_fair_queue *queue, struct task_struct *p)
{
	struct scx_fair_task *task = scx_fair_task(p);

	if (!task || !task->is_runnable)
		return;
	task->is_runnable = false;
	__sync_fetch_and_sub(&queue->demand, scx_fair_demand_of_one(task->runnable_weight));
}

/* The weight of the task has changed. The kernel has dequeued the task and updated its CPU time. */
static inline void scx_fair_set_weight(struct task_struct *p)
{
	struct scx_fair_task *task = scx_fair_task(p);

	scx_bpf_task_set_dsq_vtime(p, scx_fair_vtime(p, task));
	scx_fair_note_charged(p, task);
	if (task)
		task->runnable_weight = p->scx.weight;
}

/* CPU time that the task has used in another scheduling class is not charged. */
static inline void scx_fair_enable(const struct scx_fair_queue *queue, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, queue->vtime_now);
	scx_fair_note_charged(p, scx_fair_task(p));
}

static inline void scx_fair_init_task(struct task_struct *p)
{
	scx_fair_task(p);
}

/* Create the queue. Returns 0 or a negative errno. */
static inline s32 scx_fair_init(struct scx_fair_queue *queue, u64 dsq_id, u64 slice_ns)
{
	queue->dsq_id = dsq_id;
	queue->slice_ns = slice_ns;
	return scx_bpf_create_dsq(dsq_id, -1);
}

#endif /* __SCX_FAIR_BPF_H */
