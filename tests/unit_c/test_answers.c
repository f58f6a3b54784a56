// SPDX-License-Identifier: GPL-2.0-only
/* Answers to requests for statistics, in the C runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runner/internal.h"

#include <cmocka.h>

struct numbers {
	uint64_t nr_runs;
	uint64_t depth;
};

static const struct scx_stat stats[] = {
	SCX_STAT(struct numbers, nr_runs, COUNTER, "Runs"),
	SCX_STAT(struct numbers, depth, GAUGE, "Tasks that wait"),
	{ 0 },
};

static const struct scx_sched sched = {
	.name = "scx_try",
	.stats = stats,
	.stats_size = sizeof(struct numbers),
};

static void assert_answer(const char *request, const struct numbers *now, struct numbers *before,
			  const char *expected)
{
	char *line = scx_answer(&sched, request, strlen(request), now, before);

	assert_string_equal(line, expected);
	free(line);
}

#define TOTAL "{\"req\":\"stats\",\"args\":{\"total\":\"true\"}}"

static void test_counters_count_since_the_last_answer(void **state)
{
	struct numbers now = { 10, 3 }, before = { 4, 7 };

	assert_answer(" {\"req\":\"stats\"}\r", &now, &before,
		      "{\"errno\":0,\"args\":{\"resp\":{\"nr_runs\":6,\"depth\":3}}}\n");
	now.nr_runs = ~0ULL;
	assert_answer(TOTAL, &now, &before,
		      "{\"errno\":0,\"args\":{\"resp\":{\"nr_runs\":18446744073709551615,"
		      "\"depth\":3}}}\n");
	assert_int_equal(before.nr_runs, 10);
	/* In a new generation, counters start from zero. */
	now.nr_runs = 2;
	assert_answer("{\"req\":\"stats\",\"args\":{\"target\":\"top\",\"total\":\"false\"}}", &now,
		      &before, "{\"errno\":0,\"args\":{\"resp\":{\"nr_runs\":2,\"depth\":3}}}\n");
}

static void test_description(void **state)
{
	assert_answer("{\"req\":\"stats_meta\"}", NULL, NULL,
		      "{\"errno\":0,\"args\":{\"resp\":{\"Metrics\":{\"name\":\"Metrics\","
		      "\"top\":\"true\",\"desc\":\"Statistics of scx_try\","
		      "\"user\":{\"_om_prefix\":\"try_\"},\"fields\":{"
		      "\"nr_runs\":{\"datum\":\"u64\",\"desc\":\"Runs\","
		      "\"user\":{\"_counter\":\"true\"}},"
		      "\"depth\":{\"datum\":\"u64\",\"desc\":\"Tasks that wait\"}}}}}}\n");
}

#define REFUSAL "{\"errno\":22,\"args\":{\"resp\":\""

static void test_bad_requests(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"no json",
		"{\"req\":1}",
		"{\"req\":\"no such\"}",
		"{\"req\":\"stats\"} {}",
		"{\"req\":\"stats\",\"args\":[]}",
		"{\"req\":\"stats\",\"args\":{\"target\":1}}",
		"{\"req\":\"stats\",\"args\":{\"target\":\"no such\"}}",
		"{\"req\":\"stats\",\"args\":{\"total\":\"perhaps\"}}",
		"{\"req\":\"\xff\"}",
		"[[[[[[[[[[[[[[[[[[[[",
	};
	struct numbers now = { 1, 1 }, before = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *line = scx_answer(&sched, bad[i], strlen(bad[i]), &now, &before);

		assert_memory_equal(line, REFUSAL, strlen(REFUSAL));
		assert_int_equal(line[strlen(line) - 1], '\n');
		free(line);
	}
	assert_int_equal(before.nr_runs, 0);
}

static void test_between_generations(void **state)
{
	struct numbers before = { 5, 5 };

	assert_answer("{\"req\":\"stats\"}", NULL, &before,
		      "{\"errno\":11,\"args\":{\"resp\":\"the scheduler is restarting\"}}\n");
	assert_int_equal(before.nr_runs, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_count_since_the_last_answer),
		cmocka_unit_test(test_description),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_between_generations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
