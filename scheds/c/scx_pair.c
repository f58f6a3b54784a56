// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_pair; the policy is scx_pair.bpf.c. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "runner/runner.h"
#include "scx_pair.bpf.skel.h"
#include "scx_pair.h"

static struct {
	uint64_t turn_us;
	uint32_t stride; /* 0: pair the threads of cores */
} opts = { .turn_us = 20000 };

static const struct argp_option options[] = {
	{ "stride", 'S', "N", 0,
	  "Pair CPU i with CPU i + N (default: the threads of a core; if no core has two, N is "
	  "half of the number of CPUs)" },
	{ "turn-us", 't', "US", 0, "Let a pair run a cgroup for US microseconds (20000)" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'S':
		opts.stride = scx_parse_number(state, "stride", arg, 1, PAIR_CPUS_MAX / 2);
		return 0;
	case 't':
		opts.turn_us = scx_parse_number(state, "turn-us", arg, 1000, 1e6);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *check(void)
{
	static char message[128];
	uint32_t nr_cpus = libbpf_num_possible_cpus();

	if (!scx_kernel_has_kfunc("scx_bpf_task_cgroup"))
		return "this kernel does not report cgroups to schedulers: boot one built with "
		       "CONFIG_EXT_GROUP_SCHED";
	if (nr_cpus > PAIR_CPUS_MAX) {
		snprintf(message, sizeof(message), "%u CPUs are too many: boot with nr_cpus=%u",
			 nr_cpus, PAIR_CPUS_MAX);
		return message;
	}
	if (opts.stride && nr_cpus % (2 * opts.stride)) {
		snprintf(message, sizeof(message),
			 "--stride=%u leaves CPUs without a partner: %u CPUs are not a multiple "
			 "of %u",
			 opts.stride, nr_cpus, 2 * opts.stride);
		return message;
	}
	return NULL;
}

/* Return the other thread of the CPU's core. If the core has more than two threads, every two
 * successive threads form a pair. Return the CPU itself if no thread is left to pair it with, or if
 * the CPU is offline. */
static uint32_t sibling_of(uint32_t cpu)
{
	char path[PATH_MAX], list[256] = "", *at = list;
	uint32_t siblings[64], nr = 0, i;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 cpu);
	f = fopen(path, "re");
	if (!f)
		return cpu;
	if (!fgets(list, sizeof(list), f))
		list[0] = '\0';
	fclose(f);
	while (nr < 64 && *at >= '0' && *at <= '9') {
		uint32_t first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		while (nr < 64 && first <= last)
			siblings[nr++] = first++;
		at += *at == ',';
	}
	for (i = 0; i < nr; i++)
		if (siblings[i] == cpu)
			break;
	return (i ^ 1) < nr ? siblings[i ^ 1] : cpu;
}

static void pair_by_stride(uint32_t *others, uint32_t nr_cpus, uint32_t stride)
{
	for (uint32_t cpu = 0; cpu < nr_cpus; cpu++) {
		uint32_t other = cpu % (2 * stride) < stride ? cpu + stride : cpu - stride;

		others[cpu] = other < nr_cpus ? other : cpu;
	}
}

/* Pair the threads of cores. Returns false if no core has two threads. */
static bool pair_by_core(uint32_t *others, uint32_t nr_cpus)
{
	bool is_any = false;

	for (uint32_t cpu = 0; cpu < nr_cpus; cpu++) {
		others[cpu] = sibling_of(cpu);
		is_any |= others[cpu] != cpu;
	}
	return is_any;
}

static void configure(void *skel)
{
	struct scx_pair *pair = skel;
	uint32_t nr_cpus = libbpf_num_possible_cpus(), *others = pair->rodata->others;

	pair->rodata->nr_cpu_ids = nr_cpus;
	pair->rodata->turn_ns = opts.turn_us * 1000;
	if (opts.stride)
		pair_by_stride(others, nr_cpus, opts.stride);
	else if (!pair_by_core(others, nr_cpus))
		pair_by_stride(others, nr_cpus, (nr_cpus + 1) / 2);
	/* The kernel must not insert tasks, or let them continue, by itself, because it would
	 * ignore the claims. */
	scx_ops_set_flag(skel, "SCX_OPS_ENQ_LAST");
	scx_ops_set_flag(skel, "SCX_OPS_ENQ_EXITING");
	scx_ops_set_flag(skel, "SCX_OPS_ENQ_MIGRATION_DISABLED");
	scx_ops_set_flag(skel, "SCX_OPS_KEEP_BUILTIN_IDLE");
	scx_ops_replace_cpu_release(skel, "scx_bpf_reenqueue_local___v2");
}

static int prepare(void *skel)
{
	struct scx_pair *pair = skel;

	pair->links.pair_sched_switch = bpf_program__attach(pair->progs.pair_sched_switch);
	return pair->links.pair_sched_switch ? 0 : -errno;
}

static void read_stats(void *skel, void *stats)
{
	scx_percpu_sum(((struct scx_pair *)skel)->maps.stats, stats, sizeof(struct pair_stats));
}

#define STAT(member, desc) SCX_STAT(struct pair_stats, member, COUNTER, desc)
static const struct scx_stat stats[] = {
	STAT(enqueued, "Tasks inserted into the DSQ of their cgroup"),
	STAT(dispatched, "Tasks taken from the DSQ of their cgroup"),
	STAT(kept, "Times that a task continued on slice expiry"),
	STAT(kernel, "Dispatches of kernel threads, and of dying tasks without a cgroup"),
	STAT(turns, "Turns of cgroups on pairs of CPUs"),
	STAT(switches, "Turns of another cgroup than the one before"),
	STAT(waits, "Times that a CPU found no task that may run beside that of the other CPU"),
	STAT(ended, "Tasks preempted by the other CPU at the end of a turn"),
	STAT(reenqueued, "Tasks enqueued again because a task of a higher class took their CPU"),
	{ 0 },
};

SCX_SKEL(scx_pair);

static const struct scx_sched pair = {
	.name = "scx_pair",
	.doc = "A scheduler that runs tasks of one cgroup at a time on the two threads of a core."
	       "\vOnly cgroups with the cpu controller count.",
	.options = options,
	.parse = parse,
	.check = check,
	.skel = &scx_pair_skel,
	.configure = configure,
	.prepare = prepare,
	.stats = stats,
	.stats_size = sizeof(struct pair_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&pair, argc, argv);
}
