/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The total idle time of a CPU, kept in one 64-bit word so that user space can read it without a
 * lock. While the CPU is busy, the word is the total idle time, ns. While the CPU is idle, the word
 * is that total minus the time at which the idle period began, which makes it negative. The sum of
 * the word and the current time (CLOCK_MONOTONIC) is then the total idle time so far. busy.rs reads
 * the word. Pure functions.
 */
#ifndef __RUSTY_BUSY_H
#define __RUSTY_BUSY_H

#include <scx/types.h>

/* Return the new word of a CPU that becomes idle. If the CPU is idle already, the word is
 * unchanged. */
static inline s64 rusty_idle_begin(s64 idle, u64 now_ns)
{
	return idle < 0 ? idle : idle - (s64)now_ns;
}

/* Return the new word of a CPU that becomes busy. If the CPU is busy already, the word is
 * unchanged. The result is never negative, although the clocks of CPUs may differ slightly. */
static inline s64 rusty_idle_end(s64 idle, u64 now_ns)
{
	if (idle >= 0)
		return idle;
	idle += (s64)now_ns;
	return idle < 0 ? 0 : idle;
}

#endif /* __RUSTY_BUSY_H */
