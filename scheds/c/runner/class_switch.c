// SPDX-License-Identifier: GPL-2.0-only
/*
 * The class-switch helper: a thread that finishes switching tasks between scheduling classes when
 * the kernel is stuck while switching them.
 *
 * While the kernel enables or disables a scheduler, it waits for an RCU grace period and then for
 * forks in progress. Meanwhile some tasks are in the ext class and others in the fair class, which
 * has precedence. If enough of the fair tasks compute, the ext tasks starve. If one of these was
 * preempted within an RCU reader or during a fork, the machine hangs for as long as the fair tasks
 * compute. Linux 7.2 reserves 5 % of CPU time for the ext class. There the machine does not hang,
 * but the tasks that the kernel waits for get no more than this reserve.
 *
 * Setting a task's scheduling parameters, even to their present values, switches the task to its
 * new class at once. So if the kernel's switch takes long, this thread does that for all tasks.
 * After kill -9 of the scheduler's process there is no helper.
 *
 * An unload first waits for the end of CPU hotplug. In this stage, the kernel picks tasks of the
 * fair class only within a reserve of 5 % of CPU time. A task that this thread switched to the fair
 * class might be unable to leave a CPU that goes offline, and hotplug and unload would wait for
 * each other. So no task is switched in this stage.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* Period of the check. A switch in progress at two consecutive checks counts as stuck. */
#define POLL_MS 500

/* Fits "/proc/PID/task". */
#define TASKS_PATH_MAX 64

static void switch_threads(const char *process)
{
	/* Priority 0 keeps non-real-time policies as they are and is an error for real-time
	 * policies. */
	const struct sched_param as_it_is = { .sched_priority = 0 };
	char path[TASKS_PATH_MAX];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		/* Check this for each task, because the loop may take seconds. */
		if (!scx_kernel_is_switching_classes())
			break;
		/* musl's sched_setparam() always fails with ENOSYS. */
		syscall(SYS_sched_setparam, atoi(entry->d_name), &as_it_is);
	}
	if (tasks)
		closedir(tasks);
}

static void switch_all(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			switch_threads(entry->d_name);
	if (proc)
		closedir(proc);
}

static void *class_switch_thread(void *unused)
{
	const struct timespec poll = { .tv_nsec = POLL_MS * 1000000L };
	bool switching = false;

	(void)unused;
	scx_priority_raise_self();
	for (;;) {
		bool switched_before = switching;

		nanosleep(&poll, NULL);
		switching = scx_kernel_is_switching_classes();
		if (switching && switched_before)
			switch_all();
	}
	return NULL;
}

/* Number of file descriptors to make room for at the start: the usual limit. */
#define NR_FDS 1024

/*
 * Make room for NR_FDS file descriptors. If a process has several threads, the kernel waits for an
 * RCU grace period before it uses a larger table (expand_fdtable() in fs/file.c). If the helper
 * opened a file and the table had to grow, the helper would wait for the very grace period that
 * does not end without its help.
 */
static void grow_fd_table(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), last = NR_FDS - 1;
	struct rlimit limit;

	if (fd < 0)
		return;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < NR_FDS)
		last = (int)limit.rlim_cur - 1;
	/* The table does not shrink when this descriptor is closed. */
	last = fcntl(fd, F_DUPFD_CLOEXEC, last);
	if (last >= 0)
		close(last);
	close(fd);
}

void scx_class_switch_start(void)
{
	pthread_t thread;

	grow_fd_table();
	/*
	 * While khugepaged collapses pages, a page fault of this process may wait for khugepaged,
	 * which may be one of the starving tasks. So exclude the process from huge pages. On
	 * kernels without huge pages, prctl() has no effect.
	 */
	prctl(PR_SET_THP_DISABLE, 1L, 0L, 0L, 0L);
	/* If the thread cannot be created, the scheduler still runs. */
	if (!pthread_create(&thread, NULL, class_switch_thread, NULL))
		pthread_detach(thread);
}
