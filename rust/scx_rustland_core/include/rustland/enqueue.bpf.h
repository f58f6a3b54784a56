/* SPDX-License-Identifier: GPL-2.0-only */
/* Enqueueing: tasks wait in PENDING_DSQ while records of them go to the policy through a ring. */
#ifndef __RL_ENQUEUE_BPF_H
#define __RL_ENQUEUE_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} rl_queued SEC(".maps");

/* The ring adds a header of 8 bytes to each record. */
_Static_assert(RL_IN_FLIGHT_MAX * (sizeof(struct rl_queued) + 8) <= 1 << 21,
	       "RL_IN_FLIGHT_MAX records fit into the ring");

/*
 * Publish a record. If the policy thread sleeps, wake it, unless this CPU is going offline
 * (is_dying_cpu()). The policy thread sets shared.is_sleeping before it checks the ring for the
 * last time, so no record is missed.
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

/*
 * If the policy thread sleeps, wake it by a record with pid 0, usually because a word of shared
 * memory has changed. The caller changes the word before this call, and the policy thread checks
 * the word again after setting is_sleeping, so no change is missed.
 */
__noinline int wake_user(void)
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

static void fill_record(struct rl_queued *rec, struct task_struct *p, struct rl_task *t,
			u64 enq_flags)
{
	rec->enq_seq = t->enq_seq;
	rec->now_ns = scx_monotonic_now();
	rec->start_ns = t->start_ns;
	/* stop_ns is start_ns plus CPU time, which the run queue's clock measures. In a long run,
	 * this clock may have drifted from CLOCK_MONOTONIC. */
	rec->stop_ns = time_before(t->stop_ns, rec->now_ns) ? t->stop_ns : rec->now_ns;
	rec->exec_ns = t->exec_ns;
	rec->sum_exec_ns = p->se.sum_exec_runtime;
	rec->vtime = advanced_vtime(p, t);
	rec->nvcsw = p->nvcsw;
	rec->enq_flags = enq_flags;
	__builtin_memcpy(rec->ctx, t->ctx, sizeof(rec->ctx));
	rec->pid = p->pid;
	rec->tgid = p->tgid;
	rec->cpu = scx_bpf_task_cpu(p);
	rec->weight = p->scx.weight;
	rec->nr_cpus_allowed = p->nr_cpus_allowed;
	rec->is_kthread = !!(p->flags & PF_KTHREAD);
	bpf_probe_read_kernel_str(rec->comm, sizeof(rec->comm), p->comm);
}

/*
 * Enqueue a task that gets no decision, in FIFO order. A pinned task goes to the queue of its CPU,
 * where evacuate() finds it when the CPU goes offline.
 */
static void enqueue_fallback(struct task_struct *p, u64 enq_flags)
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

/* Let the task's CPU look for the task in reclaim(). The lock of that CPU's run queue protects the
 * flag: it is held during ops.enqueue(), and reclaim() does not release it, because reclaim() moves
 * only tasks of its own CPU. */
static void note_reclaimable(const struct task_struct *p)
{
	struct rl_cpu *state = cpu_state(scx_bpf_task_cpu(p));

	if (state)
		state->may_reclaim = 1;
}

/* Queue the task until the policy has decided on it, and publish a record for the policy. During a
 * stall, or if the ring is full, the task gets no decision. */
static void enqueue_pending(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	struct rl_queued *rec;

	count(nr_queued);
	if (is_stalled()) {
		count(nr_fallback);
		enqueue_fallback(p, enq_flags);
		return;
	}
	rec = bpf_ringbuf_reserve(&rl_queued, sizeof(*rec), 0);
	if (!rec) {
		count(nr_fallback);
		count(nr_congested);
		enqueue_fallback(p, enq_flags);
		return;
	}
	t->slice_expired = !(enq_flags & SCX_ENQ_WAKEUP);
	if (t->slice_expired)
		note_reclaimable(p);
	/* This is also the barrier needed between the reservation and the read of is_sleeping in
	 * submit(): an atomic operation that fetches the value is a full barrier. */
	t->enq_seq = __sync_add_and_fetch(&last_enq_seq, 1);
	fill_record(rec, p, t, enq_flags);
	/* The kernel inserts the task only after this callback has returned (move_pending()). */
	scx_bpf_dsq_insert(p, PENDING_DSQ, config.slice_ns, enq_flags);
	submit(rec);
	/* The idle CPUs may have looked for decisions before the last decisions were sent. Let one
	 * of them drain the last decisions. */
	if (is_undrained())
		kick_any_idle();
}

#endif /* __RL_ENQUEUE_BPF_H */
