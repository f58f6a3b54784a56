/* SPDX-License-Identifier: GPL-2.0-only */
/* u8 … s64 and bool, for headers that both BPF programs and host code include. */
#ifndef __SCX_TYPES_H
#define __SCX_TYPES_H

#ifdef __bpf__
#include "types.bpf.h"
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

#endif /* __SCX_TYPES_H */
