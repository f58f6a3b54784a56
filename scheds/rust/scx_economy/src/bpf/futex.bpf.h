/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --futex: a task that calls futex_lock_pi() lends CPU time to the owner of the futex, if
 * both are threads of one process. When the call returns, the borrower pays back the loan, or what
 * it has left if that is less. Only PI futexes are traced, because the futex word of an ordinary
 * futex need not contain the owner's TID.
 *
 * The owner may be waiting in a DSQ, where the loan does not change its place. So the next
 * ops.dispatch() on the lender's CPU, usually when the lender goes to sleep, dispatches the owner
 * if the owner now precedes all other tasks of its DSQ (dispatch_borrower()). If this one attempt
 * fails, the owner keeps its place until it is enqueued again.
 */
#ifndef __ECONOMY_FUTEX_BPF_H
#define __ECONOMY_FUTEX_BPF_H

#include "account.bpf.h"

/* include/uapi/linux/futex.h */
#define FUTEX_TID_MASK 0x3fffffff

/* For each CPU, the PID of the task to which a task on that CPU has just lent CPU time; 0: none. */
static u32 economy_borrowers[SCX_CPUS_MAX];

/* Move @amount_ns from @from to @to. One of them is the current task, the other one is @other. If
 * @other ends or leaves the scheduler at the same time, its money goes to the bank. */
static inline void transfer(struct economy_task *from, struct economy_task *to,
			    struct economy_task *other, s64 amount_ns)
{
	struct economy_bank *bank = bank_of(other->node);

	transfer_begin();
	__sync_fetch_and_sub(&from->pending_ns, amount_ns);
	__sync_fetch_and_add(&to->pending_ns, amount_ns);
	if (!other->is_member && bank)
		money_to_bank(bank, __sync_lock_test_and_set(&other->pending_ns, 0) * ECONOMY_UNIT);
	transfer_end();
}

static inline void lend(struct task_struct *p, struct economy_task *t, struct task_struct *owner)
{
	struct economy_task *o = bpf_task_storage_get(&economy_tasks, owner, NULL, 0);
	u64 amount_ns;

	if (!o || !o->is_member || !t->is_member || o == t)
		return;
	amount_ns = economy_payment(config.futex_price_ns, means_ns(p, t), config.reserve_ns,
				    (s64)config.lag_max_ns - lag_now_ns(owner, o), true);
	if (!amount_ns) {
		count_atomic(nr_refused_poor, 1);
		return;
	}
	transfer(t, o, o, amount_ns);
	t->loan_ns = amount_ns;
	t->borrower = owner->pid;
	economy_borrowers[bpf_get_smp_processor_id() % SCX_CPUS_MAX] = owner->pid;
	count_atomic(nr_loan, 1);
	count_atomic(lent_ns, amount_ns);
}

static inline void repay(struct economy_task *t, struct task_struct *owner)
{
	struct economy_task *o = bpf_task_storage_get(&economy_tasks, owner, NULL, 0);
	s64 amount_ns = t->loan_ns, left_ns;

	if (!o || !o->is_member)
		return;
	left_ns = lag_now_ns(owner, o);
	if (amount_ns > left_ns)
		amount_ns = left_ns;
	if (amount_ns > 0)
		transfer(o, t, o, amount_ns);
}

SEC("?fentry/futex_lock_pi")
int BPF_PROG(economy_futex_lock, u32 *uaddr, u32 flags, void *timeout, int trylock)
{
	struct task_struct *p = bpf_get_current_task_btf(), *owner;
	struct economy_task *t = bpf_task_storage_get(&economy_tasks, p, NULL, 0);
	u32 word = 0;

	if (!t || trylock || bpf_probe_read_user(&word, sizeof(word), uaddr))
		return 0;
	t->loan_ns = 0;
	owner = bpf_task_from_pid(word & FUTEX_TID_MASK);
	if (!owner)
		return 0;
	/* The TID is an id of the task's PID namespace, but is looked up in the initial PID
	 * namespace. If these differ, the lookup may find a task of another process. */
	if (owner->tgid == p->tgid)
		lend(p, t, owner);
	bpf_task_release(owner);
	return 0;
}

SEC("?fexit/futex_lock_pi")
int BPF_PROG(economy_futex_locked, u32 *uaddr)
{
	struct economy_task *t =
		bpf_task_storage_get(&economy_tasks, bpf_get_current_task_btf(), NULL, 0);
	struct task_struct *owner;

	if (!t || !t->loan_ns)
		return 0;
	owner = bpf_task_from_pid(t->borrower);
	if (owner) {
		repay(t, owner);
		bpf_task_release(owner);
	}
	t->loan_ns = 0;
	return 0;
}

/* Return the virtual time that a queued task would have if it was queued again now. Only the CPU
 * that holds the lock of the task's run queue may change the lag, so this settles a copy. It does
 * not bound the lag as money_vtime() does. */
static inline u64 vtime_with_loan(const struct economy_task *t, const struct economy_bank *bank)
{
	struct economy_share share = t->share;

	share.lag += t->pending_ns * ECONOMY_UNIT;
	if (share.weight)
		economy_settle(&bank->ledger, &share);
	return economy_vtime(&share);
}

/* Maximum number of tasks of a DSQ to look at. */
#define BORROWER_MAX 64

/* Dispatch the task @pid of the DSQ to @cpu, if its virtual time is now earlier than the virtual
 * times of all other tasks in the DSQ. Returns whether it was dispatched. */
static bool dispatch_task(s32 cpu, u64 dsq_id, u32 pid)
{
	struct economy_bank *bank;
	struct economy_task *t;
	struct task_struct *p;
	u64 first_vtime = 0;
	u32 nr = 0;

	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (!nr)
			first_vtime = p->scx.dsq_vtime;
		if (nr++ == BORROWER_MAX)
			break;
		if (p->pid != (s32)pid)
			continue;
		t = bpf_task_storage_get(&economy_tasks, p, NULL, 0);
		bank = t ? bank_of(t->node) : NULL;
		return bank && bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		       time_before(vtime_with_loan(t, bank), first_vtime) &&
		       scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	}
	return false;
}

/* Dispatch the task to which a task on @cpu has just lent CPU time, if there is one. Returns
 * whether it was dispatched. */
static inline bool dispatch_borrower(s32 cpu)
{
	u32 *borrower = &economy_borrowers[(u32)cpu % SCX_CPUS_MAX], pid = *borrower;

	if (!pid)
		return false;
	*borrower = 0;
	return dispatch_task(cpu, SCX_NODE_DSQ | scx_node_of(cpu), pid) ||
	       (scx_pinned_wait(cpu) && dispatch_task(cpu, cpu, pid));
}

#endif /* __ECONOMY_FUTEX_BPF_H */
