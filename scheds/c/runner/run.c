// SPDX-License-Identifier: GPL-2.0-only
/* The life of a C scheduler. In each generation the BPF object is opened, loaded and attached. The
 * runner then waits for the end of the scheduler, and reports it. CPU hotplug begins a new
 * generation. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* Maximum time between two checks of whether the kernel has ended the scheduler. */
#define EXIT_POLL_S 0.25

/* Repeated CPU hotplug: after FAST_RESTARTS consecutive generations shorter than
 * SHORT_GENERATION_S, each restart is delayed by SLOW_RESTART_S. */
#define SHORT_GENERATION_S 10.0
#define FAST_RESTARTS 10
#define SLOW_RESTART_S 1.0

struct run {
	const struct scx_sched *sched;
	struct scx_common_opts opts;
	struct scx_server *server;
	void *skel;
	struct bpf_link *link;
	bool is_prepared; /* prepare() was called, if there is one */
	uint64_t enable_seq; /* scx_kernel_enable_seq() before the attach of this generation */
};

static bool verbose;

__attribute__((format(printf, 2, 3))) static void complain(const struct run *run, const char *fmt,
							   ...)
{
	va_list args;

	fprintf(stderr, "%s: ", run->sched->name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN || verbose)
		vfprintf(stderr, fmt, args);
	return 0;
}

/* Wait until a stop signal is pending or wake_fd() is readable, but at most @wait_s. Returns
 * whether a signal is pending. It stays pending, so later calls return true as well. */
static bool wait_for_stop(const struct run *run, double wait_s)
{
	return scx_server_wait(run->server, wait_s);
}

double scx_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Watch the scheduler until the scheduler ends (false), a signal arrives, or the reader of the
 * statistics closes its end of the pipe (true). */
static bool watch(const struct run *run, const struct scx_exit_record *rec)
{
	double interval_s = run->opts.interval_s;
	double next_s = scx_now_s() + interval_s;

	while (!scx_exit_pending(rec)) {
		bool is_busy = run->sched->tick && run->sched->tick(run->skel);
		double left_s = interval_s ? next_s - scx_now_s() : EXIT_POLL_S;

		if (left_s <= 0) {
			if (!scx_stats_print(run->sched, run->skel, stdout))
				return true;
			next_s += interval_s;
			/* If this process was delayed, do not make up for the missed lines. */
			if (next_s < scx_now_s())
				next_s = scx_now_s() + interval_s;
			continue;
		}
		if (is_busy)
			left_s = 0;
		if (wait_for_stop(run, left_s < EXIT_POLL_S ? left_s : EXIT_POLL_S))
			return true;
	}
	return false;
}

/* Open the object and set everything that is known before the load. */
static int open_and_configure(struct run *run, uint64_t hotplug_seq)
{
	struct bpf_object *obj;

	run->skel = run->sched->skel->open();
	if (!run->skel) {
		complain(run, "cannot open the BPF object: %s", strerror(errno));
		return -1;
	}
	obj = scx_skel_obj(run->skel);
	scx_ops_set(obj, "hotplug_seq", hotplug_seq);
	if (scx_exit_prepare(obj, run->opts.exit_dump_len)) {
		complain(run, "cannot size the debug dump");
		return -1;
	}
	if (run->opts.partial && !scx_ops_or_flag(obj, "SCX_OPS_SWITCH_PARTIAL")) {
		complain(run, "this kernel does not support --partial");
		return -1;
	}
	if (run->sched->cgroups)
		scx_ops_fit_cgroups(obj, run->sched->cgroups());
	if (run->sched->configure)
		run->sched->configure(run->skel);
	return 0;
}

static int load_and_attach(struct run *run)
{
	int err = run->sched->skel->load(run->skel);

	if (err) {
		complain(run, "the kernel refused the BPF programs: %s", strerror(-err));
		return -1;
	}
	err = run->sched->prepare ? run->sched->prepare(run->skel) : 0;
	run->is_prepared = true;
	if (err) {
		complain(run, "cannot prepare the policy: %s", strerror(-err));
		return -1;
	}
	err = scx_attach(scx_ops_map(scx_skel_obj(run->skel)), &run->link, &run->enable_seq);
	if (!err)
		return 0;
	complain(run, "%s", scx_attach_error(err));
	return -1;
}

static void detach(struct run *run)
{
	bpf_link__destroy(run->link);
	run->link = NULL;
}

static void close_skel(struct run *run)
{
	detach(run);
	if (run->is_prepared && run->sched->finish)
		run->sched->finish(run->skel);
	run->is_prepared = false;
	if (run->skel)
		run->sched->skel->destroy(run->skel);
	run->skel = NULL;
}

/*
 * Run an attached scheduler until it ends. Registration reports success even if the kernel fails to
 * enable the scheduler, for example because ops.init() returns an error. In this case the exit
 * record has the cause, and the kernel has not incremented enable_seq.
 */
static enum scx_outcome run_attached(struct run *run)
{
	const struct bpf_object *obj = scx_skel_obj(run->skel);
	const struct scx_exit_record *rec = scx_exit_record(obj);
	bool stopped;
	bool ran = scx_kernel_enable_seq() != run->enable_seq;
	char cause[SCX_EXIT_MSG_LEN];
	enum scx_outcome outcome;

	scx_server_set_skel(run->server, run->skel);
	stopped = watch(run, rec);
	scx_server_set_skel(run->server, NULL);
	/* Unregistering is synchronous: the record is complete when this returns. */
	detach(run);
	outcome = scx_exit_outcome(rec, ran);
	if (outcome == SCX_OUTCOME_FAILED) {
		scx_exit_cause(rec, cause);
		complain(run, "the scheduler failed to start: %s", cause);
	}
	if (outcome != SCX_OUTCOME_FAILED || verbose)
		scx_exit_report(obj, rec, stderr);
	/* A stop request takes precedence over a restart. */
	return stopped && outcome == SCX_OUTCOME_RESTART ? SCX_OUTCOME_DONE : outcome;
}

static enum scx_outcome run_generation(struct run *run)
{
	/* Read before anything that depends on the CPUs, so that the kernel notices any later
	 * hotplug event. */
	uint64_t hotplug_seq = scx_kernel_hotplug_seq();
	enum scx_outcome outcome = SCX_OUTCOME_FAILED;
	struct scx_nice before = scx_nice_raise();
	bool attached = !open_and_configure(run, hotplug_seq) && !load_and_attach(run);

	scx_kernel_drop_btf();
	scx_nice_restore(&before);
	if (attached)
		outcome = run_attached(run);
	close_skel(run);
	return outcome;
}

static enum scx_outcome run_generations(struct run *run)
{
	int restarts = 0;

	for (;;) {
		double start_s = scx_now_s();
		enum scx_outcome outcome = run_generation(run);

		if (outcome != SCX_OUTCOME_RESTART)
			return outcome;
		complain(run, "restarting");
		restarts = scx_now_s() - start_s < SHORT_GENERATION_S ? restarts + 1 : 0;
		if (wait_for_stop(run, restarts < FAST_RESTARTS ? 0 : SLOW_RESTART_S))
			return SCX_OUTCOME_DONE;
	}
}

static void warn_of_ineffective_cgroups(const struct run *run)
{
	unsigned int all = SCX_CGROUP_WEIGHT | SCX_CGROUP_IDLE | SCX_CGROUP_MAX;
	unsigned int implemented = run->sched->cgroups ? run->sched->cgroups() : 0;
	unsigned int unreported = implemented ? implemented & scx_cgroups_unreported() : 0;
	char names[SCX_CGROUP_NAMES_LEN];
	struct scx_cgroups cgroups;

	if (unreported) {
		scx_cgroups_name(unreported, names);
		complain(run, "this kernel does not report %s of cgroups: no effect", names);
	}
	if (implemented == all)
		return;
	scx_cgroups_find("/sys/fs/cgroup", all & ~implemented, &cgroups);
	if (!cgroups.nr)
		return;
	scx_cgroups_name(all & ~implemented, names);
	complain(run, "%s of cgroups have no effect under this scheduler: %d set them, e.g. %s",
		 names, cgroups.nr, cgroups.first);
}

static bool is_ignored(int signal)
{
	struct sigaction action;

	return !sigaction(signal, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* Block SIGINT, SIGTERM and SIGHUP (the terminal is closed), and return a descriptor that is
 * readable when one of them is pending. So only wait_for_stop() notices them, at points where
 * stopping is safe. A blocked signal becomes pending even if it is ignored, so SIGHUP is not
 * blocked if nohup has started the program. */
static int block_stop_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* Make glibc return each block of at least M_MMAP_THRESHOLD bytes to the kernel when the block is
 * freed. By default, glibc raises this threshold to the size of the largest block that was freed so
 * far. After a restart, the process would keep up to 10 MB that libbpf had needed for the kernel's
 * type information. */
static void return_freed_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
	/* glibc's initial threshold, 128 KiB. Setting the threshold disables its adjustment. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

int scx_run(const struct scx_sched *sched, int argc, char **argv)
{
	struct run run = { .sched = sched };
	struct scx_priority rcu = { .raised = false };
	enum scx_outcome outcome;
	const char *missing;
	int signal_fd;

	scx_parse_opts(sched, argc, argv, &run.opts);
	verbose = run.opts.verbose;
	libbpf_set_print(print_libbpf);
	return_freed_blocks();

	/* scx_stats_print() notices that the reader of a pipe has gone. */
	signal(SIGPIPE, SIG_IGN);
	signal_fd = block_stop_signals();
	missing = signal_fd < 0 ? "no signalfd" : scx_kernel_check();
	if (!missing && sched->check)
		missing = sched->check();
	if (missing) {
		complain(&run, "%s", missing);
		return SCX_STATUS_FAILED;
	}

	warn_of_ineffective_cgroups(&run);
	run.server = scx_server_start(sched, signal_fd);
	if (!run.server) {
		complain(&run, "out of memory");
		return SCX_STATUS_FAILED;
	}
	if (!scx_kernel_has_ext_server())
		rcu = scx_rcu_boost();
	scx_class_switch_start();
	outcome = run_generations(&run);
	scx_priority_restore(&rcu);
	scx_server_stop(run.server);
	return scx_outcome_status(outcome);
}
