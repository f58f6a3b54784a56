/* SPDX-License-Identifier: GPL-2.0-only */
/* The per-CPU counters of scx_resized.bpf.c. */
#ifndef __SCX_RESIZED_H
#define __SCX_RESIZED_H

struct cpu_stat {
	u64 nr_by_length[4]; /* runs of less than 1, 4 and 16 ms, and longer runs */
	u64 nr_given;
	u64 started_at;
};

#endif /* __SCX_RESIZED_H */
