/* SPDX-License-Identifier: GPL-2.0-only */
/* The scheduling class of a task. */
#ifndef __SCXTOP_CLASS_BPF_H
#define __SCXTOP_CLASS_BPF_H

#include "maps.bpf.h"
#include <bpf/bpf_core_read.h>

/* The state of a task in task_struct.scx.flags. In older kernels, such as 6.12, its values are
 * those of enum scx_task_state, to be shifted. In newer kernels, such as 7.2, they are in enum
 * scx_ent_flags, already shifted. */
enum scx_task_state___shifted {
	SCX_TASK_ENABLED___shifted,
};

enum scx_ent_flags___state {
	SCX_TASK_ENABLED___state,
	SCX_TASK_STATE_MASK___state,
};

#define SCX_TASK_STATE_SHIFT 8

/*
 * Return whether @p is in the ext class. task_struct.sched_class is not used, because libbpf would
 * read all symbols of the kernel to find the address of the class.
 */
static inline bool is_ext(struct task_struct *p)
{
	u32 state, enabled;

	if (!bpf_core_field_exists(p->scx))
		return false;
	state = p->scx.flags &
		bpf_core_enum_value(enum scx_ent_flags___state, SCX_TASK_STATE_MASK___state);
	if (bpf_core_enum_value_exists(enum scx_task_state___shifted, SCX_TASK_ENABLED___shifted))
		enabled = bpf_core_enum_value(enum scx_task_state___shifted,
					      SCX_TASK_ENABLED___shifted)
			  << SCX_TASK_STATE_SHIFT;
	else
		enabled = bpf_core_enum_value(enum scx_ent_flags___state, SCX_TASK_ENABLED___state);
	return state == enabled;
}

/* Copy the name of @p. Most events of a trace need this, and two loads cost less than a helper
 * call. */
static inline void copy_comm(u8 *comm, struct task_struct *p)
{
	const u64 *from = (const u64 *)p->comm;

	((u64 *)comm)[0] = from[0];
	((u64 *)comm)[1] = from[1];
}

static inline enum top_class class_of(struct task_struct *p)
{
	if (!p->pid)
		return TOP_CLASS_IDLE;
	if (p->prio < 0)
		return TOP_CLASS_DL;
	if (p->prio < MAX_RT_PRIO)
		return TOP_CLASS_RT;
	return is_ext(p) ? TOP_CLASS_EXT : TOP_CLASS_FAIR;
}

#endif /* __SCXTOP_CLASS_BPF_H */
