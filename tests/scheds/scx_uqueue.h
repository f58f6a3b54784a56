/* SPDX-License-Identifier: GPL-2.0-only */
/* The messages between scx_uqueue.bpf.c and scx_uqueue.c. */
#ifndef __SCX_UQUEUE_H
#define __SCX_UQUEUE_H

#define UQUEUE_LEN 4096

/* To user space: an enqueued task. */
struct uqueue_task {
	s32 pid;
	u32 weight;
	u64 seq; /* sequence number of this enqueue */
	u64 ran_ns; /* CPU time since the previous enqueue of the task */
};

/* From user space: the next task to run. */
struct uqueue_decision {
	s32 pid;
	u32 pad;
	u64 seq;
};

#endif /* __SCX_UQUEUE_H */
