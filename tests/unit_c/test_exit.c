// SPDX-License-Identifier: GPL-2.0-only
/* Exit records in the C runner: their classification, and their text for the user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "runner/internal.h"

#include <cmocka.h>

static enum scx_outcome outcome(int kind, uint64_t code, bool ran)
{
	const struct scx_exit_record rec = { .kind = kind, .exit_code = code };

	return scx_exit_outcome(&rec, ran);
}

static void test_clean_ends(void **state)
{
	assert_int_equal(outcome(SCX_EXIT_UNREG, 0, true), SCX_OUTCOME_DONE);
	assert_int_equal(outcome(SCX_EXIT_UNREG_BPF, 0, true), SCX_OUTCOME_DONE);
	assert_int_equal(outcome(SCX_EXIT_SYSRQ, 0, true), SCX_OUTCOME_DONE);
	/* A scheduler's own exit code is not an error. */
	assert_int_equal(outcome(SCX_EXIT_UNREG_BPF, 0xffffffff, true), SCX_OUTCOME_DONE);
}

static void test_errors(void **state)
{
	assert_int_equal(outcome(SCX_EXIT_ERROR, 0, true), SCX_OUTCOME_EJECTED);
	assert_int_equal(outcome(SCX_EXIT_ERROR + 2, 0, true), SCX_OUTCOME_EJECTED);
	/* An error before the scheduler ran is a failed load, although the registration
	 * succeeded. */
	assert_int_equal(outcome(SCX_EXIT_ERROR, 0, false), SCX_OUTCOME_FAILED);
	/* An error never restarts the scheduler. */
	assert_int_equal(outcome(SCX_EXIT_ERROR, SCX_ECODE_ACT_RESTART, true), SCX_OUTCOME_EJECTED);
}

static void test_restarts(void **state)
{
	/* The kernel's code for CPU hotplug needs more than 32 bits. */
	uint64_t hotplug = SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG;

	assert_int_equal(outcome(SCX_EXIT_UNREG_KERN, hotplug, true), SCX_OUTCOME_RESTART);
	/* The CPUs changed during the load. */
	assert_int_equal(outcome(SCX_EXIT_UNREG_KERN, hotplug, false), SCX_OUTCOME_RESTART);
	assert_int_equal(outcome(SCX_EXIT_UNREG_BPF, SCX_ECODE_ACT_RESTART | 7, true),
			 SCX_OUTCOME_RESTART);
	/* An unknown action is not a restart. */
	assert_int_equal(outcome(SCX_EXIT_UNREG_KERN, 2ULL << 48, true), SCX_OUTCOME_DONE);
}

static void test_cause_is_one_line(void **state)
{
	/* The message contains the name of a task, which may contain control characters. */
	const struct scx_exit_record rec = {
		.kind = SCX_EXIT_ERROR,
		.reason = "runnable task stall",
		.msg = "\nEXIT: a\x1b]0;b\x7f\xc3\xa9[12] failed to run for 10.1s",
	};
	const struct scx_exit_record bare = { .kind = SCX_EXIT_UNREG, .reason = "unregistered" };
	const char *expected = "?EXIT: a?]0;b?\xc3\xa9[12] failed to run for 10.1s";
	char cause[SCX_EXIT_MSG_LEN], report[256] = "";
	FILE *out = fmemopen(report, sizeof(report), "w");

	scx_exit_cause(&rec, cause);
	assert_string_equal(cause, expected);
	assert_non_null(out);
	scx_exit_report(NULL, &rec, out);
	fclose(out);
	assert_string_equal(report,
			    "EXIT: runnable task stall (?EXIT: a?]0;b?\xc3\xa9[12] failed to "
			    "run for 10.1s)\n");
	scx_exit_cause(&bare, cause);
	assert_string_equal(cause, "unregistered");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_ends),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_cause_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
