/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two halves of scx_simple agree on. */
#ifndef __SCX_SIMPLE_H
#define __SCX_SIMPLE_H

/* Counters of the map "stats": how a task found its way to a CPU. */
enum simple_stat {
	SIMPLE_STAT_LOCAL, /* straight to a CPU */
	SIMPLE_STAT_GLOBAL, /* through the shared queue */
	NR_SIMPLE_STATS,
};

#endif /* __SCX_SIMPLE_H */
