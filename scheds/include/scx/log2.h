/* SPDX-License-Identifier: GPL-2.0-only */
/* Binary logarithm. Pure function, tested on the host by tests/unit_c. */
#ifndef __SCX_LOG2_H
#define __SCX_LOG2_H

#include "types.h"

/* Return log2(@value), rounded down; 0 for 0. For BPF, clang computes the number of leading zeros
 * without a branch, so that the verifier has only one path to check. */
static inline u32 scx_log2(u64 value)
{
	return 63 - __builtin_clzll(value | 1);
}

#endif /* __SCX_LOG2_H */
