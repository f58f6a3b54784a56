/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Performance levels of the CPUs (cpufreq.h): either fixed or computed from the utilization.
 *
 * A scheduler calls scx_cpufreq_init() from ops.init(), and scx_cpufreq_note() from ops.running(),
 * from ops.stopping(), and where ops.dispatch() lets prev continue.
 */
#ifndef __SCX_CPUFREQ_BPF_H
#define __SCX_CPUFREQ_BPF_H

#include <scx/common.bpf.h>
#include <scx/cpufreq.h>
#include <scx/cpus.bpf.h>

/* Utilization is measured over at least this time. */
#define SCX_PERF_SAMPLE_NS NSEC_PER_MSEC

struct scx_cpufreq {
	u64 since_ns; /* when the measurement began */
	u64 noted_ns; /* time of the last scx_cpufreq_note_at() */
	u64 busy_ns; /* busy time since since_ns */
	u32 util; /* moving average, 0 to SCX_PERF_MAX */
	u32 level; /* last requested by scx_cpufreq_note_at(); 0: none yet */
};

static struct scx_cpufreq scx_cpufreqs[SCX_CPUS_MAX];

/*
 * Note that a task starts to run on @cpu at the time @now or, if @was_busy, that a task has run
 * there since the last call. Call it with the run queue of @cpu locked: since 6.15, a callback that
 * holds the lock of one CPU's run queue may not request a level for another CPU.
 */
static inline void scx_cpufreq_note_at(s32 cpu, bool was_busy, u64 now)
{
	struct scx_cpufreq *freq = &scx_cpufreqs[(u32)cpu % SCX_CPUS_MAX];
	u64 ns;
	u32 level;

	if (scx_cpus.perf_level >= 0)
		return;
	if (was_busy)
		freq->busy_ns += time_delta(now, freq->noted_ns);
	freq->noted_ns = now;
	ns = time_delta(now, freq->since_ns);
	if (ns < SCX_PERF_SAMPLE_NS)
		return;
	freq->util = scx_perf_average(freq->util, scx_perf_util(freq->busy_ns, ns));
	freq->since_ns = now;
	freq->busy_ns = 0;
	level = scx_perf_level(freq->util);
	if (level != freq->level)
		scx_bpf_cpuperf_set(cpu, level);
	freq->level = level;
}

/* Call scx_cpufreq_note_at() with the current time, if levels are computed from utilization. */
static inline void scx_cpufreq_note(s32 cpu, bool was_busy)
{
	if (scx_cpus.perf_level < 0)
		scx_cpufreq_note_at(cpu, was_busy, scx_bpf_now());
}

/* Request a level for all online CPUs: the fixed level or, if levels are computed from the
 * utilization, the highest level until the first measurement. */
static inline void scx_cpufreq_init(void)
{
	s32 level = scx_cpus.perf_level;
	u32 cpu;

	if (level < 0 || level > SCX_PERF_MAX)
		level = SCX_PERF_MAX;
	bpf_for(cpu, 0, scx_cpus.nr_cpu_ids)
		if (scx_cpu_info(cpu)->capacity)
			scx_bpf_cpuperf_set(cpu, level);
}

#endif /* __SCX_CPUFREQ_BPF_H */
