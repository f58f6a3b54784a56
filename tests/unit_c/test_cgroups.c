// SPDX-License-Identifier: GPL-2.0-only
/* Detection of cgroups with CPU controls that schedulers ignore, in the C runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/internal.h"

#include <cmocka.h>

#define ALL (SCX_CGROUP_WEIGHT | SCX_CGROUP_IDLE | SCX_CGROUP_MAX)

static char root[] = "/tmp/scx_cgroups.XXXXXX";

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void write_control(const char *cgroup, const char *control, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, cgroup);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s/%s", root, cgroup, control);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static int nr_found(struct scx_cgroups *cgroups)
{
	scx_cgroups_find(root, ALL, cgroups);
	return cgroups->nr;
}

static void test_each_cgroup_counts_once(void **state)
{
	struct scx_cgroups cgroups;

	assert_int_equal(nr_found(&cgroups), 0);
	write_control("a", "cpu.weight", "100");
	write_control("a", "cpu.idle", "0");
	write_control("a", "cpu.max", "max 100000");
	write_control("a", "memory.max", "4096");
	assert_int_equal(nr_found(&cgroups), 0);

	write_control("a/b", "cpu.max", "5000 10000");
	assert_int_equal(nr_found(&cgroups), 1);
	assert_non_null(strstr(cgroups.first, "cpu.max of /tmp/"));
	assert_non_null(strstr(cgroups.first, "/a/b"));
	write_control("a/b", "cpu.weight", "1000");
	assert_int_equal(nr_found(&cgroups), 1);

	write_control("c", "cpu.idle", "1");
	assert_int_equal(nr_found(&cgroups), 2);
}

/* Controls that the scheduler implements are not reported. */
static void test_only_wanted_controls_count(void **state)
{
	struct scx_cgroups cgroups;

	scx_cgroups_find(root, SCX_CGROUP_IDLE, &cgroups);
	assert_int_equal(cgroups.nr, 1);
	assert_non_null(strstr(cgroups.first, "cpu.idle of /tmp/"));
	scx_cgroups_find(root, 0, &cgroups);
	assert_int_equal(cgroups.nr, 0);
}

static void test_names(void **state)
{
	char names[SCX_CGROUP_NAMES_LEN];

	scx_cgroups_name(ALL, names);
	assert_string_equal(names, "cpu.weight, cpu.idle and cpu.max");
	scx_cgroups_name(SCX_CGROUP_WEIGHT | SCX_CGROUP_MAX, names);
	assert_string_equal(names, "cpu.weight and cpu.max");
	scx_cgroups_name(SCX_CGROUP_IDLE, names);
	assert_string_equal(names, "cpu.idle");
}

static void test_machine_without_cgroups_has_none(void **state)
{
	struct scx_cgroups cgroups;

	scx_cgroups_find("/proc/no/such/place", ALL, &cgroups);
	assert_int_equal(cgroups.nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_cgroup_counts_once),
		cmocka_unit_test(test_only_wanted_controls_count),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_machine_without_cgroups_has_none),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
