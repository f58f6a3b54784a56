/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory order between two CPUs, or between a BPF program and user space. Each side stores a word
 * and then reads the word that the other side stores. For at least one side to see the other side's
 * store, both sides need a full barrier between their two accesses, on x86 too.
 *
 * BPF has no barrier instruction. An atomic operation that fetches the old value (BPF_FETCH) is a
 * full barrier on every architecture. An atomic operation without BPF_FETCH guarantees no order,
 * and clang before version 20 drops BPF_FETCH if the old value is not used.
 */
#ifndef __SCX_BARRIER_H
#define __SCX_BARRIER_H

#include "types.h"

/* Evaluate the atomic operation @atomic and return the value that it fetches. This is a full
 * barrier even if the caller ignores the value. */
#define scx_ordered(atomic)                                 \
	({                                                  \
		__typeof__(atomic) __old = (atomic);        \
		asm volatile("" : : "r"(__old) : "memory"); \
		__old;                                      \
	})

static inline __attribute__((always_inline)) void scx_full_barrier(void)
{
	u64 word = 0, *place = &word;

	/* The compiler would drop the operation if it knew that no other CPU sees the word. */
	asm volatile("" : "+r"(place) : : "memory");
	scx_ordered(__sync_fetch_and_add(place, 1));
}

#endif /* __SCX_BARRIER_H */
