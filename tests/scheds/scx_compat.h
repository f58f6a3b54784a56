/* SPDX-License-Identifier: GPL-2.0-only */
/* What scx_compat can test: wrappers of compat.bpf.h, scx_bpf_now() and constants. */
#ifndef __SCX_COMPAT_H
#define __SCX_COMPAT_H

#define COMPAT_USES(X)        \
	X(dsq_insert)         \
	X(dsq_insert_vtime)   \
	X(dsq_move)           \
	X(dsq_move_vtime)     \
	X(dsq_peek)           \
	X(reenqueue_local)    \
	X(dsq_reenq)          \
	X(task_set_slice)     \
	X(task_set_dsq_vtime) \
	X(task_cgroup)        \
	X(cpu_curr)           \
	X(select_cpu_and)     \
	X(nodes)              \
	X(idle_node)          \
	X(events)             \
	X(now)                \
	X(enums)

#define COMPAT_ENUMERATOR(name) USE_##name,
enum compat_use {
	COMPAT_USES(COMPAT_ENUMERATOR) NR_COMPAT_USES
};

/* Constants whose values user space compares with the kernel's BTF. */
#define COMPAT_CONSTANTS(X)                               \
	X(scx_public_consts, SCX_SLICE_DFL)               \
	X(scx_public_consts, SCX_SLICE_INF)               \
	X(scx_enq_flags, SCX_ENQ_WAKEUP)                  \
	X(scx_enq_flags, SCX_ENQ_HEAD)                    \
	X(scx_enq_flags, SCX_ENQ_CPU_SELECTED)            \
	X(scx_enq_flags, SCX_ENQ_PREEMPT)                 \
	X(scx_enq_flags, SCX_ENQ_IMMED)                   \
	X(scx_enq_flags, SCX_ENQ_REENQ)                   \
	X(scx_enq_flags, SCX_ENQ_LAST)                    \
	X(scx_deq_flags, SCX_DEQ_SLEEP)                   \
	X(scx_deq_flags, SCX_DEQ_CORE_SCHED_EXEC)         \
	X(scx_deq_flags, SCX_DEQ_SCHED_CHANGE)            \
	X(scx_wake_flags, SCX_WAKE_FORK)                  \
	X(scx_wake_flags, SCX_WAKE_TTWU)                  \
	X(scx_wake_flags, SCX_WAKE_SYNC)                  \
	X(scx_kick_flags, SCX_KICK_IDLE)                  \
	X(scx_kick_flags, SCX_KICK_PREEMPT)               \
	X(scx_kick_flags, SCX_KICK_WAIT)                  \
	X(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE)    \
	X(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE) \
	X(scx_dsq_iter_flags, SCX_DSQ_ITER_REV)           \
	X(scx_ent_flags, SCX_TASK_QUEUED)                 \
	X(scx_consts, SCX_CPUPERF_ONE)                    \
	X(scx_exit_code, SCX_ECODE_RSN_HOTPLUG)           \
	X(scx_exit_code, SCX_ECODE_ACT_RESTART)           \
	X(scx_dsq_id_flags, SCX_DSQ_INVALID)              \
	X(scx_dsq_id_flags, SCX_DSQ_GLOBAL)               \
	X(scx_dsq_id_flags, SCX_DSQ_LOCAL)                \
	X(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)

/* Maximum number of CPUs whose node is reported. */
#define COMPAT_MAX_CPUS 64

#define COMPAT_COUNT(type, name) +1
enum {
	NR_COMPAT_CONSTANTS = COMPAT_CONSTANTS(COMPAT_COUNT)
};

#endif /* __SCX_COMPAT_H */
