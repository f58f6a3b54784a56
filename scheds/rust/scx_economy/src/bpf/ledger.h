/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: the CPU time that tasks owe or are owed, in exact integers. Pure functions, tested on
 * the host by tests/unit_c/test_economy.c.
 *
 * Each task has a lag: the CPU time to which its weight entitled it while it was runnable, minus
 * the CPU time that it used. The ledger is the only source of entitlement, and hands out exactly
 * the CPU time that tasks use. What it still has to hand out is the pot. What exceeds the bounds of
 * a lag goes to the bank. So the sum of all lags, pots and banks is always zero. The sum is over
 * all ledgers, because a task keeps its lag when it moves to another ledger. If tasks pay, the
 * balances of the accounts (account.h) belong to the sum too: a payment moves lag from a task to an
 * account, and a withdrawal moves it from there to another task.
 *
 * Amounts, also called money, are in units of 1/100 ns (ECONOMY_UNIT). The entitlement of a task,
 * its weight / 100 times a whole number of ns of virtual time, is then an integer.
 */
#ifndef __SCX_ECONOMY_LEDGER_H
#define __SCX_ECONOMY_LEDGER_H

#include <scx/vtime.h>

/* Units in 1 ns of CPU time. */
#define ECONOMY_UNIT SCX_WEIGHT_DFL

/* The bank hands out, or takes back, at most 1/ECONOMY_BANK_PART of the CPU time that tasks use. */
#define ECONOMY_BANK_PART 4

/* The ledger of a group of CPUs. */
struct economy_ledger {
	/* Virtual time, ns. While it advances by 1 ns, each runnable task earns its weight in
	 * units. */
	u64 vtime_now;
	u64 weight; /* sum of the weights of all runnable tasks */
	u64 pot; /* CPU time that was used, but not handed out yet; units */
	/* Money that belongs to no task and no account, such as what exceeded the bounds of lags,
	 * or the lags of tasks that have exited; units. */
	s64 bank;
};

/* A task's entry in a ledger. */
struct economy_share {
	s64 lag; /* units; positive: the task used less than it earned */
	u64 vtime; /* virtual time of the ledger when the lag was last settled; ns */
	u32 weight; /* weight that the task added to the ledger's weight; 0: not runnable */
};

/* Add what a runnable task has earned to its lag. */
static inline void economy_settle(const struct economy_ledger *ledger, struct economy_share *share)
{
	u64 now = ledger->vtime_now;

	share->lag += (s64)(share->weight * (now - share->vtime));
	share->vtime = now;
}

/* The task becomes runnable, and earns from now on. */
static inline void economy_join(struct economy_ledger *ledger, struct economy_share *share,
				u32 weight)
{
	share->vtime = ledger->vtime_now;
	share->weight = scx_weight_clamp(weight);
	ledger->weight += share->weight;
}

/* The task sleeps, or leaves the ledger. It keeps its lag, and earns nothing from now on. */
static inline void economy_leave(struct economy_ledger *ledger, struct economy_share *share)
{
	economy_settle(ledger, share);
	ledger->weight -= share->weight;
	share->weight = 0;
}

/* Move the contents of the bank to the pot, at most @max units. If the bank is negative, move money
 * from the pot to the bank until the bank is 0, at most @max units. */
static inline void economy_use_bank(struct economy_ledger *ledger, u64 max)
{
	if (ledger->bank > 0) {
		if (max > (u64)ledger->bank)
			max = ledger->bank;
		ledger->bank -= max;
		ledger->pot += max;
	} else if (ledger->bank < 0) {
		if (max > (u64)-ledger->bank)
			max = -ledger->bank;
		ledger->bank += max;
		ledger->pot -= max;
	}
}

/* Charge a task for @ran_ns of CPU time, and hand out the pot, with the contribution of the bank,
 * to all runnable tasks. The remainder of the division stays in the pot. If no task is runnable,
 * nothing is handed out. */
static inline void economy_charge(struct economy_ledger *ledger, struct economy_share *share,
				  u64 ran_ns)
{
	u64 amount = ran_ns * ECONOMY_UNIT, passed_ns;

	share->lag -= (s64)amount;
	ledger->pot += amount;
	economy_use_bank(ledger, amount / ECONOMY_BANK_PART);
	if (!ledger->weight)
		return;
	passed_ns = ledger->pot / ledger->weight;
	ledger->vtime_now += passed_ns;
	ledger->pot -= passed_ns * ledger->weight;
}

/* Bound a lag. Returns the excess, in units, which the caller gives to the bank. */
static inline s64 economy_bound(struct economy_share *share, s64 min, s64 max)
{
	s64 lag = share->lag < min ? min : share->lag > max ? max : share->lag;
	s64 excess = share->lag - lag;

	share->lag = lag;
	return excess;
}

/* Return the virtual time, ns, by which the task is queued: the ledger's virtual time when the lag
 * was last settled, minus the lag divided by the weight. */
static inline u64 economy_vtime(const struct economy_share *share)
{
	u64 weight = share->weight ?: SCX_WEIGHT_DFL;

	/* BPF before v4 has no signed division. */
	if (share->lag < 0)
		return share->vtime + (u64)-share->lag / weight;
	return share->vtime - (u64)share->lag / weight;
}

/* Return the lag that the task would have after economy_settle(), in ns, rounded toward zero. */
static inline s64 economy_lag_ns(const struct economy_ledger *ledger,
				 const struct economy_share *share)
{
	s64 lag = share->lag;

	if (share->weight)
		lag += (s64)(share->weight * (ledger->vtime_now - share->vtime));
	return lag < 0 ? -(s64)((u64)-lag / ECONOMY_UNIT) : (s64)((u64)lag / ECONOMY_UNIT);
}

#endif /* __SCX_ECONOMY_LEDGER_H */
