// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into the QEMU of a deterministic guest: two of its threads act at moments of the host's
 * time, and are kept from it; and the guest's CPUs take short turns.
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
 *
 * A CPU sees an interrupt that another has sent it only when its turn comes, and a turn lasts until
 * the next timer of the whole machine is due, divided by the number of CPUs. A timer of QEMU's that
 * does nothing keeps that short while the CPUs have something to do; the guest knows nothing of it.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* In which all CPUs have had a turn, in the guest's time: the period of a timer of 8192 Hz. */
#define ROUND_NS 122070

/* QEMU's include/qemu/timer.h; builds with loadable modules, as distributions have them, export
 * these. */
#define CLOCK_OF_GUEST 1 /* QEMU_CLOCK_VIRTUAL */
#define SCALE_NS 1

/* Room for a struct QEMUTimer of any version. */
struct timer {
	long reserved[32];
};

void timer_init_full(struct timer *timer, void *group, int clock, int scale, int attributes,
		     void (*on_expiry)(void *opaque), void *opaque) __attribute__((weak));
void timer_mod_ns(struct timer *timer, int64_t expires_ns) __attribute__((weak));
void timer_del(struct timer *timer) __attribute__((weak));
int64_t qemu_clock_get_ns(int clock) __attribute__((weak));

/* QEMU's include/system/runstate.h: not 0 if it is to end, or to restart the guest. */
int qemu_shutdown_requested_get(void) __attribute__((weak));
int qemu_reset_requested_get(void) __attribute__((weak));
bool bql_locked(void) __attribute__((weak));

/* How often the main thread checks whether QEMU is ending although the CPUs are never idle, in the
 * host's time. */
#define LOOK_NS 100000000

/* The thread of the CPUs: the first one, besides the main thread, that waits for a condition. */
static _Atomic pid_t cpus_thread;
/* What it waits for. */
static pthread_cond_t *_Atomic awaited;
/* Whether it does; a futex on which the main thread sleeps. */
static atomic_uint is_waiting;
static atomic_bool main_sleeps;

static bool is_main_thread(void)
{
	return gettid() == getpid();
}

static bool is_cpus_thread(void)
{
	pid_t none = 0;

	if (is_main_thread())
		return false;
	atomic_compare_exchange_strong(&cpus_thread, &none, gettid());
	return atomic_load(&cpus_thread) == gettid();
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

/* Within QEMU's great lock, in the thread of the CPUs. */
static void start_round(void *timer)
{
	timer_mod_ns(timer, qemu_clock_get_ns(CLOCK_OF_GUEST) + ROUND_NS);
}

/* The same. */
static struct timer *round_timer(void)
{
	static struct timer timer;
	static bool is_ready;

	if (!timer_init_full || !qemu_shutdown_requested_get || !bql_locked) {
		fputs("this QEMU exports no symbols: use one with loadable modules\n", stderr);
		_exit(1);
	}
	if (!is_ready)
		timer_init_full(&timer, NULL, CLOCK_OF_GUEST, SCALE_NS, 0, start_round, &timer);
	is_ready = true;
	return &timer;
}

static void set_waiting(bool waits)
{
	atomic_store(&is_waiting, waits);
	if (waits && atomic_load(&main_sleeps))
		syscall(SYS_futex, &is_waiting, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whether QEMU was asked to end, or is about to: then it waits for events within its great lock,
 * which the CPUs' thread needs in order to become idle. */
static bool is_ending(void)
{
	return bql_locked() || qemu_shutdown_requested_get() || qemu_reset_requested_get();
}

static void await_idle_cpus(void)
{
	static const struct timespec look = { .tv_nsec = LOOK_NS };

	atomic_store(&main_sleeps, true);
	while (!atomic_load(&is_waiting) && !is_ending())
		syscall(SYS_futex, &is_waiting, FUTEX_WAIT_PRIVATE, 0, &look, NULL, 0);
	atomic_store(&main_sleeps, false);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *);
	int error;

	if (!next)
		next = next_function("pthread_cond_wait", "GLIBC_2.3.2");
	if (!is_cpus_thread())
		return next(cond, mutex);
	/* Idle CPUs take no turns, and time passes by leaps. */
	timer_del(round_timer());
	atomic_store(&awaited, cond);
	set_waiting(true);
	error = next(cond, mutex);
	set_waiting(false);
	start_round(round_timer());
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
