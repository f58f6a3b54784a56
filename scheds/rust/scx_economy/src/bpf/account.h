/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prices and accounts. Pure functions, tested on the host by tests/unit_c/test_economy.c.
 *
 * An account belongs to the receiving end of a connection. Senders pay into the account before
 * their messages arrive, and the receiver withdraws when it reads. Amounts are in ns of CPU time.
 */
#ifndef __SCX_ECONOMY_ACCOUNT_H
#define __SCX_ECONOMY_ACCOUNT_H

#include <scx/types.h>

/*
 * Return what the sender of a message pays, ns. It can pay at most its means minus the reserve that
 * it keeps, and at most the room in the account. If this is less than @price_ns, it pays nothing
 * or, if @is_partial, as much as it can.
 */
static inline u64 economy_payment(u64 price_ns, s64 means_ns, u64 reserve_ns, s64 room_ns,
				  bool is_partial)
{
	s64 amount_ns = price_ns, budget_ns = means_ns - (s64)reserve_ns;

	if (budget_ns < amount_ns)
		amount_ns = budget_ns;
	if (room_ns < amount_ns)
		amount_ns = room_ns;
	if (amount_ns <= 0 || (!is_partial && amount_ns < (s64)price_ns))
		return 0;
	return amount_ns;
}

/*
 * Return what a receiver withdraws after it has read a message, ns: the message's part of
 * @balance_ns, if @nr_unread messages are left. A receiver that reads several messages at once
 * usually reads all messages, and gets the whole balance.
 */
static inline u64 economy_withdrawal(u64 balance_ns, u64 nr_unread)
{
	return balance_ns / (nr_unread + 1);
}

#endif /* __SCX_ECONOMY_ACCOUNT_H */
