// SPDX-License-Identifier: GPL-2.0-only
/* Properties of the running kernel. */
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define SYSFS "/sys/kernel/sched_ext/"

/* Maximum wait for a scheduler that is being unloaded, and period of the check. */
#define DISABLING_WAIT_MS 10000
#define DISABLING_POLL_MS 20

/* Return the first line of a file, "" if it cannot be read. */
static const char *read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(buf, size, f))
		buf[0] = '\0';
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

const char *scx_kernel_current_ops(void)
{
	static char name[128];

	return read_line(SYSFS "root/ops", name, sizeof(name));
}

static uint64_t read_number(const char *path)
{
	char buf[32];

	return strtoull(read_line(path, buf, sizeof(buf)), NULL, 10);
}

uint64_t scx_kernel_hotplug_seq(void)
{
	return read_number(SYSFS "hotplug_seq");
}

uint64_t scx_kernel_enable_seq(void)
{
	return read_number(SYSFS "enable_seq");
}

/* isolcpus= is the only setting of the machine with which the kernel refuses every scheduler with
 * EINVAL. */
const char *scx_kernel_explain_einval(void)
{
	char cpus[128];

	if (*read_line("/sys/devices/system/cpu/isolated", cpus, sizeof(cpus)))
		return "CPUs are isolated: boot without isolcpus=";
	return strerror(EINVAL);
}

static bool state_is(const char *state)
{
	char buf[32];

	return !strcmp(read_line(SYSFS "state", buf, sizeof(buf)), state);
}

bool scx_kernel_is_switching_classes(void)
{
	char buf[32];

	return state_is("enabling") ||
	       (state_is("disabling") &&
		!strcmp(read_line(SYSFS "switch_all", buf, sizeof(buf)), "0"));
}

/* The kernel's BTF: several MB that are slow to parse, kept until scx_kernel_drop_btf(). */
static struct btf *kernel_btf;

const struct btf *scx_kernel_btf(void)
{
	/* Not btf__load_vmlinux_btf(), which searches other paths too: a kernel without this
	 * file cannot load a scheduler. */
	if (!kernel_btf)
		kernel_btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);
	return kernel_btf;
}

bool scx_kernel_has_kfunc(const char *name)
{
	const struct btf *btf = scx_kernel_btf();

	return btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

void scx_kernel_drop_btf(void)
{
	btf__free(kernel_btf);
	kernel_btf = NULL;
}

bool scx_kernel_has_ext_server(void)
{
	const struct btf *btf = scx_kernel_btf();

	return btf && scx_btf_member(btf, "rq", "ext_server");
}

/* If the kernel is unloading a scheduler, for example after an ejection, wait until that is done,
 * but at most DISABLING_WAIT_MS. */
static void wait_while_disabling(void)
{
	const struct timespec poll = { .tv_nsec = DISABLING_POLL_MS * 1000000L };

	for (int ms = 0; ms < DISABLING_WAIT_MS && state_is("disabling"); ms += DISABLING_POLL_MS)
		nanosleep(&poll, NULL);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len >= suffix_len && !strcmp(name + len - suffix_len, suffix);
}

/* Whether the last parameter of @func is called @name. */
static bool last_param_is(const struct btf *btf, const struct btf_type *func, const char *name)
{
	const struct btf_type *proto = btf__type_by_id(btf, func->type);
	unsigned int nr = btf_vlen(proto);

	return nr && !strcmp(btf__name_by_offset(btf, btf_params(proto)[nr - 1].name_off), name);
}

/*
 * Since 7.1 many kfuncs have a hidden last argument, `aux`. The kernel's build removes the argument
 * from the BTF prototype of each such kfunc, and keeps it in the prototype of a twin with the
 * suffix `_impl`. The build finds these kfuncs by BTF tags, which an old pahole does not write for
 * all of them. A kfunc without the tag keeps the argument, and programs cannot call the kfunc.
 * Which kfuncs lack the tag depends on the build. Debian's backports of 7.1 and 7.2 are affected.
 */
static bool btf_has_hidden_args(const struct btf *btf)
{
	__u32 id, nr = btf__type_cnt(btf);

	for (id = 1; id < nr; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name;

		if (!btf_is_func(t))
			continue;
		name = btf__name_by_offset(btf, t->name_off);
		if (!strncmp(name, "scx_bpf_", 8) && !ends_with(name, "_impl") &&
		    last_param_is(btf, t, "aux"))
			return true;
	}
	return false;
}

static const char *check_btf(void)
{
	const struct btf *btf = scx_kernel_btf();

	if (!btf)
		return "the kernel's type information /sys/kernel/btf/vmlinux is missing: boot a "
		       "kernel built with CONFIG_DEBUG_INFO_BTF";
	if (btf_has_hidden_args(btf))
		return "this kernel's type information (BTF) is defective, no scheduler can load: "
		       "boot a kernel built with a newer pahole";
	return NULL;
}

/* Return why no scheduler can be loaded now, NULL if one can. Only one can be loaded at a time. */
static const char *check_alone(void)
{
	static char busy[256];

	if (state_is("disabled"))
		return NULL;
	snprintf(busy, sizeof(busy),
		 state_is("disabling") ? "the scheduler '%s' is still being unloaded: "
					 "try again when it is gone" :
					 "the scheduler '%s' is running: stop it first",
		 scx_kernel_current_ops());
	return busy;
}

const char *scx_kernel_check(void)
{
	const char *missing;

	if (access(SYSFS "state", F_OK))
		return "this kernel has no sched_ext: boot one built with CONFIG_SCHED_CLASS_EXT, "
		       "Linux 6.12 or newer";
	if (geteuid())
		return "loading a scheduler needs root privileges: run it as root or with sudo";

	wait_while_disabling();
	missing = check_alone();
	return missing ? missing : check_btf();
}
