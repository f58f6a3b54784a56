/* SPDX-License-Identifier: GPL-2.0-only */
/* The per-CPU data of scx_resized.bpf.c. */
#ifndef __SCX_RESIZED_H
#define __SCX_RESIZED_H

struct cpu_stat {
	u64 nr_by_length[4]; /* runs of 0 to 1, 1 to 4, and 4 to 16 ms, and longer runs */
	u64 nr_given; /* tasks inserted into the CPU's DSQ */
	u64 started_at; /* start of the current run, ns */
};

#endif /* __SCX_RESIZED_H */
