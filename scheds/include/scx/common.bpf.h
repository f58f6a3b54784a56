/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The header that every BPF scheduler includes: types, kfuncs, and the macros to define callbacks.
 * It also provides the names of the kernel's own sched_ext headers, for sources that are written
 * for those (docs/upstream.md).
 */
#ifndef __SCX_COMMON_BPF_H
#define __SCX_COMMON_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "enums.bpf.h"
#include "kfuncs.bpf.h"
#include "compat.bpf.h"
#include "compiler.bpf.h"
#include "arrays.bpf.h"
#include "objects.bpf.h"
#include "time.bpf.h"
#include "uei.bpf.h"
#include "upstream.bpf.h"
#include "counters.bpf.h"
#include "vtime.h"

/* Define a callback of struct sched_ext_ops. The kernel accepts the _SLEEPABLE form for init,
 * exit, init_task, cgroup_{init,exit,prep_move} and cpu_{on,off}line. No argument may be called
 * ctx, because BPF_PROG() has an argument of this name. */
#define BPF_STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* The table of callbacks. Before the load, user space sets hotplug_seq and, on request,
 * exit_dump_len, and adapts the flags and the callbacks to the kernel. */
#define SCX_OPS(name) SEC(".struct_ops.link") struct sched_ext_ops name

/* Lets the compiler check the format strings of the macros below. It is never called. */
static inline __attribute__((format(printf, 1, 2))) void scx_fmt_check(const char *fmt, ...)
{
}

/* Call @call, a printf-like kfunc, with at most 12 arguments. */
/* clang-format off */
#define __SCX_BSTR(call, fmt, args...)                                             \
	({                                                                         \
		/* Not const, because the verifier requires a writable char *. */  \
		static char __fmt[] = fmt;                                         \
		unsigned long long __data[___bpf_narg(args) ?: 1] = {};            \
		_Pragma("GCC diagnostic push")                                     \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")             \
		___bpf_fill(__data, args);                                         \
		_Pragma("GCC diagnostic pop")                                      \
		if (0)                                                             \
			scx_fmt_check(fmt, ##args);                                \
		call(__fmt, __data, ___bpf_narg(args) * sizeof(__data[0])); \
	})
/* clang-format on */

#define __scx_exit_bstr(fmt, data, size) scx_bpf_exit_bstr(__code, fmt, data, size)

/* End the scheduler with an error. The kernel ejects it and reports the message. */
#define scx_bpf_error(fmt, args...) __SCX_BSTR(scx_bpf_error_bstr, fmt, ##args)
/* End the scheduler cleanly with the 64-bit @code (exit_info.h). */
#define scx_bpf_exit(code, fmt, args...)                  \
	({                                                \
		s64 __code = (code);                      \
		__SCX_BSTR(__scx_exit_bstr, fmt, ##args); \
	})
/* Print into the debug dump. Use it in ops.dump*() only. */
#define scx_bpf_dump(fmt, args...) __SCX_BSTR(scx_bpf_dump_bstr, fmt, ##args)

/* Whether @p is a kernel thread bound to one CPU. Such a thread must never wait until another CPU
 * or user space dispatches it, because other tasks depend on it. */
static inline bool scx_task_is_percpu_kthread(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

#endif /* __SCX_COMMON_BPF_H */
