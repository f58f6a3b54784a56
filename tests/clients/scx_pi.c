// SPDX-License-Identifier: GPL-2.0-only
/*
 * `scx_pi NICE SECTION_MS ROUNDS`: in each round, a thread with the nice value NICE (the holder)
 * holds a PI mutex while it uses SECTION_MS of CPU time, and the main thread (the waiter), whose
 * nice value does not change, waits for the mutex. Prints for each round, in ms, how long the
 * holder still held the mutex after the waiter had begun to wait, or 0 if the mutex was free.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "spin.h"

/* Blocks of no-ops between two reads of the clock. */
#define BLOCKS 200

/* How long both threads sleep after a round. */
#define REST_MS 50

/* CPU time that the waiter uses before the first round. With scx_economy --futex, the waiter lends
 * from its credit, which is at most the CPU time that it has used. */
#define USED_MS 30

static pthread_mutex_t lock;
static sem_t is_held, is_over;
static int nice_of_holder, nr_rounds;
static double section_ms, released_ms;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "scx_pi: %s: %s\n", what, strerror(err));
	exit(1);
}

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void rest(void)
{
	const struct timespec time = { .tv_nsec = REST_MS * 1000000 };

	nanosleep(&time, NULL);
}

static void use_cpu(double ms)
{
	double end_ms = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;

	while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end_ms)
		spin(BLOCKS);
}

static void *hold(void *arg)
{
	int i;

	(void)arg;
	/* On Linux, 0 stands for the calling thread, not for the process. */
	check(setpriority(PRIO_PROCESS, 0, nice_of_holder) ? errno : 0, "setpriority");
	for (i = 0; i < nr_rounds; i++) {
		check(pthread_mutex_lock(&lock), "lock");
		sem_post(&is_held);
		use_cpu(section_ms);
		released_ms = now_ms(CLOCK_MONOTONIC);
		check(pthread_mutex_unlock(&lock), "unlock");
		while (sem_wait(&is_over))
			;
		rest();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	pthread_t holder;
	double begin_ms;
	int i;

	if (argc != 4) {
		fputs("usage: scx_pi NICE SECTION_MS ROUNDS\n", stderr);
		return 2;
	}
	nice_of_holder = atoi(argv[1]);
	section_ms = atof(argv[2]);
	nr_rounds = atoi(argv[3]);
	pthread_mutexattr_init(&attr);
	check(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), "protocol");
	check(pthread_mutex_init(&lock, &attr), "mutex");
	sem_init(&is_held, 0, 0);
	sem_init(&is_over, 0, 0);
	use_cpu(USED_MS);
	rest();
	check(pthread_create(&holder, NULL, hold, NULL), "thread");
	for (i = 0; i < nr_rounds; i++) {
		while (sem_wait(&is_held))
			;
		begin_ms = now_ms(CLOCK_MONOTONIC);
		check(pthread_mutex_lock(&lock), "lock");
		printf("%.2f\n", released_ms > begin_ms ? released_ms - begin_ms : 0);
		check(pthread_mutex_unlock(&lock), "unlock");
		sem_post(&is_over);
		rest();
	}
	check(pthread_join(holder, NULL), "join");
	return 0;
}
