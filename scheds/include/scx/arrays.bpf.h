/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arrays whose length user space sets before the load, and pointers to array elements, with bounds
 * checks that the verifier understands.
 */
#ifndef __SCX_ARRAYS_BPF_H
#define __SCX_ARRAYS_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>

/*
 * `u64 RESIZABLE_ARRAY(data, counts);` declares an array in the section .data.counts. Its length is
 * 1 until user space calls RESIZE_ARRAY(skel, data, counts, n) (common.h). @elfsec is data, rodata
 * or bss.
 */
#define RESIZABLE_ARRAY(elfsec, arr) arr[1] SEC("." #elfsec "." #arr)

/*
 * Return @base + @off if @off <= @last, else NULL. This is written in assembly, because in C the
 * compiler might check a copy of the offset in another register. The verifier would then not know
 * the bounds of the offset that is added.
 */
/* clang-format off */
#define __scx_bounded(base, off, last)                                                   \
	({                                                                               \
		u64 __at = (off);                                                        \
		asm volatile("if %[at] > %[end] goto +2\n"                               \
			     "%[at] += %[start]\n"                                       \
			     "goto +1\n"                                                 \
			     "%[at] = 0\n"                                               \
			     : [at] "+r"(__at)                                           \
			     : [start] "r"((u64)(base)), [end] "r"((u64)(last)));        \
		__at;                                                                    \
	})
/* clang-format on */

/* Return the address of element @i of an array of @n elements, NULL if @i is out of bounds. @n is a
 * constant, or a variable in rodata that user space has set. */
#define ARRAY_ELEM_PTR(arr, i, n)                                             \
	((typeof(&(arr)[0]))__scx_bounded((arr), (u64)(i) * sizeof((arr)[0]), \
					  ((u64)(n) - 1) * sizeof((arr)[0])))

/*
 * Return the address of an element within @base, NULL if it is out of bounds. @member is the
 * expression that follows @base in C: MEMBER_VPTR(counts, [i]), MEMBER_VPTR(*ctx, .lanes[i].count).
 */
#define MEMBER_VPTR(base, member)                                                                 \
	((typeof(&((base)member)))__scx_bounded(&(base), (u64) & ((base)member) - (u64) & (base), \
						sizeof(base) - sizeof((base)member)))

#endif /* __SCX_ARRAYS_BPF_H */
