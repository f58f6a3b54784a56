// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions behind <scx/common.h>, for schedulers with their own main() instead of scx_run(). They
 * take the same steps as run.c, but the program decides when.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <scx/common.h>
#include <stdarg.h>
#include <unistd.h>

#include "internal.h"

static struct {
	const char *name;
	uint64_t enable_seq; /* before the attach */
	struct scx_nice nice; /* before the load */
	struct scx_priority rcu;
	int status; /* if not 0, it replaces the exit status that main() returns */
} own;

static void complain(const char *fmt, va_list args)
{
	fprintf(stderr, "%s: ", own.name ?: program_invocation_short_name);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

void scx_main_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	complain(fmt, args);
	va_end(args);
	exit(SCX_STATUS_FAILED);
}

/*
 * These programs may return 0 from main() even if the scheduler was ejected; _exit() replaces that
 * status. exit() calls this function after all functions registered with atexit() and after all
 * other destructors of the program, because 101 is the lowest priority number that programs may
 * use.
 */
static void __attribute__((destructor(101))) at_exit(void)
{
	scx_priority_restore(&own.rcu);
	if (!own.status)
		return;
	fflush(NULL);
	_exit(own.status);
}

/* Take the steps that are necessary only before the first generation. */
static void begin_first(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	if (!scx_kernel_has_ext_server())
		own.rcu = scx_rcu_boost();
	scx_class_switch_start();
}

uint64_t scx_main_begin(const char *name)
{
	uint64_t hotplug_seq = scx_kernel_hotplug_seq();
	const char *missing;

	own.name = name;
	own.status = SCX_STATUS_OK;
	missing = scx_kernel_check();
	if (missing)
		scx_main_fail("%s", missing);
	begin_first();
	return hotplug_seq;
}

void scx_main_before_load(struct bpf_object *obj)
{
	scx_ops_fit_kernel(obj);
	own.nice = scx_nice_raise();
}

void scx_main_loaded(int err)
{
	scx_nice_restore(&own.nice);
	if (err)
		scx_main_fail("the kernel refused the BPF programs: %s", strerror(-err));
}

struct bpf_link *scx_main_attach(struct bpf_map *ops)
{
	struct bpf_link *link;
	int err = scx_attach(ops, &link, &own.enable_seq);

	scx_kernel_drop_btf();
	if (err)
		scx_main_fail("%s", scx_attach_error(err));
	return link;
}

u64 scx_main_report(const struct scx_exit_record *rec, const char *dump)
{
	bool ran = scx_kernel_enable_seq() != own.enable_seq;
	enum scx_outcome outcome = scx_exit_outcome(rec, ran);
	char cause[SCX_EXIT_MSG_LEN];
	u64 code = rec->exit_code;

	if (outcome == SCX_OUTCOME_FAILED) {
		scx_exit_cause(rec, cause);
		fprintf(stderr, "%s: the scheduler failed to start: %s\n", own.name, cause);
	} else {
		scx_exit_print(rec, dump, stderr);
	}
	own.status = scx_outcome_status(outcome);
	/* An error never leads to a restart. */
	return outcome == SCX_OUTCOME_RESTART ? code : code & ~SCX_ECODE_ACT_MASK;
}

bool __COMPAT_read_enum(const char *type, const char *name, u64 *value)
{
	const struct btf *btf = scx_kernel_btf();

	return btf && scx_btf_enum(btf, type, name, value);
}

u64 __COMPAT_ENUM_OR_ZERO(const char *type, const char *name)
{
	u64 value = 0;

	__COMPAT_read_enum(type, name, &value);
	return value;
}

bool __COMPAT_has_ksym(const char *name)
{
	const struct btf *btf = scx_kernel_btf();

	return btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

bool __COMPAT_struct_has_field(const char *type, const char *field)
{
	const struct btf *btf = scx_kernel_btf();

	return btf && scx_btf_member(btf, type, field);
}
