/* SPDX-License-Identifier: GPL-2.0-only */
/* Contexts of BPF iterators: programs that run when user space reads from an iterator fd. */
#ifndef __SCX_ITER_BPF_H
#define __SCX_ITER_BPF_H

#include "types.bpf.h"

struct seq_file {
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

/* SEC("iter/task"). In the last call, after all tasks, @task is NULL. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_map;
struct sock;

/* SEC("iter/bpf_sk_storage_map"). In the last call, @sk and @value are NULL. */
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

/* SEC("iter/bpf_map_elem"). In the last call, @key and @value are NULL. */
struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

#endif /* __SCX_ITER_BPF_H */
