// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that helps the kernel when it does not get on with moving tasks between classes.
 *
 * While a scheduler is attached or goes away, the kernel waits for the end of a grace
 * period of RCU, and then for those who fork. Until it goes on, some tasks are in the
 * ext class and others in the fair class, which goes first. Where enough of the latter
 * compute, the former do not run; and if one of them was interrupted within an RCU
 * reader, or half-way through a fork, the machine hangs for as long as the others
 * compute. 7.2 sets a twentieth of the time aside for the ext class: it does not hang,
 * but those whom it waits for are that much slower.
 *
 * But a task goes at once to the class that it is to be in when anybody sets its
 * parameters, also to what they are already: then all are in one class, and share the
 * CPUs. So that is what this does, if it takes long. After kill -9 nobody does it.
 */
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* How often it looks. What it finds twice takes long. */
#define POLL_MS 500

/* Room for "/proc/PID/task". */
#define TASKS_PATH_MAX 64

static void usher_threads(const char *process)
{
	/* What is not of a real-time policy has no priority. To others this is an error. */
	const struct sched_param as_it_is = { .sched_priority = 0 };
	char path[TASKS_PATH_MAX];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (isdigit((unsigned char)entry->d_name[0]))
			/* Not the function of the C library: musl's does nothing. */
			syscall(SYS_sched_setparam, atoi(entry->d_name), &as_it_is);
	if (tasks)
		closedir(tasks);
}

static void usher_all(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			usher_threads(entry->d_name);
	if (proc)
		closedir(proc);
}

static void *usher(void *unused)
{
	const struct timespec poll = { .tv_nsec = POLL_MS * 1000000L };
	bool moving = false;

	(void)unused;
	scx_priority_raise_self();
	for (;;) {
		bool moved_before = moving;

		nanosleep(&poll, NULL);
		moving = scx_kernel_is_moving_tasks();
		if (moving && moved_before)
			usher_all();
	}
	return NULL;
}

void scx_usher_start(void)
{
	pthread_t thread;

	/*
	 * Who gathers pages into huge ones holds up whoever touches them: khugepaged, an
	 * ordinary task, which this is to help. A kernel without it refuses.
	 */
	prctl(PR_SET_THP_DISABLE, 1L, 0L, 0L, 0L);
	/* Without one the scheduler still runs. */
	if (!pthread_create(&thread, NULL, usher, NULL))
		pthread_detach(thread);
}
