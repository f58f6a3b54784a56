/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_crowd N: N threads that sleep for ten seconds at a time and do almost nothing in between.
 *
 * The threads use minimal memory, so that ten thousand fit into a guest. Prints "ready" when all
 * threads have been started. On SIGINT, prints the number of wakeups, and ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES (16 * 1024)

static atomic_ulong nr_wakeups;
static atomic_bool is_over;

static void *sleep_and_wake(void *unused)
{
	struct timespec pause = { .tv_sec = 10 };

	while (!atomic_load(&is_over)) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		atomic_fetch_add_explicit(&nr_wakeups, 1, memory_order_relaxed);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long nr = argc == 2 ? atol(argv[1]) : 0;
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t set;
	int err, number;

	if (nr <= 0) {
		fprintf(stderr, "usage: scx_crowd N\n");
		return 1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (nr--) {
		err = pthread_create(&thread, &attr, sleep_and_wake, NULL);
		if (err) {
			fprintf(stderr, "scx_crowd: cannot create a thread: %s\n", strerror(err));
			return 1;
		}
	}
	printf("ready\n");
	fflush(stdout);
	sigwait(&set, &number);
	printf("%lu\n", atomic_load(&nr_wakeups));
	fflush(stdout);
	/* The other threads exit at their next wakeup. The process exits with the last thread. */
	atomic_store(&is_over, true);
	pthread_exit(NULL);
}
