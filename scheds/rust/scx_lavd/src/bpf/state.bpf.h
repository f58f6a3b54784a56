/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the machine, of each compute domain and of each CPU, and the counters. */
#ifndef __LAVD_STATE_BPF_H
#define __LAVD_STATE_BPF_H

const volatile struct lavd_config config SEC(".rodata.lavd_config");
struct lavd_system lavd_system SEC(".data.lavd_system");
struct lavd_request lavd_request SEC(".data.lavd_request");
struct lavd_control lavd_control SEC(".data.lavd_control");
const volatile struct lavd_orders lavd_orders SEC(".rodata.lavd_orders");

SCX_PERCPU_COUNTERS(lavd_counters, struct lavd_counts);
#define count(what) scx_count(lavd_counters, what)

/* State of a CPU and of the task that runs there, and sums and extrema over the runs of tasks that
 * started there since the last round. A task counts once for each run. */
struct lavd_cpu {
	u64 refilled_at_ns; /* time of the last call of slice_ns() for a task on this CPU */
	bool is_boosted; /* the slice is longer than plain_slice_ns() */
	bool is_active; /* the CPU is active (compact.bpf.h) */
	bool holds_lock; /* the task is a lock holder (futex.bpf.h) */
	u32 nr; /* number of runs that started */
	u32 max_lat_cri;
	u32 min_perf_cri;
	u32 max_perf_cri;
	u32 sum_lat_cri;
	u32 sum_perf_cri;
	u32 sum_runtime_us; /* sum of average runtimes */
	u64 since_ns; /* when the task started to run; 0: no sched_ext task runs */
	u64 busy_ns; /* time for which earlier tasks ran since the last round */
	u64 padding; /* to a cache line */
};

static struct lavd_cpu lavd_cpus[SCX_CPUS_MAX];

/* Number of CPUs of each compute domain, and number of big CPUs of the machine. */
static u32 lavd_domain_cpus[SCX_NODES_MAX];
static u32 lavd_nr_big;

/* Whether there are both big and little CPUs. */
static bool lavd_is_big_little;

enum {
	LAVD_LITTLE,
	LAVD_BIG,
	LAVD_NR_KINDS,
};

/* The masks of the little and of the big CPUs, if there are both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAVD_NR_KINDS);
	__type(key, u32);
	__type(value, struct scx_mask);
} lavd_kinds SEC(".maps");

/* Sums and extrema over all CPUs in a round. They are not on the stack, because the verifier would
 * then follow all combinations of their values. */
static struct lavd_sums {
	u64 nr;
	u64 lat_cri;
	u64 perf_cri;
	u64 runtime_us;
	u64 max_lat_cri;
	u64 min_perf_cri;
	u64 max_perf_cri;
	u64 capacity;
	u64 big_capacity;
	u64 min_capacity;
	u64 load;
	u64 nr_queued; /* number of tasks in the DSQs of domains */
	u64 nr_pinned; /* number of tasks in the DSQs of CPUs */
} lavd_sums;

static struct lavd_cpu *cpu_state(s32 cpu)
{
	return &lavd_cpus[(u32)cpu % SCX_CPUS_MAX];
}

/* Return the number of tasks in the DSQ of a CPU. */
static u64 nr_pinned_waiting(s32 cpu)
{
	s32 nr;

	if (!scx_has_pinned[(u32)cpu % SCX_CPUS_MAX])
		return 0;
	nr = scx_bpf_dsq_nr_queued(cpu);
	return nr > 0 ? nr : 0;
}

static bool is_big(s32 cpu)
{
	return !scx_cpu_info(cpu)->is_little;
}

static s32 create_kind(u32 kind)
{
	struct scx_mask *place = bpf_map_lookup_elem(&lavd_kinds, &kind);
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 cpu;

	if (!mask)
		return -ENOMEM;
	bpf_for(cpu, 0, scx_cpus.nr_cpu_ids)
		if (scx_cpu_info(cpu)->capacity && is_big(cpu) == (kind == LAVD_BIG))
			bpf_cpumask_set_cpu(cpu, mask);
	if (place)
		mask = bpf_kptr_xchg(&place->mask, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

/* Count the CPUs of each domain, and the big CPUs. If there are also little CPUs, create the masks
 * of both kinds. */
static s32 init_state(void)
{
	u32 cpu;

	bpf_for(cpu, 0, scx_cpus.nr_cpu_ids) {
		if (!scx_cpu_info(cpu)->capacity)
			continue;
		lavd_domain_cpus[scx_node_of(cpu)]++;
		if (is_big(cpu))
			lavd_nr_big++;
	}
	lavd_is_big_little = lavd_nr_big && lavd_nr_big < scx_cpus.nr_online;
	return lavd_is_big_little ? create_kind(LAVD_LITTLE) ?: create_kind(LAVD_BIG) : 0;
}

#endif /* __LAVD_STATE_BPF_H */
