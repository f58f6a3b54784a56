// SPDX-License-Identifier: GPL-2.0-only
/* scx_counters: print the emulator's counters of a deterministic guest, a name and a number per
 * line. Elsewhere, it fails. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "../counters.h"

#ifdef __x86_64__
#include <cpuid.h>

static bool has_counters(void)
{
	uint32_t eax, words[3];

	__cpuid_count(SCX_COUNTERS_LEAF, SCX_COUNTERS_SIGNED, eax, words[0], words[1], words[2]);
	return !memcmp(words, SCX_COUNTERS_SIGNATURE, sizeof(words));
}

static uint64_t counter(enum scx_counters_subleaf which)
{
	uint32_t eax, ebx, ecx, edx;

	__cpuid_count(SCX_COUNTERS_LEAF, which, eax, ebx, ecx, edx);
	return (uint64_t)edx << 32 | eax;
}
#else
static bool has_counters(void)
{
	return false;
}

static uint64_t counter(enum scx_counters_subleaf which)
{
	(void)which;
	return 0;
}
#endif

int main(void)
{
	if (!has_counters()) {
		fputs("scx_counters: this is not a deterministic guest\n", stderr);
		return 1;
	}
	printf("instructions %" PRIu64 "\n", counter(SCX_COUNTERS_INSTRUCTIONS));
	printf("clock_reads %" PRIu64 "\n", counter(SCX_COUNTERS_CLOCK_READS));
	return 0;
}
