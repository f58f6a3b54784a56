/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_central. */
#ifndef __SCX_CENTRAL_H
#define __SCX_CENTRAL_H

#include <scx/types.h>

struct central_stats {
	u64 total; /* enqueues: local + queued */
	u64 local; /* inserted into the local DSQ of the task's CPU, without a decision */
	u64 queued; /* inserted into the queue, to wait for a decision */
	u64 dispatch; /* tasks given to another CPU */
	u64 own; /* tasks taken by the central CPU */
	u64 mismatch; /* tasks passed over, because no waiting CPU may run them */
	u64 request; /* times that a CPU, other than the central one, requested a task */
	u64 timer; /* expiries of the timer */
	u64 preempt; /* tasks preempted by the timer */
	/* Filled in by user space. */
	u64 central_cpu;
};

#endif /* __SCX_CENTRAL_H */
