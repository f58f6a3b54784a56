// SPDX-License-Identifier: GPL-2.0-only
/*
 * While a thread attaches a scheduler, it runs as SCHED_FIFO.
 *
 * Attaching switches all tasks of the fair class to the ext class one by one. The fair class has
 * precedence: if enough busy tasks have not been switched yet, the tasks in the ext class starve.
 * If the attaching thread were one of the starving tasks, the switch would stall, while that thread
 * holds locks and starving tasks are within RCU readers. This was seen on 6.17. Linux 7.2 does the
 * work in a kthread.
 *
 * The thread that loads a scheduler runs at the lowest nice value: the kernel's verifier
 * takes a second of CPU time on a slow machine, which is half a minute among many busy
 * tasks. During a restart, the machine is without the scheduler for that long.
 */
#include <errno.h>
#include <sys/resource.h>

#include "internal.h"

#define NICE_MIN (-20)

static struct scx_priority priority_of(pid_t thread)
{
	struct scx_priority now = { .thread = thread, .policy = sched_getscheduler(thread) };

	if (now.policy >= 0 && sched_getparam(thread, &now.param))
		now.policy = -1;
	return now;
}

/* Make a thread SCHED_FIFO with the lowest priority. Because of SCHED_RESET_ON_FORK, threads that
 * it creates do not inherit the policy. */
static bool make_lowest_fifo(pid_t thread)
{
	struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };

	return !sched_setscheduler(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

struct scx_priority scx_priority_raise_self(void)
{
	struct scx_priority before = priority_of(0);

	/* Without the permission, the scheduler still loads unless the machine is saturated. */
	before.raised = before.policy >= 0 && make_lowest_fifo(0);
	return before;
}

struct scx_priority scx_priority_raise_ordinary(pid_t thread)
{
	struct scx_priority before = priority_of(thread);

	before.raised = before.policy == SCHED_OTHER && make_lowest_fifo(thread);
	return before;
}

void scx_priority_restore(const struct scx_priority *before)
{
	if (before->raised)
		sched_setscheduler(before->thread, before->policy, &before->param);
}

struct scx_nice scx_nice_raise(void)
{
	struct scx_nice before;

	errno = 0;
	before.nice = getpriority(PRIO_PROCESS, 0);
	before.raised = !errno && !setpriority(PRIO_PROCESS, 0, NICE_MIN);
	return before;
}

void scx_nice_restore(const struct scx_nice *before)
{
	if (before->raised)
		setpriority(PRIO_PROCESS, 0, before->nice);
}
