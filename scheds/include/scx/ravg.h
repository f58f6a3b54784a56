/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Running averages of piecewise constant values, with exponential decay: the weight of the past
 * halves in each half-life.
 *
 * While the value is v, an average that starts at a becomes v + (a - v) * 2^(-t / half-life) after
 * the time t, however often it is read. Pure functions, tested on the host by tests/unit_c.
 * scx_utils::ravg computes the same averages in user space.
 */
#ifndef __SCX_RAVG_H
#define __SCX_RAVG_H

#include "time.h"

/* Fractional bits of the fixed-point averages. */
#define SCX_RAVG_FRAC_BITS 32
#define SCX_RAVG_ONE (1ULL << SCX_RAVG_FRAC_BITS)

/* Maximum value. Larger values are clamped to it. */
#define SCX_RAVG_VAL_MAX ((1ULL << 20) - 1)

/* The longest half-life, ns: 274 s. Shifted left by 26 bits, as in scx_ravg_decay(), it fits into a
 * u64. */
#define SCX_RAVG_HALF_LIFE_MAX_NS ((1ULL << 38) - 1)

struct scx_ravg {
	u64 avg; /* average at val_at_ns, fixed point */
	u64 val; /* value since val_at_ns */
	u64 val_at_ns; /* time of the last change of the value */
};

/* Return @value x @frac, where @frac is a fixed-point number <= 1. */
static inline u64 __scx_ravg_mul(u64 value, u64 frac)
{
	return (value >> 32) * frac + ((value & 0xffffffff) * frac >> 32);
}

/* ln(2), fixed point. */
#define SCX_RAVG_LN_2 2977044472ULL

/* Up to 1/1024 of the half-life, three terms of the series are enough: scx_ravg_decay_short(). Such
 * short times are common for tasks that frequently sleep. */
#define SCX_RAVG_SHORT_SHIFT 10

/* scx_ravg_decay() for @elapsed_ns <= @half_life_ns >> SCX_RAVG_SHORT_SHIFT: e^-x by the first
 * three terms of its series, 1 - x + x^2 / 2, where x = ln(2) * @elapsed_ns / @half_life_ns. The
 * next term is x^3 / 6, which is less than 2^-32. */
static inline u64 scx_ravg_decay_short(u64 elapsed_ns, u64 half_life_ns)
{
	u64 exponent = (elapsed_ns << SCX_RAVG_FRAC_BITS) / half_life_ns * SCX_RAVG_LN_2 >>
		       SCX_RAVG_FRAC_BITS;

	return SCX_RAVG_ONE - exponent + (exponent * exponent >> (SCX_RAVG_FRAC_BITS + 1));
}

/* Return 2^(-@elapsed_ns / @half_life_ns), fixed point. 0 < @half_life_ns <=
 * SCX_RAVG_HALF_LIFE_MAX_NS. */
static inline u64 scx_ravg_decay(u64 elapsed_ns, u64 half_life_ns)
{
	const u64 sqrt_half = 3037000500; /* fixed point */
	u64 nr_halves, rest, exponent, decay;

	if (elapsed_ns <= half_life_ns >> SCX_RAVG_SHORT_SHIFT)
		return scx_ravg_decay_short(elapsed_ns, half_life_ns);
	nr_halves = elapsed_ns / half_life_ns;
	if (nr_halves >= SCX_RAVG_FRAC_BITS)
		return 0;
	/* The fractional part of the exponent, 26 bits. */
	rest = (elapsed_ns % half_life_ns << 26) / half_life_ns;
	decay = SCX_RAVG_ONE;
	if (rest >= 1 << 25) {
		rest -= 1 << 25;
		decay = sqrt_half;
	}
	/* e^-x, x <= ln(2) / 2, by the first six terms of its series: the error is below 3e-6. */
	exponent = rest * SCX_RAVG_LN_2 >> 26;
	rest = SCX_RAVG_ONE - exponent / 5;
	rest = SCX_RAVG_ONE - __scx_ravg_mul(exponent, rest) / 4;
	rest = SCX_RAVG_ONE - __scx_ravg_mul(exponent, rest) / 3;
	rest = SCX_RAVG_ONE - __scx_ravg_mul(exponent, rest) / 2;
	rest = SCX_RAVG_ONE - __scx_ravg_mul(exponent, rest);
	return __scx_ravg_mul(decay, rest) >> nr_halves;
}

/* Return the average at @now_ns, fixed point. If @now_ns is before the last change of the value,
 * return the average at the time of that change. */
static inline u64 scx_ravg_read(const struct scx_ravg *r, u64 now_ns, u64 half_life_ns)
{
	u64 decay = scx_ravg_decay(time_delta(now_ns, r->val_at_ns), half_life_ns);
	u64 val = r->val << SCX_RAVG_FRAC_BITS;

	return r->avg > val ? val + __scx_ravg_mul(r->avg - val, decay) :
			      val - __scx_ravg_mul(val - r->avg, decay);
}

/* Set the value to @val from @now_ns on. */
static inline void scx_ravg_set(struct scx_ravg *r, u64 val, u64 now_ns, u64 half_life_ns)
{
	r->avg = scx_ravg_read(r, now_ns, half_life_ns);
	r->val = val < SCX_RAVG_VAL_MAX ? val : SCX_RAVG_VAL_MAX;
	r->val_at_ns = time_max(now_ns, r->val_at_ns);
}

#endif /* __SCX_RAVG_H */
