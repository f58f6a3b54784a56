/* SPDX-License-Identifier: GPL-2.0-only */
/* Configuration, counters, and the contexts of tasks. */
#ifndef __ECONOMY_STATE_BPF_H
#define __ECONOMY_STATE_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"
#include "ledger.h"

const volatile struct economy_config config SEC(".rodata.config");

SCX_PERCPU_COUNTERS(economy_counters, struct economy_counts);

/* Tracing programs can be preempted by callbacks, which count too. */
#define count_atomic(member, n)                                              \
	({                                                                   \
		struct economy_counts *__c = scx_counters(economy_counters); \
		if (__c)                                                     \
			__sync_fetch_and_add(&__c->member, (n));             \
	})

struct economy_task {
	struct economy_share share;
	s64 pending_ns; /* paid (negative) or withdrawn since the lag was last settled */
	u64 sum_exec_ns; /* CPU time that has been charged */
	u64 ran_ns; /* of these, by the last charge */
	u64 awake_ns; /* CPU time since it last woke up */
	u64 avg_runtime_ns; /* average of awake_ns when it stops running */
	u64 paid_ns; /* in total */
	u64 earned_ns; /* withdrawn, in total */
	u64 loan_ns; /* to the owner of the futex that it waits for */
	u32 borrower; /* that owner's PID */
	u32 node; /* whose ledger it has joined */
	bool has_begun; /* sum_exec_ns is valid */
	bool has_waited; /* in a DSQ */
	bool is_member; /* it belongs to this scheduler */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct economy_task);
} economy_tasks SEC(".maps");

/* Return the context of a task, which is created with the task. If the creation failed, as on 7.2
 * when it would have to wait for a lock, the next call tries again. */
static struct economy_task *task(struct task_struct *p)
{
	return bpf_task_storage_get(&economy_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif /* __ECONOMY_STATE_BPF_H */
