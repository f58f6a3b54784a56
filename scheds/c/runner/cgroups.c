// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds cgroup controls that are set but have no effect. With sched_ext, CPU shares and limits are
 * left to the scheduler: a control has no effect if the scheduler does not implement it, or if the
 * kernel does not report it to the scheduler.
 */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Maximum number of directories open at once. */
#define NR_OPEN_MAX 16

/* For each control: its name, the prefix of its default value
 * (Documentation/admin-guide/cgroup-v2.rst), and the callback that reports the control. */
static const struct control {
	unsigned int bit;
	const char *name;
	const char *unset;
	const char *callback;
} controls[] = {
	{ SCX_CGROUP_WEIGHT, "cpu.weight", "100\n", "cgroup_set_weight" },
	{ SCX_CGROUP_IDLE, "cpu.idle", "0\n", "cgroup_set_idle" },
	{ SCX_CGROUP_MAX, "cpu.max", "max ", "cgroup_set_bandwidth" },
};

#define NR_CONTROLS (sizeof(controls) / sizeof(*controls))

/* Globals, because nftw() passes no data of its caller to visit(). */
static struct scx_cgroups *found;
static unsigned int searched;

static bool is_set(const char *cgroup, const struct control *control)
{
	char path[PATH_MAX], text[64] = "";
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", cgroup, control->name) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return text[0] && strncmp(text, control->unset, strlen(control->unset));
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	size_t i;

	if (type != FTW_D)
		return 0;
	for (i = 0; i < NR_CONTROLS; i++) {
		if (!(searched & controls[i].bit) || !is_set(path, &controls[i]))
			continue;
		if (!found->nr++)
			snprintf(found->first, sizeof(found->first), "%s of %s", controls[i].name,
				 path);
		break;
	}
	return 0;
}

void scx_cgroups_find(const char *root, unsigned int controls, struct scx_cgroups *cgroups)
{
	memset(cgroups, 0, sizeof(*cgroups));
	found = cgroups;
	searched = controls;
	nftw(root, visit, NR_OPEN_MAX, FTW_PHYS | FTW_MOUNT);
	found = NULL;
}

unsigned int scx_cgroups_unreported(void)
{
	unsigned int unreported = 0;
	size_t i;

	for (i = 0; i < NR_CONTROLS; i++)
		if (!scx_btf_member(scx_kernel_btf(), "sched_ext_ops", controls[i].callback))
			unreported |= controls[i].bit;
	return unreported;
}

void scx_cgroups_name(unsigned int wanted, char names[SCX_CGROUP_NAMES_LEN])
{
	size_t i, len = 0;

	for (i = 0; i < NR_CONTROLS; i++) {
		unsigned int rest = wanted & ~(controls[i].bit - 1);
		const char *before = "";

		if (!(wanted & controls[i].bit))
			continue;
		if (len)
			before = rest == controls[i].bit ? " and " : ", ";
		len += snprintf(names + len, SCX_CGROUP_NAMES_LEN - len, "%s%s", before,
				controls[i].name);
	}
}
