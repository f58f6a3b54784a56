/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Macros and functions for the user-space side of C schedulers that have their own main(). The
 * names are those of the kernel's own headers (docs/upstream.md). The C schedulers in scheds/c
 * describe themselves to the runner instead (scheds/c/runner/runner.h), and do not need this
 * header.
 *
 * The functions are in scheds/c/runner/own_main.c, which is linked into the program. They take the
 * same steps as the runner: check the kernel, remove what the kernel lacks from the object, attach
 * as a real-time thread, and report how the scheduler ended. The program ends with the runner's
 * exit statuses, even if main() always returns 0.
 */
#ifndef __SCX_COMMON_H
#define __SCX_COMMON_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit_info.h"
#include "types.h"

/* If @cond is true: print a message and end the program with status 1. */
#define SCX_BUG_ON(cond, fmt, args...)                                            \
	do {                                                                      \
		if (cond)                                                         \
			scx_main_fail("%s:%d: " fmt, __FILE__, __LINE__, ##args); \
	} while (0)

/* ---- open, load, attach ---------------------------------------------------- */

/*
 * Open the skeleton @skel_name, whose table of callbacks is @ops_name. The count of hotplug events
 * is read first. So the kernel refuses the scheduler if a CPU goes online or offline between the
 * open and the attach.
 */
#define SCX_OPS_OPEN(ops_name, skel_name)                                 \
	({                                                                \
		uint64_t __hotplug_seq = scx_main_begin(#skel_name);      \
		struct skel_name *__skel = skel_name##__open();           \
                                                                          \
		SCX_BUG_ON(!__skel, "cannot open " #skel_name);           \
		__skel->struct_ops.ops_name->hotplug_seq = __hotplug_seq; \
		__skel;                                                   \
	})

/*
 * Load the object. The dump of the exit record @uei_name gets the size that ops.exit_dump_len asks
 * for. Flags and callbacks that the running kernel lacks are removed from the table first.
 */
#define SCX_OPS_LOAD(skel, ops_name, skel_name, uei_name)                                    \
	({                                                                                   \
		u32 __dump_len =                                                             \
			(skel)->struct_ops.ops_name->exit_dump_len ?: SCX_EXIT_DUMP_LEN_DFL; \
                                                                                             \
		(skel)->rodata->uei_name##_dump_len = __dump_len;                            \
		RESIZE_ARRAY((skel), data, uei_name##_dump, __dump_len);                     \
		scx_main_before_load((skel)->obj);                                           \
		scx_main_loaded(skel_name##__load(skel));                                    \
	})

/* Attach all programs, the table of callbacks last. The caller owns the returned link. Destroying
 * the link unloads the scheduler. */
#define SCX_OPS_ATTACH(skel, ops_name, skel_name)                                   \
	({                                                                          \
		bpf_map__set_autoattach((skel)->maps.ops_name, false);              \
		SCX_BUG_ON(skel_name##__attach(skel), "cannot attach " #skel_name); \
		scx_main_attach((skel)->maps.ops_name);                             \
	})

/* Resize a RESIZABLE_ARRAY() (arrays.bpf.h) to @n elements. Use it between open and load. */
#define RESIZE_ARRAY(skel, elfsec, arr, n)                                               \
	do {                                                                             \
		size_t __size = sizeof((skel)->elfsec##_##arr->arr[0]) * (n);            \
                                                                                         \
		SCX_BUG_ON(bpf_map__set_value_size((skel)->maps.elfsec##_##arr, __size), \
			   "cannot resize " #arr " to %zu bytes", __size);               \
		(skel)->elfsec##_##arr =                                                 \
			bpf_map__initial_value((skel)->maps.elfsec##_##arr, &__size);    \
	} while (0)

/* ---- how it ended ---------------------------------------------------------- */

/* Whether the scheduler has ended, for whatever reason. */
#define UEI_EXITED(skel, uei_name) \
	(__atomic_load_n(&(skel)->data->uei_name.kind, __ATOMIC_ACQUIRE) != SCX_EXIT_NONE)

/* Print on stderr why the scheduler ended, and return the 64-bit exit code. The code contains an
 * action only if the scheduler should be loaded again, which is never the case after an error. Use
 * it after destroying the link. */
#define UEI_REPORT(skel, uei_name) \
	scx_main_report(&(skel)->data->uei_name, (skel)->data_##uei_name##_dump->uei_name##_dump)

/* Whether the exit code requests that the scheduler be loaded again, as after CPU hotplug. */
#define UEI_ECODE_RESTART(ecode) (((ecode) & SCX_ECODE_ACT_MASK) == SCX_ECODE_ACT_RESTART)
/* Parts of the exit code: the scheduler's own code, the kernel's reason and action. */
#define UEI_ECODE_USER(ecode) ((u32)(ecode))
#define UEI_ECODE_SYS_RSN(ecode) ((ecode) & (0xffffULL << 32))
#define UEI_ECODE_SYS_ACT(ecode) ((ecode) & SCX_ECODE_ACT_MASK)

/* ---- what the running kernel has ------------------------------------------- */

/* Store the value of an enumerator in *@value. Returns whether the enumerator exists. */
bool __COMPAT_read_enum(const char *type, const char *name, u64 *value);
/* Return the value of an enumerator, 0 if it does not exist, so that an unknown flag is not set. */
u64 __COMPAT_ENUM_OR_ZERO(const char *type, const char *name);
bool __COMPAT_has_ksym(const char *name);
bool __COMPAT_struct_has_field(const char *type, const char *field);

#define SCX_OPS_FLAG(name) __COMPAT_ENUM_OR_ZERO("scx_ops_flags", #name)
#define SCX_OPS_KEEP_BUILTIN_IDLE SCX_OPS_FLAG(SCX_OPS_KEEP_BUILTIN_IDLE)
#define SCX_OPS_ENQ_LAST SCX_OPS_FLAG(SCX_OPS_ENQ_LAST)
#define SCX_OPS_ENQ_EXITING SCX_OPS_FLAG(SCX_OPS_ENQ_EXITING)
#define SCX_OPS_SWITCH_PARTIAL SCX_OPS_FLAG(SCX_OPS_SWITCH_PARTIAL)
#define SCX_OPS_ENQ_MIGRATION_DISABLED SCX_OPS_FLAG(SCX_OPS_ENQ_MIGRATION_DISABLED)
#define SCX_OPS_ALLOW_QUEUED_WAKEUP SCX_OPS_FLAG(SCX_OPS_ALLOW_QUEUED_WAKEUP)
#define SCX_OPS_BUILTIN_IDLE_PER_NODE SCX_OPS_FLAG(SCX_OPS_BUILTIN_IDLE_PER_NODE)
#define SCX_OPS_ALWAYS_ENQ_IMMED SCX_OPS_FLAG(SCX_OPS_ALWAYS_ENQ_IMMED)

/* ---- used by the macros above; not to be called directly ------------------- */

void __attribute__((noreturn, format(printf, 1, 2))) scx_main_fail(const char *fmt, ...);
/* Return the count of hotplug events. Ends the program if no scheduler can be loaded now. */
uint64_t scx_main_begin(const char *name);
void scx_main_before_load(struct bpf_object *obj);
void scx_main_loaded(int err);
struct bpf_link *scx_main_attach(struct bpf_map *ops);
u64 scx_main_report(const struct scx_exit_record *rec, const char *dump);

#endif /* __SCX_COMMON_H */
