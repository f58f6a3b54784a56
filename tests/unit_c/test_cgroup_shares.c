// SPDX-License-Identifier: GPL-2.0-only
/* The pure arithmetic of scheds/include/scx/cgroup.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <scx/cgroup.h>

#include <cmocka.h>

#define ALL SCX_SHARE_ALL
#define MAX UINT64_MAX

static void test_part_by_weight(void **state)
{
	assert_int_equal(scx_share_part(ALL, 100, 400), ALL / 4);
	assert_int_equal(scx_share_part(ALL / 4, 300, 400), ALL / 16 * 3);
	assert_int_equal(scx_share_part(ALL, 1, 10101), ALL / 10101);
}

/* A cgroup without competitors gets the whole share. It also gets the whole share if the load is
 * smaller than its weight, as may be seen while other CPUs change the load. */
static void test_part_is_at_most_the_whole(void **state)
{
	assert_int_equal(scx_share_part(ALL, 100, 100), ALL);
	assert_int_equal(scx_share_part(ALL, 100, 50), ALL);
	assert_int_equal(scx_share_part(ALL, 100, 0), ALL);
	assert_int_equal(scx_share_part(ALL, 0, 0), ALL);
}

/* With the smallest part on each of three levels, the exact product is less than 1, the smallest
 * share. The result is rounded up to 1. */
static void test_part_is_never_zero(void **state)
{
	u64 share = ALL;

	for (int level = 0; level < 3; level++)
		share = scx_share_part(share, 1, 10001);
	assert_int_equal(share, 1);
	assert_int_equal(scx_share_part(ALL, 0, 100), 1);
}

/* A load above 2^32 does not overflow. 10^8 tasks of the maximum weight have a load of about
 * 2^40. */
static void test_part_of_a_large_load(void **state)
{
	u64 load = 1ULL << 40;

	assert_int_equal(scx_share_part(ALL, load / 2, load), ALL / 2);
	assert_int_equal(scx_share_part(ALL, load - 1, load) >> 20, (ALL >> 20) - 1);
}

static void test_cost(void **state)
{
	assert_int_equal(scx_share_cost(20000000, ALL), 20000000);
	assert_int_equal(scx_share_cost(20000000, ALL / 4), 80000000);
	assert_int_equal(scx_share_cost(0, 1), 0);
	/* A single charge may be more than 2^32 ns. */
	assert_int_equal(scx_share_cost(1ULL << 40, ALL / 2), 1ULL << 41);
	assert_int_equal(scx_share_cost(MAX, 1), SCX_SHARE_COST_MAX);
	assert_int_equal(scx_share_cost(20000000, 1) <= SCX_SHARE_COST_MAX, true);
}

static void test_cost_against_wide_arithmetic(void **state)
{
	srand(1);
	for (int i = 0; i < 1000000; i++) {
		u64 ran = ((u64)rand() << 32 ^ (u64)rand() << 8) >> (20 + rand() % 44);
		u64 share = 1 + ((u64)rand() << 1 ^ rand()) % ALL;
		unsigned __int128 wide = ((unsigned __int128)ran << 32) / share;
		u64 cost = scx_share_cost(ran, share);

		assert_true(cost == (u64)wide || cost >= SCX_SHARE_COST_MAX);
		assert_true(cost <= SCX_SHARE_COST_MAX + ALL);
	}
}

/* scx_share_paid() returns the CPU time of a cost, minus at most 257 ns, because it ignores the
 * lowest 8 bits of the cost. */
static void test_paid_is_the_inverse_of_cost(void **state)
{
	srand(1);
	for (int i = 0; i < 1000; i++) {
		u64 ran = rand() % 20000000, share = ALL >> rand() % 12;
		u64 paid = scx_share_paid(scx_share_cost(ran, share), share);

		assert_true(paid <= ran && ran - paid <= 257);
	}
}

static void test_slice_by_share(void **state)
{
	u64 ms = NSEC_PER_MSEC, second = NSEC_PER_SEC;

	assert_int_equal(scx_share_slice(20 * ms, ALL, second, ms), 20 * ms);
	assert_int_equal(scx_share_slice(20 * ms, ALL / 100, second, ms) / ms, 9);
	assert_int_equal(scx_share_slice(20 * ms, 1, second, ms), ms);
	/* The slice is never longer than the configured slice. */
	assert_int_equal(scx_share_slice(ms, ALL, second, 5 * ms), ms);
}

/* Undivided weights, a quarter of a weight, a result below 1, and the smallest result. */
static void test_effective_weight(void **state)
{
	u64 one = 1ULL << SCX_EFFECTIVE_SHIFT;

	assert_int_equal(scx_effective_weight(100, ALL), 100 * one);
	assert_int_equal(scx_effective_weight(SCX_WEIGHT_MAX, ALL), SCX_WEIGHT_MAX * one);
	assert_int_equal(scx_effective_weight(300, ALL / 4), 75 * one);
	assert_int_equal(scx_effective_weight(1, ALL / 4), one / 4);
	assert_int_equal(scx_effective_weight(1, 1), 1);
}

static void test_effective_cost(void **state)
{
	u64 ran_ns = 20000000;

	for (u32 weight = 1; weight <= SCX_WEIGHT_MAX; weight++)
		assert_int_equal(scx_effective_cost(ran_ns, scx_effective_weight(weight, ALL)),
				 scx_vtime_cost(ran_ns, weight));
	assert_int_equal(scx_effective_cost(ran_ns, scx_effective_weight(1, ALL / 4)),
			 400 * ran_ns);
	/* The largest cost still permits comparisons. */
	assert_true(scx_effective_cost(MAX, 1) < 1ULL << 63);
	assert_true(scx_effective_cost(MAX, 0) < 1ULL << 63);
}

static void test_effective_weight_is_rounded(void **state)
{
	assert_int_equal(scx_effective_round(scx_effective_weight(100, ALL / 3)), 33);
	assert_int_equal(scx_effective_round(scx_effective_weight(200, ALL / 3)), 67);
	assert_int_equal(scx_effective_round(1), 1);
	assert_int_equal(scx_effective_round(MAX >> 1), SCX_WEIGHT_MAX);
}

static void test_quota_of_reported_values(void **state)
{
	struct scx_quota q = scx_quota_of(100000, 20000, 5000);

	assert_int_equal(q.quota_ns, 20 * NSEC_PER_MSEC);
	assert_int_equal(q.period_ns, 100 * NSEC_PER_MSEC);
	assert_int_equal(q.burst_ns, 5 * NSEC_PER_MSEC);
	/* "max", with and without a conversion from ns to us by the kernel. */
	assert_int_equal(scx_quota_of(100000, MAX, 0).quota_ns, 0);
	assert_int_equal(scx_quota_of(100000, MAX / 1000, 0).quota_ns, 0);
	/* Neither the quota nor the period of a limited cgroup is zero, because both are
	 * divisors. */
	q = scx_quota_of(0, 0, MAX);
	assert_true(q.quota_ns && q.period_ns);
	assert_int_equal(q.burst_ns, 0);
}

static void test_quota_refills(void **state)
{
	struct scx_quota q = { .quota_ns = 20, .period_ns = 100 };

	assert_int_equal(scx_quota_refilled(&q, -50, 1), -30);
	assert_int_equal(scx_quota_refilled(&q, -50, 3), 10);
	/* Without a burst, what is left over from the previous period is lost. */
	assert_int_equal(scx_quota_refilled(&q, 15, 1), 20);
	assert_int_equal(scx_quota_refilled(&q, -50, 1ULL << 60), 20);
	/* After the quota was reduced, more than the new quota may be left. */
	assert_int_equal(scx_quota_refilled(&q, 500, 1), 20);
	q.burst_ns = 10;
	assert_int_equal(scx_quota_refilled(&q, 15, 1), 30);
	assert_int_equal(scx_quota_refilled(&q, 5, 1), 25);
}

static void test_quota_is_available_again(void **state)
{
	struct scx_quota q = { .quota_ns = 20, .period_ns = 100 };

	for (s64 left = -100; left <= 20; left++) {
		u64 nr = scx_quota_nr_periods(&q, left);

		assert_true(scx_quota_refilled(&q, left, nr) > 0);
		assert_true(!nr || scx_quota_refilled(&q, left, nr - 1) <= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_by_weight),
		cmocka_unit_test(test_part_is_at_most_the_whole),
		cmocka_unit_test(test_part_is_never_zero),
		cmocka_unit_test(test_part_of_a_large_load),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_cost_against_wide_arithmetic),
		cmocka_unit_test(test_paid_is_the_inverse_of_cost),
		cmocka_unit_test(test_slice_by_share),
		cmocka_unit_test(test_effective_weight),
		cmocka_unit_test(test_effective_cost),
		cmocka_unit_test(test_effective_weight_is_rounded),
		cmocka_unit_test(test_quota_of_reported_values),
		cmocka_unit_test(test_quota_refills),
		cmocka_unit_test(test_quota_is_available_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
