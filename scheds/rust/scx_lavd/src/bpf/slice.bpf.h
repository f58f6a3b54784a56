/* SPDX-License-Identifier: GPL-2.0-only */
/* Slices of tasks, from the functions of slice.h and the state of the machine. */
#ifndef __LAVD_SLICE_BPF_H
#define __LAVD_SLICE_BPF_H

/* Return the slice on @cpu before it is adapted to the task. @nr_waiting is the number of tasks
 * that wait in the domain of @cpu. */
static u64 plain_slice_ns(s32 cpu, u64 nr_waiting)
{
	return lavd_slice_ns(lavd_domain_cpus[scx_node_of(cpu)], nr_waiting, config.slice_min_ns,
			     config.slice_max_ns);
}

/* Return the number of tasks that wait in the domain of @cpu, for plain_slice_ns(). That function
 * assumes that all CPUs of the domain share the waiting tasks. Only @cpu can run a task pinned to
 * it, so such a task counts once for each CPU of the domain. */
static u64 nr_waiting_for(s32 cpu)
{
	s32 nr = scx_bpf_dsq_nr_queued(SCX_NODE_DSQ | scx_node_of(cpu));

	return (nr > 0 ? nr : 0) + nr_pinned_waiting(cpu) * lavd_domain_cpus[scx_node_of(cpu)];
}

/* Return the slice of a task that is enqueued for @cpu, while @nr_waiting tasks wait in the domain
 * of @cpu. */
static u64 first_slice_ns(const struct scx_dl_task *t, s32 cpu, u64 nr_waiting)
{
	return lavd_fitting_slice_ns(plain_slice_ns(cpu, nr_waiting), t->avg_runtime_ns,
				     config.slice_min_ns);
}

/* Return the slice of a task that starts to run on @cpu, or continues there. For shorten_slice(),
 * note when the slice begins and whether it is boosted. */
static u64 slice_ns(const struct scx_dl_task *t, s32 cpu)
{
	struct lavd_cpu *state = cpu_state(cpu);
	u64 nr = nr_waiting_for(cpu), plain_ns = plain_slice_ns(cpu, nr);
	u64 ns = first_slice_ns(t, cpu, nr);

	if (config.pinned_slice_ns && scx_has_pinned_waiting(cpu))
		ns = lavd_min(ns, config.pinned_slice_ns);
	else if (!config.no_slice_boost && t->avg_runtime_ns >= plain_ns)
		ns = lavd_boosted_slice_ns(plain_ns, t->avg_runtime_ns, nr > 0, t->lat_cri,
					   lavd_system.avg_lat_cri);
	state->refilled_at_ns = scx_bpf_now();
	state->is_boosted = ns > plain_ns;
	if (state->is_boosted)
		count(nr_slice_boost);
	return ns;
}

/* Shorten the slice of the running task if other tasks wait. This is necessary only if the slice
 * was boosted, or if a pinned task waits for this CPU (config.pinned_slice_ns). */
static void shorten_slice(struct task_struct *p, s32 cpu)
{
	struct lavd_cpu *state = cpu_state(cpu);
	bool is_limited = config.pinned_slice_ns && scx_has_pinned_waiting(cpu);
	const struct scx_dl_task *t;
	u64 nr, max_ns, ran_ns, left_ns;

	if (!is_limited && !state->is_boosted)
		return;
	nr = nr_waiting_for(cpu);
	if (!nr)
		return;
	max_ns = plain_slice_ns(cpu, nr);
	if (is_limited) {
		max_ns = lavd_min(max_ns, config.pinned_slice_ns);
	} else {
		t = scx_dl_task(p);
		if (t)
			max_ns = lavd_boosted_slice_ns(max_ns, t->avg_runtime_ns, true, t->lat_cri,
						       lavd_system.avg_lat_cri);
	}
	ran_ns = time_delta(scx_bpf_now(), state->refilled_at_ns);
	left_ns = max_ns > ran_ns ? max_ns - ran_ns : 0;
	if (p->scx.slice > left_ns)
		scx_bpf_task_set_slice(p, left_ns);
}

#endif /* __LAVD_SLICE_BPF_H */
