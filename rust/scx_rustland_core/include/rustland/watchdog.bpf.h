/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The watchdog, a timer that detects stalls of user space, tasks that wait for a CPU that is
 * offline or used by a task of a higher class, and CPUs that are going offline.
 */
#ifndef __RL_WATCHDOG_BPF_H
#define __RL_WATCHDOG_BPF_H

/* Periods of the timer: while tasks wait or CPU hotplug is in progress, and at other times. */
#define BUSY_PERIOD_NS (20 * NSEC_PER_MSEC)
#define CALM_PERIOD_NS (200 * NSEC_PER_MSEC)

/*
 * User space is stalled if the policy thread has had work for this time without completing an
 * iteration: 1/20 of the timeout of the kernel's watchdog, or 1/4 of it if user space has proved to
 * be slow. For example, user space is slow in an emulator with one thread for all CPUs, which runs
 * each CPU for 100 ms in turn: with four busy CPUs, a response takes 400 to 800 ms.
 */
#define STALL_NS (TIMEOUT_MS * NSEC_PER_MSEC / 20)
#define SLOW_STALL_NS (TIMEOUT_MS * NSEC_PER_MSEC / 4)

/* Time for which user space counts as slow after a late answer. */
#define SLOW_NS (60 * NSEC_PER_SEC)

/* Maximum number of tasks that one call of wake_for_queue() or evacuate() handles. */
#define RESCUE_MAX 128

struct watchdog {
	struct bpf_timer timer;
	u64 nr_cycles; /* last known shared.nr_cycles */
	u64 alive_ns; /* last time at which nr_cycles had changed, or there was no work */
	u64 slow_until_ns; /* end of the time in which user space counts as slow */
	u64 nr_looked_at; /* loop counter of wake_for_queue() (see rl_cpu.nr_looked_at) */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct watchdog);
} rl_watchdog SEC(".maps");

/* Whether the policy thread has records to read or tasks to decide on. */
static bool user_has_work(void)
{
	return bpf_ringbuf_query(&rl_queued, BPF_RB_AVAIL_DATA) ||
	       scx_bpf_dsq_nr_queued(PENDING_DSQ) > 0;
}

/* Kick an idle CPU that may run @p, regardless of low_power, because no other event will kick one.
 * Call it under RCU. */
static void wake_for(const struct task_struct *p)
{
	s32 cpu;

	scx_full_barrier();
	cpu = claim_idle_in(p->cpus_ptr);
	if (cpu >= 0)
		kick_idle(cpu);
}

/* Call wake_for() for the first tasks of a queue that all CPUs dispatch from. If the last allowed
 * CPU of a task is going offline (is_stranded()), move the task to the local DSQ of that CPU: the
 * CPU does not go down before the kernel has moved the task to another CPU. */
static void wake_for_queue(struct watchdog *w, u64 dsq_id)
{
	struct task_struct *p;

	w->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (w->nr_looked_at++ >= RESCUE_MAX)
			break;
		if (is_stranded(p))
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p,
					 SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(p), 0);
		else
			wake_for(p);
	}
}

static void check_user(struct watchdog *w, u64 now)
{
	u64 nr_cycles = *(volatile u64 *)&shared.nr_cycles, timeout_ns;
	bool has_answered = nr_cycles != w->nr_cycles;

	/* An answer that came late, but within the longer timeout, shows that user space is
	 * slow. */
	if (has_answered && shared.is_stalled && now - w->alive_ns < SLOW_STALL_NS)
		w->slow_until_ns = now + SLOW_NS;
	shared.is_slow = now < w->slow_until_ns;
	/* Only an answer ends a stall. The absence of work does not, because the policy thread
	 * first reads all records and then answers, possibly in a later period. */
	if (has_answered || (!shared.is_stalled && !user_has_work())) {
		w->nr_cycles = nr_cycles;
		w->alive_ns = now;
		shared.is_stalled = false;
		return;
	}
	/* Wake the policy thread in case an earlier wakeup was lost, or the policy holds back tasks
	 * and no event would wake it. */
	wake_user();
	timeout_ns = shared.is_slow ? SLOW_STALL_NS : STALL_NS;
	if (now - w->alive_ns < timeout_ns)
		return;
	if (!shared.is_stalled)
		shared.nr_stalls++;
	shared.is_stalled = true;
	wake_for_queue(w, PENDING_DSQ);
}

static void note_hotplug(s32 cpu, bool is_online)
{
	if (is_online)
		set_cpu(shared.online, cpu);
	else
		clear_cpu(shared.online, cpu);
	scx_ordered(__sync_fetch_and_add(&shared.hotplug_seq, 1));
	wake_user();
}

/* Move the tasks in a CPU's queue to SHARED_DSQ, unless they are pinned. Move stranded tasks to the
 * local DSQ of the CPU that is going offline, as wake_for_queue() does. Call it under RCU. */
static void evacuate(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;

	if (!state)
		return;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		if (state->nr_looked_at++ >= RESCUE_MAX)
			break;
		if (is_stranded(p)) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p,
					 SCX_DSQ_LOCAL_ON | scx_bpf_task_cpu(p), 0);
		} else if (p->nr_cpus_allowed > 1) {
			if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, SHARED_DSQ, 0)) {
				count(nr_rescued);
				wake_for(p);
			}
		}
	}
}

/* Maximum number of periods that a CPU may idle with tasks in its queue. */
#define IDLE_PERIODS_MAX 3

/* Note that the CPU has dispatched a task from its queue, or that the queue is empty. */
static void note_service(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);

	if (state)
		state->nr_idle_periods = 0;
}

/*
 * Kick an online CPU with tasks in its queue. Returns whether the CPU has idled for several periods
 * in spite of such kicks. If so, it is going offline: it stops dispatching some steps before
 * ops.cpu_offline(). These steps may wait for tasks in its queue, such as RCU's kernel threads,
 * which would never run.
 */
static bool is_out_of_service(s32 cpu)
{
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);
	struct rl_cpu *state = cpu_state(cpu);

	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	if (!state || !curr || !(curr->flags & PF_IDLE) ||
	    ++state->nr_idle_periods <= IDLE_PERIODS_MAX)
		return false;
	state->nr_idle_periods = 0;
	return true;
}

/*
 * A CPU that is going offline waits until all tasks on its run queue have left. It checks this
 * when it schedules, and is not notified when other CPUs take the tasks, so kick it. A CPU that has
 * come online but has not dispatched yet is kicked too. Returns whether a CPU was kicked.
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

/* Handle the tasks that wait for a particular CPU. Returns whether there are such tasks, or a CPU
 * is going offline or coming online. */
static bool check_cpus(void)
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
		/* Enqueue the tasks in the local DSQ again, because they would wait for the task of
		 * the higher class. Before 7.1, this call does nothing, and ops.cpu_release() does
		 * it instead. */
		if (is_online && scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0)
			scx_dsq_reenq(SCX_DSQ_LOCAL_ON | cpu, 0);
	}
	return is_busy;
}

static int on_period(void *map, int *key, struct watchdog *w)
{
	bool is_busy;

	bpf_rcu_read_lock();
	check_user(w, scx_monotonic_now());
	is_busy = check_cpus();
	/* When a task was inserted into these queues, no CPU was kicked if none that may run the
	 * task was idle, or because of low_power. */
	wake_for_queue(w, SHARED_DSQ);
	wake_for_queue(w, FALLBACK_DSQ);
	is_busy |= is_stalled() || user_has_work() || scx_bpf_dsq_nr_queued(SHARED_DSQ) > 0 ||
		   scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0;
	bpf_rcu_read_unlock();
	bpf_timer_start(&w->timer, is_busy ? BUSY_PERIOD_NS : CALM_PERIOD_NS, 0);
	return 0;
}

static s32 start_watchdog(void)
{
	u32 zero = 0;
	struct watchdog *w = bpf_map_lookup_elem(&rl_watchdog, &zero);

	if (!w)
		return -ENOENT;
	w->alive_ns = scx_monotonic_now();
	bpf_timer_init(&w->timer, &rl_watchdog, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&w->timer, on_period);
	return bpf_timer_start(&w->timer, BUSY_PERIOD_NS, 0);
}

#endif /* __RL_WATCHDOG_BPF_H */
