/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef __SCX_RAVG_RUST_INTF_H
#define __SCX_RAVG_RUST_INTF_H

#include <scx/types.h>

/* The argument of ravg_step(). */
struct ravg_step {
	u64 avg; /* avg, val and val_at_ns are a struct scx_ravg, which is updated */
	u64 val;
	u64 val_at_ns;
	u64 now_ns;
	u64 half_life_ns;
	u64 next_val;
	u64 read; /* the average at now_ns, before val changes to next_val */
};

#endif /* __SCX_RAVG_RUST_INTF_H */
