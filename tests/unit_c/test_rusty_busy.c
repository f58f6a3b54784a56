// SPDX-License-Identifier: GPL-2.0-only
/* The idle time of CPUs in scx_rusty: scheds/rust/scx_rusty/src/bpf/busy.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <scx/types.h>

#include "busy.h"

#include <cmocka.h>

/* Return the idle time at @now, as user space computes it: the word of a busy CPU is the idle time.
 * The word of an idle CPU is negative, and its sum with @now is the idle time. */
static s64 idle_ns(s64 word, u64 now)
{
	return word < 0 ? word + (s64)now : word;
}

static void test_idle_time_at_any_moment(void **state)
{
	s64 word = 0, idle = 0;
	u64 now = 1000;
	int i;

	for (i = 1; i < 100; i++) {
		now += 7 * i; /* busy */
		assert_int_equal(idle_ns(word, now), idle);
		word = rusty_idle_begin(word, now);
		assert_int_equal(idle_ns(word, now), idle);
		now += 3 * i;
		idle += 3 * i;
		assert_int_equal(idle_ns(word, now), idle);
		word = rusty_idle_end(word, now);
		assert_int_equal(idle_ns(word, now), idle);
	}
}

static void test_repeated_updates_count_once(void **state)
{
	s64 word = rusty_idle_begin(5, 100);

	assert_int_equal(rusty_idle_begin(word, 150), word);
	word = rusty_idle_end(word, 200);
	assert_int_equal(word, 105);
	assert_int_equal(rusty_idle_end(word, 300), word);
}

static void test_clock_differences_are_ignored(void **state)
{
	assert_int_equal(rusty_idle_end(rusty_idle_begin(0, 100), 99), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_time_at_any_moment),
		cmocka_unit_test(test_repeated_updates_count_once),
		cmocka_unit_test(test_clock_differences_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
