/* SPDX-License-Identifier: GPL-2.0-only */
/* Exit records (exit_info.h): a function that fills a record, and UEI_DEFINE(), which defines a
 * record under a name of the scheduler's choice. */
#ifndef __SCX_UEI_BPF_H
#define __SCX_UEI_BPF_H

#include "arrays.bpf.h"
#include "exit_info.h"

/* Fill @rec, and @dump unless it is NULL. @dump_size is the size of @dump in bytes, a constant in
 * rodata. Call it from ops.exit(). */
static __always_inline void scx_fill_exit_record(struct scx_exit_record *rec, char *dump,
						 u32 dump_size, const struct scx_exit_info *info)
{
	long len;

	bpf_probe_read_kernel_str(rec->reason, sizeof(rec->reason), info->reason);
	bpf_probe_read_kernel_str(rec->msg, sizeof(rec->msg), info->msg);
	rec->exit_code = info->exit_code;

	if (dump) {
		len = bpf_probe_read_kernel_str(dump, dump_size, info->dump);
		rec->dump_len = len > 0 ? len - 1 : 0;
	}

	/* The exchange is a full barrier: a reader that sees the kind sees the other members. */
	__sync_lock_test_and_set(&rec->kind, (s32)info->kind);
}

/*
 * Define the exit record @uei and its dump. This is for schedulers that include <scx/common.h> in
 * user space, where SCX_OPS_LOAD() sets the size of the dump. Schedulers that use the runner
 * include exit_info.bpf.h instead.
 */
#define UEI_DEFINE(uei)                         \
	char RESIZABLE_ARRAY(data, uei##_dump); \
	const volatile u32 uei##_dump_len;      \
	struct scx_exit_record uei SEC(".data")

/* Fill the exit record @uei. Use it in ops.exit(). */
#define UEI_RECORD(uei, ei) scx_fill_exit_record(&uei, uei##_dump, uei##_dump_len, ei)

#endif /* __SCX_UEI_BPF_H */
