/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_economy: tasks that trade CPU time.
 *
 * A fair scheduler in which lag is money. The lag of a task is the CPU time that it was entitled to
 * and has not used (ledger.h). While CPU time is scarce, a client that sends a message over a Unix
 * socket pays for it with some of its lag, and the server that reads the message gets that lag
 * (sockets.bpf.h). So a server gets the CPU time that its clients give up for it, in addition to
 * its own share, and no other task gets less than its share.
 *
 * On wakeup a task goes directly to an idle CPU if there is one. Otherwise it waits in the DSQ of
 * its group of CPUs, or of its CPU if it is pinned, ordered by virtual time: the more CPU time a
 * task is owed, the sooner it runs.
 */
#include <scx/average.h>
#include <scx/common.bpf.h>
#include <scx/cpus.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/preempt.bpf.h>
#include <scx/queues.bpf.h>
#include "futex.bpf.h"
#include "money.bpf.h"
#include "state.bpf.h"
#include "views.bpf.h"

char _license[] SEC("license") = "GPL";

/* ops.timeout_ms: the kernel ejects the scheduler if a runnable task has not run for this long. The
 * timeout is far longer than tasks wait for their turns, because a hypervisor may stop the CPUs of
 * a virtual machine for a while. */
#define TIMEOUT_MS 20000

/* Slices are shortened if otherwise not all runnable tasks could run within this time. */
#define ROUND_NS (4 * NSEC_PER_SEC)
#define SLICE_MIN_NS (500 * 1000ULL)

/* A queued task preempts the running task only if the virtual time of the queued task is earlier
 * than that of the running task by more than this. */
#define GRANULARITY_NS (1 * NSEC_PER_MSEC)

static u64 slice_ns(u32 node)
{
	const struct economy_bank *bank = bank_of(node);

	return scx_slice_shared(config.slice_ns, ROUND_NS, bank ? bank->nr_runnable : 0,
				SLICE_MIN_NS);
}

static void insert_local(struct task_struct *p, u64 dsq_id, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, dsq_id, config.slice_ns, enq_flags);
}

s32 BPF_STRUCT_OPS(economy_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu;

	if (!bpf_cpumask_test_cpu(prev_cpu, p->cpus_ptr))
		prev_cpu = bpf_cpumask_first(p->cpus_ptr);
	if (!scx_any_idle())
		return prev_cpu;
	wake_flags = scx_queue_wake_flags(wake_flags);
	cpu = scx_pick_idle(p, prev_cpu, wake_flags);
	if (cpu < 0)
		return prev_cpu;
	insert_local(p, SCX_DSQ_LOCAL, scx_immed_unless_sync(cpu, wake_flags));
	return cpu;
}

/* Run the task on an idle CPU, if scx_claim_on_enqueue() finds one. Returns whether an idle CPU was
 * found. */
static bool run_on_idle(struct task_struct *p, s32 prev_cpu, u64 enq_flags)
{
	s32 cpu = scx_claim_on_enqueue(p, prev_cpu, enq_flags, false, false);

	if (cpu < 0)
		return false;
	insert_local(p, SCX_DSQ_LOCAL_ON | cpu, enq_flags | SCX_ENQ_IMMED);
	if (cpu != prev_cpu || !scx_bpf_task_running(p))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/* Run a wakee of virtual time @vtime at once, if it may preempt the task of its CPU and precedes
 * all tasks that wait for this CPU. Returns whether it runs. */
static bool run_at_once(struct task_struct *p, s32 cpu, u32 node, u64 vtime, u64 enq_flags)
{
	if (node != scx_node_of(cpu) ||
	    !scx_preempts_at_once(p, enq_flags, vtime + GRANULARITY_NS, SCX_STRETCH_MIN_NS, cpu,
				  SCX_NODE_DSQ | node))
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(node), enq_flags | SCX_ENQ_AT_ONCE);
	scx_count(economy_counters, nr_preemptions);
	return true;
}

/* Run the task at once if run_at_once() allows it. Otherwise queue the task by its virtual time,
 * and kick an idle CPU for it. If no CPU is idle, a task that is new or woke up may preempt the
 * task that runs on @cpu. */
static void queue(struct task_struct *p, struct economy_task *t, s32 cpu, u64 enq_flags)
{
	bool is_pinned = scx_task_is_pinned(p);
	struct economy_bank *bank;
	u64 vtime;

	money_begin();
	bank = money_join(t, scx_node_of(cpu), p->scx.weight);
	if (!bank) {
		money_end();
		insert_local(p, SCX_DSQ_LOCAL, enq_flags);
		return;
	}
	money_settle(bank, t);
	vtime = money_vtime(bank, t);
	money_end();
	if (money_is_crowded(bank, t->node))
		money_note_scarce(t->node);
	t->has_waited = true;
	if (run_at_once(p, cpu, t->node, vtime, enq_flags))
		return;
	scx_queue_insert(p, t->node, is_pinned ? bpf_cpumask_first(p->cpus_ptr) + 1 : 0,
			 slice_ns(t->node), vtime, enq_flags);
	if (scx_kick_idle_for(p) || (t->has_begun && !(enq_flags & SCX_ENQ_WAKEUP)))
		return;
	if (scx_should_preempt(cpu, vtime + GRANULARITY_NS, SCX_STRETCH_MIN_NS)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		scx_count(economy_counters, nr_preemptions);
	}
}

void BPF_STRUCT_OPS(economy_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct economy_task *t = task(p);
	s32 cpu = scx_bpf_task_cpu(p);

	if (!t || scx_task_is_percpu_kthread(p) || scx_task_is_migration_disabled(p, enq_flags)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL,
				   scx_bypass_slice_ns(p, enq_flags, config.slice_ns), enq_flags);
		return;
	}
	if (run_on_idle(p, cpu, enq_flags))
		return;
	/* SCX_ENQ_LAST: the CPU has found no other task, so @p continues. */
	if (enq_flags & SCX_ENQ_LAST) {
		insert_local(p, SCX_DSQ_LOCAL, enq_flags);
		return;
	}
	queue(p, t, cpu, enq_flags);
}

/* Charge prev, and return whether it precedes all tasks queued for @cpu; false if there are none.
 * The kernel calls ops.dispatch() before it enqueues prev again. Without the check, two tasks on a
 * CPU would take turns, whatever their weights. */
static bool continues(struct task_struct *prev, struct economy_task *t, s32 cpu)
{
	u32 node = scx_node_of(cpu);
	struct economy_bank *bank;
	u64 vtime;

	money_begin();
	bank = money_join(t, node, prev->scx.weight);
	if (!bank) {
		money_end();
		return false;
	}
	money_charge(bank, prev, t, false);
	vtime = money_vtime(bank, t);
	money_end();
	return scx_precedes(vtime, cpu, SCX_NODE_DSQ | node);
}

void BPF_STRUCT_OPS(economy_dispatch, s32 cpu, struct task_struct *prev)
{
	struct economy_task *t = NULL;
	struct economy_bank *bank;

	scx_learn_trampoline();
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		t = task(prev);
	if (dispatch_borrower(cpu) || scx_balance(cpu))
		return;
	if (t && continues(prev, t, cpu)) {
		scx_bpf_task_set_slice(prev, slice_ns(t->node));
		return;
	}
	if (scx_queue_dispatch(cpu)) {
		if (t)
			money_note_scarce(t->node);
		return;
	}
	if (!t && scx_steal(cpu))
		return;
	/* If prev should move to another CPU, it gets no new slice. The kernel then enqueues it
	 * again (SCX_ENQ_LAST), and ops.enqueue() moves it. */
	if (!t || scx_should_move(cpu, prev))
		return;
	bank = bank_of(t->node);
	if (bank) {
		money_begin();
		money_alone(bank, t);
		money_end();
	}
	scx_bpf_task_set_slice(prev, config.slice_ns);
}

void BPF_STRUCT_OPS(economy_running, struct task_struct *p)
{
	struct economy_task *t = task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct economy_bank *bank;
	u64 stretch_ns;

	if (!t)
		return;
	t->sum_exec_ns = p->se.sum_exec_runtime;
	t->has_begun = true;
	money_begin();
	bank = money_join(t, scx_node_of(cpu), p->scx.weight);
	money_end();
	if (bank && t->has_waited)
		bank->vtime_run = economy_vtime(&t->share);
	t->has_waited = false;
	stretch_ns = scx_stretch_ns(t->avg_runtime_ns, t->awake_ns);
	if (stretch_ns >= SCX_STRETCH_MIN_NS)
		scx_running_set(cpu, economy_vtime(&t->share), stretch_ns, p->scx.weight);
}

void BPF_STRUCT_OPS(economy_stopping, struct task_struct *p, bool runnable)
{
	struct economy_task *t = task(p);
	struct economy_bank *bank;

	scx_running_clear(scx_bpf_task_cpu(p));
	if (!t)
		return;
	bank = bank_of(t->node);
	if (!bank)
		return;
	money_begin();
	money_charge(bank, p, t, !runnable);
	t->avg_runtime_ns = scx_average(t->avg_runtime_ns, t->awake_ns);
	if (!runnable) {
		t->awake_ns = 0;
		money_bound_sleeper(bank, t);
		if (p->flags & PF_EXITING)
			money_give_up(bank, t);
	}
	money_end();
}

/* A task of a higher scheduling class has taken the CPU. Used only on kernels without SCX_ENQ_IMMED
 * (scx/immed.bpf.h). */
void BPF_STRUCT_OPS(economy_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

void BPF_STRUCT_OPS(economy_enable, struct task_struct *p)
{
	struct economy_task *t = task(p);
	struct economy_bank *bank = bank_of(scx_node_of(scx_bpf_task_cpu(p)));

	if (!t || !bank)
		return;
	money_begin();
	money_open(bank, t, p->scx.weight);
	money_end();
}

void BPF_STRUCT_OPS(economy_disable, struct task_struct *p)
{
	struct economy_task *t = task(p);

	if (!t)
		return;
	money_begin();
	money_close(t);
	money_end();
}

s32 BPF_STRUCT_OPS_SLEEPABLE(economy_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	scx_create_task_storage(economy_tasks, p);
	return 0;
}

/* Close the task's entry again. If the task left the scheduler earlier, a transfer that was under
 * way may have given it money since. */
void BPF_STRUCT_OPS(economy_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct economy_task *t = bpf_task_storage_get(&economy_tasks, p, NULL, 0);

	if (!t)
		return;
	money_begin();
	money_close(t);
	money_end();
}

s32 BPF_STRUCT_OPS_SLEEPABLE(economy_init)
{
	return scx_queues_init();
}

void BPF_STRUCT_OPS(economy_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(economy_dump, struct scx_dump_ctx *dctx)
{
	scx_queues_dump();
}

SCX_OPS(economy_ops) = {
	.select_cpu = (void *)economy_select_cpu,
	.enqueue = (void *)economy_enqueue,
	.dispatch = (void *)economy_dispatch,
	.running = (void *)economy_running,
	.stopping = (void *)economy_stopping,
	.cpu_release = (void *)economy_cpu_release,
	.enable = (void *)economy_enable,
	.disable = (void *)economy_disable,
	.init_task = (void *)economy_init_task,
	.exit_task = (void *)economy_exit_task,
	.init = (void *)economy_init,
	.exit = (void *)economy_exit,
	.dump = (void *)economy_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "economy",
};
