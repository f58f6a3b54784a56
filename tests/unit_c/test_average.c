// SPDX-License-Identifier: GPL-2.0-only
/* Moving averages, and performance levels of CPUs: scheds/include/scx/{average,cpufreq}.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <scx/average.h>
#include <scx/cpufreq.h>

#include <cmocka.h>

#define MAX UINT64_MAX

static void test_average_is_between_old_and_new(void **state)
{
	static const u64 values[] = { 0, 1, 3, 4, 100, 1000000, MAX / 2, MAX };
	size_t i, j;

	for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
		for (j = 0; j < sizeof(values) / sizeof(*values); j++) {
			u64 old = values[i], new = values[j], average = scx_average(old, new);
			u64 low = old < new ? old : new, high = old < new ? new : old;

			/* The average is old - old / 4 + new / 4, and each quotient is rounded
			 * down. */
			assert_true(average >= low || low - average <= 1);
			assert_true(average <= high || average - high <= 3);
		}
	}
}

static void test_frequency_is_bounded(void **state)
{
	u64 freq = 0;
	int i;

	for (i = 0; i < 1000; i++)
		freq = scx_average_freq(freq, 1, NSEC_PER_SEC, 640);
	assert_in_range(freq, 636, 640);
	/* An interval of 0 changes nothing: see scx_average_freq(). */
	assert_int_equal(scx_average_freq(20, 0, NSEC_PER_SEC, 640), 20);
	for (i = 0; i < 100; i++)
		freq = scx_average_freq(freq, MAX, NSEC_PER_SEC, 640);
	assert_in_range(freq, 0, 3);
}

static void test_utilization_is_a_part_of_the_maximum(void **state)
{
	assert_int_equal(scx_perf_util(0, 1), 0);
	assert_int_equal(scx_perf_util(0, 0), SCX_PERF_MAX);
	assert_int_equal(scx_perf_util(5, 4), SCX_PERF_MAX);
	assert_int_equal(scx_perf_util(NSEC_PER_SEC, 4 * NSEC_PER_SEC), SCX_PERF_MAX / 4);
}

/* Above half of the maximum, a higher utilization never requests a lower level. */
static void test_level_is_monotonic(void **state)
{
	u32 util;

	for (util = 1; util <= SCX_PERF_MAX; util++) {
		assert_in_range(scx_perf_level(util), 1, SCX_PERF_MAX);
		if (util > SCX_PERF_MAX / 2 + 1)
			assert_true(scx_perf_level(util) >= scx_perf_level(util - 1));
	}
	assert_int_equal(scx_perf_level(SCX_PERF_HIGH), SCX_PERF_MAX);
	assert_int_equal(scx_perf_average(SCX_PERF_MAX, SCX_PERF_MAX), SCX_PERF_MAX);
	assert_int_equal(scx_perf_average(0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_average_is_between_old_and_new),
		cmocka_unit_test(test_frequency_is_bounded),
		cmocka_unit_test(test_utilization_is_a_part_of_the_maximum),
		cmocka_unit_test(test_level_is_monotonic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
