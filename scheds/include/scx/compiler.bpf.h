/* SPDX-License-Identifier: GPL-2.0-only */
/* Macros of the kernel's linux/compiler.h, and private(), which selects the map of a variable. */
#ifndef __SCX_COMPILER_BPF_H
#define __SCX_COMPILER_BPF_H

#include <bpf/bpf_helpers.h>

/* Newer versions of libbpf define these two macros. */
#ifndef likely
#define likely(x) (__builtin_expect(!!(x), 1))
#define unlikely(x) (__builtin_expect(!!(x), 0))
#endif

/* Access @x exactly once. The compiler neither repeats, omits nor splits the access. */
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)                           \
	do {                                           \
		*(volatile typeof(x) *)&(x) = (value); \
	} while (0)

/*
 * Place a variable in a map that contains only the variables with the same @name. The kernel
 * requires that a bpf_spin_lock is in the same map as the data that it protects, and refuses a lock
 * in a map that user space can mmap(). libbpf makes a map mmap()able unless all of its variables
 * are hidden.
 */
#define private(name) SEC(".data." #name) __hidden __attribute__((aligned(8)))

#endif /* __SCX_COMPILER_BPF_H */
