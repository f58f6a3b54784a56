/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max of cgroups: quotas of CPU time per period, at every level.
 *
 * The CPU time of a task is charged to each cgroup that has a quota, from the task's own cgroup
 * upwards. A cgroup may exceed the quota of one period, for example if several CPUs begin slices at
 * once. The scheduler then holds back the tasks of the cgroup (scx_cgroup_max_until()) until the
 * quotas of later periods have made up for the excess. While no cgroup has a quota (scx_nr_quotas
 * is 0), nothing is charged or checked.
 */
#ifndef __SCX_CGROUP_MAX_BPF_H
#define __SCX_CGROUP_MAX_BPF_H

#include "cgroup.bpf.h"

struct scx_cgroup_max {
	struct scx_quota quota;
	s64 left_ns; /* unused part of the quota; negative if the quota is exceeded */
	u64 refilled_ns; /* start of the last period that was added to left_ns */
};

/* Indexed by the slots of scx_cgroups. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SCX_CGROUPS_MAX);
	__type(key, u32);
	__type(value, struct scx_cgroup_max);
} scx_cgroup_maxes SEC(".maps");

/* Number of cgroups with a quota. */
static u32 scx_nr_quotas;

/* Refill the quota for the periods that have passed. */
static inline void scx_cgroup_max_refill(struct scx_cgroup_max *max, u64 now)
{
	u64 from = READ_ONCE(max->refilled_ns), nr;
	s64 left_ns;

	if (time_before(now, from + max->quota.period_ns))
		return;
	nr = (now - from) / max->quota.period_ns;
	if (!__sync_bool_compare_and_swap(&max->refilled_ns, from,
					  from + nr * max->quota.period_ns))
		return;
	/* Only one CPU per period reaches this, but other CPUs may charge CPU time meanwhile. */
	left_ns = READ_ONCE(max->left_ns);
	__sync_fetch_and_add(&max->left_ns, scx_quota_refilled(&max->quota, left_ns, nr) - left_ns);
}

/* Charge @ran_ns to each cgroup that has a quota, from the task's own cgroup upwards. */
static inline void scx_cgroup_max_charge(const struct scx_cgroup_task *t, u64 ran_ns)
{
	u32 slot = scx_cgroup_task_slot(t);
	int level;

	if (!READ_ONCE(scx_nr_quotas))
		return;
	bpf_for(level, 0, SCX_CGROUP_DEPTH_MAX) {
		struct scx_cgroup_max *max = bpf_map_lookup_elem(&scx_cgroup_maxes, &slot);
		struct scx_cgroup *cg = scx_cgroup_get(slot);

		if (!max || !cg || slot == SCX_CGROUP_ROOT)
			break;
		if (max->quota.quota_ns)
			__sync_fetch_and_sub(&max->left_ns, ran_ns);
		slot = cg->parent;
	}
}

/*
 * Return 0 if something is left of all quotas that apply to the task, and reduce *@left_ns to the
 * smallest remainder, ns. Otherwise return the time at which something will be left of all quotas,
 * on the clock of @now, which is scx_bpf_now().
 */
static inline u64 scx_cgroup_max_until(const struct scx_cgroup_task *t, u64 now, u64 *left_ns)
{
	u32 slot = scx_cgroup_task_slot(t);
	u64 until = 0;
	int level;

	if (!READ_ONCE(scx_nr_quotas))
		return 0;
	bpf_for(level, 0, SCX_CGROUP_DEPTH_MAX) {
		struct scx_cgroup_max *max = bpf_map_lookup_elem(&scx_cgroup_maxes, &slot);
		struct scx_cgroup *cg = scx_cgroup_get(slot);
		s64 left;
		u64 then;

		if (!max || !cg || slot == SCX_CGROUP_ROOT)
			break;
		slot = cg->parent;
		if (!max->quota.quota_ns)
			continue;
		scx_cgroup_max_refill(max, now);
		left = READ_ONCE(max->left_ns);
		then = max->refilled_ns +
		       scx_quota_nr_periods(&max->quota, left) * max->quota.period_ns;
		if (left <= 0)
			until = until ? time_max(until, then) : then;
		else if ((u64)left < *left_ns)
			*left_ns = left;
	}
	return until;
}

static inline void scx_cgroup_max_set(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				      u64 burst_us)
{
	struct scx_quota quota = scx_quota_of(period_us, quota_us, burst_us);
	u32 slot = scx_cgroup_slot(scx_cgroup_id(cgrp));
	struct scx_cgroup_max *max = bpf_map_lookup_elem(&scx_cgroup_maxes, &slot);

	if (!max || !scx_cgroup_own(cgrp))
		return;
	if (quota.quota_ns && !max->quota.quota_ns)
		__sync_fetch_and_add(&scx_nr_quotas, 1);
	else if (!quota.quota_ns && max->quota.quota_ns)
		__sync_fetch_and_sub(&scx_nr_quotas, 1);
	/* Other CPUs may see a mixture of old and new values. The effect is limited to one
	 * period. */
	max->left_ns = quota.quota_ns;
	max->refilled_ns = scx_bpf_now();
	max->quota.period_ns = quota.period_ns;
	max->quota.burst_ns = quota.burst_ns;
	WRITE_ONCE(max->quota.quota_ns, quota.quota_ns);
}

/* Call it from ops.cgroup_init(), after scx_cgroup_do_init(), which gives the cgroup its slot. */
static inline void scx_cgroup_max_init(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	if (scx_reports_cgroup_max())
		scx_cgroup_max_set(cgrp, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
}

/* Call it from ops.cgroup_exit(), before scx_cgroup_do_exit(), which frees the slot. */
static inline void scx_cgroup_max_exit(struct cgroup *cgrp)
{
	scx_cgroup_max_set(cgrp, 0, SCX_QUOTA_MAX_US, 0);
}

#endif /* __SCX_CGROUP_MAX_BPF_H */
