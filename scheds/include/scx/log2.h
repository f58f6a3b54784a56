/* SPDX-License-Identifier: GPL-2.0-only */
/* Binary logarithm. Pure function, tested on the host by tests/unit_c. */
#ifndef __SCX_LOG2_H
#define __SCX_LOG2_H

#include "types.h"

/*
 * Return log2(@value), rounded down; 0 for 0. The function is not inlined, because the verifier
 * would otherwise follow each of its paths through each caller. It would check half a million
 * instructions, and loading would take seconds.
 */
__attribute__((noinline)) u32 scx_log2(u64 value)
{
	u32 log = 0, step;

	for (step = 32; step; step /= 2) {
		if (value >> step) {
			value >>= step;
			log += step;
		}
	}
	return log;
}

#endif /* __SCX_LOG2_H */
