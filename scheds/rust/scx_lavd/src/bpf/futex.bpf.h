/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks that probably hold a lock: a task that returns from a futex wait counts as a lock holder
 * until it calls a futex wakeup, or gets one more slice (extends_for_lock()). A lock that is
 * acquired without a wait is not detected. User space attaches a program only if the kernel has the
 * function that the program traces, and attaches none with --no-futex-boost.
 */
#ifndef __LAVD_FUTEX_BPF_H
#define __LAVD_FUTEX_BPF_H

/* If the traced function has succeeded, note whether the running task now holds a lock. */
static int note_lock(void *ctx, bool holds)
{
	struct scx_dl_task *t;
	u64 ret = 0;

	if (bpf_get_func_ret(ctx, &ret) || (s32)ret < 0)
		return 0;
	t = bpf_task_storage_get(&scx_dl_tasks, bpf_get_current_task_btf(), NULL, 0);
	if (t) {
		t->holds_lock = holds;
		/* The CPU has a copy of the flag of its running task. lavd_running() makes this
		 * copy only when a task starts to run, so a later change is copied here. */
		cpu_state(bpf_get_smp_processor_id())->holds_lock = holds;
	}
	return 0;
}

SEC("fexit/__futex_wait")
int lavd_futex_wait(void *ctx)
{
	return note_lock(ctx, true);
}

SEC("fexit/futex_wait_multiple")
int lavd_futex_wait_multiple(void *ctx)
{
	return note_lock(ctx, true);
}

SEC("fexit/futex_wait_requeue_pi")
int lavd_futex_wait_requeue_pi(void *ctx)
{
	return note_lock(ctx, true);
}

SEC("fexit/futex_lock_pi")
int lavd_futex_lock_pi(void *ctx)
{
	return note_lock(ctx, true);
}

SEC("fexit/futex_wake")
int lavd_futex_wake(void *ctx)
{
	return note_lock(ctx, false);
}

SEC("fexit/futex_wake_op")
int lavd_futex_wake_op(void *ctx)
{
	return note_lock(ctx, false);
}

SEC("fexit/futex_unlock_pi")
int lavd_futex_unlock_pi(void *ctx)
{
	return note_lock(ctx, false);
}

/* Whether prev, which was preempted on @cpu or whose slice has expired, gets one more slice to
 * release its lock. It gets this only once, because it then no longer counts as a lock holder. */
static bool extends_for_lock(struct scx_dl_task *t, s32 cpu)
{
	if (!t->holds_lock)
		return false;
	t->holds_lock = false;
	cpu_state(cpu)->holds_lock = false;
	t->needs_lock_boost = true;
	count(nr_lock_boost);
	return true;
}

#endif /* __LAVD_FUTEX_BPF_H */
