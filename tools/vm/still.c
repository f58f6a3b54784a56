// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into the QEMU of a deterministic guest: two of its threads act at moments of the host's
 * time, and are kept from it.
 *
 * The thread of the guest's CPUs, in which these take turns, leaves the guest at once when another
 * thread kicks it; a turn that was cut short makes a run that is like no other.
 *
 * - The RCU thread kicks it before each grace period, after a sleep of 10 ms by g_usleep(). Its
 *   first sleep has no end. What QEMU would have freed then (old hash tables and memory maps, some
 *   megabytes) it keeps. Nothing else in QEMU sleeps in this way while a guest runs that has
 *   neither migration, display nor sound.
 * - The main thread moves the guest's time on to the next timer when all CPUs are idle, and kicks.
 *   If it looks again before the CPUs' thread has found that timer due, it does so once more. So,
 *   having waited for something to do, it begins with it when the CPUs' thread waits, and that is
 *   while its own ppoll() has let go of QEMU's great lock.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So long the main thread waits for CPUs that are never idle, in the host's time: it may have been
 * asked to end QEMU. A thread that is to run is not kept from it for so long. */
#define PATIENCE_S 1

/* What the CPUs' thread waits for; it is the only one besides the main thread that ever waits for a
 * condition. */
static pthread_cond_t *_Atomic awaited;
/* Whether it does; a futex on which the main thread sleeps. */
static atomic_uint is_waiting;
static atomic_bool main_sleeps;

static bool is_main_thread(void)
{
	return gettid() == getpid();
}

/* libc's own; the older functions of the same name have no version that is asked for here. */
static void *next_function(const char *name, const char *version)
{
	void *function = dlvsym(RTLD_NEXT, name, version);

	return function ? function : dlsym(RTLD_NEXT, name);
}

void g_usleep(unsigned long microseconds);

void g_usleep(unsigned long microseconds)
{
	(void)microseconds;
	for (;;)
		pause();
}

static void set_waiting(bool waits)
{
	atomic_store(&is_waiting, waits);
	if (waits && atomic_load(&main_sleeps))
		syscall(SYS_futex, &is_waiting, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Being woken for nothing is harmless: QEMU looks again. */
static void await_idle_cpus(void)
{
	static const struct timespec patience = { .tv_sec = PATIENCE_S };

	atomic_store(&main_sleeps, true);
	if (!atomic_load(&is_waiting))
		syscall(SYS_futex, &is_waiting, FUTEX_WAIT_PRIVATE, 0, &patience, NULL, 0);
	atomic_store(&main_sleeps, false);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *);
	int error;

	if (!next)
		next = next_function("pthread_cond_wait", "GLIBC_2.3.2");
	if (is_main_thread())
		return next(cond, mutex);
	atomic_store(&awaited, cond);
	set_waiting(true);
	error = next(cond, mutex);
	set_waiting(false);
	return error;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	static int (*next)(pthread_cond_t *);

	if (!next)
		next = next_function("pthread_cond_broadcast", "GLIBC_2.3.2");
	/* From here on it does not wait any more, even if it has not got to run yet. */
	if (cond == atomic_load(&awaited))
		set_waiting(false);
	return next(cond);
}

int ppoll(struct pollfd *fds, nfds_t nr_fds, const struct timespec *timeout,
	  const sigset_t *signals)
{
	static int (*next)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	int nr_ready;

	if (!next)
		next = next_function("ppoll", "GLIBC_2.4");
	nr_ready = next(fds, nr_fds, timeout, signals);
	if (is_main_thread())
		await_idle_cpus();
	return nr_ready;
}
