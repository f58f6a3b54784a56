// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_round: keeps a timer of 8192 Hz going in a deterministic guest, for as long as it runs.
 *
 * Such a guest's CPUs take turns, and a turn lasts until the next timer of the whole machine
 * is due, divided by the number of CPUs; only then does a CPU see an interrupt that another
 * one has sent it. Frequent timers make short turns. Asked for the periodic interrupt of the
 * real-time clock, the kernel keeps one by itself, which wakes nobody as long as nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtc.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RTC "/dev/rtc0"

/* The fastest that the kernel lets be asked for (RTC_MAX_FREQ). */
#define RATE_HZ 8192UL

int main(void)
{
	/* The timer ends when this is closed. */
	int fd = open(RTC, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RTC_IRQP_SET, RATE_HZ) || ioctl(fd, RTC_PIE_ON, 0)) {
		fprintf(stderr, "scx_round: %s: %s\n", RTC, strerror(errno));
		return 1;
	}
	for (;;)
		pause();
}
