// SPDX-License-Identifier: GPL-2.0-only
/* Options of the failing test scheduler, see scx_fail.bpf.c. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runner/runner.h"
#include "scx_fail.bpf.skel.h"

enum {
	KEY_INIT_ERROR = 0x200,
	KEY_ERROR_AFTER,
	KEY_STALL_AFTER,
	KEY_EXIT_AFTER,
	KEY_EXIT_CODE,
};

static const struct argp_option options[] = {
	{ "init-error", KEY_INIT_ERROR, "ERRNO", 0, "ops.init() returns -ERRNO" },
	{ "error-after", KEY_ERROR_AFTER, "N", 0, "scx_bpf_error() at the Nth enqueue" },
	{ "stall-after", KEY_STALL_AFTER, "N", 0,
	  "From the Nth enqueue on, lose tasks with a positive nice value" },
	{ "exit-after", KEY_EXIT_AFTER, "N", 0, "scx_bpf_exit() at the Nth enqueue" },
	{ "exit-code", KEY_EXIT_CODE, "CODE", 0,
	  "Exit code of --exit-after, decimal or hexadecimal (0x...)" },
	{ 0 },
};

static struct {
	int init_error;
	uint64_t error_after;
	uint64_t stall_after;
	uint64_t exit_after;
	uint64_t exit_code;
} opts;

/* Parse a 64-bit number. scx_parse_number() returns a double, which is exact only up to 53 bits. */
static uint64_t parse_code(const struct argp_state *state, const char *arg)
{
	bool is_hex = !strncmp(arg, "0x", 2);
	const char *digits = is_hex ? arg + 2 : arg;
	uint64_t code;
	char *end;

	errno = 0;
	code = strtoull(arg, &end, is_hex ? 16 : 10);
	/* strtoull() also accepts a space or a sign before the digits. */
	if (!isxdigit((unsigned char)*digits) || *end || errno)
		argp_failure(state, SCX_STATUS_FAILED, 0,
			     "--exit-code takes a decimal or hexadecimal number, not '%s'", arg);
	return code;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case KEY_INIT_ERROR:
		opts.init_error = scx_parse_number(state, "init-error", arg, 1, 4095);
		return 0;
	case KEY_ERROR_AFTER:
		opts.error_after = scx_parse_number(state, "error-after", arg, 1, 1e9);
		return 0;
	case KEY_STALL_AFTER:
		opts.stall_after = scx_parse_number(state, "stall-after", arg, 1, 1e9);
		return 0;
	case KEY_EXIT_AFTER:
		opts.exit_after = scx_parse_number(state, "exit-after", arg, 1, 1e9);
		return 0;
	case KEY_EXIT_CODE:
		opts.exit_code = parse_code(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void configure(void *skel)
{
	struct scx_fail *fail = skel;

	fail->rodata->init_error = -opts.init_error;
	fail->rodata->error_after = opts.error_after;
	fail->rodata->stall_after = opts.stall_after;
	fail->rodata->exit_after = opts.exit_after;
	fail->rodata->exit_code = opts.exit_code;
}

/* Print values that have reached the BPF side, so that tests detect a lost option. */
static void print_stats(void *skel, FILE *out)
{
	const struct scx_fail *fail = skel;

	fprintf(out, "enqueued=%" PRIu64 " exit_after=%" PRIu64, fail->bss->nr_enqueued,
		fail->rodata->exit_after);
}

SCX_SKEL(scx_fail);

static const struct scx_sched fail = {
	.name = "scx_fail",
	.doc = "A scheduler that fails on purpose, for tests.",
	.options = options,
	.parse = parse,
	.skel = &scx_fail_skel,
	.configure = configure,
	.print_stats = print_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&fail, argc, argv);
}
