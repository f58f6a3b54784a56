// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_round: makes the clock of a deterministic guest interrupt 8192 times a second, for as
 * long as it runs.
 *
 * Such a guest's CPUs take turns, and a turn lasts until the next timer of the whole machine
 * is due, divided by the number of CPUs; only then does a CPU see an interrupt that another
 * one has sent it. Frequent timers make short turns. The periodic interrupt of the real-time
 * clock is one that the emulator keeps by itself and that costs the guest next to nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rtc.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define RTC "/dev/rtc0"

/* The fastest that a PC's real-time clock can. */
#define RATE_HZ 8192UL

int main(void)
{
	/* The clock goes back to silence when it is closed. */
	int fd = open(RTC, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, RTC_IRQP_SET, RATE_HZ) || ioctl(fd, RTC_PIE_ON, 0)) {
		fprintf(stderr, "scx_round: %s: %s\n", RTC, strerror(errno));
		return 1;
	}
	for (;;)
		pause();
}
