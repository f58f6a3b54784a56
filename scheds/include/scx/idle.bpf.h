/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether CPUs are idle. */
#ifndef __SCX_IDLE_BPF_H
#define __SCX_IDLE_BPF_H

#include <scx/common.bpf.h>

/* Whether any CPU is idle. This is much cheaper than a search that finds no idle CPU. */
static inline bool scx_any_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

#endif /* __SCX_IDLE_BPF_H */
