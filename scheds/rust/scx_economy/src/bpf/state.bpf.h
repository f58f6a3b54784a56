/* SPDX-License-Identifier: GPL-2.0-only */
/* Configuration, counters, and the contexts of tasks. */
#ifndef __ECONOMY_STATE_BPF_H
#define __ECONOMY_STATE_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"
#include "ledger.h"

const volatile struct economy_config config SEC(".rodata.config");

SCX_PERCPU_COUNTERS(economy_counters, struct economy_counts);

/* Add @n to a counter. For tracing programs: a callback may interrupt them and change the same
 * counter. */
#define count_atomic(member, n)                                              \
	({                                                                   \
		struct economy_counts *__c = scx_counters(economy_counters); \
		if (__c)                                                     \
			__sync_fetch_and_add(&__c->member, (n));             \
	})

struct economy_task {
	struct economy_share share;
	s64 pending_ns; /* paid and lent (negative), or received, since the last money_settle() */
	u64 sum_exec_ns; /* CPU time that has been charged */
	u64 ran_ns; /* CPU time that the last charge added to sum_exec_ns */
	u64 awake_ns; /* CPU time since the last wakeup */
	u64 avg_runtime_ns; /* average of awake_ns at the times when the task stops running */
	u64 paid_ns; /* paid in total */
	u64 earned_ns; /* withdrawn in total */
	u64 loan_ns; /* loan to the owner of the futex that the task waits for */
	u32 borrower; /* PID of that owner */
	u32 node; /* node (money.bpf.h) whose ledger the task joined last */
	bool has_begun; /* sum_exec_ns is valid */
	bool has_waited; /* since it last ran: was queued, or preempted a task (run_at_once()) */
	bool is_member; /* the task belongs to this scheduler */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct economy_task);
} economy_tasks SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed (scx_create_task_storage()), the next call tries again. */
static struct economy_task *task(struct task_struct *p)
{
	return bpf_task_storage_get(&economy_tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif /* __ECONOMY_STATE_BPF_H */
