/* SPDX-License-Identifier: GPL-2.0-only */
/* What scx_uqueue.bpf.c and scx_uqueue.c tell each other. */
#ifndef __SCX_UQUEUE_H
#define __SCX_UQUEUE_H

#define UQUEUE_LEN 4096

/* To user space: a task waits. */
struct uqueue_task {
	s32 pid;
	u32 weight;
	u64 seq; /* of this enqueue */
	u64 ran_ns; /* since it was enqueued last */
};

/* From user space: it is next. */
struct uqueue_decision {
	s32 pid;
	u32 pad;
	u64 seq;
};

#endif /* __SCX_UQUEUE_H */
