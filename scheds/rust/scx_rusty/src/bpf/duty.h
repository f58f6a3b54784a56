/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The duty cycle of a task: the share of time in which it is runnable, as a running average
 * (scx/ravg.h). A task may become runnable and sleep many thousand times per second. So the
 * runnable time is only summed up, and the average is updated by the share of runnable time since
 * the last update, at most once per RUSTY_DUTY_STEP_NS. Pure functions.
 */
#ifndef __RUSTY_DUTY_H
#define __RUSTY_DUTY_H

#include <scx/ravg.h>

/* Minimum time between two updates of the average. */
#define RUSTY_DUTY_STEP_NS (1000 * 1000ULL)

/* The average is a multiple of 1 / (1 << RUSTY_DUTY_SHIFT). With this value, rusty_duty_share()
 * does not overflow for runnable times below 2^52 ns, which are 52 days. */
#define RUSTY_DUTY_SHIFT 12

struct rusty_duty {
	struct scx_ravg avg; /* as of avg.val_at_ns, the time of the last update */
	u64 runnable_ns; /* runnable time since then, without the current runnable period */
	u64 since_ns; /* start of the current runnable period; 0: not runnable */
};

/* Return the share of runnable time since the last update, from 0 to 1 << RUSTY_DUTY_SHIFT. */
static inline u64 rusty_duty_share(const struct rusty_duty *d, u64 now_ns)
{
	u64 elapsed_ns = time_delta(now_ns, d->avg.val_at_ns), runnable_ns = d->runnable_ns;

	if (d->since_ns)
		runnable_ns += time_delta(now_ns, d->since_ns);
	/* The clocks of CPUs may differ slightly. */
	if (runnable_ns >= elapsed_ns || runnable_ns >> (64 - RUSTY_DUTY_SHIFT))
		return elapsed_ns ? 1 << RUSTY_DUTY_SHIFT : 0;
	return (runnable_ns << RUSTY_DUTY_SHIFT) / elapsed_ns;
}

/* Return the average at @now_ns, with SCX_RAVG_FRAC_BITS fractional bits. */
static inline u64 rusty_duty_read(const struct rusty_duty *d, u64 now_ns, u64 half_life_ns)
{
	struct scx_ravg avg = d->avg;

	avg.val = rusty_duty_share(d, now_ns);
	return scx_ravg_read(&avg, now_ns, half_life_ns) >> RUSTY_DUTY_SHIFT;
}

/* Note that the task becomes runnable at @now_ns (@is_runnable), or stops being runnable. */
static inline void rusty_duty_set(struct rusty_duty *d, bool is_runnable, u64 now_ns,
				  u64 half_life_ns)
{
	if (time_delta(now_ns, d->avg.val_at_ns) >= RUSTY_DUTY_STEP_NS) {
		d->avg.val = rusty_duty_share(d, now_ns);
		scx_ravg_set(&d->avg, 0, now_ns, half_life_ns);
		d->runnable_ns = 0;
	} else if (d->since_ns) {
		d->runnable_ns += time_delta(now_ns, d->since_ns);
	}
	d->since_ns = is_runnable ? now_ns : 0;
}

#endif /* __RUSTY_DUTY_H */
