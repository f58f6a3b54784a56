/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU-bound load that is cheap to emulate. */
#pragma once

/*
 * Execute blocks of 50 no-ops. 20,000 blocks take about a millisecond in a guest whose time is the
 * number of executed instructions. Longer blocks would cost the emulator more: see
 * testbed/load/src/clock.rs.
 */
static inline void spin(unsigned int blocks)
{
	while (blocks--)
		__asm__ volatile(".rept 50\n nop\n .endr");
}
