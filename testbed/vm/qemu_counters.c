// SPDX-License-Identifier: GPL-2.0-only
/*
 * Part of the library that is preloaded into the QEMU of a deterministic guest: counts the reads of
 * the time-stamp counter, and lets programs in the guest read this count and QEMU's count of
 * executed instructions (counters.h and guest/scx_counters.c).
 *
 * One thread emulates all CPUs, so the counts need no lock.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "counters.h"
#include "qemu_patch.h"

/* The beginning of QEMU's struct CPUArchState (target/i386/cpu.h): the first general registers. */
struct registers {
	uint64_t eax;
	uint64_t ecx;
	uint64_t edx;
	uint64_t ebx;
};

/* QEMU's target/i386: the instruction CPUID, the part of it that does not depend on the kind of
 * emulation, and the clock that RDTSC and RDTSCP read, with its source. */
void helper_cpuid(struct registers *cpu) __attribute__((weak));
void cpu_x86_cpuid(struct registers *cpu, uint32_t leaf, uint32_t subleaf, uint32_t *eax,
		   uint32_t *ebx, uint32_t *ecx, uint32_t *edx) __attribute__((weak));
uint64_t cpu_get_tsc(struct registers *cpu) __attribute__((weak));
int64_t cpus_get_elapsed_ticks(void) __attribute__((weak));

/* QEMU's accel/tcg/icount-common.c: add the instructions of the CPU's present turn to the number of
 * executed instructions, and return this number. */
void icount_update(void *cpu) __attribute__((weak));
int64_t icount_get_raw(void) __attribute__((weak));

static uint64_t nr_clock_reads;

static uint64_t read_clock(struct registers *cpu)
{
	(void)cpu;
	nr_clock_reads++;
	return cpus_get_elapsed_ticks();
}

/* The number of instructions that all CPUs have executed. It includes the rest of the present block
 * of instructions, i.e. it may be too large by a few. */
static uint64_t nr_instructions(void)
{
	/* A thread-local variable of QEMU. */
	void **current_cpu = dlsym(RTLD_DEFAULT, "current_cpu");
	void *cpu = *current_cpu;
	int64_t nr;

	icount_update(cpu);
	/* If a CPU runs, icount_get_raw() accepts only the last instruction of a block. */
	*current_cpu = NULL;
	nr = icount_get_raw();
	*current_cpu = cpu;
	return nr;
}

static void set_counter(struct registers *cpu, uint64_t value)
{
	cpu->eax = (uint32_t)value;
	cpu->edx = value >> 32;
	cpu->ebx = cpu->ecx = 0;
}

static void sign(struct registers *cpu)
{
	uint32_t words[3];

	memcpy(words, SCX_COUNTERS_SIGNATURE, sizeof(words));
	cpu->eax = 0;
	cpu->ebx = words[0];
	cpu->ecx = words[1];
	cpu->edx = words[2];
}

/* What helper_cpuid() does, except that a hypervisor in the guest cannot intercept CPUID. */
static void ordinary_cpuid(struct registers *cpu)
{
	uint32_t eax, ebx, ecx, edx;

	cpu_x86_cpuid(cpu, cpu->eax, cpu->ecx, &eax, &ebx, &ecx, &edx);
	cpu->eax = eax;
	cpu->ebx = ebx;
	cpu->ecx = ecx;
	cpu->edx = edx;
}

static void cpuid(struct registers *cpu)
{
	if ((uint32_t)cpu->eax != SCX_COUNTERS_LEAF) {
		ordinary_cpuid(cpu);
		return;
	}
	switch ((uint32_t)cpu->ecx) {
	case SCX_COUNTERS_SIGNED:
		sign(cpu);
		break;
	case SCX_COUNTERS_INSTRUCTIONS:
		set_counter(cpu, nr_instructions());
		break;
	case SCX_COUNTERS_CLOCK_READS:
		set_counter(cpu, nr_clock_reads);
		break;
	default:
		set_counter(cpu, 0);
	}
}

/* A QEMU that lacks one of these functions has no counters, which scx_counters reports. */
__attribute__((constructor)) static void count(void)
{
	static const char what[] = "count the instructions of the guest";

	if (!helper_cpuid || !cpu_x86_cpuid || !cpu_get_tsc || !cpus_get_elapsed_ticks ||
	    !icount_update || !icount_get_raw)
		return;
	scx_qemu_replace(helper_cpuid, cpuid, what);
	scx_qemu_replace(cpu_get_tsc, read_clock, what);
}
