/* SPDX-License-Identifier: GPL-2.0-only */
/* Binary logarithm. Pure function, tested on the host by tests/unit_c. */
#ifndef __SCX_LOG2_H
#define __SCX_LOG2_H

#include "types.h"

/* The upper 6 bits of the product of this constant and 2^(n + 1) - 1 are different for each n below
 * 64. scx_log2_table has n for each value of these bits. */
#define SCX_LOG2_FACTOR 0x03f0a7668c4bd5b9ULL

static const u8 scx_log2_table[64] = {
	0,  11, 1,  37, 12, 32, 2,  60, 38, 13, 41, 33, 26, 18, 3,  61, 30, 39, 16, 14, 49, 51,
	42, 34, 23, 27, 53, 56, 19, 44, 4,  62, 10, 36, 31, 59, 40, 25, 17, 29, 15, 48, 50, 22,
	52, 55, 43, 9,	35, 58, 24, 28, 47, 21, 54, 8,	57, 46, 20, 7,	45, 6,	5,  63,
};

/* Return log2(@value), rounded down; 0 for 0. BPF has no instruction that counts leading zeros, and
 * what clang generates for __builtin_clzll() is longer than this. There is no branch, so that the
 * verifier has only one path to check. */
static inline u32 scx_log2(u64 value)
{
	/* Set all bits below the first 1. */
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	return scx_log2_table[value * SCX_LOG2_FACTOR >> 58];
}

#endif /* __SCX_LOG2_H */
