/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_forks PID SIGNAL SECONDS: forks CPU hogs, one every 2 ms. After the first four hogs, sends
 * the signal to the scheduler with this PID, and forks more hogs while the scheduler is unloaded.
 *
 * Runs as a real-time process. If the scheduler is unloaded within the given time, prints how many
 * seconds that took, and exits with status 0, otherwise with status 1. Kills the hogs in any case.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spin.h"

#define NR_BEFORE 4
#define NR_CHILDREN 40
#define PAUSE_US 2000
#define POLL_US (10 * 1000)

static pid_t children[NR_CHILDREN];

static int is_disabled(void)
{
	char state[32] = "";
	FILE *f = fopen("/sys/kernel/sched_ext/state", "re");

	if (f) {
		if (!fgets(state, sizeof(state), f))
			state[0] = '\0';
		fclose(f);
	}
	return !strcmp(state, "disabled\n");
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Fork the hogs, and send the signal meanwhile. Return the time when the signal was sent. */
static double fork_while_it_goes(pid_t scheduler, int number)
{
	double sent_s = 0;

	for (int i = 0; i < NR_CHILDREN; i++) {
		if (i == NR_BEFORE) {
			sent_s = now_s();
			kill(scheduler, number);
		}
		children[i] = fork();
		if (!children[i])
			for (;;)
				spin(10000);
		usleep(PAUSE_US);
	}
	return sent_s;
}

static int wait_disabled(double since_s, double limit_s)
{
	while (now_s() < since_s + limit_s) {
		if (is_disabled()) {
			printf("%.1f\n", now_s() - since_s);
			return 0;
		}
		usleep(POLL_US);
	}
	fprintf(stderr, "scx_forks: still not disabled\n");
	return 1;
}

static void end_children(void)
{
	for (int i = 0; i < NR_CHILDREN; i++)
		if (children[i] > 0)
			kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 2 };
	double sent_s;
	int status;

	if (argc != 4) {
		fprintf(stderr, "usage: scx_forks PID SIGNAL SECONDS\n");
		return 1;
	}
	/* SCHED_RESET_ON_FORK makes the hogs SCHED_OTHER tasks. */
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param)) {
		perror("scx_forks");
		return 1;
	}
	sent_s = fork_while_it_goes(atoi(argv[1]), atoi(argv[2]));
	status = wait_disabled(sent_s, atof(argv[3]));
	end_children();
	return status;
}
