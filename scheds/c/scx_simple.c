// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_simple; the policy is scx_simple.bpf.c. */
#include "runner/runner.h"
#include "scx_simple.bpf.skel.h"
#include "scx_simple.h"

static bool fifo_sched, use_cgroups;

static const struct argp_option options[] = {
	{ "fifo", 'f', NULL, 0, "Serve tasks in order of arrival instead of by weight" },
	{ "cgroups", 'c', NULL, 0, "Honour cpu.weight and cpu.idle of cgroups" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f':
		fifo_sched = true;
		return 0;
	case 'c':
		use_cgroups = true;
		return 0;
	case ARGP_KEY_END:
		if (fifo_sched && use_cgroups)
			argp_error(state, "--fifo and --cgroups are mutually exclusive");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static unsigned int cgroups(void)
{
	return use_cgroups ? SCX_CGROUP_WEIGHT | SCX_CGROUP_IDLE : 0;
}

static void configure(void *skel)
{
	struct scx_simple *simple = skel;

	simple->rodata->fifo_sched = fifo_sched;
	simple->rodata->use_cgroups = use_cgroups;
	if (!use_cgroups) {
		/* Shrink the unused map, which saves 4 MB. */
		bpf_map__set_max_entries(simple->maps.scx_cgroups, 1);
		/* The kernel would call these callbacks on each wakeup or context switch. */
		simple->struct_ops.simple_ops->runnable = NULL;
		simple->struct_ops.simple_ops->running = NULL;
		simple->struct_ops.simple_ops->stopping = NULL;
	}
	if (fifo_sched)
		simple->struct_ops.simple_ops->quiescent = NULL;
}

static void read_stats(void *skel, void *stats)
{
	scx_percpu_sum(((struct scx_simple *)skel)->maps.stats, stats, sizeof(struct simple_stats));
}

static const struct scx_stat stats[] = {
	SCX_STAT(struct simple_stats, local, COUNTER, "Tasks inserted directly into a local DSQ"),
	SCX_STAT(struct simple_stats, global, COUNTER, "Tasks that waited in the shared queue"),
	{ 0 },
};

SCX_SKEL(scx_simple);

static const struct scx_sched simple = {
	.name = "scx_simple",
	.doc = "A simple global scheduler: one queue for all CPUs, by weighted virtual time."
	       "\vEach line of statistics counts the tasks that went straight to a CPU (local) and "
	       "those that waited in the queue (global), since the start.",
	.options = options,
	.parse = parse,
	.skel = &scx_simple_skel,
	.cgroups = cgroups,
	.configure = configure,
	.stats = stats,
	.stats_size = sizeof(struct simple_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&simple, argc, argv);
}
