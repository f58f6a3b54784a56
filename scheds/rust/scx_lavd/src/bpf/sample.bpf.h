/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of tasks that start to run, for user space. */
#ifndef __LAVD_SAMPLE_BPF_H
#define __LAVD_SAMPLE_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024); /* more than NR_SAMPLES_MAX (samples.rs) samples */
} lavd_samples SEC(".maps");

static void copy_comms(struct lavd_sample *sample, const struct task_struct *p, s32 waker_pid)
{
	struct task_struct *waker;

	bpf_probe_read_kernel_str(sample->comm, sizeof(sample->comm), p->comm);
	sample->waker_pid = waker_pid;
	sample->waker_comm[0] = 0;
	waker = waker_pid ? bpf_task_from_pid(waker_pid) : NULL;
	if (!waker)
		return;
	bpf_probe_read_kernel_str(sample->waker_comm, sizeof(sample->waker_comm), waker->comm);
	bpf_task_release(waker);
}

static u32 sample_flags(const struct scx_dl_task *t, s32 cpu)
{
	u32 flags = 0;

	if (t->lat_cri >= lavd_system.avg_lat_cri)
		flags |= LAVD_IS_CRITICAL;
	if (t->holds_lock)
		flags |= LAVD_IS_HOLDER;
	if (is_big(cpu))
		flags |= LAVD_ON_BIG;
	if (is_greedy(t))
		flags |= LAVD_IS_GREEDY;
	return flags;
}

/* Write a sample of a task that starts to run, if user space waits for one. */
static void take_sample(const struct task_struct *p, struct scx_dl_task *t, s32 cpu, u64 now,
			u64 dsq_id)
{
	struct scx_cpufreq *freq = &scx_cpufreqs[(u32)cpu % SCX_CPUS_MAX];
	struct lavd_sample *sample;
	u64 nr_samples;

	/* The decrement need not be atomic: if two CPUs take a sample at once, user space gets one
	 * sample more than it requested. The value is read once, so that it cannot wrap. */
	nr_samples = READ_ONCE(lavd_request.nr_samples);
	if (!nr_samples)
		return;
	WRITE_ONCE(lavd_request.nr_samples, --nr_samples);
	sample = bpf_ringbuf_reserve(&lavd_samples, sizeof(*sample), 0);
	if (!sample)
		return;
	sample->pid = p->pid;
	copy_comms(sample, p, t->waker_pid);
	sample->dsq_id = dsq_id;
	sample->slice_ns = p->scx.slice;
	sample->slice_used_ns = t->slice_used_ns;
	sample->wait_ns = time_delta(now, t->queued_at_ns);
	sample->resched_ns = time_delta(now, t->ran_at_ns);
	sample->avg_runtime_ns = t->avg_runtime_ns;
	sample->flags = sample_flags(t, cpu);
	sample->cpu = cpu;
	sample->prev_cpu = t->prev_cpu;
	sample->suggested_cpu = t->suggested_cpu;
	sample->static_prio = p->static_prio;
	sample->lat_cri = t->lat_cri;
	sample->avg_lat_cri = lavd_system.avg_lat_cri;
	sample->perf_cri = t->perf_cri;
	sample->thr_perf_cri = lavd_system.thr_perf_cri;
	sample->run_freq = t->run_freq;
	sample->wait_freq = t->wakeup_freq;
	sample->wake_freq = t->wake_freq;
	sample->cpu_util = freq->util;
	sample->perf_level = freq->level;
	/* Wake user space only after the last sample. Otherwise the process that reads the samples
	 * would appear in them. */
	bpf_ringbuf_submit(sample, nr_samples ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

#endif /* __LAVD_SAMPLE_BPF_H */
