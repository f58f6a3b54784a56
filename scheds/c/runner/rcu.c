// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raises the priority of RCU's grace-period kthread on kernels where it could starve.
 *
 * While the kernel enables or disables a scheduler, some tasks are in the ext class and others,
 * such as newly forked tasks, in the fair class. To block forks, the kernel waits for a grace
 * period. The fair class has precedence: if enough of its tasks compute to fill all CPUs, the
 * grace-period kthread starves in the ext class, and the machine hangs for as long as these tasks
 * compute. On 6.12 and 6.17, with four CPUs, four such tasks that are forked within a few ms
 * suffice. 7.2 reserves CPU time for the ext class.
 *
 * The boot option rcutree.kthread_prio=1 has the same effect.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* PID of kthreadd, the parent of all other kernel threads. Its only other children are programs
 * that the kernel itself starts. */
#define KTHREADD 2

/* Fits "/proc/PID/stat". */
#define STAT_PATH_MAX 64

/* Whether @pid is RCU's grace-period kthread. The parent is checked too, because any process may
 * have the kthread's name. */
static bool is_rcu_thread(const char *pid)
{
	char path[STAT_PATH_MAX], comm[16];
	int parent = 0, nr_read = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	nr_read = fscanf(f, "%*d (%15[^)]) %*c %d", comm, &parent);
	fclose(f);
	/* The names with and without CONFIG_PREEMPT_RCU. */
	return nr_read == 2 && parent == KTHREADD &&
	       (!strcmp(comm, "rcu_preempt") || !strcmp(comm, "rcu_sched"));
}

static pid_t find_rcu_thread(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_rcu_thread(entry->d_name))
			found = atoi(entry->d_name);
	if (proc)
		closedir(proc);
	return found;
}

struct scx_priority scx_rcu_boost(void)
{
	struct scx_priority nothing = { .raised = false };
	pid_t thread = find_rcu_thread();

	return thread ? scx_priority_raise_ordinary(thread) : nothing;
}
