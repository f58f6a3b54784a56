/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's sources have from linux/compiler.h, and sections of variables. */
#ifndef __SCX_COMPILER_BPF_H
#define __SCX_COMPILER_BPF_H

#include <bpf/bpf_helpers.h>

/* Newer versions of libbpf have these two. */
#ifndef likely
#define likely(x) (__builtin_expect(!!(x), 1))
#define unlikely(x) (__builtin_expect(!!(x), 0))
#endif

/* One access of the size of @x, which the compiler neither repeats nor leaves out. */
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)                           \
	do {                                           \
		*(volatile typeof(x) *)&(x) = (value); \
	} while (0)

/*
 * A variable in a map of its own, together with all others of the same @name: the kernel wants a
 * bpf_spin_lock in the same map as what it guards, and refuses one that user space can map.
 * Hidden, so that libbpf does not make the map mappable.
 */
#define private(name) SEC(".data." #name) __hidden __attribute__((aligned(8)))

#endif /* __SCX_COMPILER_BPF_H */
