/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ledgers of the groups of CPUs, and the tasks in them. On a small machine, the only group is the
 * whole machine (CPUS_OF_ONE_LEDGER in sched.rs). Otherwise, a group is a NUMA node or a part of
 * one. A group is called a node below. Each group has a ledger of its own, so that CPUs of
 * different groups do not share a lock.
 *
 * A lock protects the sum of weights and the virtual time of a ledger. If a task could join while
 * another CPU advances virtual time, it would earn CPU time that no task has used. The lock is held
 * for a few instructions, when a task joins or leaves the ledger and whenever a task is charged.
 *
 * Callbacks change money between money_begin() and money_end(), which count the begun and the ended
 * changes. From these counts user space sees whether it has read a consistent state.
 */
#ifndef __ECONOMY_MONEY_BPF_H
#define __ECONOMY_MONEY_BPF_H

#include <scx/queues.bpf.h>
#include "state.bpf.h"

/* Approximate maximum time that a task waits because of its own debt or the lags of other tasks. */
#define MAX_WAIT_NS (1 * NSEC_PER_SEC)

/* The bound of a lag that results from MAX_WAIT_NS shrinks as more tasks become runnable. This is
 * its minimum, ns of virtual time: slightly more than the default slice of 3 ms. */
#define LAG_MIN_NS (4 * NSEC_PER_MSEC)

struct economy_bank {
	struct bpf_spin_lock lock; /* protects ledger and nr_runnable */
	struct economy_ledger ledger;
	u64 nr_runnable; /* number of runnable tasks */
	s64 inflow; /* money for ledger.bank, added without the lock; units */
	/* Virtual time of the last task that started to run after it had waited. This is roughly
	 * the virtual time of all waiting tasks. While accounts have money, it is later than the
	 * ledger's virtual time: clients have given up CPU time that no server has received yet.
	 * Meanwhile, the tasks that compute have used that CPU time, so their lags are negative. */
	u64 vtime_run;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCX_NODES_MAX);
	__type(key, u32);
	__type(value, struct economy_bank);
} economy_ledgers SEC(".maps");

/* CPU time stays scarce for this long after tasks have competed for it, ns of virtual time. */
#define SCARCE_NS (100 * NSEC_PER_MSEC)

/* For each node: virtual time until which its CPU time is scarce. */
static u64 scarce_until[SCX_NODES_MAX];

/* Tasks compete for the CPU time of the node: note that it is scarce. */
static inline void money_note_scarce(u32 node)
{
	scarce_until[node % SCX_NODES_MAX] = scx_queue(node)->vtime_now + SCARCE_NS;
}

/* Whether CPU time of the node is scarce. Otherwise all tasks get the CPU time that they can use,
 * and payments would have no effect. */
static __always_inline bool money_is_scarce(u32 node)
{
	return time_before(scx_queue(node)->vtime_now, scarce_until[node % SCX_NODES_MAX]);
}

/* Whether the runnable tasks exceed the capacity of the node by more than one full CPU. A single
 * task without a CPU may be the wakee of a task that is about to sleep. */
static inline bool money_is_crowded(const struct economy_bank *bank, u32 node)
{
	return bank->nr_runnable * SCX_CAPACITY_MAX > scx_queue(node)->capacity + SCX_CAPACITY_MAX;
}

/* Return the ledger of a node. It is never NULL, but the verifier requires a check. */
static inline struct economy_bank *bank_of(u32 node)
{
	return bpf_map_lookup_elem(&economy_ledgers, &node);
}

static inline void money_begin(void)
{
	scx_count(economy_counters, nr_begun);
}

static inline void money_end(void)
{
	scx_count(economy_counters, nr_ended);
}

/* Give @amount units to the bank. */
static inline void money_to_bank(struct economy_bank *bank, s64 amount)
{
	if (amount)
		__sync_fetch_and_add(&bank->inflow, amount);
}

/* Add to the lag what the task has earned since the lag was last settled, and its payments,
 * withdrawals and loans since then. */
static inline void money_settle(struct economy_bank *bank, struct economy_task *t)
{
	if (t->pending_ns)
		t->share.lag += __sync_lock_test_and_set(&t->pending_ns, 0) * ECONOMY_UNIT;
	if (t->share.weight)
		economy_settle(&bank->ledger, &t->share);
}

/* Take the task out of the ledger. Call it with the lock held. */
static __always_inline void money_leave_locked(struct economy_bank *bank, struct economy_task *t)
{
	economy_leave(&bank->ledger, &t->share);
	bank->nr_runnable--;
	scx_queue(t->node)->runnable_weight = bank->ledger.weight;
}

static inline void money_leave(struct economy_bank *bank, struct economy_task *t)
{
	if (!t->share.weight)
		return;
	bpf_spin_lock(&bank->lock);
	money_leave_locked(bank, t);
	bpf_spin_unlock(&bank->lock);
}

/* Let the task join the ledger of @node with @weight. If it is in the ledger of another node, or in
 * this one with another weight, it leaves first. It keeps its lag. Returns the ledger of @node. */
static inline struct economy_bank *money_join(struct economy_task *t, u32 node, u32 weight)
{
	struct economy_bank *bank = bank_of(t->node);

	if (t->node == node && t->share.weight == weight)
		return bank;
	if (bank)
		money_leave(bank, t);
	t->node = node;
	bank = bank_of(node);
	if (!bank)
		return NULL;
	bpf_spin_lock(&bank->lock);
	economy_join(&bank->ledger, &t->share, weight);
	bank->nr_runnable++;
	scx_queue(node)->runnable_weight = bank->ledger.weight;
	bpf_spin_unlock(&bank->lock);
	return bank;
}

/* Charge the task for its CPU time since ops.running() or the last call. If it @sleeps, it leaves
 * the ledger. */
static inline void money_charge(struct economy_bank *bank, const struct task_struct *p,
				struct economy_task *t, bool sleeps)
{
	u64 ran_ns = t->has_begun ? p->se.sum_exec_runtime - t->sum_exec_ns : 0;
	s64 inflow = 0;

	t->sum_exec_ns = p->se.sum_exec_runtime;
	t->ran_ns = ran_ns;
	t->awake_ns += ran_ns;
	if (bank->inflow)
		inflow = __sync_lock_test_and_set(&bank->inflow, 0);
	bpf_spin_lock(&bank->lock);
	bank->ledger.bank += inflow;
	economy_charge(&bank->ledger, &t->share, ran_ns);
	if (sleeps && t->share.weight)
		money_leave_locked(bank, t);
	bpf_spin_unlock(&bank->lock);
	scx_queue(t->node)->vtime_now = bank->ledger.vtime_now;
	money_settle(bank, t);
}

/* Return the maximum absolute value of a runnable task's lag, units. Without this maximum, the lag
 * of a task whose affinity excludes most CPUs could grow without limit, and other tasks would wait
 * too long for that task. */
static inline s64 money_lag_max(const struct economy_bank *bank, const struct economy_task *t)
{
	u64 max_ns = scx_vtime_max_ahead(MAX_WAIT_NS, bank->ledger.weight);

	return (max_ns > LAG_MIN_NS ? max_ns : LAG_MIN_NS) * t->share.weight;
}

/* Bound the lag of a runnable task, and return the virtual time by which it is queued. */
static inline u64 money_vtime(struct economy_bank *bank, struct economy_task *t)
{
	s64 max = money_lag_max(bank, t);

	money_to_bank(bank, economy_bound(&t->share, -max, max));
	return economy_vtime(&t->share);
}

/* Return the standing of a task, units: its lag relative to the other tasks, which are at
 * vtime_run. vtime_run may be out of date while no task waits, so the ledger's virtual time is used
 * if that is later. */
static inline s64 money_standing(const struct economy_bank *bank, const struct economy_share *share)
{
	u64 now = time_max(bank->vtime_run, bank->ledger.vtime_now);

	return (s64)(now - economy_vtime(share)) * share->weight;
}

/* A task enters the scheduler. If the virtual time of the other tasks (vtime_run) is later than
 * that of the ledger, the task starts at vtime_run, so that it does not precede them. */
static inline void money_open(struct economy_bank *bank, struct economy_task *t, u32 weight)
{
	s64 ahead_ns = bank->vtime_run - bank->ledger.vtime_now;
	s64 amount = ahead_ns * weight;

	t->is_member = true;
	if (ahead_ns <= 0)
		return;
	t->share.lag -= amount;
	money_to_bank(bank, amount);
}

/* Limit the debt of a task that continues because no other task waits. Its last run took no CPU
 * time from other tasks, so the CPU time of that run is forgiven as far as the debt exceeds one
 * slice. Debts because of payments remain. */
static inline void money_alone(struct economy_bank *bank, struct economy_task *t)
{
	s64 min = -(s64)(config.slice_ns * ECONOMY_UNIT);
	s64 forgiven = t->share.lag + (s64)(t->ran_ns * ECONOMY_UNIT);

	if (t->share.lag < min)
		money_to_bank(bank, economy_bound(&t->share, forgiven < min ? forgiven : min, 0));
}

/* Bound the lag of a task that sleeps, so that after the sleep it neither occupies a CPU for long
 * nor waits for long. */
static inline void money_bound_sleeper(struct economy_bank *bank, struct economy_task *t)
{
	s64 max = config.lag_max_ns * ECONOMY_UNIT;

	money_to_bank(bank, economy_bound(&t->share, -max, max));
}

/* Move the lag of the task to the bank. */
static inline void money_give_up(struct economy_bank *bank, struct economy_task *t)
{
	money_to_bank(bank, t->share.lag);
	t->share.lag = 0;
}

/* The task ends, or leaves the scheduler. Its lag goes to the bank. */
static inline void money_close(struct economy_task *t)
{
	struct economy_bank *bank = bank_of(t->node);

	t->is_member = false;
	if (!bank)
		return;
	money_settle(bank, t);
	money_leave(bank, t);
	money_give_up(bank, t);
}

#endif /* __ECONOMY_MONEY_BPF_H */
