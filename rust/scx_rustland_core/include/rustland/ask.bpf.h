/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking user space: the ring of tasks that wait for a decision, and who wakes its reader. */
#ifndef __RL_ASK_BPF_H
#define __RL_ASK_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} rl_queued SEC(".maps");

/* Each record has a header of 8 bytes. */
_Static_assert(RL_IN_FLIGHT_MAX * (sizeof(struct rl_queued) + 8) <= 1 << 21, "room");

/*
 * Hands a record over. The reader is woken if it sleeps, and only then: it says so in
 * shared.is_sleeping before it looks at the ring a last time.
 */
static void submit(struct rl_queued *rec)
{
	u64 flags = BPF_RB_NO_WAKEUP;

	if (*(volatile u64 *)&shared.is_sleeping && !is_dying_cpu() &&
	    __sync_lock_test_and_set(&shared.is_sleeping, 0)) {
		flags = BPF_RB_FORCE_WAKEUP;
		count(nr_wakeups);
	}
	bpf_ringbuf_submit(rec, flags);
}

/* Wakes user space for another reason than a task, such as a word of shared memory that was written
 * before. The thread looks at these words after it has said that it sleeps. */
__noinline int nudge(void)
{
	struct rl_queued *rec;

	scx_full_barrier();
	if (!*(volatile u64 *)&shared.is_sleeping)
		return 0;
	rec = bpf_ringbuf_reserve(&rl_queued, sizeof(*rec), 0);
	if (!rec)
		return 0;
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->now_ns = scx_monotonic_now();
	submit(rec);
	return 0;
}

static void fill(struct rl_queued *rec, struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	rec->generation = t->generation;
	rec->now_ns = scx_monotonic_now();
	rec->start_ns = t->start_ns;
	rec->stop_ns = t->stop_ns;
	rec->exec_ns = t->exec_ns;
	rec->sum_exec_ns = p->se.sum_exec_runtime;
	rec->vtime = t->vtime;
	rec->nvcsw = p->nvcsw;
	rec->enq_flags = enq_flags;
	__builtin_memcpy(rec->words, t->words, sizeof(rec->words));
	rec->pid = p->pid;
	rec->tgid = p->tgid;
	rec->cpu = scx_bpf_task_cpu(p);
	rec->weight = p->scx.weight;
	rec->nr_cpus_allowed = p->nr_cpus_allowed;
	rec->is_kthread = !!(p->flags & PF_KTHREAD);
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), p->comm);
}

/*
 * A task that BPF serves by itself, in order of arrival. One that may run on one CPU only waits in
 * that CPU's queue: it has to be found there when the CPU goes (evacuate()).
 */
static void serve_unasked(struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert_vtime(p, cpu, config.slice_ns, shared.nr_drained + VTIME_FIRST,
					 enq_flags);
		if (!is_dying_cpu())
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, FALLBACK_DSQ, config.slice_ns, enq_flags);
	kick_idle_for(p);
}

/* Puts the task aside until user space has decided. */
static void ask(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	struct rl_queued *rec;

	count(nr_queued);
	if (is_stalled()) {
		count(nr_fallback);
		serve_unasked(p, enq_flags);
		return;
	}
	rec = bpf_ringbuf_reserve(&rl_queued, sizeof(*rec), 0);
	if (!rec) {
		count(nr_fallback);
		count(nr_congested);
		serve_unasked(p, enq_flags);
		return;
	}
	t->has_run_out = !(enq_flags & SCX_ENQ_WAKEUP);
	/* It fetches, so it is also the barrier between the reservation and submit(). */
	t->generation = __sync_add_and_fetch(&last_generation, 1);
	fill(rec, p, t, enq_flags);
	/* It takes effect when this callback is over: see move_held(). */
	scx_bpf_dsq_insert(p, HELD_DSQ, config.slice_ns, enq_flags);
	submit(rec);
	/* Decisions that nobody has looked at yet, since all who were idle had looked before. */
	if (is_undrained())
		kick_any_idle();
}

#endif /* __RL_ASK_BPF_H */
