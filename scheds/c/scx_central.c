// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_central; the policy is scx_central.bpf.c. */
#include <bpf/libbpf.h>
#include <unistd.h>

#include "runner/runner.h"
#include "scx_central.bpf.skel.h"
#include "scx_central.h"

#define NSEC_PER_USEC 1000ULL

#define CPU_MAX 65535
#define SLICE_MIN_US 1000
#define SLICE_MAX_US 1000000

static int central_cpu = -1; /* -1: the first CPU that is online */
static uint64_t slice_us = 20000;

static const struct argp_option options[] = {
	{ "cpu", 'c', "CPU", 0, "The CPU that decides (the first one that is online)" },
	{ "slice-us", 's', "US", 0, "Time slice while other tasks wait (20000)" },
	{ 0 },
};

static bool is_online(int cpu)
{
	char path[64];
	FILE *file;
	int state;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	if (access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	file = fopen(path, "r");
	/* A CPU that cannot be taken offline has no such file. */
	if (!file)
		return true;
	state = fgetc(file);
	fclose(file);
	return state == '1';
}

static int first_online(void)
{
	int nr_cpus = libbpf_num_possible_cpus();

	for (int cpu = 0; cpu < nr_cpus; cpu++)
		if (is_online(cpu))
			return cpu;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'c':
		central_cpu = scx_parse_number(state, "cpu", arg, 0, CPU_MAX);
		if (!is_online(central_cpu))
			argp_failure(state, SCX_STATUS_FAILED, 0,
				     "--cpu %d: this CPU is not online, see "
				     "/sys/devices/system/cpu/online",
				     central_cpu);
		return 0;
	case 's':
		slice_us = scx_parse_number(state, "slice-us", arg, SLICE_MIN_US, SLICE_MAX_US);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Choose the central CPU. Called in each generation, since the CPU may have gone offline or come
 * back. */
static int choose_cpu(void)
{
	int cpu = central_cpu;

	if (cpu >= 0 && is_online(cpu))
		return cpu;
	cpu = first_online();
	if (central_cpu >= 0)
		fprintf(stderr, "scx_central: CPU %d is offline: CPU %d decides\n", central_cpu,
			cpu);
	return cpu;
}

static void configure(void *skel)
{
	struct scx_central *central = skel;

	central->rodata->central_cpu = choose_cpu();
	central->rodata->slice_ns = slice_us * NSEC_PER_USEC;
	bpf_map__set_max_entries(central->maps.cpu_ctxs, libbpf_num_possible_cpus());
	scx_ops_set_flag(skel, "SCX_OPS_ENQ_LAST");
}

static void read_stats(void *skel, void *stats)
{
	const struct scx_central *central = skel;
	struct central_stats *sums = stats;

	scx_percpu_sum(central->maps.stats, stats, sizeof(*sums));
	sums->central_cpu = central->rodata->central_cpu;
}

#define STAT(member, kind, desc) SCX_STAT(struct central_stats, member, kind, desc)
static const struct scx_stat stats[] = {
	STAT(central_cpu, GAUGE, "The CPU that decides"),
	STAT(total, COUNTER, "Enqueues"),
	STAT(local, COUNTER, "Enqueues on the task's CPU, without a decision"),
	STAT(queued, COUNTER, "Enqueues that need a decision"),
	STAT(dispatch, COUNTER, "Tasks given to another CPU"),
	STAT(own, COUNTER, "Tasks taken by the central CPU"),
	STAT(mismatch, COUNTER, "Tasks passed over because no waiting CPU may run them"),
	STAT(request, COUNTER, "Times that a CPU asked for a task"),
	STAT(timer, COUNTER, "Expiries of the timer"),
	STAT(preempt, COUNTER, "Tasks preempted by the timer"),
	{ 0 },
};

SCX_SKEL(scx_central);

static const struct scx_sched central = {
	.name = "scx_central",
	.doc = "One CPU makes all scheduling decisions, so that the others need no tick."
	       "\vBoot with nohz_full=CPUS to stop the tick on the other CPUs.",
	.options = options,
	.parse = parse,
	.skel = &scx_central_skel,
	.configure = configure,
	.stats = stats,
	.stats_size = sizeof(struct central_stats),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&central, argc, argv);
}
