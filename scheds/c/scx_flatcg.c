// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_flatcg; the policy is scx_flatcg.bpf.c. */
#include "runner/runner.h"
#include "scx_flatcg.bpf.skel.h"
#include "scx_flatcg.h"

static uint64_t slice_us = 20000;

static const struct argp_option options[] = {
	{ "slice-us", 's', "US", 0,
	  "Let a task run for US microseconds while others wait (20000)" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 's')
		return ARGP_ERR_UNKNOWN;
	slice_us = scx_parse_number(state, "slice-us", arg, 1000, 1e6);
	return 0;
}

static unsigned int cgroups(void)
{
	return SCX_CGROUP_WEIGHT | SCX_CGROUP_IDLE | SCX_CGROUP_MAX;
}

static void configure(void *skel)
{
	((struct scx_flatcg *)skel)->rodata->slice_max_ns = slice_us * 1000;
}

static void read_stats(void *skel, void *stats)
{
	const struct scx_flatcg *flatcg = skel;
	struct flatcg_stats *sums = stats;

	scx_percpu_sum(flatcg->maps.stats, sums, sizeof(*sums));
	sums->nr_cgroups = flatcg->bss->scx_nr_cgroups;
}

static const struct scx_stat stats[] = {
	SCX_STAT(struct flatcg_stats, local, COUNTER, "Tasks inserted directly into a local DSQ"),
	SCX_STAT(struct flatcg_stats, queued, COUNTER, "Tasks that waited in the queue"),
	SCX_STAT(struct flatcg_stats, kept, COUNTER, "Times that a task continued on slice expiry"),
	SCX_STAT(struct flatcg_stats, limited, COUNTER,
		 "Slices not charged in full, because of the maximum wait"),
	SCX_STAT(struct flatcg_stats, parked, COUNTER, "Tasks held back by cpu.max"),
	SCX_STAT(struct flatcg_stats, moved, COUNTER, "Tasks moved to another cgroup"),
	SCX_STAT(struct flatcg_stats, nr_cgroups, GAUGE, "Cgroups below the root"),
	{ 0 },
};

SCX_SKEL(scx_flatcg);

static const struct scx_sched flatcg = {
	.name = "scx_flatcg",
	.doc = "A scheduler that honours the weights of cgroups at every level, with one queue for "
	       "all "
	       "CPUs.\vEach line of statistics counts, since the start, how tasks were dispatched.",
	.options = options,
	.parse = parse,
	.skel = &scx_flatcg_skel,
	.cgroups = cgroups,
	.configure = configure,
	.stats = stats,
	.stats_size = sizeof(struct flatcg_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&flatcg, argc, argv);
}
