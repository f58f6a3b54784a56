// SPDX-License-Identifier: GPL-2.0-only
/* User-space side of scx_uqueue.bpf.c, with its own main(). */
#include <assert.h>
#include <bpf/bpf.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <scx/common.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <time.h>
#include "scx_uqueue.h"
#include "scx_uqueue.bpf.skel.h"

/* The interval of polling while no task is enqueued. */
#define POLL_NS 2000000L

/* The kernel's upper limit of pids. */
#define PID_MAX (1 << 22)

/* A waiting task. The list is sorted by vruntime. */
struct waiter {
	LIST_ENTRY(waiter) entries;
	struct uqueue_task task;
	double vruntime;
};

static LIST_HEAD(, waiter) waiters = LIST_HEAD_INITIALIZER(waiters);
/* Virtual runtimes by pid, ms: CPU time x 100 / weight, but at least min_vruntime. */
static float *vruntimes;
static double min_vruntime;

static const char help_fmt[] = "A policy in user space, connected by BPF queues, for tests.\n"
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

static void insert_sorted(struct waiter *new)
{
	struct waiter *w, *last = NULL;

	LIST_FOREACH(w, &waiters, entries)
	{
		if (w->vruntime > new->vruntime)
			break;
		last = w;
	}
	if (last)
		LIST_INSERT_AFTER(last, new, entries);
	else
		LIST_INSERT_HEAD(&waiters, new, entries);
}

/* Move the tasks of the BPF queue to the list. Return their number. */
static int drain(int to_user_fd)
{
	struct uqueue_task task;
	int nr = 0;

	for (; !bpf_map_lookup_and_delete_elem(to_user_fd, NULL, &task); nr++) {
		struct waiter *w = calloc(1, sizeof(*w));
		float *vruntime = &vruntimes[task.pid % PID_MAX];

		SCX_BUG_ON(!w, "no memory");
		*vruntime += task.ran_ns / 1e6 * 100 / task.weight;
		if (*vruntime < min_vruntime)
			*vruntime = min_vruntime;
		w->task = task;
		w->vruntime = *vruntime;
		insert_sorted(w);
	}
	return nr;
}

/* Send decisions on the waiting tasks, in the order of the list, until the BPF queue is full. */
static void decide(int from_user_fd)
{
	struct waiter *w;

	while ((w = LIST_FIRST(&waiters))) {
		struct uqueue_decision decision = { .pid = w->task.pid, .seq = w->task.seq };

		if (bpf_map_update_elem(from_user_fd, NULL, &decision, 0))
			break;
		min_vruntime = w->vruntime;
		LIST_REMOVE(w, entries);
		free(w);
	}
}

static void forget_all(void)
{
	struct waiter *w;

	while ((w = LIST_FIRST(&waiters))) {
		LIST_REMOVE(w, entries);
		free(w);
	}
}

static void schedule(struct scx_uqueue *skel)
{
	const struct timespec poll = { .tv_nsec = POLL_NS };

	if (!drain(bpf_map__fd(skel->maps.to_user)))
		nanosleep(&poll, NULL);
	decide(bpf_map__fd(skel->maps.from_user));
}

int main(int argc, char **argv)
{
	struct scx_uqueue *skel;
	struct bpf_link *link;
	time_t printed_at = 0;
	__u64 ecode;
	int opt;

	libbpf_set_print(libbpf_print_fn);
	signal(SIGINT, sigint_handler);
	signal(SIGTERM, sigint_handler);
	vruntimes = calloc(PID_MAX, sizeof(*vruntimes));
	SCX_BUG_ON(!vruntimes, "no memory");
restart:
	optind = 1;
	skel = SCX_OPS_OPEN(uqueue_ops, scx_uqueue);
	/* With MCL_ONFAULT, pages are allocated on fault: most of @vruntimes is never used. */
	SCX_BUG_ON(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), "mlockall failed");

	while ((opt = getopt(argc, argv, "s:e:d:pvh")) != -1) {
		switch (opt) {
		case 's':
			skel->rodata->slice_ns = strtoull(optarg, NULL, 0) * 1000;
			break;
		case 'e':
			skel->rodata->error_after = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			skel->struct_ops.uqueue_ops->exit_dump_len = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			skel->struct_ops.uqueue_ops->flags |= SCX_OPS_SWITCH_PARTIAL;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr, help_fmt, basename(argv[0]));
			return opt != 'h';
		}
	}

	skel->rodata->user_tgid = getpid();
	SCX_OPS_LOAD(skel, uqueue_ops, scx_uqueue, uei);
	link = SCX_OPS_ATTACH(skel, uqueue_ops, scx_uqueue);

	while (!exit_req && !UEI_EXITED(skel, uei)) {
		schedule(skel);
		if (printed_at == time(NULL))
			continue;
		printed_at = time(NULL);
		printf("enqueued=%llu decided=%llu stale=%llu slice_us=%llu\n",
		       (unsigned long long)skel->bss->nr_enqueued,
		       (unsigned long long)skel->bss->nr_decided,
		       (unsigned long long)skel->bss->nr_stale,
		       (unsigned long long)skel->rodata->slice_ns / 1000);
		fflush(stdout);
	}

	bpf_link__destroy(link);
	forget_all();
	ecode = UEI_REPORT(skel, uei);
	scx_uqueue__destroy(skel);

	if (UEI_ECODE_RESTART(ecode))
		goto restart;
	return 0;
}
