/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the BPF and user-space sides of scx_simple. */
#ifndef __SCX_SIMPLE_H
#define __SCX_SIMPLE_H

/* Counters of the map "stats": how tasks were dispatched. */
enum simple_stat {
	SIMPLE_STAT_LOCAL, /* directly to an idle CPU */
	SIMPLE_STAT_GLOBAL, /* through the shared queue */
	NR_SIMPLE_STATS,
};

#endif /* __SCX_SIMPLE_H */
