/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How programs in a deterministic guest read the emulator's counters: with CPUID, in sub-leaves of
 * SCX_COUNTERS_LEAF, which is in the range of leaves that processors reserve for hypervisors.
 */
#pragma once

#define SCX_COUNTERS_LEAF 0x4f736378

enum scx_counters_subleaf {
	/* The letters of SCX_COUNTERS_SIGNATURE in EBX, ECX and EDX, as hypervisors return theirs
	 * in leaf 0x40000000. Another emulator or processor returns other values. */
	SCX_COUNTERS_SIGNED,
	/* The number of instructions that all CPUs have executed: the lower half in EAX, the upper
	 * half in EDX. */
	SCX_COUNTERS_INSTRUCTIONS,
	/* How often all CPUs have read the time-stamp counter, in EAX and EDX. */
	SCX_COUNTERS_CLOCK_READS,
};

#define SCX_COUNTERS_SIGNATURE "scx counters"
