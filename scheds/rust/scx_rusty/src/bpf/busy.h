/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Total idle time of a CPU in one word, so that user space never reads an inconsistent pair. Not
 * negative: the CPU is busy, and the word is its idle time in ns. Negative: the CPU is idle, and
 * the word plus the monotonic clock is its idle time. Pure functions; busy.rs reads the word.
 */
#ifndef __RUSTY_BUSY_H
#define __RUSTY_BUSY_H

#include <scx/types.h>

/* Return the new word of a CPU that becomes idle, or already is. */
static inline s64 rusty_idle_begin(s64 idle, u64 now_ns)
{
	return idle < 0 ? idle : idle - (s64)now_ns;
}

/* Return the new word of a CPU that becomes busy, or already is. The clocks of CPUs may differ a
 * little. */
static inline s64 rusty_idle_end(s64 idle, u64 now_ns)
{
	if (idle >= 0)
		return idle;
	idle += (s64)now_ns;
	return idle < 0 ? 0 : idle;
}

#endif /* __RUSTY_BUSY_H */
