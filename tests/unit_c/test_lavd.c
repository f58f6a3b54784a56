// SPDX-License-Identifier: GPL-2.0-only
/* Criticality, slices and modes of scx_lavd:
 * scheds/rust/scx_lavd/src/bpf/{criticality,slice,compact}.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <compact.h>
#include <criticality.h>
#include <slice.h>

#include <cmocka.h>

#define MAX UINT64_MAX
#define NR_ROUNDS 100000

/* A random number with a random number of bits. */
static u64 random_u64(void)
{
	u64 value = (u64)random() << 40 ^ (u64)random() << 20 ^ (u64)random();

	return value >> random() % 64;
}

static u32 random_weight(void)
{
	return 1 + random() % SCX_WEIGHT_MAX;
}

static u32 random_boost(void)
{
	return random() % (LAVD_BOOST_MAX + 1);
}

static void test_logarithm_counts_bits(void **state)
{
	assert_int_equal(lavd_log(0), 1);
	assert_int_equal(lavd_log(1), 1);
	assert_int_equal(lavd_log(255), 8);
	assert_int_equal(lavd_log(256), 9);
	assert_int_equal(lavd_log(MAX), 64);
}

static void test_runtime_factor_falls_from_2001_to_1(void **state)
{
	assert_int_equal(lavd_runtime_factor(0), 2001);
	assert_int_equal(lavd_runtime_factor(NSEC_PER_SEC / 2), 1001);
	assert_int_equal(lavd_runtime_factor(NSEC_PER_SEC - 1), 1);
	assert_int_equal(lavd_runtime_factor(NSEC_PER_SEC), 1);
	assert_int_equal(lavd_runtime_factor(MAX), 1);
}

/* Neither more waits or wakeups, nor a shorter runtime, nor a higher weight or boost lowers the
 * criticality. */
static void test_criticality_is_monotonic(void **state)
{
	int i;

	for (i = 0; i < NR_ROUNDS; i++) {
		u64 wait = random_u64(), wake = random_u64(), run = random_u64();
		u32 weight = random_weight(), boost = random_boost();
		u64 more_wait = wait + random() % 1000, more_wake = wake + random() % 1000;
		u32 cri = lavd_lat_cri(wait, wake, run, weight, boost);

		if (more_wait < wait || more_wake < wake)
			continue;
		assert_true(lavd_lat_cri(more_wait, wake, run, weight, boost) >= cri);
		assert_true(lavd_lat_cri(wait, more_wake, run, weight, boost) >= cri);
		assert_true(lavd_lat_cri(wait, wake, run / 2, weight, boost) >= cri);
		assert_true(lavd_lat_cri(wait, wake, run, SCX_WEIGHT_MAX, boost) >= cri);
		assert_true(lavd_lat_cri(wait, wake, run, weight, LAVD_BOOST_MAX) >= cri);
	}
}

static void test_criticality_is_bounded(void **state)
{
	assert_in_range(lavd_lat_cri(0, 0, MAX, 0, 0), 4, 16);
	assert_in_range(lavd_lat_cri(MAX, MAX, 0, UINT32_MAX, UINT32_MAX), 4900, LAVD_LAT_CRI_MAX);
}

/* Typical tasks at nice 0: a task that computes, a new task, a game that draws frames, and a task
 * that uses pipes. */
static void test_criticality_of_typical_tasks(void **state)
{
	u32 timer = LAVD_BOOST_WAKEUP + LAVD_BOOST_HARDIRQ, wakeup = LAVD_BOOST_WAKEUP;
	u32 hog = lavd_lat_cri(0, 0, 10 * NSEC_PER_SEC, 100, 0);
	u32 new = lavd_lat_cri(0, 0, 0, 100, 0);
	u32 frame = lavd_lat_cri(60, 60, 2 * NSEC_PER_MSEC, 100, timer);
	u32 pipe = lavd_lat_cri(10000, 2000, 20000, 100, wakeup);

	assert_int_equal(hog, 64);
	assert_in_range(new, 300, 400);
	assert_in_range(frame, 1200, 1700);
	assert_in_range(pipe, frame + 1, 3000);
}

static void test_inheritance_is_bounded(void **state)
{
	int i;

	assert_int_equal(lavd_inherit(400, 0, 0), 400);
	assert_int_equal(lavd_inherit(400, 400, 400), 400);
	assert_int_equal(lavd_inherit(400, 1200, 0), 450);
	assert_int_equal(lavd_inherit(400, 4000, 4000), 500);
	for (i = 0; i < NR_ROUNDS; i++) {
		u32 cri = 4 + random() % (LAVD_LAT_CRI_MAX - 3);
		u32 got = lavd_inherit(cri, random() % (LAVD_LAT_CRI_MAX + 1),
				       random() % (LAVD_LAT_CRI_MAX + 1));

		assert_in_range(got, cri, LAVD_LAT_CRI_MAX);
	}
}

/* The more critical a task is, the earlier its deadline, and the more credit it keeps. */
static void test_request_and_credit_follow_criticality(void **state)
{
	u32 cri;

	assert_int_equal(lavd_request_ns(0, LAVD_LAT_CRI_UNIT), LAVD_RUNTIME_COUNTED_NS);
	assert_int_equal(lavd_request_ns(MAX, LAVD_LAT_CRI_UNIT), 2 * LAVD_RUNTIME_COUNTED_NS);
	/* A criticality of 0 does not occur, but must not cause a division by zero. */
	assert_true(lavd_request_ns(MAX, 0) > 0);
	for (cri = 4; cri < LAVD_LAT_CRI_MAX; cri++) {
		assert_true(lavd_request_ns(0, cri + 1) <= lavd_request_ns(0, cri));
		assert_true(lavd_request_ns(MAX, cri) < NSEC_PER_SEC);
		assert_true(lavd_credit_ns(cri + 1) > lavd_credit_ns(cri));
	}
	assert_true(lavd_credit_ns(LAVD_LAT_CRI_MAX) < NSEC_PER_SEC);
}

static void test_performance_criticality_is_monotonic(void **state)
{
	int i;

	assert_in_range(lavd_perf_cri(0, 0, 0, 0, 0), 2, 2);
	assert_in_range(lavd_perf_cri(MAX, MAX, MAX, MAX, UINT32_MAX), 60, 100);
	for (i = 0; i < NR_ROUNDS; i++) {
		u64 freq = random_u64() / 2, run = random_u64() / 2, used = random_u64() / 2;
		u32 weight = random_weight();
		u32 cri = lavd_perf_cri(freq, freq, run, used, weight);

		assert_true(lavd_perf_cri(2 * freq, freq, run, used, weight) >= cri);
		assert_true(lavd_perf_cri(freq, freq, 2 * run, used, weight) >= cri);
		assert_true(lavd_perf_cri(freq, freq, run, 2 * used, weight) >= cri);
	}
}

static void test_preemption_threshold_is_between_average_and_maximum(void **state)
{
	u32 shift;

	assert_int_equal(lavd_preempt_threshold(1000, 200, 0), 200);
	assert_int_equal(lavd_preempt_threshold(1000, 200, 1), 600);
	assert_int_equal(lavd_preempt_threshold(1000, 200, 10), 1000);
	assert_int_equal(lavd_preempt_threshold(200, 1000, 3), 200);
	assert_int_equal(lavd_preempt_threshold(0, 0, 0), 0);
	for (shift = 0; shift < 100; shift++)
		assert_in_range(lavd_preempt_threshold(MAX, 0, shift), 0, MAX);
}

/* The smaller the share of the big CPUs in the capacity, the fewer tasks should run on them. */
static void test_performance_threshold_follows_capacity(void **state)
{
	u64 big, last = MAX;

	assert_int_equal(lavd_perf_threshold(10, 30, 90, 1024, 2048), 30);
	assert_int_equal(lavd_perf_threshold(10, 30, 90, 2048, 2048), 10);
	assert_int_equal(lavd_perf_threshold(10, 30, 90, 0, 2048), 90);
	assert_int_equal(lavd_perf_threshold(0, 0, 0, 0, 0), 0);
	for (big = 0; big <= 4096; big++) {
		u64 threshold = lavd_perf_threshold(10, 30, 90, big, 4096);

		assert_in_range(threshold, 10, 90);
		assert_true(threshold <= last);
		last = threshold;
	}
}

static void test_slice_shrinks_as_tasks_wait(void **state)
{
	u64 min = NSEC_PER_MSEC / 2, max = 5 * NSEC_PER_MSEC, nr, last = max;

	assert_int_equal(lavd_slice_ns(4, 0, min, max), max);
	assert_int_equal(lavd_slice_ns(4, 8, min, max), max);
	assert_int_equal(lavd_slice_ns(4, 40, min, max), NSEC_PER_MSEC);
	assert_int_equal(lavd_slice_ns(4, 10000, min, max), min);
	for (nr = 0; nr < 1000; nr++) {
		u64 slice = lavd_slice_ns(4, nr, min, max);

		assert_true(slice >= min && slice <= last);
		last = slice;
	}
}

static void test_slice_fits_the_runtime(void **state)
{
	u64 min = NSEC_PER_MSEC / 2, slice = 5 * NSEC_PER_MSEC;

	assert_int_equal(lavd_fitting_slice_ns(slice, 0, min), 2 * min);
	assert_int_equal(lavd_fitting_slice_ns(slice, NSEC_PER_MSEC, min), 2 * NSEC_PER_MSEC);
	assert_int_equal(lavd_fitting_slice_ns(slice, 4 * NSEC_PER_MSEC, min), slice);
	assert_int_equal(lavd_fitting_slice_ns(slice, MAX, min), slice);
	/* The result is never longer than the slice. */
	assert_int_equal(lavd_fitting_slice_ns(min, 0, min), min);
}

static void test_boosted_slice_is_bounded(void **state)
{
	u64 slice = 2 * NSEC_PER_MSEC;
	int i;

	/* While no other task waits, the slice is the average runtime plus 0.5 ms, clamped. */
	assert_int_equal(lavd_boosted_slice_ns(slice, 8 * NSEC_PER_MSEC, false, 0, 100),
			 8500 * 1000);
	assert_int_equal(lavd_boosted_slice_ns(slice, MAX / 2, false, 0, 100),
			 LAVD_SLICE_BOOST_MAX_NS);
	assert_int_equal(lavd_boosted_slice_ns(NSEC_PER_SEC, 2 * NSEC_PER_SEC, false, 0, 100),
			 NSEC_PER_SEC);
	/* While other tasks wait, only a task of more than average criticality gets a longer
	 * slice. */
	assert_int_equal(lavd_boosted_slice_ns(slice, MAX, true, 100, 100), slice);
	assert_int_equal(lavd_boosted_slice_ns(slice, MAX, true, 5000, 100), 2 * slice);
	assert_int_equal(lavd_boosted_slice_ns(slice, 3 * NSEC_PER_MSEC, true, 5000, 0),
			 3 * NSEC_PER_MSEC);
	for (i = 0; i < NR_ROUNDS; i++) {
		u64 runtime = slice + random_u64() / 2, boosted;

		boosted = lavd_boosted_slice_ns(slice, runtime, random() % 2,
						random() % LAVD_LAT_CRI_MAX, random() % 5000);
		assert_true(boosted >= slice && boosted <= LAVD_SLICE_BOOST_MAX_NS);
	}
}

static void test_load_average_rises_faster_than_it_falls(void **state)
{
	u64 load = 0;
	int i;

	for (i = 0; i < 3; i++)
		load = lavd_load_average(load, 8192);
	/* After three rounds (30 ms), all eight CPUs are needed. */
	assert_false(lavd_suffices(7 * 1024, lavd_need(load)));
	for (i = 0; i < 100; i++)
		load = lavd_load_average(load, 8192);
	assert_int_equal(load, 8192);
	for (i = 0; i < 4; i++)
		load = lavd_load_average(load, 0);
	/* After four rounds (40 ms) without load, the average is still about half of the
	 * capacity. */
	assert_in_range(load, 4000, 5000);
	for (i = 0; i < 100; i++)
		load = lavd_load_average(load, 0);
	assert_int_equal(load, 0);
	for (i = 0; i < NR_ROUNDS; i++) {
		u64 avg = random_u64() >> 1, now = random_u64() >> 1, low = lavd_min(avg, now);
		u64 high = avg > now ? avg : now;

		load = lavd_load_average(avg, now);
		assert_true(load <= high && load >= low);
	}
}

/* At a load of 10 %, two of eight CPUs suffice; at full load, not even all eight do. */
static void test_few_cpus_suffice_for_a_low_load(void **state)
{
	u64 need = lavd_need(8 * 1024 / 10 + 10);

	assert_false(lavd_suffices(1 * 1024, need));
	assert_true(lavd_suffices(2 * 1024, need));
	assert_false(lavd_suffices(8 * 1024, lavd_need(8 * 1024)));
	assert_true(lavd_suffices(0, 0));
}

static void test_wait_grows_with_the_queue(void **state)
{
	assert_int_equal(lavd_wait_us(0, 1000, 2), 500);
	assert_int_equal(lavd_wait_us(3, 1000, 2), 2000);
	/* If no CPU is active, lavd_wait_us() assumes that one is. */
	assert_int_equal(lavd_wait_us(0, 1000, 0), 1000);
	assert_int_equal(lavd_queued_load(0, 1000, 10000), 0);
	assert_int_equal(lavd_queued_load(5, 1000, 10000), 512);
	/* A CPU-bound task needs a whole CPU. */
	assert_int_equal(lavd_queued_load(2, MAX, 10000), 2048);
	assert_false(lavd_is_saturated(1791, 2048));
	assert_true(lavd_is_saturated(1792, 2048));
	assert_true(lavd_is_saturated(0, 0));
}

static void test_mode_follows_the_load(void **state)
{
	u64 total = 8 * 1024;

	assert_int_equal(lavd_auto_mode(0, 1024, total, false), LAVD_POWERSAVE);
	assert_int_equal(lavd_auto_mode(512, 1024, total, false), LAVD_POWERSAVE);
	assert_int_equal(lavd_auto_mode(513, 1024, total, false), LAVD_BALANCED);
	assert_int_equal(lavd_auto_mode(total / 2, 1024, total, false), LAVD_BALANCED);
	assert_int_equal(lavd_auto_mode(total / 2, 1024, total, true), LAVD_PERFORMANCE);
	assert_int_equal(lavd_auto_mode(total, 1024, total, false), LAVD_PERFORMANCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logarithm_counts_bits),
		cmocka_unit_test(test_runtime_factor_falls_from_2001_to_1),
		cmocka_unit_test(test_criticality_is_monotonic),
		cmocka_unit_test(test_criticality_is_bounded),
		cmocka_unit_test(test_criticality_of_typical_tasks),
		cmocka_unit_test(test_inheritance_is_bounded),
		cmocka_unit_test(test_request_and_credit_follow_criticality),
		cmocka_unit_test(test_performance_criticality_is_monotonic),
		cmocka_unit_test(test_preemption_threshold_is_between_average_and_maximum),
		cmocka_unit_test(test_performance_threshold_follows_capacity),
		cmocka_unit_test(test_slice_shrinks_as_tasks_wait),
		cmocka_unit_test(test_slice_fits_the_runtime),
		cmocka_unit_test(test_boosted_slice_is_bounded),
		cmocka_unit_test(test_load_average_rises_faster_than_it_falls),
		cmocka_unit_test(test_few_cpus_suffice_for_a_low_load),
		cmocka_unit_test(test_wait_grows_with_the_queue),
		cmocka_unit_test(test_mode_follows_the_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
