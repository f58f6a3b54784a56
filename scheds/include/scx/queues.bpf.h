/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DSQs ordered by virtual time: one for each NUMA node or smaller group of CPUs (cpus.h), and one
 * for each CPU, in which tasks wait for that CPU only (pinned.bpf.h). Below, "node" stands
 * for a smaller group of CPUs too. A CPU takes the first task of its node's DSQ or of its own DSQ,
 * whichever is earlier. If both are empty, the CPU steals from other nodes. scx_balance() evens out
 * the loads of the nodes.
 *
 * The scheduler updates vtime_now and runnable_weight of each queue.
 */
#ifndef __SCX_QUEUES_BPF_H
#define __SCX_QUEUES_BPF_H

#include <scx/cpus.bpf.h>
#include <scx/first.bpf.h>
#include <scx/pinned.bpf.h>

/* DSQ ids: the CPU number for the DSQ of a CPU, SCX_NODE_DSQ | node for the DSQ of a node. */
#define SCX_NODE_DSQ (1ULL << 32)

/* State of a node's DSQ. */
struct scx_queue {
	u64 vtime_now; /* virtual time, defined and updated by the scheduler */
	u64 runnable_weight; /* sum of the weights of runnable tasks, updated by the scheduler */
	u32 nr_waiting; /* number of tasks in the node's DSQ, when last counted */
	u32 nr_inserted; /* number of insertions into the node's DSQ so far */
	u64 capacity; /* sum of the capacities of the node's CPUs */
	u64 balance_at_ns; /* earliest time of the next comparison in scx_balance() */
	u64 padding[3]; /* to a cache line */
};

static struct scx_queue scx_queues[SCX_NODES_MAX];

static inline struct scx_queue *scx_queue(u32 node)
{
	return &scx_queues[node % SCX_NODES_MAX];
}

/* Number of insertions between two counts of the waiting tasks. A count is expensive. */
#define SCX_QUEUE_COUNT_EVERY 8

/* Return the approximate number of tasks that wait in the node's DSQ. */
static inline u64 scx_nr_waiting(u32 node)
{
	struct scx_queue *queue = scx_queue(node);

	return queue->nr_waiting;
}

/*
 * Insert the task into the DSQ of @node if @pinned_to is 0, else into the DSQ of the CPU
 * @pinned_to - 1, for a task that is pinned to that CPU or has to wait for it.
 */
static inline void scx_queue_insert(struct task_struct *p, u32 node, u32 pinned_to, u64 slice_ns,
				    u64 vtime, u64 enq_flags)
{
	struct scx_queue *queue = scx_queue(node);
	u64 dsq_id = SCX_NODE_DSQ | node;
	s32 nr;

	if (!pinned_to) {
		scx_bpf_dsq_insert_vtime(p, dsq_id, slice_ns, vtime, enq_flags);
		/* The increment need not be atomic, because nr_waiting is an estimate. */
		if (queue->nr_inserted++ % SCX_QUEUE_COUNT_EVERY == 0) {
			nr = scx_bpf_dsq_nr_queued(dsq_id);
			queue->nr_waiting = nr > 0 ? nr : 0;
		}
		return;
	}
	scx_pinned_insert(p, pinned_to - 1, slice_ns, vtime, enq_flags);
}

/* In ops.select_cpu(), before scx_pick_idle(): return @wake_flags, but without SCX_WAKE_SYNC if
 * tasks wait in the DSQ of this CPU or of its node (scx_sync_unless_waiting()). */
static inline u64 scx_queue_wake_flags(u64 wake_flags)
{
	s32 cpu = bpf_get_smp_processor_id();

	if (!(wake_flags & SCX_WAKE_SYNC))
		return wake_flags;
	if (scx_has_pinned_waiting(cpu))
		return wake_flags & ~SCX_WAKE_SYNC;
	return scx_sync_unless_waiting(wake_flags, SCX_NODE_DSQ | scx_node_of(cpu));
}

/* Move a task to the local DSQ of @cpu, the current CPU: the first task of @cpu's own DSQ or of its
 * node's DSQ, whichever is earlier. Returns whether there was a task. */
static inline bool scx_queue_dispatch(s32 cpu)
{
	return scx_dispatch_first(cpu, SCX_NODE_DSQ | scx_node_of(cpu));
}

/* Move a task of another node to the local DSQ of this CPU, which belongs to the node @own. Search
 * the @nr nodes from index @first on. The search starts after @own, so that not all nodes steal
 * from the same node. Returns whether there was a task. */
static inline bool scx_steal_from(u32 first, u32 nr, u32 own)
{
	u32 i, node;

	bpf_for(i, 1, nr) {
		node = first + (own - first + i) % (nr ?: 1);
		if (scx_dispatch_from(SCX_NODE_DSQ | node))
			return true;
	}
	return false;
}

/* Move a task of another group of CPUs to the local DSQ of @cpu, the current CPU. Groups of the
 * same NUMA node are searched before the groups of other NUMA nodes. Returns whether there was a
 * task. */
static inline bool scx_steal(s32 cpu)
{
	u32 own = scx_node_of(cpu), first = scx_cpus.near_first[own], nr = scx_cpus.near_nr[own];

	if (scx_cpus.nr_nodes < 2)
		return false;
	return scx_steal_from(first, nr, own) ||
	       (nr < scx_cpus.nr_nodes && scx_steal_from(0, scx_cpus.nr_nodes, own));
}

/* Minimum time between two comparisons of a node's load with the loads of the other nodes. */
#define SCX_BALANCE_NS (10 * NSEC_PER_MSEC)

/* Whether the node @other would still have at least the load of the node @own, relative to their
 * capacities, after a task of the default weight moved from @other to @own. */
static inline bool scx_is_busier(u32 other, u32 own)
{
	const struct scx_queue *from = scx_queue(other), *to = scx_queue(own);

	return from->runnable_weight > SCX_WEIGHT_DFL &&
	       (from->runnable_weight - SCX_WEIGHT_DFL) * to->capacity >=
		       (to->runnable_weight + SCX_WEIGHT_DFL) * from->capacity;
}

/*
 * Move a task of a busier node to the local DSQ of @cpu, at most every SCX_BALANCE_NS for each
 * node. Returns whether a task was moved. Stealing does not even out the loads of nodes without an
 * idle CPU: the tasks of a busy node might share its CPUs forever, while in another node each task
 * has a CPU to itself.
 */
static inline bool scx_balance(s32 cpu)
{
	u32 own = scx_node_of(cpu), nr = scx_cpus.nr_nodes, other, i;
	struct scx_queue *queue = scx_queue(own);
	u64 now;

	if (nr < 2)
		return false;
	now = scx_bpf_now();
	if (time_before(now, queue->balance_at_ns))
		return false;
	/* The check and the update need not be atomic: at worst, two CPUs balance at once. */
	queue->balance_at_ns = now + SCX_BALANCE_NS;
	bpf_for(i, 1, nr) {
		other = (own + i) % (nr ?: 1);
		if (scx_is_busier(other, own) && scx_dispatch_from(SCX_NODE_DSQ | other))
			return true;
	}
	return false;
}

/* Create the DSQs, and sum up the capacities of the nodes. Returns 0 or a negative errno. */
static inline s32 scx_queues_init(void)
{
	s32 err = 0;
	u32 i;

	bpf_for(i, 0, scx_cpus.nr_cpu_ids) {
		err = err ?: scx_bpf_create_dsq(i, -1);
		scx_queue(scx_node_of(i))->capacity += scx_cpu_info(i)->capacity;
	}
	bpf_for(i, 0, scx_cpus.nr_nodes)
		err = err   ?:
			      scx_bpf_create_dsq(SCX_NODE_DSQ | i,
						 scx_cpus.node_id[i % SCX_NODES_MAX]);
	return err;
}

/* Print the state of all nodes. Call it from ops.dump(). */
static inline void scx_queues_dump(void)
{
	u32 node;

	bpf_for(node, 0, scx_cpus.nr_nodes)
		scx_bpf_dump("node %u: %d queued, vtime %llu, weight %llu\n", node,
			     scx_bpf_dsq_nr_queued(SCX_NODE_DSQ | node), scx_queue(node)->vtime_now,
			     scx_queue(node)->runnable_weight);
}

#endif /* __SCX_QUEUES_BPF_H */
