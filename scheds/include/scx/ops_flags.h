/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flags of struct sched_ext_ops with their bit numbers, which are the same on all kernels. The
 * kernel refuses a scheduler with a flag that the kernel does not know, so user space clears such
 * flags before the load, or does not set them.
 */
#ifndef __SCX_OPS_FLAGS_H
#define __SCX_OPS_FLAGS_H

#define SCX_OPS_FLAGS(X)                                \
	X(SCX_OPS_KEEP_BUILTIN_IDLE, 0)                 \
	X(SCX_OPS_ENQ_LAST, 1)                          \
	X(SCX_OPS_ENQ_EXITING, 2)                       \
	X(SCX_OPS_SWITCH_PARTIAL, 3)                    \
	X(SCX_OPS_ENQ_MIGRATION_DISABLED, 4) /* 6.15 */ \
	X(SCX_OPS_ALLOW_QUEUED_WAKEUP, 5) /* 6.15 */    \
	X(SCX_OPS_BUILTIN_IDLE_PER_NODE, 6) /* 6.15 */  \
	X(SCX_OPS_ALWAYS_ENQ_IMMED, 7) /* 7.2 */        \
	X(SCX_OPS_TID_TO_TASK, 8) /* 7.2 */             \
	X(SCX_OPS_HAS_CGROUP_WEIGHT, 16) /* gone before 7.2 */

#endif /* __SCX_OPS_FLAGS_H */
