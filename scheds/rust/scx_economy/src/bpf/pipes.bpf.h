/* SPDX-License-Identifier: GPL-2.0-only */
/* With --pipes: the writer of a pipe pays its reader. The names of the kernel functions that write
 * and read pipes differ between kernels, so user space sets them (trace.rs). */
#ifndef __ECONOMY_PIPES_BPF_H
#define __ECONOMY_PIPES_BPF_H

#include "account.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pipe_inode_info {
	u32 head;
	u32 tail;
	u32 max_usage;
	u32 readers;
};

struct file {
	void *private_data;
};

struct kiocb {
	struct file *ki_filp;
};

#pragma clang attribute pop

/* Accounts by the address of the pipe. If the map is full, the writers of further pipes do not
 * pay. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct economy_account);
} economy_pipes SEC(".maps");

static inline struct pipe_inode_info *pipe_of(struct kiocb *iocb)
{
	return bpf_core_cast(iocb->ki_filp->private_data, struct pipe_inode_info);
}

/* Return the number of buffers with data. A buffer has the data of one or more writes, or a part of
 * a write that is larger than a page. */
static inline u32 nr_buffers(const struct pipe_inode_info *pipe)
{
	return pipe->head - pipe->tail;
}

/* Create the account of a pipe and return it, NULL on failure. */
static inline struct economy_account *new_pipe_account(u64 pipe)
{
	static const struct economy_account empty;

	bpf_map_update_elem(&economy_pipes, &pipe, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&economy_pipes, &pipe);
}

/* A write pays only if the pipe has a reader and a free buffer when the write starts. Otherwise it
 * would in most cases fail or have to wait. */
SEC("?fentry")
int BPF_PROG(economy_pipe_write, struct kiocb *iocb)
{
	const struct pipe_inode_info *pipe = pipe_of(iocb);
	struct economy_account *account;
	struct payer payer = {};
	u64 key = (u64)pipe;

	if (!is_trading() || !pipe->readers || nr_buffers(pipe) >= pipe->max_usage ||
	    !can_pay(&payer))
		return 0;
	account = bpf_map_lookup_elem(&economy_pipes, &key) ?: new_pipe_account(key);
	if (account && account_has_room(account))
		account_pay(account, &payer);
	return 0;
}

SEC("?fexit")
int BPF_PROG(economy_pipe_read, struct kiocb *iocb, void *to, s64 ret)
{
	const struct pipe_inode_info *pipe = pipe_of(iocb);
	struct economy_account *account;
	u64 key = (u64)pipe;

	if (!is_trading() || ret <= 0)
		return 0;
	account = bpf_map_lookup_elem(&economy_pipes, &key);
	if (account)
		account_withdraw(account, nr_buffers(pipe));
	return 0;
}

SEC("?fentry/free_pipe_info")
int BPF_PROG(economy_pipe_freed, void *info)
{
	u64 pipe = (u64)info;
	struct economy_account *account = bpf_map_lookup_elem(&economy_pipes, &pipe);

	if (!account)
		return 0;
	account_close(account);
	bpf_map_delete_elem(&economy_pipes, &pipe);
	return 0;
}

#endif /* __ECONOMY_PIPES_BPF_H */
