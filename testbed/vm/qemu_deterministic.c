// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into the QEMU of a deterministic guest: keeps two of QEMU's threads from acting at
 * times that depend on the host, limits the length of the CPUs' turns, and replaces the host's
 * clock by which QEMU resizes its TLBs.
 *
 * One thread, the CPU thread, emulates all CPUs in round-robin order. It leaves the guest at once
 * when another thread kicks it. A turn that is cut short makes the run differ from all others.
 *
 * - The RCU thread kicks the CPU thread before each grace period, after a sleep of 10 ms in
 *   g_usleep(). Here the first sleep of the RCU thread never ends. The memory that the thread would
 *   have freed (old hash tables and memory maps, a few megabytes) is leaked. No other thread of
 *   QEMU calls g_usleep() while a guest without migration, display and sound runs.
 * - When all CPUs are idle, the main thread advances the guest's time to the next timer, and kicks
 *   the CPU thread. If the main thread runs again before the CPU thread has found that timer
 *   expired, it advances the time once more. So after ppoll(), for which it drops the big QEMU lock
 *   (BQL), it waits until the CPU thread waits.
 *
 * A CPU sees an interrupt from another CPU only when its own turn comes. QEMU divides the time
 * until the machine's next timer by the number of CPUs. So a turn may take a millisecond. If all
 * CPUs but one are idle, the busy CPU gets ever shorter turns before each timer. QEMU translates
 * the end of nearly every turn separately, since it has to stop within a block of instructions.
 * Here all turns have the same length, unless a timer expires earlier.
 *
 * A CPU that asks QEMU to stop the machine would stop at once, and the main thread would stop the
 * others when all of them are idle. But another CPU may wait for the stopped one to handle an
 * interrupt, such as the flush of a TLB, and never become idle. Here the CPU runs on until all CPUs
 * are idle.
 *
 * QEMU halves the TLB of a CPU at a flush if few of its entries were used in the last 100 ms of the
 * host's time. A page gets its accessed bit when it enters the TLB, so the size of the TLB changes
 * what the guest reads: the kernel's DAMON, which samples these bits all the time, then takes
 * another path. Here that time is the number of flushes.
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
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "qemu_patch.h"

/* Time in which all CPUs have a turn, in guest time. */
#define ROUND_NS 122070

/* QEMU's accel/tcg/icount-common.c: the maximum length of the CPUs' next turns, in instructions.
 * Builds with loadable modules, as in distributions, export it. */
int64_t icount_percpu_budget(int nr_cpus) __attribute__((weak));

/* QEMU's include/system/runstate.h: not 0 if QEMU was asked to exit, or to reset the guest. And
 * include/qemu/main-loop.h: whether the calling thread holds the BQL. */
int qemu_shutdown_requested_get(void) __attribute__((weak));
int qemu_reset_requested_get(void) __attribute__((weak));
bool bql_locked(void) __attribute__((weak));

/* QEMU's include/system/runstate.h. A CPU that calls vm_stop() stops at once, and requests by the
 * other two functions that the main thread stops the other CPUs. */
int vm_stop(int state) __attribute__((weak));
void qemu_system_vmstop_request_prepare(void) __attribute__((weak));
void qemu_system_vmstop_request(int state) __attribute__((weak));

/* While the main thread waits for the CPUs to become idle, it checks at this interval, in ns of the
 * host's time, whether QEMU is exiting. Without the check, it might wait forever. */
#define LOOK_NS 100000000

/* The CPU thread: the first one, besides the main thread, that waits for a condition. */
static _Atomic pid_t cpus_thread;
/* The condition for which the CPU thread waits. */
static pthread_cond_t *_Atomic awaited;
/* Whether the CPU thread waits; a futex on which the main thread sleeps. */
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

/* Return libc's own function: its default symbol version, not an old one of the same name. */
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

static int64_t turn_ns(int nr_cpus)
{
	return ROUND_NS / nr_cpus;
}

/* The advance of the clock by which QEMU resizes TLBs, per flush of the CPU thread, in us. 1000
 * flushes take the 100 ms of QEMU's accel/tcg/cputlb.c. */
#define FLUSH_US 100

/* Whether this is the CPU thread. Unlike is_cpus_thread(), this makes no system call. */
static _Thread_local bool on_cpus_thread;

/* QEMU's get_clock_realtime() calls this function. Besides the TLBs, only clocks that deterministic
 * guests lack use it. */
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	static int64_t nr_flushes;
	int64_t us = on_cpus_thread ? nr_flushes++ * FLUSH_US : 0;

	(void)zone;
	now->tv_sec = us / 1000000;
	now->tv_usec = us % 1000000;
	return 0;
}

static const char stop_late[] = "stop the guest when its CPUs are idle";
static struct scx_qemu_code original_vm_stop;

/* The first call of vm_stop(). A CPU that calls it runs on. The main thread's call needs the
 * original. */
static int first_vm_stop(int state)
{
	scx_qemu_restore(vm_stop, original_vm_stop, stop_late);
	if (is_main_thread())
		return vm_stop(state);
	qemu_system_vmstop_request_prepare();
	qemu_system_vmstop_request(state);
	return 0;
}

/* The library is also preloaded into setarch, which executes QEMU, and into programs that QEMU
 * executes. They lack the functions. */
__attribute__((constructor)) static void patch(void)
{
	if (icount_percpu_budget)
		scx_qemu_replace(icount_percpu_budget, turn_ns, "set the length of turns");
	if (vm_stop)
		original_vm_stop = scx_qemu_replace(vm_stop, first_vm_stop, stop_late);
}

static void set_waiting(bool waits)
{
	atomic_store(&is_waiting, waits);
	if (waits && atomic_load(&main_sleeps))
		syscall(SYS_futex, &is_waiting, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whether QEMU exits, or was asked to exit or reset: it then polls with the BQL held, which the CPU
 * thread needs to become idle. */
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
	if (!icount_percpu_budget || !qemu_shutdown_requested_get || !qemu_reset_requested_get ||
	    !bql_locked || !vm_stop || !qemu_system_vmstop_request_prepare ||
	    !qemu_system_vmstop_request) {
		fputs("this QEMU exports no symbols: use one with loadable modules\n", stderr);
		_exit(1);
	}
	on_cpus_thread = true;
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
	/* The CPU thread no longer waits, even if it has not run yet. */
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
