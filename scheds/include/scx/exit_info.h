/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a scheduler ended: the record that its BPF side leaves for user space. */
#ifndef __SCX_EXIT_INFO_H
#define __SCX_EXIT_INFO_H

#include "types.h"

/* Sizes of the texts in bytes. SCX_EXIT_MSG_LEN is the kernel's own limit. The kernel does not
 * limit the reason, whose longest text has about 30 characters. */
#define SCX_EXIT_REASON_LEN 128
#define SCX_EXIT_MSG_LEN 1024

/* Bytes of debug dump that the kernel keeps when ops.exit_dump_len is 0. */
#define SCX_EXIT_DUMP_LEN_DFL 32768

struct scx_exit_record {
	s32 kind; /* enum scx_exit_kind; written last, 0 while the scheduler runs */
	u32 dump_len; /* length of the debug dump, bytes */
	s64 exit_code;
	char reason[SCX_EXIT_REASON_LEN];
	char msg[SCX_EXIT_MSG_LEN];
};

/* The record's name in sources written for the kernel's own headers. */
#define user_exit_info scx_exit_record

/*
 * The values of the kernel's enum scx_exit_kind. They are the kernel's ABI: on all kernels from
 * 6.12 on, clean exits start at 64 and errors at 1024.
 */
enum {
	SCX_EXIT_NONE = 0,
	SCX_EXIT_UNREG = 64, /* unregistered from user space */
	SCX_EXIT_UNREG_BPF = 65, /* scx_bpf_exit() */
	SCX_EXIT_UNREG_KERN = 66, /* unregistered by the kernel, e.g. for CPU hotplug */
	SCX_EXIT_SYSRQ = 67, /* SysRq-S */
	SCX_EXIT_ERROR = 1024, /* this and all larger values are errors */
};

#ifndef __bpf__

/* exit_code: bits 0..31 are the scheduler's own code, bits 32..47 the kernel's reason, and bits
 * 48..63 the action that the kernel asks for. */
#define SCX_ECODE_ACT_MASK (0xffffULL << 48)
#define SCX_ECODE_ACT_RESTART (1ULL << 48)
#define SCX_ECODE_RSN_HOTPLUG (1ULL << 32)
#endif

#endif /* __SCX_EXIT_INFO_H */
