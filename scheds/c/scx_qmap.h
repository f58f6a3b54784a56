/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_qmap. */
#ifndef __SCX_QMAP_H
#define __SCX_QMAP_H

#include <scx/types.h>

#define QMAP_NR_QUEUES 5

/* Default length of a queue. While the queue is full, its tasks go to a DSQ instead. */
#define QMAP_QUEUE_LEN 4096

/* Counters of a CPU. A task that is counted in `enqueued` waits until it is counted in `dispatched`
 * or in `dequeued`. */
struct qmap_stats {
	u64 enqueued; /* pushed to a queue */
	u64 dispatched; /* moved from a queue to the shared DSQ */
	/* tasks that left their queue otherwise: the kernel dequeued them, for example to change
	 * their class, affinity, nice value or cgroup, or core scheduling took them */
	u64 dequeued;
	u64 queue0; /* dispatched, by queue */
	u64 queue1;
	u64 queue2;
	u64 queue3;
	u64 queue4;
	u64 direct; /* inserted into the local DSQ of a CPU */
	u64 kept; /* continued on slice expiry, because its queue had its turn and was empty */
	u64 boosted; /* inserted into the DSQ of nice -20 */
	u64 overflow; /* inserted into OVERFLOW_DSQ, because its queue was full or locked */
	u64 stale; /* entries popped after their task had left the queue */
	u64 reenqueued; /* enqueued again, because a higher class has taken its CPU */
	u64 core_picked; /* dequeued by core scheduling */
	u64 dropped; /* lost on request */
};

/* State of a CPU: u64 only, so that user space can sum it over all CPUs. */
struct qmap_cpu {
	u64 queue; /* the queue whose turn it is */
	u64 left; /* tasks of this queue that may still be served in this turn */
	u64 is_overflow_turn; /* 1: OVERFLOW_DSQ precedes the queues */
	u64 is_boost_turn;
	u64 avg_weight; /* moving average of the weights of the running tasks */
	u64 perf; /* requested performance, SCX_CPUPERF_ONE at most */
	/* Used during ops.dispatch(): the number of queues passed since the last popped entry, and
	 * the number of tasks moved to the shared DSQ. They are not local variables, because the
	 * verifier would track every possible value of a local variable. */
	u64 nr_empty;
	u64 nr_moved;
};

/* Maximum number of tasks of the shared DSQ that are listed. */
#define QMAP_LISTED_MAX 32

/* Maximum number of tasks that ops.dispatch() may insert in one call: the kernel's default. */
#define QMAP_BATCH_MAX 32

struct qmap_listed {
	s32 pid;
	char comm[16];
};

#endif /* __SCX_QMAP_H */
