// SPDX-License-Identifier: GPL-2.0-only
/* A C scheduler with its own main(): its exit status, and the exit functions that it registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <scx/common.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static FILE *out;

static void say(void)
{
	fputs("done", out);
}

/* Fork a child that reports the exit @rec of a scheduler and calls exit(0). Return the exit status
 * of the child, and store in @said what say() has printed. */
static int end_of(const struct scx_exit_record *rec, char *said, int size)
{
	int ends[2], status;
	ssize_t len;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		out = fdopen(ends[1], "w");
		if (!out || !freopen("/dev/null", "w", stderr) || atexit(say))
			_exit(99);
		scx_main_report(rec, NULL);
		exit(0);
	}
	close(ends[1]);
	len = read(ends[0], said, size - 1);
	said[len > 0 ? len : 0] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_other_exit_functions_run_first(void **state)
{
	const struct scx_exit_record clean = { .kind = SCX_EXIT_UNREG };
	const struct scx_exit_record error = { .kind = SCX_EXIT_ERROR };
	char said[16];

	assert_int_equal(end_of(&clean, said, sizeof(said)), 0);
	assert_string_equal(said, "done");
	/* The status is 1 if the scheduler never ran, else 2. In this test, that depends on the
	 * running kernel. */
	assert_in_range(end_of(&error, said, sizeof(said)), 1, 2);
	assert_string_equal(said, "done");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_exit_functions_run_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
