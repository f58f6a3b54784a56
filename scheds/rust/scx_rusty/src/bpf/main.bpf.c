/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_rusty: one queue for each domain of CPUs that share a cache.
 *
 * On wakeup a task gets an idle CPU, preferably of its domain (idle.bpf.h), or waits in the
 * domain's queue in deadline order (enqueue.bpf.h, deadline.h). A CPU dispatches from the queue of
 * its domain. If that queue is empty, the CPU steals from other domains (dispatch.bpf.h). User
 * space reads the load of each task (load.bpf.h), and migrates tasks between domains
 * (migrate.bpf.h). With --cgroups, each task has an effective weight, which depends on the weights
 * of the cgroups above it (weight.bpf.h).
 */
#include <scx/common.bpf.h>
#include <scx/cgroup.bpf.h>
#include <scx/curr.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/first.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/kick.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/own.bpf.h>
#include <scx/preempt.bpf.h>
#include <scx/time.bpf.h>
#include "intf.h"
#include "busy.h"
#include "deadline.h"
#include "duty.h"

char _license[] SEC("license") = "GPL";

#include "state.bpf.h"
#include "weight.bpf.h"
#include "migrate.bpf.h"
#include "load.bpf.h"
#include "account.bpf.h"
#include "idle.bpf.h"
#include "enqueue.bpf.h"
#include "dispatch.bpf.h"

s32 BPF_STRUCT_OPS(rusty_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct rusty_task *t = task_state(p);
	s32 cpu;

	if (!t)
		return prev_cpu;
	apply_migration(t);
	t->woken_sync = !!(wake_flags & SCX_WAKE_SYNC);
	t->our_cpu = prev_cpu;
	cpu = pick_cpu(p, t, prev_cpu, wake_flags);
	if (cpu < 0)
		return prev_cpu;
	if (!t->is_runnable)
		become_runnable(p, t, wake_flags & SCX_WAKE_TTWU);
	t->our_cpu = cpu;
	t->has_waited = false;
	if (config.fifo_sched)
		scx_note_arrival(p, 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(t->dom, t),
			   scx_immed_unless_sync(cpu, wake_flags));
	return cpu;
}

void BPF_STRUCT_OPS(rusty_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct rusty_task *t = task_state(p);

	if (t)
		account_enqueue(p, t, enq_flags);
	if (config.fifo_sched)
		scx_note_arrival(p, enq_flags);
	if (!t || bypasses_queue(p, enq_flags)) {
		if (t)
			t->has_waited = false;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL,
				   scx_bypass_slice_ns(p, enq_flags, tune.slice_ns), enq_flags);
		count(direct);
		return;
	}
	enqueue(p, t, enq_flags);
}

/* rusty_init() counts all CPUs as idle. If @cpu was busy at that time, the kernel has not called
 * ops.update_idle() for it since. */
static void note_busy(s32 cpu)
{
	s64 *idle = &idle_cpus[(u32)cpu % RUSTY_CPUS_MAX];

	if (*idle < 0)
		*idle = 0;
}

void BPF_STRUCT_OPS(rusty_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_learn_trampoline();
	if (prev)
		note_busy(cpu);
	dispatch(cpu, prev);
}

void BPF_STRUCT_OPS(rusty_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct rusty_task *t = task_state(p);

	if (t)
		account_dequeue(t, deq_flags & SCX_DEQ_SLEEP);
}

/* Without this callback, a task would usually advance the virtual time of its domain only at the
 * end of its slice. Until then, note_alone() would forgive other tasks too much debt. */
void BPF_STRUCT_OPS(rusty_tick, struct task_struct *p)
{
	struct rusty_task *t = task_state(p);

	if (t)
		advance_dom(t);
}

/* Used only with --perf. */
void BPF_STRUCT_OPS(rusty_running, struct task_struct *p)
{
	scx_bpf_cpuperf_set(scx_bpf_task_cpu(p), config.perf);
}

/* Used only with --cgroups: the effective weight of the task may change while it sleeps, so the run
 * is charged now. */
void BPF_STRUCT_OPS(rusty_stopping, struct task_struct *p, bool runnable)
{
	struct rusty_task *t = task_state(p);

	if (t)
		charge(p, t);
}

void BPF_STRUCT_OPS(rusty_update_idle, s32 cpu, bool is_idle)
{
	s64 *idle = &idle_cpus[(u32)cpu % RUSTY_CPUS_MAX];
	u64 now = scx_monotonic_now();

	*idle = is_idle ? rusty_idle_begin(*idle, now) : rusty_idle_end(*idle, now);
}

void BPF_STRUCT_OPS(rusty_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	struct rusty_task *t = task_state(p);

	if (t)
		note_allowed(p, t);
}

/* Called when a task of a higher scheduling class takes the CPU. Needed only on kernels without
 * SCX_ENQ_IMMED (scx/immed.bpf.h). */
void BPF_STRUCT_OPS(rusty_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* CPU time that the task has used in another scheduling class is not charged. */
void BPF_STRUCT_OPS(rusty_enable, struct task_struct *p)
{
	struct rusty_task *t = task_state(p);

	if (t)
		t->sum_exec_ns = p->se.sum_exec_runtime;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rusty_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct rusty_task *t = scx_create_task_storage(rusty_tasks, p);
	u32 dom = dom_of_cpu(scx_bpf_task_cpu(p));

	/* Without a context, the task always uses the local DSQ of its CPU: see rusty_enqueue(). */
	if (!t)
		return 0;
	note_allowed(p, t);
	dom = dom < config.nr_doms ? dom : 0;
	t->dom = args->fork ? first_dom(t, dom) : first_allowed(t, dom);
	t->target_dom = t->dom;
	t->vtime = dom_state(t->dom)->vtime_now;
	if (config.cgroups)
		scx_cgroup_task_set(&t->cgroup, scx_init_task_cgroup(args));
	refresh_weight(p, t);
	return 0;
}

SCX_CGROUP_OPS(rusty)

/* Clear the credit or debt of the task, because it results from the weight that the task had in its
 * old cgroup. */
void BPF_STRUCT_OPS(rusty_cgroup_move, struct task_struct *p, struct cgroup *from,
		    struct cgroup *to)
{
	struct rusty_task *t = task_state(p);

	if (!t)
		return;
	scx_cgroup_task_set(&t->cgroup, to);
	t->vtime = dom_state(t->dom)->vtime_now;
}

/* Create an empty mask in @place. */
static s32 create_mask(struct bpf_cpumask **place)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(place, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

static s32 init_dom(u32 dom)
{
	s32 node = config.node_id[node_of_dom(dom) % RUSTY_NODES_MAX];
	struct rusty_dom_mask *mask = bpf_map_lookup_elem(&rusty_dom_masks, &dom);
	struct bpf_cpumask *cpus;
	u32 cpu;

	if (!mask || create_mask(&mask->cpus))
		return -ENOMEM;
	bpf_rcu_read_lock();
	bpf_for(cpu, 0, nr_cpu_ids) {
		cpus = mask->cpus;
		if (dom_of_cpu(cpu) == dom && cpus) {
			bpf_cpumask_set_cpu(cpu, cpus);
			dom_state(dom)->nr_cpus++;
		}
	}
	bpf_rcu_read_unlock();
	return scx_bpf_create_dsq(DOM_DSQ | dom, node);
}

static s32 init_reach(u32 node)
{
	struct rusty_reach *reach = reach_of(node);

	if (!reach || create_mask(&reach->direct) || create_mask(&reach->kick))
		return -ENOMEM;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rusty_init)
{
	u64 now = scx_monotonic_now();
	s32 err = 0;
	u32 i;

	nr_cpu_ids = scx_bpf_nr_cpu_ids();
	if (nr_cpu_ids > RUSTY_CPUS_MAX) {
		scx_bpf_error("%d CPU ids are more than %d", nr_cpu_ids, RUSTY_CPUS_MAX);
		return -EINVAL;
	}
	bpf_for(i, 0, nr_cpu_ids) {
		idle_cpus[i % RUSTY_CPUS_MAX] = rusty_idle_begin(0, now);
		err = err ?: scx_bpf_create_dsq(i, -1);
	}
	bpf_for(i, 0, config.nr_doms)
		err = err ?: init_dom(i);
	bpf_for(i, 0, config.nr_nodes)
		err = err ?: init_reach(i);
	return err ?: init_reach(MACHINE);
}

/* Called by user space before it attaches the scheduler. Notes the process of the caller for
 * scx_task_is_own(). */
SEC("syscall")
int rusty_register(void *ctx)
{
	scx_note_own();
	return 0;
}

void BPF_STRUCT_OPS(rusty_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(rusty_dump, struct scx_dump_ctx *dctx)
{
	u32 dom;

	bpf_for(dom, 0, config.nr_doms)
		scx_bpf_dump("domain %u: %d queued, vtime %llu, weight %llu\n", dom,
			     scx_bpf_dsq_nr_queued(DOM_DSQ | dom), dom_state(dom)->vtime_now,
			     runnable_weight(dom));
}

SCX_OPS(rusty_ops) = {
	.select_cpu = (void *)rusty_select_cpu,
	.enqueue = (void *)rusty_enqueue,
	.dispatch = (void *)rusty_dispatch,
	.quiescent = (void *)rusty_quiescent,
	.tick = (void *)rusty_tick,
	/* User space clears these two if they are not needed. */
	.running = (void *)rusty_running,
	.stopping = (void *)rusty_stopping,
	.update_idle = (void *)rusty_update_idle,
	.set_cpumask = (void *)rusty_set_cpumask,
	.cpu_release = (void *)rusty_cpu_release,
	.enable = (void *)rusty_enable,
	.init_task = (void *)rusty_init_task,
	/* Without --cgroups, user space clears the cgroup callbacks. */
	SCX_CGROUP_CALLBACKS(rusty),
	.cgroup_move = (void *)rusty_cgroup_move,
	.init = (void *)rusty_init,
	.exit = (void *)rusty_exit,
	.dump = (void *)rusty_dump,
	.timeout_ms = TIMEOUT_MS,
	.name = "rusty",
};
