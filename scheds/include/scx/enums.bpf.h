/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's sched_ext constants, with the values of the running kernel.
 *
 * The values of several constants differ between kernels (SCX_ENQ_HEAD is 0x10 in 6.12 and 0x10000
 * in 7.2), so they must not be literals. The enumerators below carry the suffix ___k, which libbpf
 * ignores when it looks an enumerator up in the kernel's BTF. The name without the suffix is a
 * macro that reads the running kernel's value. If the running kernel lacks the enumerator, the
 * value is 0, so that an unknown flag is not set.
 *
 * Two kinds of constants are literals, because they are a stable ABI: the flags of struct
 * sched_ext_ops (ops_flags.h), and DSQ ids. BTF that was written by pahole before 1.24 lacks the
 * upper half of the DSQ ids.
 */
#ifndef __SCX_ENUMS_BPF_H
#define __SCX_ENUMS_BPF_H

#include <bpf/bpf_core_read.h>
#include "ops_flags.h"

/* The running kernel's value of @name, 0 if it has no such enumerator. */
#define SCX_ENUM(type, name) \
	(bpf_core_enum_value_exists(type, name) ? bpf_core_enum_value(type, name) : 0)

/* include/linux/sched/ext.h */
#define SCX_DSQ_INVALID (1ULL << 63)
#define SCX_DSQ_GLOBAL (1ULL << 63 | 1)
#define SCX_DSQ_LOCAL (1ULL << 63 | 2)
#define SCX_DSQ_LOCAL_ON (1ULL << 63 | 1ULL << 62)
#define SCX_DSQ_FLAG_BUILTIN (1ULL << 63)
#define SCX_DSQ_FLAG_LOCAL_ON (1ULL << 62)
#define SCX_DSQ_LOCAL_CPU_MASK 0xffffffffULL

/* The values that this file gives to enumerators with the suffix ___k are never used. Only their
 * width has to match the width of the kernel's values. A version in an enumerator's comment is the
 * first kernel that has the enumerator. */
#define SCX_ENUM64(n) (1ULL << 62 | (n))

enum scx_public_consts {
	SCX_SLICE_DFL___k = SCX_ENUM64(0),
	SCX_SLICE_INF___k = SCX_ENUM64(1),
};
#define SCX_SLICE_DFL SCX_ENUM(enum scx_public_consts, SCX_SLICE_DFL___k)
#define SCX_SLICE_INF SCX_ENUM(enum scx_public_consts, SCX_SLICE_INF___k)

enum scx_enq_flags {
	SCX_ENQ_WAKEUP___k = SCX_ENUM64(0),
	SCX_ENQ_HEAD___k = SCX_ENUM64(1),
	SCX_ENQ_CPU_SELECTED___k = SCX_ENUM64(2),
	SCX_ENQ_PREEMPT___k = SCX_ENUM64(3),
	SCX_ENQ_IMMED___k = SCX_ENUM64(4), /* 7.2 */
	SCX_ENQ_REENQ___k = SCX_ENUM64(5),
	SCX_ENQ_LAST___k = SCX_ENUM64(6),
};
#define SCX_ENQ_WAKEUP SCX_ENUM(enum scx_enq_flags, SCX_ENQ_WAKEUP___k)
#define SCX_ENQ_HEAD SCX_ENUM(enum scx_enq_flags, SCX_ENQ_HEAD___k)
#define SCX_ENQ_CPU_SELECTED SCX_ENUM(enum scx_enq_flags, SCX_ENQ_CPU_SELECTED___k)
#define SCX_ENQ_PREEMPT SCX_ENUM(enum scx_enq_flags, SCX_ENQ_PREEMPT___k)
#define SCX_ENQ_IMMED SCX_ENUM(enum scx_enq_flags, SCX_ENQ_IMMED___k)
#define SCX_ENQ_REENQ SCX_ENUM(enum scx_enq_flags, SCX_ENQ_REENQ___k)
#define SCX_ENQ_LAST SCX_ENUM(enum scx_enq_flags, SCX_ENQ_LAST___k)

enum scx_deq_flags {
	SCX_DEQ_SLEEP___k = SCX_ENUM64(0),
	SCX_DEQ_CORE_SCHED_EXEC___k = SCX_ENUM64(1),
	SCX_DEQ_SCHED_CHANGE___k = SCX_ENUM64(2), /* 7.2 */
};
#define SCX_DEQ_SLEEP SCX_ENUM(enum scx_deq_flags, SCX_DEQ_SLEEP___k)
#define SCX_DEQ_CORE_SCHED_EXEC SCX_ENUM(enum scx_deq_flags, SCX_DEQ_CORE_SCHED_EXEC___k)
#define SCX_DEQ_SCHED_CHANGE SCX_ENUM(enum scx_deq_flags, SCX_DEQ_SCHED_CHANGE___k)

enum scx_wake_flags {
	SCX_WAKE_FORK___k,
	SCX_WAKE_TTWU___k,
	SCX_WAKE_SYNC___k,
};
#define SCX_WAKE_FORK SCX_ENUM(enum scx_wake_flags, SCX_WAKE_FORK___k)
#define SCX_WAKE_TTWU SCX_ENUM(enum scx_wake_flags, SCX_WAKE_TTWU___k)
#define SCX_WAKE_SYNC SCX_ENUM(enum scx_wake_flags, SCX_WAKE_SYNC___k)

enum scx_kick_flags {
	SCX_KICK_IDLE___k,
	SCX_KICK_PREEMPT___k,
	SCX_KICK_WAIT___k,
};
#define SCX_KICK_IDLE SCX_ENUM(enum scx_kick_flags, SCX_KICK_IDLE___k)
#define SCX_KICK_PREEMPT SCX_ENUM(enum scx_kick_flags, SCX_KICK_PREEMPT___k)
#define SCX_KICK_WAIT SCX_ENUM(enum scx_kick_flags, SCX_KICK_WAIT___k)

enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE___k,
	SCX_PICK_IDLE_IN_NODE___k, /* 6.15 */
};
#define SCX_PICK_IDLE_CORE SCX_ENUM(enum scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE___k)
#define SCX_PICK_IDLE_IN_NODE SCX_ENUM(enum scx_pick_idle_cpu_flags, SCX_PICK_IDLE_IN_NODE___k)

enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV___k,
};
#define SCX_DSQ_ITER_REV SCX_ENUM(enum scx_dsq_iter_flags, SCX_DSQ_ITER_REV___k)

enum scx_ent_flags {
	SCX_TASK_QUEUED___k,
	SCX_TASK_RESET_RUNNABLE_AT___k,
	SCX_TASK_DEQD_FOR_SLEEP___k,
};
#define SCX_TASK_QUEUED SCX_ENUM(enum scx_ent_flags, SCX_TASK_QUEUED___k)
#define SCX_TASK_RESET_RUNNABLE_AT SCX_ENUM(enum scx_ent_flags, SCX_TASK_RESET_RUNNABLE_AT___k)
#define SCX_TASK_DEQD_FOR_SLEEP SCX_ENUM(enum scx_ent_flags, SCX_TASK_DEQD_FOR_SLEEP___k)

/* Literals, because initializers of struct sched_ext_ops need constants. */
#define SCX_OPS_FLAG_ENUMERATORS(name, bit) name = 1ULL << (bit), name##___k = 1ULL << (bit),
enum scx_ops_flags {
	SCX_OPS_FLAGS(SCX_OPS_FLAG_ENUMERATORS)
};

enum scx_consts {
	SCX_CPUPERF_ONE___k,
};
#define SCX_CPUPERF_ONE SCX_ENUM(enum scx_consts, SCX_CPUPERF_ONE___k)

enum scx_exit_code {
	SCX_ECODE_RSN_HOTPLUG___k = SCX_ENUM64(0),
	SCX_ECODE_ACT_RESTART___k = SCX_ENUM64(1),
};
#define SCX_ECODE_RSN_HOTPLUG SCX_ENUM(enum scx_exit_code, SCX_ECODE_RSN_HOTPLUG___k)
#define SCX_ECODE_ACT_RESTART SCX_ENUM(enum scx_exit_code, SCX_ECODE_ACT_RESTART___k)

/* Only user space compares kinds (exit_info.h). BPF programs need the type only. */
enum scx_exit_kind {
	SCX_EXIT_NONE___k,
};

enum scx_cpu_preempt_reason {
	SCX_CPU_PREEMPT_RT___k,
	SCX_CPU_PREEMPT_DL___k,
	SCX_CPU_PREEMPT_STOP___k,
	SCX_CPU_PREEMPT_UNKNOWN___k,
};
#define SCX_CPU_PREEMPT_RT SCX_ENUM(enum scx_cpu_preempt_reason, SCX_CPU_PREEMPT_RT___k)
#define SCX_CPU_PREEMPT_DL SCX_ENUM(enum scx_cpu_preempt_reason, SCX_CPU_PREEMPT_DL___k)
#define SCX_CPU_PREEMPT_STOP SCX_ENUM(enum scx_cpu_preempt_reason, SCX_CPU_PREEMPT_STOP___k)
#define SCX_CPU_PREEMPT_UNKNOWN SCX_ENUM(enum scx_cpu_preempt_reason, SCX_CPU_PREEMPT_UNKNOWN___k)

/* linux/cgroup_subsys.h */
enum cgroup_subsys_id {
	cpu_cgrp_id___k,
};
#define CPU_CGRP_ID SCX_ENUM(enum cgroup_subsys_id, cpu_cgrp_id___k)

#endif /* __SCX_ENUMS_BPF_H */
