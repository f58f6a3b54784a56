/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_economy. */
#ifndef __SCX_ECONOMY_INTF_H
#define __SCX_ECONOMY_INTF_H

#include <scx/types.h>

/* Set by user space before it loads the BPF programs; read-only afterwards. */
struct economy_config {
	u64 slice_ns;
	/* Maximum absolute value of a sleeping task's lag. Withdrawals and loans do not raise a lag
	 * beyond it either. */
	u64 lag_max_ns;
	u64 price_ns; /* price of a message */
	u64 futex_price_ns; /* maximum loan to the owner of a PI futex */
	u64 limit_ns; /* maximum balance of an account */
	u64 reserve_ns; /* what a task that pays or lends keeps of its means (means_ns()) */
	u32 is_partial; /* 1: pay part of a price if the task cannot pay all of it */
	u32 both_ways; /* 1: both ends of a connection have accounts */
};

/* Counters of a CPU. */
struct economy_counts {
	u64 nr_begun; /* changes of money that have begun */
	u64 nr_ended; /* changes of money that have ended */
	u64 nr_pay;
	u64 nr_withdraw;
	u64 nr_loan;
	u64 nr_refused_poor; /* messages whose sender could not pay, and refused loans */
	u64 nr_refused_full; /* messages not paid for because the account was full */
	u64 paid_ns;
	u64 withdrawn_ns;
	u64 closed_ns; /* moved from closed accounts to the bank */
	u64 lent_ns;
	u64 nr_preemptions;
};

/* A ledger as user space reads it from the map economy_ledgers. It has the layout of struct
 * economy_bank. ledger.h defines the units. */
struct economy_ledger_view {
	u32 lock;
	u32 padding;
	u64 vtime_now;
	u64 weight;
	u64 pot;
	s64 bank;
	u64 nr_runnable;
	s64 inflow;
	u64 vtime_run;
};

enum {
	ECONOMY_COMM_LEN = 16
};

/* What the iterator economy_read_tasks writes for each task. */
struct economy_task_view {
	s64 lag; /* lag that the task would have if it were settled now; units of ledger.h */
	u64 paid_ns;
	u64 earned_ns; /* withdrawn from accounts */
	u32 pid;
	u32 tgid;
	u32 weight;
	u32 padding;
	char comm[ECONOMY_COMM_LEN];
};

/* What the iterators economy_read_sockets and economy_read_pipes write for each account. */
struct economy_account_view {
	s64 balance_ns;
	u64 paid_ns;
	u64 withdrawn_ns;
	u32 payer; /* process that paid last; 0: none */
	u32 server; /* process that read last; 0: none */
	u32 is_pipe;
	u32 padding;
	char payer_comm[ECONOMY_COMM_LEN];
	char server_comm[ECONOMY_COMM_LEN];
};

#endif /* __SCX_ECONOMY_INTF_H */
