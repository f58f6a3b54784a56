// SPDX-License-Identifier: GPL-2.0-only
/* User-space side of scx_masks.bpf.c, with its own main(). */
#include <assert.h>
#include <bpf/bpf.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <scx/common.h>
#include "scx_masks.bpf.skel.h"

static const char help_fmt[] =
	"Prefers the idle CPUs of a mask, for tests.\n"
	"\n"
	"Usage: %s [-s SLICE_US] [-n CPUS] [-e COUNT] [-d DUMP_LEN] [-p] [-v]\n"
	"\n"
	"  -s SLICE_US   Time slice\n"
	"  -n CPUS       How many CPUs are preferred\n"
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

int main(int argc, char **argv)
{
	struct scx_masks *skel;
	struct bpf_link *link;
	__u64 ecode;
	int opt;

	libbpf_set_print(libbpf_print_fn);
	signal(SIGINT, sigint_handler);
	signal(SIGTERM, sigint_handler);
restart:
	optind = 1;
	skel = SCX_OPS_OPEN(masks_ops, scx_masks);

	while ((opt = getopt(argc, argv, "s:n:e:d:pvh")) != -1) {
		switch (opt) {
		case 's':
			skel->rodata->slice_ns = strtoull(optarg, NULL, 0) * 1000;
			break;
		case 'n':
			skel->rodata->nr_preferred = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			skel->rodata->error_after = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			skel->struct_ops.masks_ops->exit_dump_len = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			skel->struct_ops.masks_ops->flags |= SCX_OPS_SWITCH_PARTIAL;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr, help_fmt, basename(argv[0]));
			return opt != 'h';
		}
	}

	SCX_OPS_LOAD(skel, masks_ops, scx_masks, uei);
	link = SCX_OPS_ATTACH(skel, masks_ops, scx_masks);

	while (!exit_req && !UEI_EXITED(skel, uei)) {
		printf("enqueued=%llu decided=%llu other=%llu slice_us=%llu\n",
		       (unsigned long long)skel->bss->nr_enqueued,
		       (unsigned long long)skel->bss->nr_preferred_idle,
		       (unsigned long long)skel->bss->nr_other_idle,
		       (unsigned long long)skel->rodata->slice_ns / 1000);
		fflush(stdout);
		sleep(1);
	}

	bpf_link__destroy(link);
	ecode = UEI_REPORT(skel, uei);
	scx_masks__destroy(skel);

	if (UEI_ECODE_RESTART(ecode))
		goto restart;
	return 0;
}
