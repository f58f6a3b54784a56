/* SPDX-License-Identifier: GPL-2.0-only */
/* Iterators with which user space reads the state of all tasks and accounts. */
#ifndef __ECONOMY_VIEWS_BPF_H
#define __ECONOMY_VIEWS_BPF_H

#include <scx/iter.bpf.h>
#include "pipes.bpf.h"
#include "sockets.bpf.h"

/* Write a struct economy_task_view for each task that has a context. */
SEC("iter/task")
int economy_read_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct economy_task_view view = {};
	const struct economy_bank *bank;
	struct economy_task *t;

	if (!p)
		return 0;
	t = bpf_task_storage_get(&economy_tasks, p, NULL, 0);
	bank = t ? bank_of(t->node) : NULL;
	if (!bank)
		return 0;
	view.lag = t->share.lag + t->pending_ns * ECONOMY_UNIT;
	view.weight = t->share.weight;
	if (view.weight)
		view.lag += (s64)(view.weight * (bank->ledger.vtime_now - t->share.vtime));
	else
		view.weight = p->scx.weight;
	view.paid_ns = t->paid_ns;
	view.earned_ns = t->earned_ns;
	view.pid = p->pid;
	view.tgid = p->tgid;
	bpf_probe_read_kernel_str(view.comm, sizeof(view.comm), p->comm);
	bpf_seq_write(ctx->meta->seq, &view, sizeof(view));
	return 0;
}

static inline void write_account(struct seq_file *seq, const struct economy_account *account,
				 bool is_pipe)
{
	struct economy_account_view view = {
		.balance_ns = account->balance_ns,
		.paid_ns = account->paid_ns,
		.withdrawn_ns = account->withdrawn_ns,
		.payer = account->payer,
		.server = account->server,
		.is_pipe = is_pipe,
	};

	__builtin_memcpy(view.payer_comm, account->payer_comm, sizeof(view.payer_comm));
	__builtin_memcpy(view.server_comm, account->server_comm, sizeof(view.server_comm));
	bpf_seq_write(seq, &view, sizeof(view));
}

SEC("iter/bpf_sk_storage_map")
int economy_read_sockets(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct economy_account *account = ctx->value;

	if (account)
		write_account(ctx->meta->seq, account, false);
	return 0;
}

SEC("iter/bpf_map_elem")
int economy_read_pipes(struct bpf_iter__bpf_map_elem *ctx)
{
	const struct economy_account *account = ctx->value;

	if (account)
		write_account(ctx->meta->seq, account, true);
	return 0;
}

#endif /* __ECONOMY_VIEWS_BPF_H */
