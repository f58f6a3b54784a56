/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle injection: a timer alternates between phases in which the CPUs run tasks and phases in which
 * they are idle.
 *
 * While scx_is_throttled() is true, a scheduler dispatches only tasks on which other tasks depend,
 * such as per-CPU kernel threads and tasks whose migration is disabled.
 */
#ifndef __SCX_THROTTLE_BPF_H
#define __SCX_THROTTLE_BPF_H

#include <scx/common.bpf.h>
#include <scx/cpus.bpf.h>

static bool scx_throttled;

struct scx_throttle {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scx_throttle);
} scx_throttle_timer SEC(".maps");

static inline bool scx_is_throttled(void)
{
	return scx_cpus.throttle_ns && scx_throttled;
}

/* Begin the next phase. Kick the online CPUs, so that they stop their tasks or look for tasks
 * again. */
static int scx_throttle_switch(void *map, u32 *key, struct scx_throttle *throttle)
{
	bool throttled = !scx_throttled;
	u32 cpu;

	scx_throttled = throttled;
	bpf_for(cpu, 0, scx_cpus.nr_cpu_ids)
		if (scx_cpu_info(cpu)->capacity)
			scx_bpf_kick_cpu(cpu, throttled ? SCX_KICK_PREEMPT : SCX_KICK_IDLE);
	bpf_timer_start(&throttle->timer,
			throttled ? scx_cpus.throttle_ns : scx_cpus.throttle_run_ns, 0);
	return 0;
}

/* Start the timer if throttling is enabled. Call it from ops.init(). Returns 0 or a negative
 * errno. */
static inline s32 scx_throttle_init(void)
{
	struct scx_throttle *throttle;
	u32 zero = 0;

	if (!scx_cpus.throttle_ns)
		return 0;
	throttle = bpf_map_lookup_elem(&scx_throttle_timer, &zero);
	if (!throttle)
		return -ENOENT;
	return bpf_timer_init(&throttle->timer, &scx_throttle_timer, CLOCK_MONOTONIC) ?:
		       bpf_timer_set_callback(&throttle->timer, scx_throttle_switch)  ?:
		       bpf_timer_start(&throttle->timer, scx_cpus.throttle_run_ns, 0);
}

#endif /* __SCX_THROTTLE_BPF_H */
