// SPDX-License-Identifier: GPL-2.0-only
/* User-space side of scx_resized.bpf.c, with its own main(). */
#include <assert.h>
#include <bpf/bpf.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <scx/common.h>
#include "scx_resized.h"
#include "scx_resized.bpf.skel.h"

static const char help_fmt[] = "A queue and a time slice for each CPU, for tests.\n"
			       "\n"
			       "Usage: %s [-s SLICE_US] [-e COUNT] [-d DUMP_LEN] [-p] [-v]\n"
			       "\n"
			       "  -s SLICE_US   Time slice\n"
			       "  -e COUNT      Call scx_bpf_error() at enqueue number COUNT\n"
			       "  -d DUMP_LEN   Length of the debug dump in bytes\n"
			       "  -p            Switch only tasks of the policy SCHED_EXT\n"
			       "  -v            Print libbpf's messages\n"
			       "  -h            Print this help\n";

static bool verbose;
static volatile sig_atomic_t exit_req;

static int libbpf_print_fn(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG && !verbose)
		return 0;
	if (level == LIBBPF_INFO && !verbose)
		return 0;
	return vfprintf(stderr, format, args);
}

static void sigint_handler(int sig)
{
	exit_req = 1;
}

/* Print sums over all CPUs, and the slice and nr_given of the last CPU. */
static void print_stats(const struct scx_resized *skel, __u32 nr_cpus)
{
	__u64 nr_given = 0, nr_runs = 0;
	__u32 cpu, i;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		nr_given += skel->data_cpu_stats->cpu_stats[cpu].nr_given;
		for (i = 0; i < 4; i++)
			nr_runs += skel->data_cpu_stats->cpu_stats[cpu].nr_by_length[i];
	}
	printf("enqueued=%llu decided=%llu runs=%llu slice_us=%llu given_to_last=%llu\n",
	       (unsigned long long)skel->bss->nr_enqueued, (unsigned long long)nr_given,
	       (unsigned long long)nr_runs,
	       (unsigned long long)skel->rodata_slice_of_cpu->slice_of_cpu[nr_cpus - 1] / 1000,
	       (unsigned long long)skel->data_cpu_stats->cpu_stats[nr_cpus - 1].nr_given);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct scx_resized *skel;
	struct bpf_link *link;
	int nr_cpus = libbpf_num_possible_cpus(), cpu;
	__u64 ecode, slice_us = 5000;
	int opt;

	libbpf_set_print(libbpf_print_fn);
	signal(SIGINT, sigint_handler);
	signal(SIGTERM, sigint_handler);
restart:
	optind = 1;
	skel = SCX_OPS_OPEN(resized_ops, scx_resized);

	while ((opt = getopt(argc, argv, "s:e:d:pvh")) != -1) {
		switch (opt) {
		case 's':
			slice_us = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			skel->rodata->error_after = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			skel->struct_ops.resized_ops->exit_dump_len = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			skel->struct_ops.resized_ops->flags |= SCX_OPS_SWITCH_PARTIAL;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr, help_fmt, basename(argv[0]));
			return opt != 'h';
		}
	}

	SCX_BUG_ON(nr_cpus < 1, "no CPUs");
	skel->rodata->nr_cpu_ids = nr_cpus;
	RESIZE_ARRAY(skel, data, cpu_stats, nr_cpus);
	RESIZE_ARRAY(skel, rodata, slice_of_cpu, nr_cpus);
	for (cpu = 0; cpu < nr_cpus; cpu++)
		skel->rodata_slice_of_cpu->slice_of_cpu[cpu] = slice_us * 1000;

	SCX_OPS_LOAD(skel, resized_ops, scx_resized, uei);
	link = SCX_OPS_ATTACH(skel, resized_ops, scx_resized);

	while (!exit_req && !UEI_EXITED(skel, uei)) {
		print_stats(skel, nr_cpus);
		sleep(1);
	}

	bpf_link__destroy(link);
	ecode = UEI_REPORT(skel, uei);
	scx_resized__destroy(skel);

	if (UEI_ECODE_RESTART(ecode))
		goto restart;
	return 0;
}
