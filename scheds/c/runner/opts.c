// SPDX-License-Identifier: GPL-2.0-only
/* The options common to all C schedulers, combined with the scheduler's own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Bounds of --interval, apart from 0 (never). With shorter intervals, printing would dominate the
 * load. Longer intervals are of no use. */
#define INTERVAL_MIN_S 0.1
#define INTERVAL_MAX_S 86400

/* Maximum length of the debug dump in bytes, 512 times the kernel's default. The kernel's only
 * limit is memory. */
#define EXIT_DUMP_LEN_MAX (16U << 20)

/* Key of --usage, outside the range of characters, since --usage has no short option. */
#define KEY_USAGE 0x100

static const struct argp_option common_options[] = {
	{ "interval", 'i', "SEC", 0, "Print statistics every SEC seconds; 0 for never [default: 1]",
	  1 },
	{ "partial", 'p', NULL, 0,
	  "Schedule only the tasks that ask for it by the policy SCHED_EXT", 1 },
	{ "exit-dump-len", 'D', "LEN", 0,
	  "Keep LEN bytes of debug dump when ejected [default: as the kernel chooses]", 1 },
	{ "verbose", 'v', NULL, 0, "Print what libbpf does", 1 },
	{ "help", 'h', NULL, 0, "Print this help", -1 },
	{ "usage", KEY_USAGE, NULL, 0, "Print a short usage message", -1 },
	{ "version", 'V', NULL, 0, "Print the version", -1 },
	{ 0 },
};

struct parse_ctx {
	const struct scx_sched *sched;
	struct scx_common_opts *opts;
};

static double parse_number(const struct argp_state *state, const char *option, const char *arg,
			   double min, double max, bool whole)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value >= min && value <= max) ||
	    (whole && value != (double)(int64_t)value))
		argp_failure(state, SCX_STATUS_FAILED, 0,
			     "--%s takes a %snumber from %.15g to %.15g, not '%s'", option,
			     whole ? "whole " : "", min, max, arg);
	return value;
}

double scx_parse_number(const struct argp_state *state, const char *option, const char *arg,
			double min, double max)
{
	return parse_number(state, option, arg, min, max, true);
}

static double parse_interval(const struct argp_state *state, const char *arg)
{
	double interval_s = parse_number(state, "interval", arg, 0, INTERVAL_MAX_S, false);

	if (interval_s && interval_s < INTERVAL_MIN_S)
		argp_failure(state, SCX_STATUS_FAILED, 0,
			     "--interval takes 0 or at least %g, not '%s'", INTERVAL_MIN_S, arg);
	return interval_s;
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	const struct parse_ctx *ctx = state->input;
	struct scx_common_opts *opts = ctx->opts;

	switch (key) {
	case 'i':
		opts->interval_s = parse_interval(state, arg);
		return 0;
	case 'p':
		opts->partial = true;
		return 0;
	case 'D':
		opts->exit_dump_len =
			scx_parse_number(state, "exit-dump-len", arg, 0, EXIT_DUMP_LEN_MAX);
		return 0;
	case 'v':
		opts->verbose = true;
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case KEY_USAGE:
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	case 'V':
		printf("%s %s\n", ctx->sched->name, SCX_VERSION);
		exit(SCX_STATUS_OK);
	case ARGP_KEY_ARG:
		argp_failure(state, SCX_STATUS_FAILED, 0, "unexpected argument '%s', see --help",
			     arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Pass the context to parse_common(). */
static error_t parse_none(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[1] = state->input;
	return 0;
}

void scx_parse_opts(const struct scx_sched *sched, int argc, char **argv,
		    struct scx_common_opts *opts)
{
	const struct argp own = { .options = sched->options, .parser = sched->parse };
	const struct argp common = { .options = common_options, .parser = parse_common };
	/* If one of the scheduler's own options has the same letter as a common option, the
	 * scheduler's own option takes precedence. */
	const struct argp_child children[] = { { .argp = &own }, { .argp = &common }, { 0 } };
	const struct argp argp = {
		.parser = parse_none,
		.doc = sched->doc,
		.children = children,
	};
	struct parse_ctx ctx = { .sched = sched, .opts = opts };

	*opts = (struct scx_common_opts){ .interval_s = 1 };
	argp_err_exit_status = SCX_STATUS_FAILED;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &ctx);
}
