// SPDX-License-Identifier: GPL-2.0-only
/* The user-space side of scx_qmap; the policy is scx_qmap.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "runner/runner.h"
/* The skeleton uses the types of this header. */
#include "scx_qmap.h"

#include "scx_qmap.bpf.skel.h"

/* ops.timeout_ms if a stall or an endless loop is requested, so that the watchdog acts soon. */
#define STALL_TIMEOUT_MS 2000

/* Maximum value of arguments that count enqueues or dispatches. */
#define COUNT_MAX 1e15

static struct {
	uint64_t slice_us;
	uint32_t batch, queue_len;
	uint64_t error_after, loop_after;
	uint64_t stall_user_nth, stall_kernel_nth;
	int32_t disallowed_tgid;
	bool boost, no_dump, print_shared;
} opts = { .slice_us = 20000, .batch = 1, .queue_len = QMAP_QUEUE_LEN };

static const struct argp_option options[] = {
	{ "slice-us", 's', "US", 0,
	  "Let a task run for US microseconds while others wait (20000)" },
	{ "batch", 'b', "N", 0, "Move N tasks at a time from the queues to the shared DSQ (1)" },
	{ "queue-len", 'q', "N", 0,
	  "Room for N tasks in each queue; the others wait in a DSQ (4096)" },
	{ "boost", 'H', NULL, 0, "Let tasks of nice -20 preempt others and run twice as long" },
	{ "print-shared", 'P', NULL, 0, "Print the tasks in the shared DSQ, once per second" },
	{ "disallow", 'd', "PID", 0,
	  "Refuse SCHED_EXT to the threads of this process, -1 for scx_qmap itself" },
	{ "no-dump", 'S', NULL, 0, "Leave the scheduler's state out of the kernel's debug dump" },
	{ 0, 0, NULL, 0, "Failures on request:" },
	{ "error-after", 'e', "N", 0, "Raise an error at the Nth enqueue" },
	{ "stall-user", 't', "N", 0, "Lose a task at every Nth enqueue of user tasks" },
	{ "stall-kernel", 'T', "N", 0, "Lose a task at every Nth enqueue of kernel threads" },
	{ "loop-after", 'l', "N", 0, "From the Nth dispatch on, dispatch a task that sleeps" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		opts.slice_us = scx_parse_number(state, "slice-us", arg, 100, 1e6);
		return 0;
	case 'b':
		opts.batch = scx_parse_number(state, "batch", arg, 1, QMAP_BATCH_MAX);
		return 0;
	case 'q':
		opts.queue_len = scx_parse_number(state, "queue-len", arg, 1, 1 << 20);
		return 0;
	case 'H':
		opts.boost = true;
		return 0;
	case 'P':
		opts.print_shared = true;
		return 0;
	case 'd':
		opts.disallowed_tgid = scx_parse_number(state, "disallow", arg, -1, INT32_MAX);
		return 0;
	case 'S':
		opts.no_dump = true;
		return 0;
	case 'e':
		opts.error_after = scx_parse_number(state, "error-after", arg, 1, COUNT_MAX);
		return 0;
	case 't':
		opts.stall_user_nth = scx_parse_number(state, "stall-user", arg, 1, COUNT_MAX);
		return 0;
	case 'T':
		opts.stall_kernel_nth = scx_parse_number(state, "stall-kernel", arg, 1, COUNT_MAX);
		return 0;
	case 'l':
		opts.loop_after = scx_parse_number(state, "loop-after", arg, 1, COUNT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void configure(void *skel)
{
	struct scx_qmap *qmap = skel;
	struct bpf_map *queues[] = { qmap->maps.queue0, qmap->maps.queue1, qmap->maps.queue2,
				     qmap->maps.queue3, qmap->maps.queue4 };

	for (int i = 0; i < QMAP_NR_QUEUES; i++)
		bpf_map__set_max_entries(queues[i], opts.queue_len);

	qmap->rodata->slice_ns = opts.slice_us * 1000;
	qmap->rodata->batch = opts.batch;
	qmap->rodata->boost = opts.boost;
	qmap->rodata->no_dump = opts.no_dump;
	qmap->rodata->disallowed_tgid = opts.disallowed_tgid < 0 ? getpid() : opts.disallowed_tgid;
	qmap->rodata->error_after = opts.error_after;
	qmap->rodata->loop_after = opts.loop_after;
	qmap->rodata->stall_user_nth = opts.stall_user_nth;
	qmap->rodata->stall_kernel_nth = opts.stall_kernel_nth;
	if (opts.loop_after || opts.stall_user_nth || opts.stall_kernel_nth)
		qmap->struct_ops.qmap_ops->timeout_ms = STALL_TIMEOUT_MS;
	scx_ops_set_flag(skel, "SCX_OPS_KEEP_BUILTIN_IDLE");
	scx_ops_set_flag(skel, "SCX_OPS_ENQ_LAST");
	if (scx_ops_replace_cpu_release(skel, "scx_bpf_reenqueue_local___v2"))
		bpf_program__set_autoload(qmap->progs.qmap_sched_switch, true);
}

/* Run a program of type "syscall". Returns what the program returns, or a negative errno if it
 * cannot be run. */
static int call(const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &run);

	return err ?: (int)run.retval;
}

static int prepare(void *skel)
{
	struct scx_qmap *qmap = skel;

	if (bpf_program__autoload(qmap->progs.qmap_sched_switch)) {
		qmap->links.qmap_sched_switch = bpf_program__attach(qmap->progs.qmap_sched_switch);
		if (!qmap->links.qmap_sched_switch)
			return -errno;
	}
	return call(qmap->progs.qmap_register);
}

static bool tick(void *skel)
{
	static time_t printed_at;
	struct scx_qmap *qmap = skel;
	time_t now = time(NULL);

	if (!opts.print_shared || now == printed_at)
		return false;
	printed_at = now;
	if (call(qmap->progs.qmap_list))
		return false;
	printf("shared DSQ:");
	for (uint32_t i = 0; i < qmap->bss->nr_listed; i++)
		printf(" %s[%d]", qmap->bss->listed[i].comm, qmap->bss->listed[i].pid);
	putchar('\n');
	fflush(stdout);
	return false;
}

/* The statistics that are sent over the socket and printed. */
struct shown {
	struct qmap_stats counters;
	u64 waiting;
	u64 perf;
};

static void read_stats(void *skel, void *stats)
{
	struct scx_qmap *qmap = skel;
	struct shown *shown = stats;
	struct qmap_cpu cpus;

	scx_percpu_sum(qmap->maps.stats, &shown->counters, sizeof(shown->counters));
	scx_percpu_sum(qmap->maps.cpus, &cpus, sizeof(cpus));
	shown->perf = cpus.perf / libbpf_num_possible_cpus();
	shown->waiting = 0;
	for (int i = 0; i < QMAP_NR_QUEUES; i++) {
		/* Read nr_popped before nr_pushed, so that the difference is never negative. */
		uint64_t popped = __atomic_load_n(&qmap->bss->nr_popped[i], __ATOMIC_ACQUIRE);

		shown->waiting += qmap->bss->nr_pushed[i] - popped;
	}
}

#define COUNTER(member, desc) \
	{ #member, desc, SCX_STAT_COUNTER, offsetof(struct shown, counters.member) }
static const struct scx_stat stats[] = {
	COUNTER(enqueued, "Tasks pushed to a queue"),
	COUNTER(dispatched, "Tasks popped from a queue"),
	COUNTER(dequeued, "Tasks that left a queue on a change of class, affinity or nice value, "
			  "or by core scheduling"),
	COUNTER(queue0, "Tasks popped from the queue of weights up to 25"),
	COUNTER(queue1, "Tasks popped from the queue of weights up to 50"),
	COUNTER(queue2, "Tasks popped from the queue of weights below 200"),
	COUNTER(queue3, "Tasks popped from the queue of weights below 400"),
	COUNTER(queue4, "Tasks popped from the queue of higher weights"),
	COUNTER(direct, "Tasks inserted directly into a local DSQ"),
	COUNTER(kept, "Times that a task continued on slice expiry"),
	COUNTER(boosted, "Tasks of nice -20 that preceded the queues"),
	COUNTER(overflow, "Tasks that were not queued because their queue was full or locked"),
	COUNTER(stale, "Entries whose task had left the queue"),
	COUNTER(reenqueued, "Tasks enqueued again because a task of a higher class took their CPU"),
	COUNTER(core_picked, "Tasks taken from a queue by core scheduling"),
	COUNTER(dropped, "Tasks lost on request"),
	SCX_STAT(struct shown, waiting, GAUGE, "Entries in the queues"),
	SCX_STAT(struct shown, perf, GAUGE, "Average requested CPU performance, out of 1024"),
	{ 0 },
};

SCX_SKEL(scx_qmap);

static const struct scx_sched qmap = {
	.name = "scx_qmap",
	.doc = "Five queues by weight, served in the ratio 1:2:4:8:16: a test bed for sched_ext."
	       "\vIt can fail on request, to test how the kernel and other programs react.",
	.options = options,
	.parse = parse,
	.skel = &scx_qmap_skel,
	.configure = configure,
	.prepare = prepare,
	.tick = tick,
	.stats = stats,
	.stats_size = sizeof(struct shown),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&qmap, argc, argv);
}
