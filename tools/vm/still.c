// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into the QEMU of a deterministic guest: keeps its RCU thread still.
 *
 * Before each grace period that thread sleeps for 10 ms, by g_usleep(), and then makes the
 * thread of the guest's CPUs leave the guest at once: a turn is cut short at a moment of the
 * host's time, and from there on no run is like another. So its first sleep has no end. What
 * QEMU would have freed then (old hash tables and memory maps, some megabytes) it keeps. Nothing
 * else in QEMU sleeps in this way while a guest runs that has neither migration, display nor
 * sound.
 */
#include <unistd.h>

void g_usleep(unsigned long microseconds);

void g_usleep(unsigned long microseconds)
{
	(void)microseconds;
	for (;;)
		pause();
}
