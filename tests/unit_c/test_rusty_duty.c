// SPDX-License-Identifier: GPL-2.0-only
/* Duty cycles of tasks in scx_rusty: scheds/rust/scx_rusty/src/bpf/duty.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <scx/types.h>

#include "duty.h"

#include <cmocka.h>

#define SEC 1000000000ULL
#define START (5 * SEC)

static double read_duty(const struct rusty_duty *d, u64 now_ns)
{
	return (double)rusty_duty_read(d, now_ns, SEC) / SCX_RAVG_ONE;
}

static void assert_close(double value, double wanted, double error)
{
	if (fabs(value - wanted) > error)
		fail_msg("%.6f is not %.6f", value, wanted);
}

static void test_a_task_that_never_sleeps(void **state)
{
	struct rusty_duty d = {};

	rusty_duty_set(&d, true, START, SEC);
	assert_close(read_duty(&d, START), 0, 0);
	assert_close(read_duty(&d, START + SEC), 0.5, 1e-3);
	assert_close(read_duty(&d, START + 3 * SEC), 0.875, 1e-3);
	/* Runnable for 100 days. */
	assert_close(read_duty(&d, START + 8640000 * SEC), 1, 1e-3);
}

static void test_frequent_sleeps(void **state)
{
	struct rusty_duty d = {};
	u64 now = START;

	/* Runnable for 3 of 10 us, for 10 half-lives. */
	while (now < START + 10 * SEC) {
		rusty_duty_set(&d, true, now, SEC);
		now += 3000;
		rusty_duty_set(&d, false, now, SEC);
		now += 7000;
	}
	assert_close(read_duty(&d, now), 0.3, 2e-3);
	assert_close(read_duty(&d, now + SEC), 0.15, 2e-3);
}

static void test_random_periods(void **state)
{
	struct rusty_duty d = {};
	bool is_runnable = false;
	double exact = 0;
	u64 now = START;

	srand(1);
	for (int i = 0; i < 20000; i++) {
		u64 elapsed = (u64)rand() % (rand() % 2 ? SEC / 10000 : SEC / 10);

		now += elapsed;
		exact = is_runnable + (exact - is_runnable) * exp2(-(double)elapsed / SEC);
		assert_close(read_duty(&d, now), exact, 3e-3);
		is_runnable = !is_runnable;
		rusty_duty_set(&d, is_runnable, now, SEC);
	}
}

static void test_clock_differences_are_harmless(void **state)
{
	struct rusty_duty d = {};

	rusty_duty_set(&d, true, START, SEC);
	rusty_duty_set(&d, false, START - 100, SEC);
	rusty_duty_set(&d, true, START - 200, SEC);
	assert_close(read_duty(&d, START - 300), 0, 0);
	rusty_duty_set(&d, false, START + SEC, SEC);
	assert_close(read_duty(&d, START + SEC), 0.5, 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_task_that_never_sleeps),
		cmocka_unit_test(test_frequent_sleeps),
		cmocka_unit_test(test_random_periods),
		cmocka_unit_test(test_clock_differences_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
