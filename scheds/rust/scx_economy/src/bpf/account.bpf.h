/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Payments into accounts, and withdrawals. The tracing programs run in the context of the task that
 * pays or withdraws. They must not change the lag of the task, because a callback may change it at
 * the same time. Instead they change pending_ns of the task, which the next money_settle() adds to
 * the lag.
 *
 * pending_ns and the balance are changed atomically, because callbacks and other tasks may change
 * them at the same time. If several tasks pay at once, the balance may exceed the limit by up to
 * one price for each of them.
 */
#ifndef __ECONOMY_ACCOUNT_BPF_H
#define __ECONOMY_ACCOUNT_BPF_H

#include "account.h"
#include "money.bpf.h"

/* The account of a socket or pipe. */
struct economy_account {
	s64 balance_ns;
	u64 paid_ns; /* in total */
	u64 withdrawn_ns; /* in total */
	u32 payer; /* process that paid last; 0: none */
	u32 server; /* process that read last; 0: none */
	char payer_comm[ECONOMY_COMM_LEN];
	char server_comm[ECONOMY_COMM_LEN];
};

static inline void transfer_begin(void)
{
	count_atomic(nr_begun, 1);
}

static inline void transfer_end(void)
{
	count_atomic(nr_ended, 1);
}

/* Return the lag, ns, that a task would have if its payments, withdrawals and loans were settled
 * and all of its CPU time was charged now. */
static inline s64 lag_now_ns(const struct task_struct *p, const struct economy_task *t)
{
	const struct economy_bank *bank = bank_of(t->node);
	s64 lag_ns = t->pending_ns;

	if (!bank)
		return 0;
	if (t->has_begun)
		lag_ns -= (s64)(p->se.sum_exec_runtime - t->sum_exec_ns);
	return lag_ns + economy_lag_ns(&bank->ledger, &t->share);
}

/* Maximum credit of a task, in slices. */
#define CREDIT_SLICES 3

/*
 * Return the credit of a task, ns: how much it may owe because of payments. The lag of a task that
 * computes varies by a slice around 0 as it waits and runs, so without credit it could pay nothing
 * half of the time. With the default reserve of one slice, a task that pays owes up to two slices,
 * for which it waits two turns longer. A debt beyond the bound of the lag would be forgiven, at the
 * expense of all tasks, so the credit is at most that bound. The debt of a task that exits is
 * forgiven too, so the credit is also at most the CPU time that the task has used. Otherwise tasks
 * could be created just to pay and exit.
 */
static inline s64 credit_ns(const struct task_struct *p, const struct economy_task *t)
{
	const struct economy_bank *bank = bank_of(t->node);
	s64 credit = CREDIT_SLICES * (s64)config.slice_ns, max;

	if (!bank)
		return 0;
	if (credit > (s64)p->se.sum_exec_runtime)
		credit = p->se.sum_exec_runtime;
	max = (u64)money_lag_max(bank, t) / ECONOMY_UNIT;
	return credit < max ? credit : max;
}

/* Return the means of the current task, ns: what it may pay if it keeps no reserve. This is its
 * standing (money_standing()), as if all payments were settled and all CPU time was charged now,
 * plus its credit (credit_ns()). */
static inline s64 means_ns(const struct task_struct *p, const struct economy_task *t)
{
	const struct economy_bank *bank = bank_of(t->node);
	s64 behind;

	if (!bank)
		return 0;
	behind = money_standing(bank, &t->share);
	behind = behind < 0 ? -(s64)((u64)-behind / ECONOMY_UNIT) :
			      (s64)((u64)behind / ECONOMY_UNIT);
	if (t->has_begun)
		behind -= (s64)(p->se.sum_exec_runtime - t->sum_exec_ns);
	return behind + t->pending_ns + credit_ns(p, t);
}

/* Whether senders on this CPU pay, and receivers on this CPU withdraw, now. Programs test this
 * first. The function is inlined, because a call would cost as much as the test. */
static __always_inline bool is_trading(void)
{
	return money_is_scarce(scx_node_of(bpf_get_smp_processor_id()));
}

/* Whether the account takes a payment now. Messages are free until account_withdraw() has noted a
 * receiver, because payments over a connection that is never accepted would be lost. */
static inline bool account_has_room(const struct economy_account *account)
{
	s64 room_ns = (s64)config.limit_ns - account->balance_ns;

	if (!account->server)
		return false;
	if (room_ns >= (config.is_partial ? 1 : (s64)config.price_ns))
		return true;
	count_atomic(nr_refused_full, 1);
	return false;
}

/* A task that is about to pay. */
struct payer {
	struct task_struct *p;
	struct economy_task *t;
	s64 means_ns;
};

/* Whether the current task, which sends a message, can pay for it. Fills @payer. */
static inline bool can_pay(struct payer *payer)
{
	payer->p = bpf_get_current_task_btf();
	payer->t = bpf_task_storage_get(&economy_tasks, payer->p, NULL, 0);
	if (!payer->t || !payer->t->is_member)
		return false;
	payer->means_ns = means_ns(payer->p, payer->t);
	if (economy_payment(config.price_ns, payer->means_ns, config.reserve_ns, config.price_ns,
			    config.is_partial))
		return true;
	count_atomic(nr_refused_poor, 1);
	return false;
}

/* Note the process that pays. */
static inline void account_note_payer(struct economy_account *account, u32 process)
{
	if (account->payer == process)
		return;
	account->payer = process;
	bpf_get_current_comm(account->payer_comm, sizeof(account->payer_comm));
}

/* Pay into the account for a message, unless the sender belongs to the process that read last. The
 * caller has checked that the account has room. */
static inline void account_pay(struct economy_account *account, const struct payer *payer)
{
	s64 room_ns = (s64)config.limit_ns - account->balance_ns;
	u64 amount_ns = economy_payment(config.price_ns, payer->means_ns, config.reserve_ns,
					room_ns, config.is_partial);
	struct economy_task *t = payer->t;
	u32 process = payer->p->tgid;

	/* Payments of a process to itself would evade the bounds of a lag. */
	if (!t || !amount_ns || account->server == process)
		return;
	transfer_begin();
	__sync_fetch_and_sub(&t->pending_ns, amount_ns);
	__sync_fetch_and_add(&account->balance_ns, amount_ns);
	count_atomic(paid_ns, amount_ns);
	transfer_end();
	t->paid_ns += amount_ns;
	__sync_fetch_and_add(&account->paid_ns, amount_ns);
	account_note_payer(account, process);
	count_atomic(nr_pay, 1);
}

/* Move @amount_ns from the account to the current task. If another task has changed the balance
 * since @balance_ns was read, do nothing: the next withdrawal gets the money. */
static inline void account_take(struct economy_account *account, struct economy_task *t,
				s64 balance_ns, s64 amount_ns)
{
	bool is_taken;

	transfer_begin();
	is_taken = __sync_val_compare_and_swap(&account->balance_ns, balance_ns,
					       balance_ns - amount_ns) == balance_ns;
	if (is_taken) {
		__sync_fetch_and_add(&t->pending_ns, amount_ns);
		count_atomic(withdrawn_ns, amount_ns);
	}
	transfer_end();
	if (!is_taken)
		return;
	t->earned_ns += amount_ns;
	__sync_fetch_and_add(&account->withdrawn_ns, amount_ns);
	count_atomic(nr_withdraw, 1);
}

/* Move @part_ns from the account to the current task @p, or less if the lag of the task would
 * exceed config.lag_max_ns otherwise. */
static inline void account_take_part(struct economy_account *account, struct task_struct *p,
				     s64 balance_ns, s64 part_ns)
{
	struct economy_task *t = bpf_task_storage_get(&economy_tasks, p, NULL, 0);
	s64 room_ns;

	if (!t || !t->is_member)
		return;
	room_ns = (s64)config.lag_max_ns - lag_now_ns(p, t);
	/* A server whose lag is less than one price below the maximum withdraws all of @part_ns or
	 * nothing. Otherwise it would withdraw only a few us with each message. */
	if (part_ns > room_ns)
		part_ns = room_ns < (s64)config.price_ns ? 0 : room_ns;
	if (part_ns > 0)
		account_take(account, t, balance_ns, part_ns);
}

/*
 * The current task has read from the socket or pipe, and withdraws the money for what it has read.
 * @nr_unread messages are left. If its lag would exceed config.lag_max_ns otherwise, the task
 * withdraws less or nothing. The rest stays in the account.
 */
static inline void account_withdraw(struct economy_account *account, u64 nr_unread)
{
	struct task_struct *p = bpf_get_current_task_btf();
	s64 balance_ns = account->balance_ns;

	if (account->server != (u32)p->tgid) {
		account->server = p->tgid;
		bpf_get_current_comm(account->server_comm, sizeof(account->server_comm));
	}
	if (balance_ns <= 0)
		return;
	/* If the process itself was the last payer, it may have read its own message. It then
	 * withdraws nothing, because the money may be for messages of other processes. */
	if (account->payer != (u32)p->tgid)
		account_take_part(account, p, balance_ns,
				  economy_withdrawal(balance_ns, nr_unread));
}

/* Close the account of a socket or pipe that is closed. The money goes to the bank. */
static inline void account_close(struct economy_account *account)
{
	struct economy_bank *bank = bank_of(scx_node_of(bpf_get_smp_processor_id()));
	s64 left_ns;

	if (!account->balance_ns || !bank)
		return;
	transfer_begin();
	left_ns = __sync_lock_test_and_set(&account->balance_ns, 0);
	money_to_bank(bank, left_ns * ECONOMY_UNIT);
	count_atomic(closed_ns, left_ns);
	transfer_end();
}

#endif /* __ECONOMY_ACCOUNT_BPF_H */
