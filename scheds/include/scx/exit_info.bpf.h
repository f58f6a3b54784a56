/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BPF side of exit_info.h. Include this file in exactly one .bpf.c of a scheduler, and call
 * scx_record_exit() from ops.exit().
 */
#ifndef __SCX_EXIT_INFO_BPF_H
#define __SCX_EXIT_INFO_BPF_H

#include "uei.bpf.h"

/* User space maps this section, and learns from the member kind that the scheduler has ended. */
struct scx_exit_record scx_exit_record SEC(".data.scx_exit");

/* The debug dump. User space sets value_size and scx_exit_dump_size to the same number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, SCX_EXIT_DUMP_LEN_DFL);
} scx_exit_dump SEC(".maps");

const volatile u32 scx_exit_dump_size SEC(".rodata.scx_exit") = SCX_EXIT_DUMP_LEN_DFL;

static inline void scx_record_exit(const struct scx_exit_info *info)
{
	u32 zero = 0;
	char *dump = bpf_map_lookup_elem(&scx_exit_dump, &zero);

	scx_fill_exit_record(&scx_exit_record, dump, scx_exit_dump_size, info);
}

#endif /* __SCX_EXIT_INFO_BPF_H */
