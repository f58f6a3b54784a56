/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF side of schedulers whose policy is in user space. A scheduler with its own BPF side
 * includes this file, overrides some callbacks, and defines the table with RL_OPS().
 *
 * The path of a task has four steps, none of which needs a system call:
 *  - ops.enqueue() puts the task into PENDING_DSQ and a record of it into a ring (enqueue.bpf.h).
 *  - The policy reads the record and writes a decision into another ring.
 *  - The next CPU that looks for work drains the decisions and moves each task to the queue of a
 *    CPU or to SHARED_DSQ (drain.bpf.h).
 *  - ops.dispatch() of a CPU takes the task from there (dispatch.bpf.h).
 *
 * Some tasks always bypass the policy: per-CPU kernel threads and the threads of the scheduler's
 * own process, because the policy thread may depend on them (bypass.bpf.h), and migration-disabled
 * tasks, which only one CPU can run. A preempted task usually resumes without another decision.
 * Except with RL_IDLE_FULL_USER, three kinds of wakees bypass the policy too: those that find an
 * idle CPU, those that inherit the waker's slice (inherit.bpf.h), and those for which an earlier
 * decision still holds (standing.bpf.h).
 *
 * When its slice expires, a task continues without being enqueued if its CPU has no other task to
 * dispatch, or if it precedes all tasks that were decided for its CPU or for any CPU. If it is
 * enqueued because of another task that needs the CPU only briefly, the CPU may take it back before
 * the policy has read its record (reclaim()).
 *
 * When user space stalls, tasks are dispatched in FIFO order (watchdog.bpf.h).
 */
#ifndef __RUSTLAND_BPF_H
#define __RUSTLAND_BPF_H

#include <scx/barrier.h>
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/idle.bpf.h>
#include <scx/kick.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/own.bpf.h>
#include <scx/time.bpf.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

#include "state.bpf.h"
#include "idle.bpf.h"
#include "enqueue.bpf.h"
#include "standing.bpf.h"
#include "bypass.bpf.h"
#include "inherit.bpf.h"
#include "drain.bpf.h"
#include "watchdog.bpf.h"
#include "dispatch.bpf.h"

/* Claim an idle CPU for @p by config.idle_selection. Returns a negative errno if there is none.
 * On a sync wakeup the wakee may inherit the waker's slice (inherit_slice()). So SCX_WAKE_SYNC is
 * not passed on to the kernel, which might choose the waker's CPU even if tasks wait for that CPU.
 */
static s32 find_idle(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = prev_cpu;

	if (config.idle_selection == RL_IDLE_BUILTIN)
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	else
		is_idle = bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr) &&
			  scx_bpf_test_and_clear_cpu_idle(prev_cpu);
	return is_idle ? cpu : -EBUSY;
}

s32 BPF_STRUCT_OPS(rl_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = -EBUSY;

	if (scx_task_is_own(p))
		return select_cpu_for_own(p, prev_cpu, wake_flags);
	if (config.idle_selection == RL_IDLE_FULL_USER)
		return prev_cpu;
	/* Tasks that are already waiting go first. */
	if (scx_bpf_dsq_nr_queued(SHARED_DSQ) <= 0 && scx_bpf_dsq_nr_queued(PENDING_DSQ) <= 0 &&
	    may_wake_idle_for(p))
		cpu = find_idle(p, prev_cpu, wake_flags);
	if (cpu >= 0) {
		clear_cpu(shared.idle, cpu);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, config.slice_ns, 0);
		count(nr_kernel);
		return cpu;
	}
	if (wake_flags & SCX_WAKE_SYNC && inherit_slice(p))
		return bpf_get_smp_processor_id();
	return prev_cpu;
}

/* Begin ops.enqueue(): cancel a previous enqueue that is still pending. Returns the state of the
 * task, NULL if it cannot be allocated. */
static struct rl_task *begin_enqueue(struct task_struct *p, u64 enq_flags)
{
	struct rl_task *t = task_state(p);

	if (!t)
		return NULL;
	t->inherited_end_ns = 0;
	if (claim_any(t))
		count(nr_cancelled);
	/* A task of a higher class has taken the only CPU of @p. Later, @p resumes on this CPU. */
	if (enq_flags & SCX_ENQ_REENQ && p->nr_cpus_allowed == 1)
		t->resumes = true;
	return t;
}

/* Enqueue @p if it is a task that always bypasses the policy: an urgent task (is_urgent()), or a
 * migration-disabled task. Returns whether it is. */
static bool enqueue_special(struct task_struct *p, struct rl_task *t, u64 enq_flags)
{
	if (is_urgent(p)) {
		enqueue_urgent(p, t, enq_flags);
		return true;
	}
	if (!scx_task_is_migration_disabled(p, enq_flags))
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, scx_bypass_slice_ns(p, enq_flags, config.slice_ns),
			   enq_flags);
	count(nr_kernel);
	return true;
}

/*
 * From a scheduler's own ops.enqueue(): enqueue @p in FIFO order, without a record for the policy.
 * ops.dispatch() alternates between FALLBACK_DSQ and decided tasks.
 */
static inline void rl_enqueue_fallback(struct task_struct *p, u64 enq_flags)
{
	struct rl_task *t = begin_enqueue(p, enq_flags);

	if (enqueue_special(p, t, enq_flags))
		return;
	enqueue_fallback(p, enq_flags);
	count(nr_kernel);
}

void BPF_STRUCT_OPS(rl_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct rl_task *t = begin_enqueue(p, enq_flags);

	if (enqueue_special(p, t, enq_flags))
		return;
	if (!t) {
		enqueue_fallback(p, enq_flags);
		count(nr_kernel);
	} else if (!resume(p, t, enq_flags) && !enqueue_standing(p, t, enq_flags)) {
		enqueue_pending(p, t, enq_flags);
	}
}

/* Dispatch a task on @cpu, let prev continue, or let the CPU go idle. */
static void dispatch_or_idle(s32 cpu, struct task_struct *prev)
{
	if (prev_is_first(cpu, prev) || has_local(cpu) || dispatch_next(cpu) || has_local(cpu))
		return;
	if (extend_prev(prev)) {
		remind();
		return;
	}
	if (reclaim(cpu))
		return;
	/* To lose no wakeup, set the bit, then check again (idle.bpf.h). */
	set_cpu(shared.idle, cpu);
	if (!dispatch_next(cpu)) {
		remind();
		return;
	}
	/* If the bit is clear, another CPU has inserted a task and claimed this CPU for it. This
	 * CPU may have dispatched a different task, so kick another CPU. */
	if (!clear_cpu(shared.idle, cpu))
		kick_any_idle();
}

void BPF_STRUCT_OPS(rl_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_learn_trampoline();
	if (!test_cpu(shared.online, cpu))
		note_hotplug(cpu, true);
	dispatch_or_idle(cpu, prev);
	kick_for_left(cpu);
}

void BPF_STRUCT_OPS(rl_update_idle, s32 cpu, bool is_idle)
{
	if (!is_idle)
		clear_cpu(shared.idle, cpu);
	else if (test_cpu(shared.online, cpu))
		set_cpu(shared.idle, cpu);
	if (is_idle) {
		note_preemptible(cpu, false);
		/* An idle CPU has no task to preempt. */
		note_running_vtime(cpu, 0);
	}
}

void BPF_STRUCT_OPS(rl_running, struct task_struct *p)
{
	struct rl_counters *c = scx_counters(rl_counters);
	struct rl_task *t = task_state(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (c)
		c->nr_running++;
	/* The CPU may have set its bit when it was about to go idle. */
	if (test_cpu(shared.idle, cpu))
		clear_cpu(shared.idle, cpu);
	if (!is_urgent(p))
		note_current(cpu, t);
	else if (!scx_task_is_own(p))
		note_running_vtime(cpu, 0);
	else if ((u32)p->pid == policy_pid)
		shared.own_cpu = cpu;
	if (!t)
		return;
	/* If an enqueue is still pending, the task was dispatched without a decision. */
	if (claim_any(t))
		count(nr_fallback);
	t->start_ns = scx_monotonic_now();
	begin_inheritance(p, t, t->start_ns);
	t->sum_exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(rl_stopping, struct task_struct *p, bool runnable)
{
	struct rl_counters *c = scx_counters(rl_counters);
	struct rl_task *t = task_state(p);
	u64 ran_ns;

	if (c)
		c->nr_running--;
	if (!t)
		return;
	ran_ns = p->se.sum_exec_runtime - t->sum_exec_ns;
	/* This excludes the time that interrupts or the hypervisor took, but saves a read of the
	 * clock. */
	t->stop_ns = t->start_ns + ran_ns;
	t->exec_ns += ran_ns;
	note_preempted(p, t, runnable);
}

/*
 * The weight has changed. An infinite slice was decided for the previous weight, and would last
 * until the task sleeps. Replace it by the default slice, after which the policy decides again. A
 * finite slice ends soon anyway.
 */
void BPF_STRUCT_OPS(rl_set_weight, struct task_struct *p, u32 weight)
{
	struct rl_task *t = bpf_task_storage_get(&rl_tasks, p, NULL, 0);

	if (t && t->slice_ns == SCX_SLICE_INF)
		t->slice_ns = 0;
	if (p->scx.slice == SCX_SLICE_INF)
		scx_bpf_task_set_slice(p, config.slice_ns);
}

/* The task sleeps, or is dequeued for a change of its attributes. */
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
	/* Later callbacks retry a failed allocation. A task without state is a fallback task. */
	struct rl_task *t = task_state(p), *parent;

	if (!t || !args->fork)
		return 0;
	parent = bpf_task_storage_get(&rl_tasks, bpf_get_current_task_btf(), NULL, 0);
	if (parent)
		__builtin_memcpy(t->ctx, parent->ctx, sizeof(t->ctx));
	return 0;
}

/* The task enters the sched_ext class. With --partial, only tasks whose policy is SCHED_EXT do. */
void BPF_STRUCT_OPS(rl_enable, struct task_struct *p)
{
	if (p->policy != SCHED_EXT)
		has_all_tasks = true;
}

/* A task of a higher class has taken the CPU. User space removes this callback on kernels where
 * SCX_ENQ_IMMED and the watchdog (check_cpus()) replace it: see reenqueue_on_cpu_release() in
 * scx_utils. */
void BPF_STRUCT_OPS(rl_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
	if (*(volatile u64 *)&shared.nr_waiting)
		wake_user();
}

/*
 * When the kernel calls this, some steps of CPU hotplug are left before the CPU can dispatch. These
 * steps may wait for tasks, such as RCU's kernel threads, which would not run if they were queued
 * for this CPU. So the CPU counts as online only once it dispatches (rl_dispatch()). The callback
 * must exist, because without it the kernel ends the scheduler on hotplug.
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
	/* All possible CPUs get a DSQ, so that CPU hotplug need not create one. */
	bpf_for(cpu, 0, nr_cpu_ids) {
		err = scx_bpf_create_dsq(cpu, -1);
		if (err)
			return err;
	}
	err = scx_bpf_create_dsq(SHARED_DSQ, -1);
	err = err ?: scx_bpf_create_dsq(PENDING_DSQ, -1);
	err = err ?: scx_bpf_create_dsq(FALLBACK_DSQ, -1);
	return err ?: start_watchdog();
}

void BPF_STRUCT_OPS(rl_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
	wake_user();
}

void BPF_STRUCT_OPS(rl_dump, struct scx_dump_ctx *dctx)
{
	scx_bpf_dump("waiting: %llu at the policy, %d pending, %d decided, %d fallback\n",
		     shared.nr_waiting, scx_bpf_dsq_nr_queued(PENDING_DSQ),
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_bpf_dsq_nr_queued(FALLBACK_DSQ));
	scx_bpf_dump("decisions: %llu sent, %llu drained; user space: %llu cycles, sleeping %llu, "
		     "stalled %llu",
		     shared.nr_sent, shared.nr_drained, shared.nr_cycles, shared.is_sleeping,
		     shared.is_stalled);
}

/* Run by the policy thread before it runs any other program: note the thread and its process. */
SEC("syscall")
int rl_register_policy(void *ctx)
{
	policy_pid = bpf_get_current_pid_tgid();
	scx_note_own();
	return 0;
}

/* Find an idle CPU for a task, and claim it in the kernel's idle mask. Returns a negative errno if
 * there is none, or no such task. The CPU's bit in shared.idle stays set: when the decision is
 * applied, target_of() checks the bit (RL_IF_IDLE), and kick_for() clears it and kicks the CPU. */
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
	return cpu;
}

/* Return the number of pending tasks, for statistics and consistency checks. */
SEC("syscall")
int rl_nr_pending(void *ctx)
{
	return scx_bpf_dsq_nr_queued(PENDING_DSQ);
}

/*
 * From a scheduler's own callback, call the callback of this file that it overrides:
 * RL_DEFAULT(enqueue, p, enq_flags).
 */
#define RL_DEFAULT(callback, ...) ____rl_##callback(ctx, ##__VA_ARGS__)

/*
 * Define the table of callbacks. Additional members, such as `.enqueue = (void *)own_enqueue`,
 * override the members below. User space sets the name.
 */
/* clang-format off */
#define RL_OPS(table, ...) \
	_Pragma("clang diagnostic push") \
	_Pragma("clang diagnostic ignored \"-Winitializer-overrides\"") \
	SCX_OPS(table) = { \
		.select_cpu = (void *)rl_select_cpu, \
		.enqueue = (void *)rl_enqueue, \
		.dispatch = (void *)rl_dispatch, \
		.update_idle = (void *)rl_update_idle, \
		.running = (void *)rl_running, \
		.stopping = (void *)rl_stopping, \
		.set_weight = (void *)rl_set_weight, \
		.quiescent = (void *)rl_quiescent, \
		.init_task = (void *)rl_init_task, \
		.enable = (void *)rl_enable, \
		.cpu_release = (void *)rl_cpu_release, \
		.cpu_online = (void *)rl_cpu_online, \
		.cpu_offline = (void *)rl_cpu_offline, \
		.init = (void *)rl_init, \
		.exit = (void *)rl_exit, \
		.dump = (void *)rl_dump, \
		.timeout_ms = TIMEOUT_MS, \
		.name = "rustland", \
		__VA_ARGS__ \
	}; \
	_Pragma("clang diagnostic pop")
/* clang-format on */

#endif /* __RUSTLAND_BPF_H */
