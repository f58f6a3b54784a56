// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_prev; the policy is scx_prev.bpf.c. */
#include "runner/runner.h"
#include "scx_prev.bpf.skel.h"
#include "scx_prev.h"

static void read_stats(void *skel, void *stats)
{
	scx_percpu_sum(((struct scx_prev *)skel)->maps.stats, stats, sizeof(struct prev_stats));
}

static const struct scx_stat stats[] = {
	SCX_STAT(struct prev_stats, prev_cpu, COUNTER, "Tasks placed on their previous CPU"),
	SCX_STAT(struct prev_stats, idle_cpu, COUNTER, "Tasks placed on another idle CPU"),
	SCX_STAT(struct prev_stats, select_fail, COUNTER, "Tasks that found no idle CPU"),
	SCX_STAT(struct prev_stats, local, COUNTER, "Per-CPU kernel threads, which do not wait"),
	SCX_STAT(struct prev_stats, queued, COUNTER, "Insertions into the shared queue"),
	{ 0 },
};

SCX_SKEL(scx_prev);

static const struct scx_sched prev = {
	.name = "scx_prev",
	.doc = "A global scheduler that places a task on its previous CPU whenever that is idle."
	       "\vEach line of statistics counts the wakeups of tasks that found their previous "
	       "CPU "
	       "idle (prev_cpu), another one (idle_cpu) or none (select_fail), since the start.",
	.skel = &scx_prev_skel,
	.stats = stats,
	.stats_size = sizeof(struct prev_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&prev, argc, argv);
}
