/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks of the scheduler's own process. */
#ifndef __SCX_OWN_BPF_H
#define __SCX_OWN_BPF_H

#include <scx/common.bpf.h>

/* TGID of the process in the initial PID namespace; 0 until scx_note_own() is called. */
static u32 scx_own_tgid;

/* Note the current process as the scheduler's own. Call it from a `syscall` program that the
 * process runs before it attaches the scheduler. A callback cannot do this, because its current
 * task may be a kernel thread. */
static inline void scx_note_own(void)
{
	scx_own_tgid = bpf_get_current_pid_tgid() >> 32;
}

static inline bool scx_task_is_own(const struct task_struct *p)
{
	return (u32)p->tgid == scx_own_tgid;
}

#endif /* __SCX_OWN_BPF_H */
