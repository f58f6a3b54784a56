/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Total idle time of a CPU in one word, so that user space never reads a total that does not match
 * the start of the idle period. While the CPU is busy, the word is its idle time in ns. While it is
 * idle, the word is negative, and its sum with the monotonic clock is the idle time. Pure
 * functions; busy.rs reads the word.
 */
#ifndef __RUSTY_BUSY_H
#define __RUSTY_BUSY_H

#include <scx/types.h>

/* Return the word of a CPU that becomes idle; unchanged if it is idle already. */
static inline s64 rusty_idle_begin(s64 idle, u64 now_ns)
{
	return idle < 0 ? idle : idle - (s64)now_ns;
}

/* Return the word of a CPU that becomes busy; unchanged if it is busy already. Never negative,
 * although the clocks of CPUs may differ slightly. */
static inline s64 rusty_idle_end(s64 idle, u64 now_ns)
{
	if (idle >= 0)
		return idle;
	idle += (s64)now_ns;
	return idle < 0 ? 0 : idle;
}

#endif /* __RUSTY_BUSY_H */
