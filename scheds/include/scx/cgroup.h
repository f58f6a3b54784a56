/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of cgroup weights.
 *
 * A cgroup competes with its siblings and with the tasks of its parent, in proportion to their
 * weights. The product of these proportions over all levels is its share of the machine. A task's
 * virtual time advances by its CPU time divided by its share, so one queue, ordered by virtual
 * time, honours the weights of all levels. Pure functions, tested on the host by tests/unit_c.
 */
#ifndef __SCX_CGROUP_H
#define __SCX_CGROUP_H

#include "vtime.h"

/* Shares are in units of 2^-32 of the machine; the smallest is 1. */
#define SCX_SHARE_ALL (1ULL << 32)

/* Maximum cost, ns of virtual time. Larger costs are clamped, so that virtual times stay comparable
 * (time.h). */
#define SCX_SHARE_COST_MAX (1ULL << 62)

/*
 * Return the part of @share that @weight gets, where @load is the sum of all weights, including
 * @weight. @share <= SCX_SHARE_ALL. @load may be smaller than @weight, since other CPUs may change
 * it between the reads of the two.
 */
static inline u64 scx_share_part(u64 share, u64 weight, u64 load)
{
	if (weight >= load)
		return share;
	if (load >> 32) {
		weight >>= 16;
		load >>= 16;
	}
	share = share * weight / load;
	return share ? share : 1;
}

/* Return the virtual time, ns, by which @ran_ns of CPU time advances a task with this share. */
static inline u64 scx_share_cost(u64 ran_ns, u64 share)
{
	u64 whole = ran_ns / share;

	if (whole >= SCX_SHARE_COST_MAX >> 32)
		return SCX_SHARE_COST_MAX;
	return (whole << 32) + ((ran_ns % share) << 32) / share;
}

/* Return the CPU time, ns, that a task with this share gets for @cost_ns < 2^40 of virtual time:
 * the inverse of scx_share_cost(), rounded down. */
static inline u64 scx_share_paid(u64 cost_ns, u64 share)
{
	return ((cost_ns >> 8) * share) >> 24;
}

/*
 * Return @slice_ns, or a shorter slice if @slice_ns would cost a task with this share more than
 * @cost_ns < 2^32 of virtual time. A shorter slice is at least @min_ns, even if that costs more.
 */
static inline u64 scx_share_slice(u64 slice_ns, u64 share, u64 cost_ns, u64 min_ns)
{
	u64 limit_ns = cost_ns * share >> 32;

	if (limit_ns < min_ns)
		limit_ns = min_ns;
	return limit_ns < slice_ns ? limit_ns : slice_ns;
}

/* ---- effective weights --------------------------------------------------- */

/*
 * The effective weight of a task is the weight with which the task would get the same CPU time if
 * it were directly in the root cgroup. For a task in the root cgroup, it is the task's own weight.
 * For any other task, it is the weight of its top-level cgroup (the child of the root cgroup that
 * contains the task), times the task's part of that cgroup. Unlike a share, it does not change when
 * another child of the root cgroup becomes active or inactive, so a scheduler may compare and add
 * up the weights in each of several queues. Effective weights are in units of
 * 2^-SCX_EFFECTIVE_SHIFT.
 */
#define SCX_EFFECTIVE_SHIFT 16

/* Maximum CPU time that is charged at once, so that scx_effective_cost() cannot overflow. */
#define SCX_EFFECTIVE_RAN_MAX_NS (1ULL << 40)

/* Return the effective weight of a task, at least 1. For a task in the root cgroup, @weight is the
 * task's own weight and @share is SCX_SHARE_ALL. For any other task, @weight is the weight of its
 * top-level cgroup, and @share is the task's part of that cgroup. */
static inline u64 scx_effective_weight(u32 weight, u64 share)
{
	u64 effective = weight * share >> (32 - SCX_EFFECTIVE_SHIFT);

	return effective ? effective : 1;
}

/* Return the virtual time, ns, by which @ran_ns of CPU time advances a task of this effective
 * weight. This is like scx_vtime_cost(), but the weight has a fractional part. */
static inline u64 scx_effective_cost(u64 ran_ns, u64 effective)
{
	if (ran_ns > SCX_EFFECTIVE_RAN_MAX_NS)
		ran_ns = SCX_EFFECTIVE_RAN_MAX_NS;
	return (ran_ns * SCX_WEIGHT_DFL << SCX_EFFECTIVE_SHIFT) / (effective ? effective : 1);
}

/* Return the effective weight as a weight, rounded, from 1 to SCX_WEIGHT_MAX. */
static inline u32 scx_effective_round(u64 effective)
{
	u64 weight = (effective + (1 << SCX_EFFECTIVE_SHIFT) / 2) >> SCX_EFFECTIVE_SHIFT;

	return weight < SCX_WEIGHT_MAX ? scx_weight_clamp(weight) : SCX_WEIGHT_MAX;
}

/* ---- cpu.max ------------------------------------------------------------- */

/* CPU time that a cgroup may use in each period. At most burst_ns of unused time is carried over to
 * the next period. */
struct scx_quota {
	u64 quota_ns; /* 0: unlimited */
	u64 period_ns;
	u64 burst_ns;
};

/* Minimum quota, the kernel's own limit. */
#define SCX_QUOTA_MIN_US 1000
#define SCX_QUOTA_PERIOD_DFL_US 100000
/* Upper bound of the quotas that the kernel accepts. The kernel reports "max" as a larger
 * number. */
#define SCX_QUOTA_MAX_US (1ULL << 44)

/* Convert a quota reported by the kernel. A smaller quota is raised to SCX_QUOTA_MIN_US, and a
 * period of 0 becomes the default, because both are divisors. An unlimited quota becomes 0. */
static inline struct scx_quota scx_quota_of(u64 period_us, u64 quota_us, u64 burst_us)
{
	struct scx_quota quota = { 0 };

	if (quota_us >= SCX_QUOTA_MAX_US)
		return quota;
	quota.quota_ns = (quota_us > SCX_QUOTA_MIN_US ? quota_us : SCX_QUOTA_MIN_US) * 1000;
	quota.period_ns = (period_us ? period_us : SCX_QUOTA_PERIOD_DFL_US) * 1000;
	quota.burst_ns = (burst_us < SCX_QUOTA_MAX_US ? burst_us : 0) * 1000;
	return quota;
}

/* Return what is left of a quota after @nr_periods more periods, if @left_ns is left now. */
static inline s64 scx_quota_refilled(const struct scx_quota *q, s64 left_ns, u64 nr_periods)
{
	s64 full_ns = q->quota_ns + q->burst_ns;

	if (left_ns >= full_ns || nr_periods > (u64)(full_ns - left_ns) / q->quota_ns)
		return full_ns;
	return left_ns + nr_periods * q->quota_ns;
}

/* Return the number of refills after which something is left of a quota: 0 if @left_ns, which is
 * left now, is positive. */
static inline u64 scx_quota_nr_periods(const struct scx_quota *q, s64 left_ns)
{
	return left_ns > 0 ? 0 : (u64)-left_ns / q->quota_ns + 1;
}

#endif /* __SCX_CGROUP_H */
