// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_simple; the policy is scx_simple.bpf.c. */
#include <inttypes.h>

#include "runner/runner.h"
#include "scx_simple.bpf.skel.h"
#include "scx_simple.h"

static bool fifo_sched;

static const struct argp_option options[] = {
	{ "fifo", 'f', NULL, 0, "Serve tasks in order of arrival instead of by weight" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'f')
		return ARGP_ERR_UNKNOWN;
	fifo_sched = true;
	return 0;
}

static void configure(void *skel)
{
	((struct scx_simple *)skel)->rodata->fifo_sched = fifo_sched;
}

static void print_stats(void *skel, FILE *out)
{
	const struct bpf_map *stats = ((struct scx_simple *)skel)->maps.stats;

	fprintf(out, "local=%" PRIu64 " global=%" PRIu64, scx_percpu_sum(stats, SIMPLE_STAT_LOCAL),
		scx_percpu_sum(stats, SIMPLE_STAT_GLOBAL));
}

SCX_SKEL(scx_simple);

static const struct scx_sched simple = {
	.name = "scx_simple",
	.doc = "A simple global scheduler: one queue for all CPUs, by weighted virtual time."
	       "\vEach line of statistics counts the tasks that went straight to a CPU (local) and "
	       "those that waited in the queue (global), since the start.",
	.options = options,
	.parse = parse,
	.skel = &scx_simple_skel,
	.configure = configure,
	.print_stats = print_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&simple, argc, argv);
}
