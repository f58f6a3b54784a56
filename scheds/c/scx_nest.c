// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_nest; the policy is scx_nest.bpf.c. */
#include <bpf/libbpf.h>

#include "runner/runner.h"
#include "scx_nest.bpf.skel.h"
#include "scx_nest.h"

#define NSEC_PER_USEC 1000ULL

#define DELAY_MIN_US 10
#define DELAY_MAX_US 10000000
#define CPUS_MAX 65536
#define MISSES_MAX 1000000
#define SLICE_MIN_US 100
#define SLICE_MAX_US 1000000

static struct {
	uint64_t p_remove_us;
	uint32_t r_max;
	uint32_t r_impatient;
	uint64_t slice_us; /* 0: the kernel's default */
	bool find_fully_idle;
} opts = { .p_remove_us = 2000, .r_max = 5, .r_impatient = 2 };

static const struct argp_option options[] = {
	{ "delay-us", 'd', "US", 0, "Idle time after which a CPU leaves the primary nest (2000)" },
	{ "max-reserve", 'm', "N", 0, "Keep up to N CPUs in the reserve nest (5)" },
	{ "impatience", 'i', "N", 0,
	  "Grow the primary nest when a task has found no idle CPU there for N wakeups in a row, "
	  "0 for never (2)" },
	{ "slice-us", 's', "US", 0, "Time slice, unless many tasks wait (20000)" },
	{ "idle-cores", 'I', NULL, 0, "Prefer CPUs of fully idle cores" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'd':
		opts.p_remove_us =
			scx_parse_number(state, "delay-us", arg, DELAY_MIN_US, DELAY_MAX_US);
		return 0;
	case 'm':
		opts.r_max = scx_parse_number(state, "max-reserve", arg, 0, CPUS_MAX);
		return 0;
	case 'i':
		opts.r_impatient = scx_parse_number(state, "impatience", arg, 0, MISSES_MAX);
		return 0;
	case 's':
		opts.slice_us =
			scx_parse_number(state, "slice-us", arg, SLICE_MIN_US, SLICE_MAX_US);
		return 0;
	case 'I':
		opts.find_fully_idle = true;
		return 0;
	case ARGP_KEY_END:
		if (!opts.r_max && !opts.r_impatient)
			argp_failure(state, SCX_STATUS_FAILED, 0,
				     "no wakeup would add a CPU to the primary nest: set "
				     "--max-reserve or --impatience to at least 1");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void configure(void *skel)
{
	struct scx_nest *nest = skel;

	nest->rodata->p_remove_ns = opts.p_remove_us * NSEC_PER_USEC;
	nest->rodata->r_max = opts.r_max;
	nest->rodata->r_impatient = opts.r_impatient;
	nest->rodata->slice_ns = opts.slice_us * NSEC_PER_USEC;
	nest->rodata->find_fully_idle = opts.find_fully_idle;
	bpf_map__set_max_entries(nest->maps.cpu_ctxs, libbpf_num_possible_cpus());
}

static void read_stats(void *skel, void *stats)
{
	const struct scx_nest *nest = skel;
	struct nest_stats *sums = stats;

	scx_percpu_sum(nest->maps.stats, stats, sizeof(*sums));
	sums->nr_primary = nest->bss->nr_primary;
	sums->nr_reserve = nest->bss->nr_reserve;
}

#define STAT(member, kind, desc) SCX_STAT(struct nest_stats, member, kind, desc)
static const struct scx_stat stats[] = {
	STAT(nr_primary, GAUGE, "CPUs in the primary nest"),
	STAT(nr_reserve, GAUGE, "CPUs in the reserve nest"),
	STAT(wakeup_attached, COUNTER, "Wakeups on the CPU that the task is attached to"),
	STAT(wakeup_prev_primary, COUNTER, "Wakeups on the previous CPU, a primary one"),
	STAT(wakeup_fully_idle_primary, COUNTER, "Wakeups on a fully idle core, primary"),
	STAT(wakeup_any_idle_primary, COUNTER, "Wakeups on another primary CPU"),
	STAT(wakeup_fully_idle_reserve, COUNTER, "Wakeups on a fully idle core, reserve"),
	STAT(wakeup_any_idle_reserve, COUNTER, "Wakeups on another reserve CPU"),
	STAT(wakeup_idle_other, COUNTER, "Wakeups on a CPU of neither nest"),
	STAT(task_impatient, COUNTER, "Times that a task became impatient"),
	STAT(promoted_to_primary, COUNTER, "CPUs that joined the primary nest"),
	STAT(promoted_to_reserved, COUNTER, "CPUs of no nest that joined the reserve nest"),
	STAT(demoted_to_reserved, COUNTER, "Primary CPUs that joined the reserve nest"),
	STAT(reserved_at_capacity, COUNTER,
	     "CPUs that did not join the reserve nest because it was full"),
	STAT(scheduled_compaction, COUNTER, "Times that a primary CPU became idle"),
	STAT(cancelled_compaction, COUNTER, "Times that the timer found a CPU in use again"),
	STAT(eagerly_compacted, COUNTER, "CPUs demoted because their task exited"),
	STAT(callback_compacted, COUNTER, "CPUs demoted because they were idle for too long"),
	STAT(consumed, COUNTER, "Dispatches that found a task in the queue"),
	STAT(not_consumed, COUNTER, "Dispatches that found none"),
	{ 0 },
};

SCX_SKEL(scx_nest);

static const struct scx_sched nest = {
	.name = "scx_nest",
	.doc = "Keeps the work on few CPUs, so that these stay warm and the others sleep.",
	.options = options,
	.parse = parse,
	.skel = &scx_nest_skel,
	.configure = configure,
	.stats = stats,
	.stats_size = sizeof(struct nest_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&nest, argc, argv);
}
