/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_nest. */
#ifndef __SCX_NEST_H
#define __SCX_NEST_H

#include <scx/types.h>

struct nest_stats {
	/* Wakeups and forks, by the idle CPU that the task was placed on. */
	u64 wakeup_attached;
	u64 wakeup_prev_primary;
	u64 wakeup_fully_idle_primary;
	u64 wakeup_any_idle_primary;
	u64 wakeup_fully_idle_reserve;
	u64 wakeup_any_idle_reserve;
	u64 wakeup_idle_other;
	/* Changes of the nests, and what causes them. */
	u64 task_impatient;
	u64 promoted_to_primary;
	u64 promoted_to_reserved;
	u64 demoted_to_reserved;
	u64 reserved_at_capacity;
	u64 scheduled_compaction;
	u64 cancelled_compaction;
	u64 eagerly_compacted;
	u64 callback_compacted;
	/* Calls of ops.dispatch(). */
	u64 consumed;
	u64 not_consumed;
	/* Current sizes, filled in by user space. */
	u64 nr_primary;
	u64 nr_reserve;
};

#endif /* __SCX_NEST_H */
