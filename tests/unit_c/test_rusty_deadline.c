// SPDX-License-Identifier: GPL-2.0-only
/* Priorities and requests of scx_rusty: scheds/rust/scx_rusty/src/bpf/deadline.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <scx/types.h>

#include "deadline.h"

#include <cmocka.h>

#define MSEC (1000 * 1000ULL)
#define NICE_0 100

static void test_log2_is_rounded_down(void **state)
{
	u32 bit;

	assert_int_equal(scx_log2(0), 0);
	for (bit = 1; bit < 64; bit++) {
		assert_int_equal(scx_log2(1ULL << bit), bit);
		assert_int_equal(scx_log2((1ULL << bit) - 1), bit - 1);
	}
	assert_int_equal(scx_log2(~0ULL), 63);
}

static void test_frequency_converges(void **state)
{
	u64 freq = 0;
	int i;

	for (i = 0; i < 100; i++)
		freq = rusty_freq(freq, 5 * MSEC);
	/* The frequency is 20 per 100 ms, minus rounding errors. */
	assert_in_range(freq, 17, 20);
	/* Many events at intervals of 1 ns, and then events at intervals of 2^64 - 1 ns. */
	for (i = 0; i < 1000; i++)
		freq = rusty_freq(freq, 1);
	assert_in_range(freq, RUSTY_FREQ_MAX - 4, RUSTY_FREQ_MAX);
	for (i = 0; i < 100; i++)
		freq = rusty_freq(freq, ~0ULL);
	assert_in_range(freq, 0, 3);
	/* An interval of 0 changes nothing: see scx_average_freq(). */
	assert_int_equal(rusty_freq(20, 0), 20);
}

/* Neither a higher frequency nor a shorter runtime lowers the priority. */
static void test_priority_is_monotonic(void **state)
{
	static const u64 freqs[] = { 0, 1, 10, 100, 1000, 10000, 100000, ~0ULL };
	static const u64 runtimes[] = { 0, 1000, MSEC, 10 * MSEC, 1000 * MSEC, ~0ULL };
	size_t freq, runtime;

	for (freq = 1; freq < sizeof(freqs) / sizeof(*freqs); freq++) {
		for (runtime = 1; runtime < sizeof(runtimes) / sizeof(*runtimes); runtime++) {
			u64 ran = runtimes[runtime];
			u32 prio = rusty_prio(freqs[freq], freqs[freq], ran, NICE_0);

			assert_in_range(prio, 0, RUSTY_PRIO_MAX);
			assert_true(prio >= rusty_prio(freqs[freq - 1], freqs[freq], ran, NICE_0));
			assert_true(prio >= rusty_prio(freqs[freq], freqs[freq - 1], ran, NICE_0));
			assert_true(prio <= rusty_prio(freqs[freq], freqs[freq],
						       runtimes[runtime - 1], NICE_0));
		}
	}
}

static void test_heavy_tasks_are_not_less_urgent(void **state)
{
	u32 weight;

	for (weight = 1; weight < SCX_WEIGHT_MAX; weight *= 3)
		assert_true(rusty_prio(100, 100, MSEC, weight) <=
			    rusty_prio(100, 100, MSEC, weight * 3));
	/* Invalid weights are clamped. */
	assert_int_equal(rusty_prio(100, 100, MSEC, 0), rusty_prio(100, 100, MSEC, 1));
}

static void test_higher_priority_shortens_request(void **state)
{
	u32 prio;

	/* Priority 0 divides the runtime by 0.15, the highest priority by 100. */
	assert_int_equal(rusty_request_ns(3 * MSEC, 0, 30 * MSEC), 20 * MSEC);
	assert_int_equal(rusty_request_ns(3 * MSEC, RUSTY_PRIO_MAX, 20 * MSEC), 30 * 1000);
	/* Runtime above the maximum (the last argument) does not count, and the result is at most
	 * this maximum. */
	assert_int_equal(rusty_request_ns(~0ULL, 19, 1024 * 1000), 100 * 1000);
	assert_int_equal(rusty_request_ns(3 * MSEC, 0, 20 * MSEC - 1), 20 * MSEC - 1);
	for (prio = 0; prio < RUSTY_PRIO_MAX + 5; prio++)
		assert_true(rusty_request_ns(MSEC, prio, MSEC) >=
			    rusty_request_ns(MSEC, prio + 1, MSEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log2_is_rounded_down),
		cmocka_unit_test(test_frequency_converges),
		cmocka_unit_test(test_priority_is_monotonic),
		cmocka_unit_test(test_heavy_tasks_are_not_less_urgent),
		cmocka_unit_test(test_higher_priority_shortens_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
