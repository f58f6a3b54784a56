/* SPDX-License-Identifier: GPL-2.0-only */
/* A load that costs an emulator almost nothing. */
#pragma once

/*
 * Execute blocks of 500 no-ops. With its jump, a block is one translated block of an emulator that
 * counts instructions. 2000 blocks take a millisecond in such a guest.
 */
static inline void spin(unsigned int blocks)
{
	while (blocks--)
		__asm__ volatile(".rept 500\n nop\n .endr");
}
