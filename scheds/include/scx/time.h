/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Comparison of times, real or virtual, that may wrap around.
 *
 * Two u64 times are compared by the sign of their difference, like jiffies. The result is correct
 * as long as the times are less than 2^63 apart. Pure functions, tested on the host by
 * tests/unit_c.
 */
#ifndef __SCX_TIME_H
#define __SCX_TIME_H

#include "types.h"

#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

/* Whether @a is later than @b. */
static inline bool time_after(u64 a, u64 b)
{
	return (s64)(b - a) < 0;
}

/* Whether @a is earlier than @b. */
static inline bool time_before(u64 a, u64 b)
{
	return time_after(b, a);
}

static inline bool time_after_eq(u64 a, u64 b)
{
	return !time_before(a, b);
}

static inline bool time_before_eq(u64 a, u64 b)
{
	return !time_after(a, b);
}

/* Whether @t is in [@first, @last]. */
static inline bool time_in_range(u64 t, u64 first, u64 last)
{
	return time_after_eq(t, first) && time_before_eq(t, last);
}

/* Whether @t is in [@first, @last). */
static inline bool time_in_range_open(u64 t, u64 first, u64 last)
{
	return time_after_eq(t, first) && time_before(t, last);
}

/* Return the time from @before to @after, 0 if @after is earlier. */
static inline u64 time_delta(u64 after, u64 before)
{
	return time_after(after, before) ? after - before : 0;
}

/* Return the later of two times. */
static inline u64 time_max(u64 a, u64 b)
{
	return time_after(a, b) ? a : b;
}

#endif /* __SCX_TIME_H */
