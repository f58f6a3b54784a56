// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of scx_userland. Tasks wait in a heap that is ordered by virtual runtime, which
 * advances by CPU time divided by weight. The main thread is the policy thread. It must not wait
 * for a task that it has yet to schedule, so its memory is allocated and locked at the start.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <rustland/intf.h>
#include <scx/vtime.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runner/runner.h"
#include "scx_userland.bpf.skel.h"

/* Maximum number of tasks that the policy holds. The records of further tasks stay in the ring
 * buffer rl_queued. While that is full, the BPF side serves tasks without a decision. */
#define WAITING_MAX (64 * 1024)

/* Approximate maximum time that a task of any weight waits because of its debt. The debt is the
 * lead of the task's virtual runtime over policy.vtime_now. The maximum is well below the timeout
 * of the kernel's watchdog, which the BPF side sets to 10 s. */
#define WAIT_MAX_NS 4000000000ULL

#define SLICE_US_DFL 20000

static struct {
	uint64_t slice_us;
	uint32_t batch;
} opts = { .slice_us = SLICE_US_DFL, .batch = 8 };

static const struct argp_option options[] = {
	{ "batch", 'b', "N", 0, "Dispatch up to N tasks more than there are idle CPUs (8)" },
	{ "slice-us", 's', "US", 0,
	  "Let a task run for US microseconds while others wait (20000)" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'b':
		opts.batch = scx_parse_number(state, "batch", arg, 1, 1024);
		return 0;
	case 's':
		opts.slice_us = scx_parse_number(state, "slice-us", arg, 100, 1e6);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A task that waits for a decision. */
struct waiting {
	u64 vtime; /* its virtual runtime, ns */
	u64 enq_seq;
	s32 pid;
	u32 weight;
	bool is_pinned;
};

/* The policy. The waiting tasks form a binary heap, in which no task precedes its parent: the
 * parent of waiting[i] is waiting[(i - 1) / 2]. */
static struct {
	struct rl_shared *shared;
	struct ring_buffer *queued;
	struct user_ring_buffer *decisions;
	struct waiting *waiting;
	size_t nr_waiting;
	u64 weight; /* sum of the weights of the tasks that wait */
	/* Virtual time: the largest vtime of a dispatched task. Pinned tasks do not count: a pinned
	 * task of low weight that has a CPU to itself is soon far ahead of all other tasks. */
	u64 vtime_now;
	u64 nr_stalls; /* shared->nr_stalls at the previous call of decide() */
} policy;

/* Access to the shared memory, which the BPF side reads and writes at any time. */
#define READ(word) __atomic_load_n(&policy.shared->word, __ATOMIC_ACQUIRE)
#define WRITE(word, value) __atomic_store_n(&policy.shared->word, (value), __ATOMIC_RELEASE)

static bool precedes(size_t a, size_t b)
{
	const struct waiting *first = &policy.waiting[a], *second = &policy.waiting[b];

	if (first->vtime != second->vtime)
		return time_before(first->vtime, second->vtime);
	return first->enq_seq < second->enq_seq;
}

static void swap(size_t a, size_t b)
{
	struct waiting task = policy.waiting[a];

	policy.waiting[a] = policy.waiting[b];
	policy.waiting[b] = task;
}

static void push(const struct waiting *task)
{
	size_t at = policy.nr_waiting++;

	policy.weight += task->weight;
	policy.waiting[at] = *task;
	while (at && precedes(at, (at - 1) / 2)) {
		swap(at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void pop(void)
{
	size_t at = 0, child = 1;

	policy.weight -= policy.waiting[0].weight;
	policy.waiting[0] = policy.waiting[--policy.nr_waiting];
	while (child < policy.nr_waiting) {
		if (child + 1 < policy.nr_waiting && precedes(child + 1, child))
			child++;
		if (!precedes(child, at))
			return;
		swap(child, at);
		at = child;
		child = 2 * at + 1;
	}
}

/* Send a decision that lets any CPU run the task. Returns false if the ring has no room. */
static bool dispatch(const struct waiting *task)
{
	struct rl_decision *decision =
		user_ring_buffer__reserve(policy.decisions, sizeof(*decision));

	if (!decision) {
		WRITE(nr_failed, READ(nr_failed) + 1);
		return false;
	}
	*decision = (struct rl_decision){
		.enq_seq = task->enq_seq,
		/* Not 0, which stands for a decision without a vtime: see struct rl_decision. */
		.vtime = task->vtime ?: 1,
		.pid = task->pid,
		.cpu = RL_CPU_ANY,
		/* With a weight, the BPF side advances the vtime by CPU time divided by weight, and
		 * lets the task continue on slice expiry while it precedes the waiting tasks. */
		.weight = task->weight,
	};
	user_ring_buffer__submit(policy.decisions, decision);
	WRITE(nr_sent, READ(nr_sent) + 1);
	if (!task->is_pinned)
		policy.vtime_now = time_max(policy.vtime_now, task->vtime);
	return true;
}

/* Return the virtual runtime of a task that was enqueued, with its credit and debt limited. */
static u64 vtime_of(const struct rl_queued *rec)
{
	u64 ahead_ns = scx_vtime_max_ahead(WAIT_MAX_NS, policy.weight), vtime;

	/* After a long sleep, a task may catch up on one slice at most. The limit of the debt keeps
	 * tasks of low weight from starving. */
	vtime = scx_vtime_limit_credit(rec->vtime, policy.vtime_now, opts.slice_us * 1000);
	return scx_vtime_limit_debt(vtime, policy.vtime_now, ahead_ns);
}

/* Handle a record of the ring: a task was enqueued. A record with pid 0 stands for no task. It only
 * wakes this thread. */
static int enqueue(void *ctx, void *data, size_t size)
{
	const struct rl_queued *rec = data;
	struct waiting task;

	if (size != sizeof(*rec) || !rec->pid)
		return 0;
	WRITE(seen, rec->enq_seq);
	task = (struct waiting){
		.vtime = vtime_of(rec),
		.enq_seq = rec->enq_seq,
		.pid = rec->pid,
		.weight = rec->weight,
		.is_pinned = rec->nr_cpus_allowed == 1,
	};
	push(&task);
	return 0;
}

static u64 nr_idle_cpus(void)
{
	u64 nr = 0;

	for (size_t i = 0; i < RL_CPU_WORDS; i++)
		nr += __builtin_popcountll(READ(idle[i]));
	/* If this thread woke up on an idle CPU, that CPU is idle again when the thread sleeps. */
	if (READ(free_cpu)) {
		WRITE(free_cpu, 0);
		nr++;
	}
	return nr;
}

/* Return how many decisions the machine can use now. While decisions come late (is_slow), and after
 * a stall, this is the number of all waiting tasks. During a stall the BPF side runs tasks itself,
 * so most of the decisions after a stall have no effect. */
static u64 nr_wanted(void)
{
	u64 nr_in_flight = READ(nr_sent) - READ(nr_drained), nr_decided, nr_free;

	if (READ(nr_stalls) != policy.nr_stalls || READ(is_slow))
		return policy.nr_waiting;
	nr_decided = nr_in_flight + READ(nr_spare);
	nr_free = nr_idle_cpus() + opts.batch;
	return nr_free > nr_decided ? nr_free - nr_decided : 0;
}

/* Dispatch the tasks with the smallest virtual runtimes. Returns false if the ring of decisions is
 * full. The program should then sleep, so that this CPU drains the ring, as the other CPUs do. */
static bool decide(void)
{
	u64 nr_stalls = READ(nr_stalls), nr = nr_wanted();

	policy.nr_stalls = nr_stalls;
	while (nr-- && policy.nr_waiting) {
		if (!dispatch(&policy.waiting[0]))
			return false;
		pop();
	}
	return true;
}

/* Whether the ring of queued tasks has a record, complete or still being written. */
static bool has_records(void)
{
	return ring__avail_data_size(ring_buffer__ring(policy.queued, 0)) > 0;
}

static bool tick(void *skel)
{
	size_t room = WAITING_MAX - policy.nr_waiting;
	bool has_sent;

	WRITE(is_sleeping, 0);
	if (room)
		ring_buffer__consume_n(policy.queued, room);
	has_sent = decide();
	WRITE(nr_waiting, policy.nr_waiting);
	/* If this counter stops while there is work, the BPF side detects a stall. */
	WRITE(nr_cycles, READ(nr_cycles) + 1);
	/* Set the flag, then check again, so that no wakeup is lost. */
	__atomic_store_n(&policy.shared->is_sleeping, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!has_sent)
		return false;
	return has_records() || (policy.nr_waiting && nr_wanted()) || !READ(is_sleeping);
}

static int wake_fd(void *skel)
{
	return bpf_map__fd(((struct scx_userland *)skel)->maps.rl_queued);
}

static void configure(void *skel)
{
	struct scx_userland *userland = skel;

	userland->rodata_rl_config->config.slice_ns = opts.slice_us * 1000;
	userland->rodata_rl_config->config.idle_selection = RL_IDLE_BUILTIN;
	scx_ops_set_flag(skel, "SCX_OPS_KEEP_BUILTIN_IDLE");
	/* Since 7.1, the timer of rustland/watchdog.bpf.h does what ops.cpu_release() does on older
	 * kernels. */
	scx_ops_replace_cpu_release(skel, "scx_bpf_dsq_reenq");
}

static int prepare(void *skel)
{
	struct scx_userland *userland = skel;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err;

	policy.shared = &userland->data_rl_shared->shared;
	policy.queued = ring_buffer__new(wake_fd(skel), enqueue, NULL, NULL);
	policy.decisions = user_ring_buffer__new(bpf_map__fd(userland->maps.rl_decisions), NULL);
	policy.waiting = calloc(WAITING_MAX, sizeof(*policy.waiting));
	if (!policy.queued || !policy.decisions || !policy.waiting)
		return -ENOMEM;
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return -errno;
	err = bpf_prog_test_run_opts(bpf_program__fd(userland->progs.rl_register_policy), &run);
	return err ?: (int)run.retval;
}

static void finish(void *skel)
{
	munlockall();
	ring_buffer__free(policy.queued);
	user_ring_buffer__free(policy.decisions);
	free(policy.waiting);
	memset(&policy, 0, sizeof(policy));
}

static void read_stats(void *skel, void *stats)
{
	struct rl_counters *sum = stats;

	scx_percpu_sum(((struct scx_userland *)skel)->maps.rl_counters, sum, sizeof(*sum));
	/* The sum may be negative, because the CPUs change their counters while these are read. */
	if ((int64_t)sum->nr_running < 0)
		sum->nr_running = 0;
}

#define STAT(member, kind, desc) SCX_STAT(struct rl_counters, member, kind, desc)
static const struct scx_stat stats[] = {
	STAT(nr_queued, COUNTER, "Enqueues that need a decision"),
	STAT(nr_dispatched, COUNTER, "Tasks dispatched as decided"),
	STAT(nr_fallback, COUNTER, "Tasks dispatched without a decision"),
	STAT(nr_congested, COUNTER, "Fallbacks because the ring of records was full"),
	STAT(nr_cancelled, COUNTER, "Tasks enqueued again or continued before the decision"),
	STAT(nr_dequeued, COUNTER, "Tasks that slept or exited before the decision"),
	STAT(nr_late, COUNTER, "Decisions on enqueues that had ended"),
	STAT(nr_kernel, COUNTER, "Dispatches that bypass the policy"),
	STAT(nr_kept, COUNTER, "Times that a task continued on slice expiry"),
	STAT(nr_wakeups, COUNTER, "Wakeups of the policy thread"),
	STAT(nr_running, GAUGE, "Tasks that run"),
	{ 0 },
};

SCX_SKEL(scx_userland);

static const struct scx_sched userland = {
	.name = "scx_userland",
	.doc = "A scheduler whose policy is a C program: weighted virtual runtime, smallest first."
	       "\vWhile the process does not respond, tasks are served in FIFO order.",
	.options = options,
	.parse = parse,
	.skel = &scx_userland_skel,
	.configure = configure,
	.prepare = prepare,
	.finish = finish,
	.tick = tick,
	.wake_fd = wake_fd,
	.stats = stats,
	.stats_size = sizeof(struct rl_counters),
	.read_stats = read_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&userland, argc, argv);
}
