// SPDX-License-Identifier: GPL-2.0-only
/* User-space side of scx_rbtree.bpf.c, with its own main(). */
#include <assert.h>
#include <bpf/bpf.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <scx/common.h>
#include "scx_rbtree.bpf.skel.h"

static const char help_fmt[] = "A red-black tree of waiting tasks, for tests.\n"
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

int main(int argc, char **argv)
{
	struct scx_rbtree *skel;
	struct bpf_link *link;
	__u64 ecode;
	int opt;

	libbpf_set_print(libbpf_print_fn);
	signal(SIGINT, sigint_handler);
	signal(SIGTERM, sigint_handler);
restart:
	optind = 1;
	skel = SCX_OPS_OPEN(rbtree_ops, scx_rbtree);

	while ((opt = getopt(argc, argv, "s:e:d:pvh")) != -1) {
		switch (opt) {
		case 's':
			skel->rodata->slice_ns = strtoull(optarg, NULL, 0) * 1000;
			break;
		case 'e':
			skel->rodata->error_after = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			skel->struct_ops.rbtree_ops->exit_dump_len = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			skel->struct_ops.rbtree_ops->flags |= SCX_OPS_SWITCH_PARTIAL;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr, help_fmt, basename(argv[0]));
			return opt != 'h';
		}
	}

	SCX_OPS_LOAD(skel, rbtree_ops, scx_rbtree, uei);
	link = SCX_OPS_ATTACH(skel, rbtree_ops, scx_rbtree);

	while (!exit_req && !UEI_EXITED(skel, uei)) {
		printf("enqueued=%llu decided=%llu stale=%llu slice_us=%llu\n",
		       (unsigned long long)skel->bss->nr_enqueued,
		       (unsigned long long)skel->bss->nr_popped,
		       (unsigned long long)skel->bss->nr_stale,
		       (unsigned long long)skel->rodata->slice_ns / 1000);
		fflush(stdout);
		sleep(1);
	}

	bpf_link__destroy(link);
	ecode = UEI_REPORT(skel, uei);
	scx_rbtree__destroy(skel);

	if (UEI_ECODE_RESTART(ecode))
		goto restart;
	return 0;
}
