/* SPDX-License-Identifier: GPL-2.0-only */
/* Rounds: a timer updates the averages of the machine and selects the active CPUs. */
#ifndef __LAVD_ROUND_BPF_H
#define __LAVD_ROUND_BPF_H

/* Length of a round after a round in which no task started to run. It is longer than ROUND_NS,
 * because the averages over tasks have not changed and a timer costs power. It is short enough that
 * many tasks that wake up at once do not wait long until more CPUs become active. */
#define IDLE_ROUND_NS (20 * NSEC_PER_MSEC)

struct lavd_round {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lavd_round);
} lavd_round_timer SEC(".maps");

/* Add a task that starts to run on @cpu to the sums of the CPU. */
static void note_start(const struct scx_dl_task *t, s32 cpu)
{
	struct lavd_cpu *state = cpu_state(cpu);
	u32 lat_cri = t->lat_cri, perf_cri = t->perf_cri;

	if (!state->nr++)
		state->min_perf_cri = perf_cri;
	state->sum_lat_cri += lat_cri;
	state->sum_runtime_us += lavd_min(t->avg_runtime_ns, ROUND_NS) / 1000;
	if (lat_cri > state->max_lat_cri)
		state->max_lat_cri = lat_cri;
	if (!lavd_is_big_little)
		return;
	state->sum_perf_cri += perf_cri;
	if (perf_cri > state->max_perf_cri)
		state->max_perf_cri = perf_cri;
	if (perf_cri < state->min_perf_cri)
		state->min_perf_cri = perf_cri;
}

/* Add the sums of a CPU to the sums of the machine, and reset the sums of the CPU. This is not
 * atomic, so a task that starts to run meanwhile may not be counted. */
static void add_cpu(u32 cpu, u64 now, u64 round_ns)
{
	struct lavd_sums *sums = &lavd_sums;
	struct lavd_cpu *state = cpu_state(cpu);
	u32 capacity = scx_cpu_info(cpu)->capacity;

	sums->capacity += capacity;
	sums->nr_pinned += nr_pinned_waiting(cpu);
	sums->load += take_busy_ns(state, now) * capacity / round_ns;
	if (!sums->min_capacity || capacity < sums->min_capacity)
		sums->min_capacity = capacity;
	if (is_big(cpu))
		sums->big_capacity += capacity;
	if (!state->nr)
		return;
	if (!sums->nr || state->min_perf_cri < sums->min_perf_cri)
		sums->min_perf_cri = state->min_perf_cri;
	if (state->max_perf_cri > sums->max_perf_cri)
		sums->max_perf_cri = state->max_perf_cri;
	if (state->max_lat_cri > sums->max_lat_cri)
		sums->max_lat_cri = state->max_lat_cri;
	sums->nr += state->nr;
	sums->lat_cri += state->sum_lat_cri;
	sums->perf_cri += state->sum_perf_cri;
	sums->runtime_us += state->sum_runtime_us;
	state->nr = state->max_lat_cri = state->max_perf_cri = 0;
	state->sum_lat_cri = state->sum_perf_cri = state->sum_runtime_us = 0;
}

static void add_domain(u32 domain)
{
	s32 nr = scx_bpf_dsq_nr_queued(SCX_NODE_DSQ | domain);

	if (nr > 0)
		lavd_sums.nr_queued += nr;
}

static void update_averages(struct lavd_system *system, const struct lavd_sums *sums)
{
	system->avg_lat_cri = scx_average(system->avg_lat_cri, sums->lat_cri / sums->nr);
	system->max_lat_cri = scx_average(system->max_lat_cri, sums->max_lat_cri);
	system->avg_runtime_us = scx_average(system->avg_runtime_us, sums->runtime_us / sums->nr);
	system->avg_perf_cri = scx_average(system->avg_perf_cri, sums->perf_cri / sums->nr);
	system->thr_perf_cri =
		lavd_perf_threshold(sums->min_perf_cri, system->avg_perf_cri, sums->max_perf_cri,
				    sums->big_capacity, sums->capacity);
}

static int finish_round(void *map, u32 *key, struct lavd_round *round)
{
	struct lavd_system *system = &lavd_system;
	struct lavd_sums *sums = &lavd_sums;
	u64 now = scx_bpf_now(), round_ns = time_delta(now, lavd_round_at_ns) ?: 1;
	u32 i;

	__builtin_memset(sums, 0, sizeof(*sums));
	bpf_for(i, 0, scx_cpus.nr_cpu_ids)
		if (scx_cpu_info(i)->capacity)
			add_cpu(i, now, round_ns);
	bpf_for(i, 0, scx_cpus.nr_nodes)
		add_domain(i);
	lavd_round_at_ns = now;
	system->nr_queued = sums->nr_queued + sums->nr_pinned;
	compact(sums->load, sums->nr_queued);
	if (sums->nr)
		update_averages(system, sums);
	bpf_timer_start(&round->timer, sums->nr ? ROUND_NS : IDLE_ROUND_NS, 0);
	return 0;
}

static s32 start_rounds(void)
{
	struct lavd_round *round;
	u32 zero = 0;

	round = bpf_map_lookup_elem(&lavd_round_timer, &zero);
	if (!round)
		return -ENOENT;
	return bpf_timer_init(&round->timer, &lavd_round_timer, CLOCK_MONOTONIC) ?:
		       bpf_timer_set_callback(&round->timer, finish_round)	 ?:
		       bpf_timer_start(&round->timer, ROUND_NS, 0);
}

#endif /* __LAVD_ROUND_BPF_H */
