/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Core compaction: while the load is low, few CPUs are active, so that all other CPUs stay in deep
 * idle states.
 *
 * With compaction, the active CPUs are the primary domain (scx/cpus.bpf.h): as many CPUs as the
 * load needs, from the beginning of one of two orders of all CPUs. If all active CPUs are busy, a
 * task usually waits for one of them. However, a task may take any idle CPU if the wait would
 * probably be long, if the task is new, if it may use none of the active CPUs, or if the kernel
 * enqueues it again (SCX_ENQ_REENQ). A pinned task uses its CPU, whether or not that CPU is active.
 */
#ifndef __LAVD_COMPACT_BPF_H
#define __LAVD_COMPACT_BPF_H

/* A task whose expected wait for an active CPU is longer than this may use any idle CPU. This is
 * above 0, because waking another CPU from a deep idle state takes time too. */
#define WAIT_US 2000
/* Like WAIT_US, but for a task whose criticality is closer to the largest criticality than to the
 * average. */
#define CRITICAL_WAIT_US 500

/* Length of a round, after which the active CPUs are selected anew. A round that follows a round in
 * which no task started to run is longer (round.bpf.h). */
#define ROUND_NS (10 * NSEC_PER_MSEC)

/* Whether some CPUs are not active, and should stay idle. */
static bool lavd_compacts;

/* Number of active CPUs of each compute domain. */
static u32 lavd_domain_active[SCX_NODES_MAX];

/* When the last round ended. */
static u64 lavd_round_at_ns;

/* Note that a task starts to run on @cpu. */
static void note_busy(s32 cpu, u64 now)
{
	cpu_state(cpu)->since_ns = now ?: 1;
}

/* Note that a task stops running on @cpu. */
static void note_idle(s32 cpu, u64 now)
{
	struct lavd_cpu *state = cpu_state(cpu);

	if (!state->since_ns)
		return;
	state->busy_ns += time_delta(now, time_max(state->since_ns, lavd_round_at_ns));
	state->since_ns = 0;
}

/* Return how long the CPU was busy since the last round, ns, and reset busy_ns. This is not atomic:
 * the time of a task that stops meanwhile may be counted twice, or not at all. */
static u64 take_busy_ns(struct lavd_cpu *state, u64 now)
{
	u64 since_ns = state->since_ns, ns = state->busy_ns;

	state->busy_ns = 0;
	if (since_ns)
		ns += time_delta(now, time_max(since_ns, lavd_round_at_ns));
	return lavd_min(ns, time_delta(now, lavd_round_at_ns));
}

/* ---- placing tasks -------------------------------------------------------- */

/* Whether the task would wait for too long if it used only the active CPUs of its domain. */
static bool waits_long(const struct task_struct *p, const struct scx_dl_task *t)
{
	u64 critical = lavd_preempt_threshold(lavd_system.max_lat_cri, lavd_system.avg_lat_cri, 1);
	u64 max_us = t->lat_cri > critical ? CRITICAL_WAIT_US : WAIT_US;
	s32 cpu = scx_bpf_task_cpu(p);

	return lavd_wait_us(nr_waiting_for(cpu), lavd_system.avg_runtime_us,
			    lavd_domain_active[scx_node_of(cpu)]) > max_us;
}

/* Return the active CPUs if the task should use only these, NULL if it may use any CPU. A new task
 * may use any CPU, because its runtime is unknown. A pinned task uses its CPU. */
static const struct cpumask *confines(const struct task_struct *p, const struct scx_dl_task *t)
{
	const struct cpumask *active;

	if (!lavd_compacts || !t->has_begun || scx_task_is_pinned(p) || waits_long(p, t))
		return NULL;
	active = scx_primary_cpus();
	return active && bpf_cpumask_intersects(active, p->cpus_ptr) ? active : NULL;
}

/* Whether an active CPU of the domain of @cpu may run the task. If the task may use only some CPUs,
 * only @cpu is checked. */
static bool may_wait_at(const struct task_struct *p, s32 cpu)
{
	if ((u32)p->nr_cpus_allowed < scx_cpus.nr_online)
		return cpu_state(cpu)->is_active && bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
	return lavd_domain_active[scx_node_of(cpu)];
}

/* Return the CPU in whose domain the task should wait: @cpu if may_wait_at() is true, or if the
 * task may use no active CPU; else an active CPU that the task may use. If no active CPU of the
 * domain of @cpu may run the task, it would have to wait there until a CPU of another domain
 * becomes idle and steals it. Without compaction, or if the task is pinned, return @cpu. */
static s32 where_to_wait(const struct task_struct *p, s32 cpu)
{
	const struct cpumask *active;
	u32 other;

	if (!lavd_compacts || scx_task_is_pinned(p) || may_wait_at(p, cpu))
		return cpu;
	active = scx_primary_cpus();
	if (!active)
		return cpu;
	other = bpf_cpumask_first_and(active, p->cpus_ptr);
	return other < scx_cpus.nr_cpu_ids ? other : cpu;
}

/* ---- choosing the active CPUs --------------------------------------------- */

/* Return the mode of this round: lavd_control.mode, or a mode for @need if that is LAVD_AUTO. */
static u32 choose_mode(u64 need)
{
	u32 mode = lavd_control.mode;

	if (mode != LAVD_AUTO)
		return mode;
	return lavd_auto_mode(need, lavd_sums.min_capacity, lavd_sums.capacity, scx_cpus.has_smt);
}

static s32 cpu_in_order(u32 mode, u32 index)
{
	if (mode == LAVD_POWERSAVE)
		return lavd_orders.powersave[index % LAVD_CPUS_MAX];
	return lavd_orders.performance[index % LAVD_CPUS_MAX];
}

/* Make a CPU active or inactive. @mask is the mask of the active CPUs. */
static void set_active(struct bpf_cpumask *mask, s32 cpu, bool is_active)
{
	struct lavd_cpu *state = cpu_state(cpu);

	if (is_active == state->is_active)
		return;
	state->is_active = is_active;
	if (is_active) {
		bpf_cpumask_set_cpu(cpu, mask);
		lavd_domain_active[scx_node_of(cpu)]++;
		/* Let the CPU look for waiting tasks. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	} else {
		bpf_cpumask_clear_cpu(cpu, mask);
		lavd_domain_active[scx_node_of(cpu)]--;
	}
}

/* Capacity and number of the active CPUs, set in each round. lavd_nr_active is not a local variable
 * of set_active_cpus(), because the verifier would then follow each of its values. */
static u64 lavd_active_capacity;
static u32 lavd_nr_active;

/* Set the active CPUs. In performance mode, these are the big CPUs if there are also little CPUs.
 * With compaction, they are the first CPUs in the order of @mode that suffice for @need. Otherwise,
 * all CPUs are active. */
static void set_active_cpus(struct bpf_cpumask *mask, u32 mode, u64 need)
{
	bool prefers_big = mode == LAVD_PERFORMANCE && lavd_is_big_little, is_active;
	bool compacts = mode == LAVD_BALANCED || mode == LAVD_POWERSAVE;
	s32 cpu;
	u32 i;

	lavd_active_capacity = 0;
	lavd_nr_active = 0;
	bpf_for(i, 0, scx_cpus.nr_online) {
		cpu = cpu_in_order(mode, i);
		is_active = prefers_big ?
				    is_big(cpu) :
				    !compacts || !i || !lavd_suffices(lavd_active_capacity, need);
		if (is_active) {
			lavd_nr_active++;
			lavd_active_capacity += scx_cpu_info(cpu)->capacity;
		}
		set_active(mask, cpu, is_active);
	}
	lavd_compacts = compacts && lavd_nr_active < scx_cpus.nr_online;
	scx_has_primary = lavd_compacts || prefers_big;
	lavd_system.nr_active = prefers_big ? scx_cpus.nr_online : lavd_nr_active;
}

/* Adapt the active CPUs to @load, the load of the last round, and to @nr_queued waiting tasks.
 * Pinned tasks are not included in @nr_queued, because further active CPUs could not run them. */
static void compact(u64 load, u64 nr_queued)
{
	struct lavd_system *system = &lavd_system;
	struct scx_mask *place;
	struct bpf_cpumask *mask;
	u32 zero = 0, mode;
	u64 need;

	system->load = lavd_load_average(system->load, load);
	need = lavd_need(system->load);
	if (lavd_is_saturated(load, lavd_active_capacity))
		need += lavd_queued_load(nr_queued, system->avg_runtime_us, ROUND_NS / 1000);
	mode = choose_mode(need);
	system->mode = mode;
	if (mode == LAVD_BALANCED)
		system->nr_balanced++;
	else if (mode == LAVD_POWERSAVE)
		system->nr_powersave++;
	else
		system->nr_performance++;
	bpf_rcu_read_lock();
	place = bpf_map_lookup_elem(&scx_primary_mask, &zero);
	mask = place ? place->mask : NULL;
	if (mask)
		set_active_cpus(mask, mode, need);
	bpf_rcu_read_unlock();
}

#endif /* __LAVD_COMPACT_BPF_H */
