// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_round: keeps a timer of 8192 Hz going on each CPU of a deterministic guest, for as long as it
 * runs.
 *
 * Such a guest's CPUs take turns, and a turn lasts until the next timer of the whole machine
 * is due, divided by the number of CPUs; only then does a CPU see an interrupt that another
 * one has sent it. Frequent timers make short turns. One timer for all is not enough: when it
 * was due, and until the CPU that it belongs to has had its turn, the others wait for the tick.
 *
 * A timer of each CPU, which wakes nobody, is what the kernel keeps for an event that counts the
 * time of a CPU and takes a sample every so often, here into no buffer.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RATE_HZ 8192UL
#define NSEC_PER_SEC 1000000000UL

/* The timer ends with this process. Negative, with errno, if there is none. */
static long start_timer(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = NSEC_PER_SEC / RATE_HZ,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(void)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		/* A CPU that is offline has none. */
		if (start_timer(cpu) < 0 && errno != ENODEV) {
			fprintf(stderr, "scx_round: CPU %d: %s\n", cpu, strerror(errno));
			return 1;
		}
	}
	for (;;)
		pause();
}
