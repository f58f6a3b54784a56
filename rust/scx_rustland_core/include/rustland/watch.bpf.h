/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a timer looks after: whether user space answers, tasks that wait for a CPU that is gone or
 * that a real-time task holds, and CPUs that are on their way out.
 */
#ifndef __RL_WATCH_BPF_H
#define __RL_WATCH_BPF_H

#define CLOCK_MONOTONIC 1

/* How often to look while tasks wait, and otherwise. */
#define BUSY_BEAT_NS (20 * NSEC_PER_MSEC)
#define CALM_BEAT_NS (200 * NSEC_PER_MSEC)

/*
 * How long user space may have something to do without a sign of life: a twentieth of what makes
 * the kernel end the scheduler. A quarter if it has turned out to be slow and not gone: an emulator
 * with one thread for all CPUs lets each of them run for 100 ms, so that with four that are busy
 * the answer takes 400 ms, or twice that.
 */
#define STALL_NS (TIMEOUT_MS * NSEC_PER_MSEC / 20)
#define SLOW_STALL_NS (TIMEOUT_MS * NSEC_PER_MSEC / 4)

/* So long it counts as slow after it was. */
#define SLOW_NS (60 * NSEC_PER_SEC)

/* So many tasks of a CPU's queue are moved at a time. */
#define RESCUE_MAX 128

struct watch {
	struct bpf_timer timer;
	u64 nr_cycles; /* of user space, when it last gave a sign of life */
	u64 alive_ns; /* when that was */
	u64 slow_until_ns; /* user space has been slow */
	u64 nr_looked_at; /* in wake_for() */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct watch);
} rl_watch SEC(".maps");

/* Whether user space has something to do. */
static bool has_something_to_do(void)
{
	return bpf_ringbuf_query(&rl_queued, BPF_RB_AVAIL_DATA) ||
	       scx_bpf_dsq_nr_queued(HELD_DSQ) > 0;
}

/*
 * Wakes idle CPUs for the first tasks of a queue, each one for a task that may run there, also to
 * save power: nobody else will. Within an RCU section.
 */
static void wake_for(struct watch *w, u64 dsq_id)
{
	struct task_struct *p;
	s32 cpu;

	w->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (w->nr_looked_at++ >= RESCUE_MAX)
			break;
		cpu = claim_idle_in(p->cpus_ptr);
		if (cpu >= 0)
			kick_idle(cpu);
	}
}

static void watch_user(struct watch *w, u64 now)
{
	u64 nr_cycles = *(volatile u64 *)&shared.nr_cycles, patience_ns;

	/* With more patience there would have been no need to do without it. */
	if (nr_cycles != w->nr_cycles && shared.is_stalled && now - w->alive_ns < SLOW_STALL_NS)
		w->slow_until_ns = now + SLOW_NS;
	shared.is_slow = now < w->slow_until_ns;
	if (nr_cycles != w->nr_cycles || !has_something_to_do()) {
		w->nr_cycles = nr_cycles;
		w->alive_ns = now;
		shared.is_stalled = false;
		return;
	}
	/* A wish that was lost, if there is such a thing, and who holds tasks without an event. */
	nudge();
	patience_ns = shared.is_slow ? SLOW_STALL_NS : STALL_NS;
	if (now - w->alive_ns < patience_ns)
		return;
	if (!shared.is_stalled)
		shared.nr_stalls++;
	shared.is_stalled = true;
	wake_for(w, HELD_DSQ);
}

static void note_hotplug(s32 cpu, bool is_online)
{
	if (is_online)
		set_cpu(shared.online, cpu);
	else
		clear_cpu(shared.online, cpu);
	scx_ordered(__sync_fetch_and_add(&shared.hotplug_seq, 1));
	nudge();
}

/* Moves the tasks that wait for a CPU to where others find them. Within an RCU section. */
static void evacuate(s32 cpu)
{
	bool is_online = test_cpu(shared.online, cpu);
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;

	if (!state)
		return;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (state->nr_looked_at++ >= RESCUE_MAX)
			break;
		if (p->nr_cpus_allowed > 1) {
			if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, SHARED_DSQ, 0)) {
				count(nr_rescued);
				kick_any_idle();
			}
		} else if (!is_online) {
			/* It may run nowhere else, and the kernel has to see it to change that. */
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
		}
	}
}

/*
 * While user space does not answer, tasks that may only run on a CPU that is on its way out are
 * not decided about; and the CPU does not go before they do.
 */
static void evacuate_held(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;

	if (!state)
		return;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, HELD_DSQ, 0) {
		if (state->nr_looked_at++ >= RESCUE_MAX)
			break;
		if (scx_bpf_task_cpu(p) == cpu && p->nr_cpus_allowed == 1)
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	}
}

/* So many beats in a row a CPU may be idle and leave the tasks of its queue where they are. */
#define BEATS_IDLE_MAX 3

/* The CPU serves its queue, or there is none. */
static void note_service(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);

	if (state)
		state->nr_beats_idle = 0;
}

/*
 * Whether a CPU that counts as online leaves tasks where they are although it is woken. On its way
 * out, the kernel lets it take no more some steps before ops.cpu_offline(), and these steps may
 * wait for tasks, such as the one of RCU, which would wait for the CPU.
 */
static bool is_out_of_service(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);
	struct rl_cpu *state = cpu_state(cpu);

	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	if (!state || !curr || !(curr->flags & PF_IDLE) || ++state->nr_beats_idle <= BEATS_IDLE_MAX)
		return false;
	state->nr_beats_idle = 0;
	return true;
}

/*
 * A CPU that is on its way out waits until none of the tasks is left that were last on it. Others
 * take these from it, and nobody tells it: it looks when it schedules. Whether there is one.
 */
static bool wake_outgoing(void)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool is_any = false;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		if (test_cpu(shared.online, cpu) || !bpf_cpumask_test_cpu(cpu, online))
			continue;
		is_any = true;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	scx_bpf_put_cpumask(online);
	return is_any;
}

/* Whether tasks wait for a certain CPU. */
static bool watch_cpus(void)
{
	bool is_busy = wake_outgoing();
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		bool is_online = test_cpu(shared.online, cpu), is_awaited;

		is_awaited = scx_bpf_dsq_nr_queued(cpu) > 0;
		is_busy |= is_awaited;
		if (is_online && !is_taken_by_higher_class(cpu)) {
			if (!is_awaited)
				note_service(cpu);
			if (!is_awaited || !is_out_of_service(cpu))
				continue;
			note_hotplug(cpu, false);
			is_online = false;
		}
		if (is_awaited)
			evacuate(cpu);
		if (!is_online && is_stalled())
			evacuate_held(cpu);
		/* Before 7.1, ops.cpu_release() does this. */
		if (is_online && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0)
			scx_dsq_reenq(SCX_DSQ_LOCAL_ON | cpu, 0);
	}
	return is_busy;
}

static int on_beat(void *map, int *key, struct watch *w)
{
	bool is_busy;

	bpf_rcu_read_lock();
	watch_user(w, scx_monotonic_now());
	is_busy = watch_cpus();
	/* Who put a task there woke a CPU that was idle then. */
	wake_for(w, SHARED_DSQ);
	wake_for(w, FALLBACK_DSQ);
	is_busy |= is_stalled() || has_something_to_do() || scx_bpf_dsq_nr_queued(SHARED_DSQ) > 0 ||
		   scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0;
	bpf_rcu_read_unlock();
	bpf_timer_start(&w->timer, is_busy ? BUSY_BEAT_NS : CALM_BEAT_NS, 0);
	return 0;
}

static s32 start_watch(void)
{
	u32 zero = 0;
	struct watch *w = bpf_map_lookup_elem(&rl_watch, &zero);

	if (!w)
		return -ENOENT;
	w->alive_ns = scx_monotonic_now();
	bpf_timer_init(&w->timer, &rl_watch, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&w->timer, on_beat);
	return bpf_timer_start(&w->timer, BUSY_BEAT_NS, 0);
}

#endif /* __RL_WATCH_BPF_H */
