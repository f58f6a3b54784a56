// SPDX-License-Identifier: GPL-2.0-only
/*
 * Warns of cgroup controls that have no effect: with sched_ext, CPU shares and limits are
 * left to the scheduler, and none of ours implements them.
 */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Maximum number of directories open at once. */
#define NR_OPEN_MAX 16

/* The controls, and what their default values begin with
 * (Documentation/admin-guide/cgroup-v2.rst). */
static const struct control {
	const char *name;
	const char *unset;
} controls[] = {
	{ "cpu.weight", "100\n" },
	{ "cpu.idle", "0\n" },
	{ "cpu.max", "max " },
};

/* A global, since nftw() passes no argument of its caller to visit(). */
static struct scx_cgroups *found;

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
	for (i = 0; i < sizeof(controls) / sizeof(*controls); i++) {
		if (!is_set(path, &controls[i]))
			continue;
		if (!found->nr++)
			snprintf(found->first, sizeof(found->first), "%s of %s", controls[i].name,
				 path);
		break;
	}
	return 0;
}

void scx_cgroups_ineffective(const char *root, struct scx_cgroups *cgroups)
{
	memset(cgroups, 0, sizeof(*cgroups));
	found = cgroups;
	nftw(root, visit, NR_OPEN_MAX, FTW_PHYS | FTW_MOUNT);
	found = NULL;
}
