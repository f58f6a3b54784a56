// SPDX-License-Identifier: GPL-2.0-only
/* The pure arithmetic of scheds/include/scx/{time,vtime}.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <scx/vtime.h>

#include <cmocka.h>

#define MAX UINT64_MAX

static void test_order_without_wrap(void **state)
{
	assert_true(time_before(1, 2));
	assert_false(time_before(2, 1));
	assert_false(time_before(2, 2));
	assert_true(time_after(2, 1));
	assert_false(time_after(2, 2));
	assert_true(time_before_eq(2, 2));
	assert_true(time_after_eq(2, 2));
	assert_false(time_after_eq(1, 2));
}

static void test_order_across_wrap(void **state)
{
	assert_true(time_before(MAX, 0));
	assert_true(time_before(MAX - 5, 5));
	assert_true(time_after(5, MAX - 5));
	assert_false(time_after(MAX - 5, 5));
	assert_int_equal(time_max(MAX, 3), 3);
	assert_int_equal(time_max(3, MAX), 3);
}

/* The order is defined for distances up to 2^63 - 1. */
static void test_order_at_its_limit(void **state)
{
	u64 half = 1ULL << 63;

	assert_true(time_before(0, half - 1));
	assert_true(time_after(0, half + 1));
	assert_true(time_before(MAX, half - 2));
}

static void test_delta_is_never_negative(void **state)
{
	assert_int_equal(time_delta(10, 3), 7);
	assert_int_equal(time_delta(3, 10), 0);
	assert_int_equal(time_delta(3, MAX - 3), 7);
	assert_int_equal(time_delta(MAX - 3, 3), 0);
	assert_int_equal(time_delta(0, 0), 0);
}

static void test_range(void **state)
{
	assert_true(time_in_range(5, 5, 5));
	assert_true(time_in_range(5, 4, 6));
	assert_false(time_in_range(7, 4, 6));
	assert_false(time_in_range(3, 4, 6));
	/* A range that wraps around 0. */
	assert_true(time_in_range(1, MAX - 1, 2));
	assert_true(time_in_range(MAX, MAX - 1, 2));
	assert_false(time_in_range(3, MAX - 1, 2));
}

static void test_cost_by_weight(void **state)
{
	assert_int_equal(scx_vtime_cost(20000000, 100), 20000000);
	assert_int_equal(scx_vtime_cost(20000000, 200), 10000000);
	assert_int_equal(scx_vtime_cost(20000000, 50), 40000000);
	assert_int_equal(scx_vtime_cost(20000000, 10000), 200000);
	assert_int_equal(scx_vtime_cost(20000000, 1), 2000000000);
	assert_int_equal(scx_vtime_cost(0, 1), 0);
	assert_int_equal(scx_vtime_cost(1, 10000), 0);
}

/* A weight out of the kernel's range must cause neither a division by zero nor an overflow. */
static void test_weight_out_of_range(void **state)
{
	assert_int_equal(scx_vtime_cost(1000, 0), scx_vtime_cost(1000, 1));
	assert_int_equal(scx_vtime_cost(1000000, UINT32_MAX), scx_vtime_cost(1000000, 10000));
	assert_int_equal(scx_weight_scale(1000, 0), scx_weight_scale(1000, 1));
}

static void test_cost_saturates(void **state)
{
	assert_int_equal(scx_vtime_cost(MAX, 100), MAX);
	assert_int_equal(scx_vtime_cost(MAX, 99), MAX);
	assert_int_equal(scx_vtime_cost(MAX, 1), MAX);
	assert_int_equal(scx_vtime_cost(MAX / 100, 1), MAX / 100 * 100);
	assert_int_equal(scx_vtime_cost(MAX / 100 + 1, 1), MAX);
	assert_int_equal(scx_weight_scale(MAX, 10000), MAX);
}

/* The results are those of 128-bit arithmetic, clamped to 64 bits. */
static void test_mul_div_against_wide_arithmetic(void **state)
{
	srand(1);
	for (int i = 0; i < 1000000; i++) {
		u64 value = ((u64)rand() << 32 ^ (u64)rand() << 8) >> rand() % 60;
		u32 mul = 1 + rand() % SCX_WEIGHT_MAX;
		u32 div = 1 + rand() % SCX_WEIGHT_MAX;
		unsigned __int128 wide = (unsigned __int128)value * mul / div;

		assert_true(scx_mul_div(value, mul, div) == (wide > MAX ? MAX : (u64)wide));
	}
}

static void test_credit_is_limited(void **state)
{
	/* A vtime ahead of now is unchanged. */
	assert_int_equal(scx_vtime_limit_credit(1500, 1000, 100), 1500);
	/* After a short sleep, the task keeps its credit. */
	assert_int_equal(scx_vtime_limit_credit(950, 1000, 100), 950);
	/* After a long sleep, the task keeps only the maximum credit. */
	assert_int_equal(scx_vtime_limit_credit(10, 1000, 100), 900);
	/* The vtime and the current virtual time are on different sides of the wrap. */
	assert_int_equal(scx_vtime_limit_credit(MAX - 500, 10, 100), MAX - 89);
	assert_int_equal(scx_vtime_limit_credit(MAX - 50, 10, 100), MAX - 50);
	assert_int_equal(scx_vtime_limit_credit(20, MAX - 10, 100), 20);
}

/* A task that is ahead of virtual time waits until virtual time has caught up. While virtual time
 * advances by the maximum lead, the runnable tasks use lead x total weight / 100 of CPU time. The
 * lead is chosen so that this CPU time is the given maximum wait. */
static void test_ahead_is_a_wait(void **state)
{
	u64 second = 1000000000;

	assert_int_equal(scx_vtime_max_ahead(10 * second, 100), 10 * second);
	assert_int_equal(scx_vtime_max_ahead(10 * second, 200), 5 * second);
	assert_int_equal(scx_vtime_max_ahead(10 * second, 1), 1000 * second);
	assert_int_equal(scx_vtime_max_ahead(10 * second, 2000 * 100), second / 200);
	/* No runnable tasks, and the largest total weight. */
	assert_int_equal(scx_vtime_max_ahead(10 * second, 0), 1000 * second);
	assert_int_equal(scx_vtime_max_ahead(10 * second, MAX), 0);
}

static void test_debt_is_limited(void **state)
{
	assert_int_equal(scx_vtime_limit_debt(1050, 1000, 100), 1050);
	assert_int_equal(scx_vtime_limit_debt(5000, 1000, 100), 1100);
	/* A vtime behind now is unchanged. */
	assert_int_equal(scx_vtime_limit_debt(10, 1000, 100), 10);
	/* The vtime and the current virtual time are on different sides of the wrap. */
	assert_int_equal(scx_vtime_limit_debt(500, MAX - 9, 100), 90);
	assert_int_equal(scx_vtime_limit_debt(50, MAX - 9, 100), 50);
	assert_int_equal(scx_vtime_limit_debt(MAX - 50, 10, 100), MAX - 50);
}

static void test_slice_is_shared(void **state)
{
	assert_int_equal(scx_slice_shared(20, 1000, 0, 1), 20);
	assert_int_equal(scx_slice_shared(20, 1000, 49, 1), 20);
	assert_int_equal(scx_slice_shared(20, 1000, 99, 1), 10);
	assert_int_equal(scx_slice_shared(20, 1000, 1000000, 1), 1);
	assert_int_equal(scx_slice_shared(20, 0, 0, 5), 5);
	/* The slice is never longer than the configured slice. */
	assert_int_equal(scx_slice_shared(3, 1000, 1000000, 5), 3);
}

/* scx_slice_shared() without its fast path. */
static u64 shared_by_division(u64 slice_ns, u64 wait_ns, u64 nr_waiting, u64 min_ns)
{
	u64 share_ns = wait_ns / (nr_waiting + 1);

	if (share_ns < min_ns)
		share_ns = min_ns;
	return share_ns < slice_ns ? share_ns : slice_ns;
}

static void test_sharing_does_not_overflow(void **state)
{
	static const u64 values[] = {
		0,	    1,		2,	    49,		1000,	    20000000,	4000000000,
		1ULL << 31, 1ULL << 32, 1ULL << 33, 1ULL << 40, 1ULL << 62, 1ULL << 63, ~0ULL - 1,
	};
	const size_t nr = sizeof(values) / sizeof(values[0]);
	size_t slice, wait, waiting;

	for (slice = 0; slice < nr; slice++)
		for (wait = 0; wait < nr; wait++)
			for (waiting = 0; waiting < nr; waiting++)
				assert_int_equal(scx_slice_shared(values[slice], values[wait],
								  values[waiting], 1000000),
						 shared_by_division(values[slice], values[wait],
								    values[waiting], 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_without_wrap),
		cmocka_unit_test(test_order_across_wrap),
		cmocka_unit_test(test_order_at_its_limit),
		cmocka_unit_test(test_delta_is_never_negative),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_cost_by_weight),
		cmocka_unit_test(test_weight_out_of_range),
		cmocka_unit_test(test_cost_saturates),
		cmocka_unit_test(test_mul_div_against_wide_arithmetic),
		cmocka_unit_test(test_credit_is_limited),
		cmocka_unit_test(test_ahead_is_a_wait),
		cmocka_unit_test(test_debt_is_limited),
		cmocka_unit_test(test_slice_is_shared),
		cmocka_unit_test(test_sharing_does_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
