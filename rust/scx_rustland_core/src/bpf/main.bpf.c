/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_rustland_core: schedulers whose policy is a program in user space.
 *
 * A task's way: ops.enqueue() puts it into the queue HELD and a record of it into a ring
 * (ask.bpf.h); the policy reads the record and writes a decision into another ring; the next CPU
 * that looks for work takes the decisions in and moves each task into the queue of a CPU, or of all
 * (decide.bpf.h); and ops.dispatch() takes it from there. No step is a system call.
 *
 * These never ask, since whoever decides may wait for them: kernel threads that are bound to a CPU,
 * tasks that may not migrate now, and the threads of the scheduler's own process (own.bpf.h); nor,
 * if the policy leaves them to the kernel, tasks that find an idle CPU, and those that get the rest
 * of the slice of whoever woke them (handover.bpf.h). A task that just goes on, because nobody else
 * wants its CPU or because it is still before the others, is not queued at all, or taken back
 * before the policy has heard of it (take_back()). And when user space does not answer, tasks are
 * served in order of arrival (watch.bpf.h).
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/time.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

#include "state.bpf.h"
#include "idle.bpf.h"
#include "ask.bpf.h"
#include "own.bpf.h"
#include "handover.bpf.h"
#include "decide.bpf.h"
#include "watch.bpf.h"

/* An idle CPU for @p, which is taken then; negative if there is none. */
static s32 find_idle(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = prev_cpu;

	if (idle_selection == RL_IDLE_BUILTIN)
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	else
		is_idle = bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr) &&
			  scx_bpf_test_and_clear_cpu_idle(prev_cpu);
	return is_idle ? cpu : -EBUSY;
}

s32 BPF_STRUCT_OPS(rl_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = -EBUSY;

	if (is_own(p))
		return select_cpu_for_own(p, prev_cpu, wake_flags);
	if (idle_selection == RL_IDLE_FULL_USER)
		return prev_cpu;
	/* Who waits already goes first. */
	if (scx_bpf_dsq_nr_queued(SHARED_DSQ) <= 0 && scx_bpf_dsq_nr_queued(HELD_DSQ) <= 0)
		cpu = find_idle(p, prev_cpu, wake_flags);
	if (cpu >= 0) {
		clear_cpu(shared.idle, cpu);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
		count(nr_kernel);
		return cpu;
	}
	if (wake_flags & SCX_WAKE_SYNC && hand_over(p))
		return bpf_get_smp_processor_id();
	return prev_cpu;
}

void BPF_STRUCT_OPS(rl_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct rl_task *t = task_state(p);

	if (t)
		t->gift_end_ns = 0;
	if (t && claim_any(t))
		count(nr_cancelled);
	/* A higher class has its CPU, and it cannot go elsewhere. */
	if (t && enq_flags & SCX_ENQ_REENQ && p->nr_cpus_allowed == 1)
		t->resumes = true;
	if (is_urgent(p)) {
		enqueue_urgent(p, enq_flags);
	} else if (scx_task_is_migration_disabled(p, enq_flags)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		count(nr_kernel);
	} else if (!t) {
		serve_unasked(p, enq_flags);
		count(nr_kernel);
	} else if (!resume(p, t, enq_flags)) {
		ask(p, t, enq_flags);
	}
}

/* Whether the first of CPU @cpu's own queue goes before the first of the queue of all. */
static bool own_is_first(s32 cpu)
{
	struct task_struct *own, *any;
	bool is_first = true;

	bpf_rcu_read_lock();
	own = scx_bpf_dsq_peek(cpu);
	any = scx_bpf_dsq_peek(SHARED_DSQ);
	if (own && any)
		is_first = time_before_eq(own->scx.dsq_vtime, any->scx.dsq_vtime);
	bpf_rcu_read_unlock();
	return is_first;
}

static bool take_shared(void)
{
	if (!scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
		return false;
	note_spare();
	/* So that the next CPU that looks for work need not wait. */
	if (!shared.nr_spare && *(volatile u64 *)&shared.nr_waiting)
		nudge();
	return true;
}

/* The next of the decided tasks. */
static bool take_decided(s32 cpu, bool *is_shared)
{
	s32 nr_own = scx_bpf_dsq_nr_queued(cpu), nr_shared = scx_bpf_dsq_nr_queued(SHARED_DSQ);

	*is_shared = true;
	if (nr_shared > 0 && (nr_own <= 0 || !own_is_first(cpu)) && take_shared())
		return true;
	*is_shared = false;
	if (nr_own > 0 && scx_bpf_dsq_move_to_local(cpu, 0)) {
		note_service(cpu);
		return true;
	}
	*is_shared = true;
	return nr_shared > 0 && take_shared();
}

/*
 * The next of those whom nobody decides about, or whom nobody was asked about. While user space
 * does not answer, HELD gets no more: who is there came before those who are not asked about.
 */
static bool take_unasked(void)
{
	if (is_stalled() && scx_bpf_dsq_move_to_local(HELD_DSQ, 0))
		return true;
	return scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0 &&
	       scx_bpf_dsq_move_to_local(FALLBACK_DSQ, 0);
}

/* So many of those who wait are looked at in take_back(). */
#define TAKE_BACK_MAX 16

/*
 * A task whose slice was over lost CPU @cpu to somebody who needed it for a moment only. If the
 * policy has not even been told of it, it just goes on, so that the CPU is not idle meanwhile.
 */
__noinline int take_back(s32 cpu)
{
	u64 seen = *(volatile u64 *)&shared.seen, generation;
	struct rl_cpu *state = cpu_state(cpu);
	struct task_struct *p;
	struct rl_task *t;

	if (!state)
		return false;
	state->nr_looked_at = 0;
	bpf_for_each(scx_dsq, p, HELD_DSQ, 0) {
		if (state->nr_looked_at++ >= TAKE_BACK_MAX)
			break;
		if (scx_bpf_task_cpu(p) != cpu || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);
		generation = t ? *(volatile u64 *)&t->generation : 0;
		if (!t || !t->has_run_out || generation <= seen || !claim(t, generation))
			continue;
		count(nr_cancelled);
		count(nr_kept);
		begin_slice(p, t);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, t->slice_ns ?: slice_ns);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/* Gives CPU @cpu something to do. The two kinds of tasks take turns, so that none starves. */
__noinline int take(s32 cpu)
{
	struct rl_cpu *state = cpu_state(cpu);
	bool left_one = drain(cpu), is_shared = false;
	bool is_unasked_first = state && state->turn++ % 2, done;

	done = is_unasked_first && take_unasked();
	if (!done)
		done = take_decided(cpu, &is_shared);
	if (!done)
		done = !is_unasked_first && take_unasked();
	if (left_one && !is_shared)
		kick_any_idle();
	return done;
}

/* How long a task goes on while the policy decides who is next. */
#define MOMENT_NS (1 * NSEC_PER_MSEC)

/* Whether somebody may be decided to run instead of a task that goes on. */
static bool anybody_waits(void)
{
	return *(volatile u64 *)&shared.nr_waiting || scx_bpf_dsq_nr_queued(HELD_DSQ) > 0 ||
	       is_undrained();
}

/*
 * Lets the task that has used up its slice go on, since nobody else was decided to run here: for
 * another slice, or, if the policy is about to decide, for a moment. The CPU is not idle meanwhile.
 */
static bool goes_on(struct task_struct *prev)
{
	struct rl_task *t;
	u64 slice = slice_ns;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED))
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (t && t->slice_ns)
		slice = t->slice_ns;
	if (anybody_waits() && slice > MOMENT_NS)
		slice = MOMENT_NS;
	scx_bpf_task_set_slice(prev, slice);
	if (t)
		begin_slice(prev, t);
	count(nr_kept);
	return true;
}

/* So long a task goes on at a stretch because it is still before the others, divided by their
 * number: a twentieth of what makes the kernel end the scheduler. */
#define STILL_FIRST_MAX_NS (TIMEOUT_MS * NSEC_PER_MSEC / 20)

/* Later than any. */
#define NO_VTIME (~0ULL)

/* The vtime of the first of a queue: of one who goes on with a slice, what was decided. Within an
 * RCU section. */
static u64 first_vtime(u64 dsq_id)
{
	struct task_struct *first = scx_bpf_dsq_peek(dsq_id);
	struct rl_task *t;
	u64 vtime;

	if (!first)
		return NO_VTIME;
	vtime = first->scx.dsq_vtime;
	if (vtime == VTIME_PREEMPTING || vtime > VTIME_RESUMED_LAST)
		return vtime;
	t = bpf_task_storage_get(&rl_tasks, first, NULL, 0);
	return t ? advanced_vtime(first, t) + VTIME_FIRST : vtime;
}

/* Whether a task with this vtime is before all who were decided to run on CPU @cpu; not if there
 * are none. */
static bool is_before_decided(s32 cpu, u64 vtime)
{
	u64 of_own, of_any;

	bpf_rcu_read_lock();
	of_own = first_vtime(cpu);
	of_any = first_vtime(SHARED_DSQ);
	bpf_rcu_read_unlock();
	return vtime < of_own && vtime < of_any && (of_own & of_any) != NO_VTIME;
}

/* Whether somebody came straight to CPU @cpu, who may not wait: while decisions are taken in, the
 * lock of its run queue is not held. */
static bool has_local(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

/*
 * Whether the task whose slice is over is still before all others, by a policy that says how its
 * vtime advances. Else two tasks of one CPU would take turns, whatever they weigh.
 */
static bool is_still_first(s32 cpu, struct task_struct *prev)
{
	u64 max_ns = STILL_FIRST_MAX_NS;
	struct rl_task *t;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED) || is_stalled() ||
	    scx_bpf_dsq_nr_queued(FALLBACK_DSQ) > 0)
		return false;
	t = bpf_task_storage_get(&rl_tasks, prev, NULL, 0);
	if (!t || !t->weight)
		return false;
	if (drain(cpu))
		kick_any_idle();
	if (has_local(cpu))
		return false;
	max_ns /= 1 + scx_bpf_dsq_nr_queued(cpu);
	if (scx_monotonic_now() - t->start_ns > max_ns)
		return false;
	if (!is_before_decided(cpu, advanced_vtime(prev, t) + VTIME_FIRST))
		return false;
	begin_slice(prev, t);
	note_running_vtime(cpu, t->vtime);
	scx_bpf_task_set_slice(prev, t->slice_ns ?: slice_ns);
	count(nr_kept);
	return true;
}

/* Reminds the policy of the tasks that it holds. Those that are decided, if there are any, are not
 * for the CPU that has looked. */
static void remind(void)
{
	if (*(volatile u64 *)&shared.nr_waiting) {
		shared.nr_spare = 0;
		nudge();
	}
}

void BPF_STRUCT_OPS(rl_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_learn_trampoline();
	if (!test_cpu(shared.online, cpu))
		note_hotplug(cpu, true);
	if (is_still_first(cpu, prev) || has_local(cpu) || take(cpu) || has_local(cpu))
		return;
	if (goes_on(prev)) {
		remind();
		return;
	}
	if (scx_bpf_dsq_nr_queued(HELD_DSQ) > 0 && take_back(cpu))
		return;
	/* See idle.bpf.h: say it first, then look again. */
	set_cpu(shared.idle, cpu);
	if (take(cpu)) {
		clear_cpu(shared.idle, cpu);
		return;
	}
	remind();
}

void BPF_STRUCT_OPS(rl_update_idle, s32 cpu, bool is_idle)
{
	if (!is_idle)
		clear_cpu(shared.idle, cpu);
	else if (test_cpu(shared.online, cpu))
		set_cpu(shared.idle, cpu);
}

void BPF_STRUCT_OPS(rl_running, struct task_struct *p)
{
	struct rl_counters *c = counters();
	struct rl_task *t = task_state(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (c)
		c->nr_running = 1;
	/* It was about to be idle, and then was not. */
	if (test_cpu(shared.idle, cpu))
		clear_cpu(shared.idle, cpu);
	if (!is_own(p))
		note_running_vtime(cpu, t && !is_urgent(p) ? t->vtime : 0);
	else if ((u32)p->pid == policy_pid)
		shared.own_cpu = cpu;
	if (!t)
		return;
	/* Nobody has decided this. */
	if (claim_any(t))
		count(nr_fallback);
	t->start_ns = scx_monotonic_now();
	if (t->gift_end_ns)
		limit_gift(p, t, t->start_ns);
	t->start_slice_ns = p->scx.slice;
	t->sum_exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(rl_stopping, struct task_struct *p, bool runnable)
{
	struct rl_counters *c = counters();
	struct rl_task *t = task_state(p);

	if (c)
		c->nr_running = 0;
	if (!t)
		return;
	t->stop_ns = scx_monotonic_now();
	t->exec_ns += p->se.sum_exec_runtime - t->sum_exec_ns;
	note_interrupted(p, t, runnable);
}

/* It sleeps, or it is taken away to be changed. */
void BPF_STRUCT_OPS(rl_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct rl_task *t = task_state(p);
	bool sleeps = deq_flags & SCX_DEQ_SLEEP;

	if (!t)
		return;
	t->resumes = false;
	if (sleeps)
		t->exec_ns = 0;
	if (!claim_any(t))
		return;
	if (sleeps)
		count(nr_dequeued);
	else
		count(nr_cancelled);
}

s32 BPF_STRUCT_OPS(rl_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	/* Without, it is served like one whom nobody decides about. */
	struct rl_task *t = task_state(p), *maker;

	if (!t || !args->fork)
		return 0;
	maker = bpf_task_storage_get(&rl_tasks, bpf_get_current_task_btf(), NULL, 0);
	if (maker)
		__builtin_memcpy(t->words, maker->words, sizeof(t->words));
	return 0;
}

/* Only where the timer cannot do it: see watch_cpus(). */
void BPF_STRUCT_OPS(rl_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
	if (*(volatile u64 *)&shared.nr_waiting)
		nudge();
}

/*
 * The kernel calls this some steps before it lets the CPU dispatch, and these steps may wait for
 * tasks, such as the one of RCU, which would wait for the CPU. So it counts as online when it
 * dispatches first. That there is this callback makes the kernel not end the scheduler.
 */
void BPF_STRUCT_OPS(rl_cpu_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(rl_cpu_offline, s32 cpu)
{
	note_hotplug(cpu, false);
	clear_cpu(shared.idle, cpu);
	evacuate(cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rl_init)
{
	const struct cpumask *online;
	s32 cpu, err;

	nr_cpu_ids = scx_bpf_nr_cpu_ids();
	if (nr_cpu_ids > RL_CPUS_MAX) {
		scx_bpf_error("%d CPU ids are more than %d", nr_cpu_ids, RL_CPUS_MAX);
		return -EINVAL;
	}
	online = scx_bpf_get_online_cpumask();
	bpf_for(cpu, 0, nr_cpu_ids) {
		if (bpf_cpumask_test_cpu(cpu, online))
			set_cpu(shared.online, cpu);
	}
	scx_bpf_put_cpumask(online);
	/* For all that are possible: a CPU that comes later needs no new queue. */
	bpf_for(cpu, 0, nr_cpu_ids) {
		err = scx_bpf_create_dsq(cpu, -1);
		if (err)
			return err;
	}
	err = scx_bpf_create_dsq(SHARED_DSQ, -1);
	err = err ?: scx_bpf_create_dsq(HELD_DSQ, -1);
	err = err ?: scx_bpf_create_dsq(FALLBACK_DSQ, -1);
	return err ?: start_watch();
}

void BPF_STRUCT_OPS(rl_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
	nudge();
}

void BPF_STRUCT_OPS(rl_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("waiting: %llu at the policy, %d held, %d decided, %d unasked\n",
		     shared.nr_waiting, scx_bpf_dsq_nr_queued(HELD_DSQ),
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_bpf_dsq_nr_queued(FALLBACK_DSQ));
	scx_bpf_dump("decisions: %llu sent, %llu taken in; user space: %llu cycles, sleeping %llu, "
		     "stalled %llu",
		     shared.nr_sent, shared.nr_drained, shared.nr_cycles, shared.is_sleeping,
		     shared.is_stalled);
}

/* Called by the policy's thread before all else: the name of its process for the kernel. */
SEC("syscall")
int rl_hello(void *ctx)
{
	u64 pid_tgid = bpf_get_current_pid_tgid();

	policy_pid = pid_tgid;
	own_tgid = pid_tgid >> 32;
	return 0;
}

/* The system call to find an idle CPU for a task, and to take it: negative if there is none. */
SEC("syscall")
int rl_find_idle(struct rl_find_idle_args *args)
{
	struct task_struct *p = bpf_task_from_pid(args->pid);
	s32 cpu;

	if (!p)
		return -ENOENT;
	bpf_rcu_read_lock();
	cpu = __scx_pick_idle_in(p->cpus_ptr, args->prev_cpu, 0);
	bpf_rcu_read_unlock();
	bpf_task_release(p);
	if (cpu >= 0)
		clear_cpu(shared.idle, cpu);
	return cpu;
}

/* How many tasks wait for a decision, for who checks the books. */
SEC("syscall")
int rl_nr_held(void *ctx)
{
	return scx_bpf_dsq_nr_queued(HELD_DSQ);
}

SCX_OPS(rustland_ops) = {
	.select_cpu = (void *)rl_select_cpu,
	.enqueue = (void *)rl_enqueue,
	.dispatch = (void *)rl_dispatch,
	.update_idle = (void *)rl_update_idle,
	.running = (void *)rl_running,
	.stopping = (void *)rl_stopping,
	.quiescent = (void *)rl_quiescent,
	.init_task = (void *)rl_init_task,
	.cpu_release = (void *)rl_cpu_release,
	.cpu_online = (void *)rl_cpu_online,
	.cpu_offline = (void *)rl_cpu_offline,
	.init = (void *)rl_init,
	.exit = (void *)rl_exit,
	.dump = (void *)rl_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "rustland",
};
