// SPDX-License-Identifier: GPL-2.0-only
/* The running averages of scheds/include/scx/ravg.h, against the formula in floating point. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <scx/ravg.h>

#include <cmocka.h>

#define SEC 1000000000ULL

static double as_double(u64 fixed)
{
	return (double)fixed / SCX_RAVG_ONE;
}

static void assert_close(double found, double wanted, double error_max)
{
	if (fabs(found - wanted) <= error_max)
		return;
	print_error("%.9f is not %.9f\n", found, wanted);
	fail();
}

static void test_half_after_a_half_life(void **state)
{
	struct scx_ravg r = { .avg = 8 * SCX_RAVG_ONE };

	assert_close(as_double(scx_ravg_read(&r, SEC, SEC)), 4, 1e-6);
	assert_close(as_double(scx_ravg_read(&r, 3 * SEC, SEC)), 1, 1e-6);
	assert_close(as_double(scx_ravg_read(&r, 0, SEC)), 8, 0);
}

static void test_decay_is_the_power_of_two(void **state)
{
	for (u64 half_life = 1; half_life <= SCX_RAVG_HALF_LIFE_MAX_NS;
	     half_life = half_life * 7 + 3) {
		for (int step = 0; step < 1000; step++) {
			u64 elapsed = half_life / 128.0 * step;
			double wanted = exp2(-(double)elapsed / half_life);

			assert_close(as_double(scx_ravg_decay(elapsed, half_life)), wanted, 4e-6);
		}
	}
}

/* Up to 1/1024 of the half-life, fewer terms of the series suffice: the error is below 1e-9. */
static void test_decay_of_a_short_time(void **state)
{
	for (u64 half_life = 1024; half_life <= SCX_RAVG_HALF_LIFE_MAX_NS;
	     half_life = half_life * 7 + 3) {
		for (int step = 0; step <= 1000; step++) {
			u64 elapsed = (half_life >> SCX_RAVG_SHORT_SHIFT) * step / 1000;
			double wanted = exp2(-(double)elapsed / half_life);

			assert_close(as_double(scx_ravg_decay(elapsed, half_life)), wanted, 1e-9);
		}
	}
}

/* Frequent updates do not slow the decay. */
static void test_short_steps_add_up(void **state)
{
	struct scx_ravg r = { .avg = SCX_RAVG_ONE };

	for (u64 now = 0; now <= SEC; now += 10000)
		scx_ravg_set(&r, 0, now, SEC);
	assert_close(as_double(r.avg), 0.5, 2e-5);
}

static void test_it_never_leaves_the_range(void **state)
{
	struct scx_ravg r = { .avg = 0 };
	u64 now = 0, avg;

	srand(1);
	for (int i = 0; i < 100000; i++) {
		now += (u64)rand() * rand() % (3 * SEC);
		scx_ravg_set(&r, rand() % 3 ? SCX_RAVG_VAL_MAX : 0, now, SEC);
		avg = scx_ravg_read(&r, now + rand(), SEC);
		assert_true(avg <= SCX_RAVG_VAL_MAX << SCX_RAVG_FRAC_BITS);
	}
}

static void test_random_changes(void **state)
{
	struct scx_ravg r = { .avg = 0 };
	double exact = 0, val = 0;
	u64 now = 0;

	srand(2);
	for (int i = 0; i < 10000; i++) {
		u64 elapsed = (u64)rand() % (rand() % 2 ? SEC / 1000 : 4 * SEC);

		now += elapsed;
		exact = val + (exact - val) * exp2(-(double)elapsed / SEC);
		val = rand() % 100;
		scx_ravg_set(&r, val, now, SEC);
		assert_close(as_double(r.avg), exact, 100 * 5e-5);
	}
}

static void test_values_are_limited(void **state)
{
	struct scx_ravg r = { .avg = 0 };

	scx_ravg_set(&r, UINT64_MAX, 0, SEC);
	assert_int_equal(r.val, SCX_RAVG_VAL_MAX);
	assert_int_equal(scx_ravg_read(&r, 40 * SEC, SEC), SCX_RAVG_VAL_MAX << SCX_RAVG_FRAC_BITS);
}

static void test_clock_that_steps_back(void **state)
{
	struct scx_ravg r = { .avg = 0 };

	scx_ravg_set(&r, 1, 5 * SEC, SEC);
	scx_ravg_set(&r, 1, 4 * SEC, SEC);
	assert_int_equal(r.val_at_ns, 5 * SEC);
	assert_int_equal(scx_ravg_read(&r, 4 * SEC, SEC), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_after_a_half_life),
		cmocka_unit_test(test_decay_is_the_power_of_two),
		cmocka_unit_test(test_decay_of_a_short_time),
		cmocka_unit_test(test_short_steps_add_up),
		cmocka_unit_test(test_it_never_leaves_the_range),
		cmocka_unit_test(test_random_changes),
		cmocka_unit_test(test_values_are_limited),
		cmocka_unit_test(test_clock_that_steps_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
