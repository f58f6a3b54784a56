/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory order between CPUs, and with user space. Two sides each store a word and then read the
 * word of the other side. For at least one of them to see the other's store, both need a full
 * barrier between the two accesses, on x86 too.
 *
 * BPF has no barrier instruction. An atomic operation that fetches the old value (BPF_FETCH) is a
 * full barrier on every architecture; one that does not fetch orders nothing. Before version 20,
 * clang drops the fetch when the value is not used.
 */
#ifndef __SCX_BARRIER_H
#define __SCX_BARRIER_H

#include "types.h"

/* Do an atomic operation and return its value. It is a full barrier even if the caller ignores the
 * value. */
#define scx_ordered(atomic)                                 \
	({                                                  \
		__typeof__(atomic) __old = (atomic);        \
		asm volatile("" : : "r"(__old) : "memory"); \
		__old;                                      \
	})

static inline __attribute__((always_inline)) void scx_full_barrier(void)
{
	u64 word = 0, *place = &word;

	/* Hide from the compiler that no other CPU sees the word. */
	asm volatile("" : "+r"(place) : : "memory");
	scx_ordered(__sync_fetch_and_add(place, 1));
}

#endif /* __SCX_BARRIER_H */
