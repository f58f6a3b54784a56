/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that schedulers read, for BPF programs.
 *
 * The file is written by hand and not dumped from one kernel. The structs that BPF programs read
 * carry preserve_access_index, so the offsets come from the running kernel (CO-RE) and a struct
 * lists only the members that are used. To read another member, add a line for it. A version in a
 * member's comment is the first kernel that has the member.
 *
 * If one of these rules is violated, the load fails or, worse, the error goes unnoticed:
 *  - A struct named in a kfunc prototype needs a definition, for which `struct foo {};` suffices. A
 *    forward declaration has another BTF kind, and a weak kfunc with such an argument stays
 *    unresolved without an error.
 *  - An enum member stays an enum: CO-RE refuses an int in its place.
 *  - Structs that a BPF program fills in as arguments of kfuncs, and iterators, keep the kernel's
 *    exact layout and are declared outside of preserve_access_index.
 *  - Enumerators are declared in enums.bpf.h. Only those of uapi/linux/bpf.h are declared here, as
 *    literals.
 */
#ifndef __SCX_TYPES_BPF_H
#define __SCX_TYPES_BPF_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;

/* libbpf's bpf_helper_defs.h uses some of these names. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
typedef __u32 __wsum;

typedef unsigned long size_t;
typedef int pid_t;

#ifndef __cplusplus
typedef _Bool bool;
#define true 1
#define false 0
#endif
#define NULL ((void *)0)

/* The address space of pointers into the arena: `struct foo __arena *p`. */
#define __arena __attribute__((address_space(1)))

/* linux/errno.h: the generic numbers, which all architectures that support sched_ext use. */
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define E2BIG 7
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define ERANGE 34
#define ENODATA 61
#define ETIME 62
#define EOVERFLOW 75
#define EOPNOTSUPP 95
#define ENOBUFS 105
#define ETIMEDOUT 110
#define EALREADY 114
#define EINPROGRESS 115

/* linux/sched.h: task_struct.flags */
#define PF_IDLE 0x00000002
#define PF_EXITING 0x00000004
#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD 0x00200000
#define PF_NO_SETAFFINITY 0x04000000

/* linux/sched/prio.h: task_struct.prio of real-time and deadline tasks is smaller. */
#define MAX_RT_PRIO 100

/* uapi/linux/sched.h: task_struct.policy */
#define SCHED_NORMAL 0
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define SCHED_DEADLINE 6
#define SCHED_EXT 7

/* uapi/linux/time.h: clocks of bpf_timer_init() */
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7

/* ---- uapi/linux/bpf.h: a stable ABI, so the values are literals ---------- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_STRUCT_OPS = 26,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_USER_RINGBUF = 31,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_MAP_TYPE_ARENA = 33,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1U << 0,
	BPF_RB_NO_WAKEUP = 1U << 0,
	BPF_RB_FORCE_WAKEUP = 1U << 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_F_TIMER_ABS = 1U << 0,
	BPF_F_TIMER_CPU_PIN = 1U << 1,
	/* bpf_for_each(css, …) */
	BPF_CGROUP_ITER_SELF_ONLY = 1,
	BPF_CGROUP_ITER_DESCENDANTS_PRE = 2,
	BPF_CGROUP_ITER_DESCENDANTS_POST = 3,
	BPF_CGROUP_ITER_ANCESTORS_UP = 4,
};

struct bpf_spin_lock {
	__u32 val;
};
struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_head {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_node {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct bpf_rb_root {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_rb_node {
	__u64 __opaque[4];
} __attribute__((aligned(8)));
struct bpf_refcount {
	__u32 __opaque[1];
} __attribute__((aligned(4)));
struct bpf_dynptr {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_css {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	__u64 __opaque[6];
} __attribute__((aligned(8)));

/* The structs below use enums of this header. */
#include "enums.bpf.h"

/* ---- Kernel structs, relocated ------------------------------------------- */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct bpf_cpumask {
	struct cpumask cpumask;
};

struct kernfs_node {
	u64 id;
	const char *name;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	int id;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	int level;
	struct cgroup_subsys_state *subsys[1];
};

/* The CPU controller's state of a cgroup; css is the first member. */
struct task_group {
	struct cgroup_subsys_state css;
	int idle; /* cpu.idle */
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct sched_entity {
	/* CPU time consumed, ns. Up to date in ops.running() and ops.stopping(), for prev in
	 * ops.dispatch(), and in every callback for tasks that are not running. */
	u64 sum_exec_runtime;
	u64 exec_start; /* rq->clock_task at the last update of sum_exec_runtime, ns */
};

struct scx_dispatch_q {
	u64 id;
};

struct sched_ext_entity {
	struct scx_dispatch_q *dsq; /* the DSQ that the task is in */
	u32 flags;
	u32 weight; /* 1..10000, 100 is nice 0 */
	u64 slice; /* remaining time slice, ns */
	u64 dsq_vtime;
	u64 ddsp_dsq_id;
	u64 ddsp_enq_flags;
	bool disallow;
};

struct task_struct {
	unsigned int flags;
	unsigned int __state; /* TASK_*; 0: runnable */
	int prio;
	int static_prio;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	unsigned long nvcsw; /* number of voluntary context switches */
	pid_t pid;
	pid_t tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct sched_entity se;
	struct sched_ext_entity scx;
	struct css_set *cgroups;
};

struct scx_rq {
	u32 nr_running;
};

struct rq {
	unsigned int nr_running;
	struct scx_rq scx;
	struct task_struct *curr;
	u64 clock_task; /* ns without the time of interrupts, as of the last update_rq_clock() */
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s32 exit_cpu; /* 7.2 */
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup; /* with CONFIG_EXT_GROUP_SCHED */
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us; /* 6.17 */
	u64 bw_quota_us; /* 6.17 */
	u64 bw_burst_us; /* 6.17 */
};

struct scx_cpu_acquire_args {
};

struct scx_cpu_release_args {
	enum scx_cpu_preempt_reason reason;
	struct task_struct *task;
};

struct scx_dump_ctx {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	u64 at_ns;
	u64 at_jiffies;
};

/* Since 6.15. The order of the members differs between kernels, so they are found by relocation
 * (scx_event_count() in compat.bpf.h). */
struct scx_event_stats {
	s64 SCX_EV_SELECT_CPU_FALLBACK;
	s64 SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE;
	s64 SCX_EV_DISPATCH_KEEP_LAST;
	s64 SCX_EV_ENQ_SKIP_EXITING;
	s64 SCX_EV_ENQ_SKIP_MIGRATION_DISABLED;
	s64 SCX_EV_REFILL_SLICE_DFL;
	s64 SCX_EV_BYPASS_DURATION;
	s64 SCX_EV_BYPASS_DISPATCH;
	s64 SCX_EV_BYPASS_ACTIVATE;
	s64 SCX_EV_REENQ_IMMED; /* 7.2 */
	s64 SCX_EV_REENQ_LOCAL_REPEAT; /* 7.2 */
	s64 SCX_EV_INSERT_NOT_OWNED; /* 7.2 */
	s64 SCX_EV_SUB_BYPASS_DISPATCH; /* 7.2 */
	/* Spare room: in a newer kernel, new counters may move those above to larger offsets. The
	 * relocated offsets must stay within a buffer of this type (scx_read_event()). */
	s64 __room[11];
};

#pragma clang attribute pop

/* ---- Arguments of kfuncs: the kernel's exact layout ---------------------- */

struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

_Static_assert(sizeof(struct scx_bpf_select_cpu_and_args) == 24, "ABI");
_Static_assert(sizeof(struct scx_bpf_dsq_insert_vtime_args) == 32, "ABI");

/*
 * struct sched_ext_ops. libbpf matches members by name, so order and offsets do not matter. A
 * member that the running kernel lacks must be zero in the object, or user space must clear it
 * before the load. Otherwise libbpf refuses the object.
 */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	bool (*core_sched_before)(struct task_struct *a, struct task_struct *b);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us); /* 6.17 */
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle); /* 6.19 */
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch; /* 0: the default, 32 */
	u64 flags;
	u32 timeout_ms; /* 0: the kernel's maximum, 30 s */
	u32 exit_dump_len; /* bytes; 0: the default, 32768 */
	u64 hotplug_seq; /* 0: no check */
	char name[128];
};

#endif /* __SCX_TYPES_BPF_H */
