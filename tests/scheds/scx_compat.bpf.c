/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uses one wrapper of compat.bpf.h at a time (or scx_bpf_now(), or the constants of enums.bpf.h),
 * and checks its effect. An expected effect is counted as good, any other effect as bad.
 *
 * `use` is a constant at load time, so the verifier skips the code of all other values of `use`. If
 * a kernel rejects a wrapper, only the tests that reach the wrapper fail.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/time.bpf.h>
#include "scx_compat.h"

char _license[] SEC("license") = "GPL";

#define FIFO_DSQ 0
#define VTIME_DSQ 1

/* Slices and a vtime, ns. The kernel does not set these values itself. */
#define SLICE_NS 7000000
#define OTHER_SLICE_NS 3000000
#define OTHER_VTIME 4711000000

const volatile u32 use;

u64 nr_good, nr_bad;
s64 event_bypass_activate = -1;
u64 constants[NR_COMPAT_CONSTANTS];
u32 nr_nodes, nr_cpus;
s32 node_of_cpu[COMPAT_MAX_CPUS];

static struct scx_event_buf events;

/* Times on one CPU: the last value of scx_bpf_now(), and the values of scx_bpf_now() and of the
 * boot clock when they were first read. */
struct clock {
	u64 last_ns;
	u64 first_ns;
	u64 first_boot_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static void judge(bool good)
{
	if (good)
		__sync_fetch_and_add(&nr_good, 1);
	else
		__sync_fetch_and_add(&nr_bad, 1);
}

/* The slice and the vtime that the task is expected to have when it runs. */
struct task_ctx {
	u64 slice_ns;
	u64 vtime;
	/* The vtime for the next insert or move. */
	u64 own_vtime;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

static u64 vtime_now = OTHER_VTIME;

/* Give @p a unique vtime above all previous ones, so that no task starves. */
static void give_vtime(struct task_struct *p)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (tctx)
		tctx->own_vtime = __sync_add_and_fetch(&vtime_now, 1);
}

/* Return the vtime of @p. It stays the same until the next enqueue, because several CPUs may try to
 * move @p, and all must expect the same vtime. */
static u64 own_vtime(struct task_struct *p)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	return tctx ? tctx->own_vtime : 0;
}

/* Expect @p to run next with at most this slice, and with this vtime. 0 means any. */
static void expect(struct task_struct *p, u64 slice_ns, u64 vtime)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return;
	tctx->slice_ns = slice_ns;
	tctx->vtime = vtime;
}

static void expect_nothing(struct task_struct *p)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	if (tctx)
		tctx->slice_ns = tctx->vtime = 0;
}

static void check_expected(struct task_struct *p)
{
	struct task_ctx *tctx = bpf_task_storage_get(&task_ctxs, p, NULL, 0);

	if (!tctx)
		return;
	if (tctx->slice_ns)
		judge(p->scx.slice <= tctx->slice_ns);
	if (tctx->vtime)
		judge(p->scx.dsq_vtime == tctx->vtime);
	tctx->slice_ns = tctx->vtime = 0;
}

/* ---- select_cpu ---------------------------------------------------------- */

/* Allow only CPU 0. If the result is another CPU, the wrapper has ignored the mask. */
static s32 use_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct bpf_cpumask *only_cpu0 = bpf_cpumask_create();
	s32 cpu;

	if (!only_cpu0)
		return prev_cpu;
	bpf_cpumask_set_cpu(0, only_cpu0);
	cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, (const struct cpumask *)only_cpu0, 0);
	bpf_cpumask_release(only_cpu0);
	if (cpu < 0)
		return prev_cpu;
	/* Do not check whether the CPU was claimed: after an interrupt that wakes no task, the CPU
	 * is marked as idle again. */
	judge(cpu == 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}

/* Whether all of @cpus belong to @node, as in a correct idle mask of a node. The idle masks change
 * all the time, so they cannot be compared with each other. */
static bool all_of_node(const struct cpumask *cpus, s32 node)
{
	s32 nr = scx_bpf_nr_cpu_ids();
	s32 cpu;

	bpf_for(cpu, 0, nr)
		if (bpf_cpumask_test_cpu(cpu, cpus) && scx_bpf_cpu_node(cpu) != node)
			return false;
	return true;
}

static bool may_run_in_node(const struct task_struct *p, s32 node)
{
	s32 nr = scx_bpf_nr_cpu_ids();
	s32 cpu;

	bpf_for(cpu, 0, nr)
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && scx_bpf_cpu_node(cpu) == node)
			return true;
	return false;
}

static void check_idle_masks(s32 node)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask_node(node);
	const struct cpumask *idle_cores = scx_bpf_get_idle_smtmask_node(node);

	judge(all_of_node(idle, node));
	judge(all_of_node(idle_cores, node));
	scx_bpf_put_idle_cpumask(idle_cores);
	scx_bpf_put_idle_cpumask(idle);
}

/* Use a random node, to detect a wrapper that ignores the node. */
static s32 use_idle_node(struct task_struct *p, s32 prev_cpu)
{
	s32 node = bpf_get_prandom_u32() % scx_bpf_nr_node_ids();
	s32 cpu;

	check_idle_masks(node);
	cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, node, SCX_PICK_IDLE_IN_NODE);
	if (cpu < 0)
		cpu = scx_bpf_pick_any_cpu_node(p->cpus_ptr, node, SCX_PICK_IDLE_IN_NODE);
	if (cpu < 0) {
		judge(!may_run_in_node(p, node));
		return prev_cpu;
	}
	judge(bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && scx_bpf_cpu_node(cpu) == node);
	return cpu;
}

s32 BPF_STRUCT_OPS(compat_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	if (use == USE_select_cpu_and)
		return use_select_cpu_and(p, prev_cpu, wake_flags);
	if (use == USE_idle_node)
		return use_idle_node(p, prev_cpu);
	return prev_cpu;
}

/* ---- enqueue and dispatch ------------------------------------------------ */

static void use_task_cgroup(struct task_struct *p)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	judge(cgrp && cgrp->kn->id > 0);
	if (cgrp)
		bpf_cgroup_release(cgrp);
}

void BPF_STRUCT_OPS(compat_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (scx_task_is_percpu_kthread(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}

	switch (use) {
	case USE_dsq_insert:
		expect(p, SLICE_NS, 0);
		judge(scx_bpf_dsq_insert(p, FIFO_DSQ, SLICE_NS, enq_flags));
		return;
	case USE_dsq_insert_vtime:
		give_vtime(p);
		expect(p, SLICE_NS, own_vtime(p));
		judge(scx_bpf_dsq_insert_vtime(p, VTIME_DSQ, SLICE_NS, own_vtime(p), enq_flags));
		return;
	case USE_reenqueue_local:
	case USE_dsq_reenq:
		if (enq_flags & SCX_ENQ_REENQ) {
			judge(true);
			scx_bpf_dsq_insert(p, FIFO_DSQ, SCX_SLICE_DFL, enq_flags);
		} else {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		}
		return;
	case USE_task_cgroup:
		use_task_cgroup(p);
		break;
	case USE_dsq_move_vtime:
		give_vtime(p);
		break;
	}
	scx_bpf_dsq_insert(p, FIFO_DSQ, SCX_SLICE_DFL, enq_flags);
}

/* With the iterator, move the first task of FIFO_DSQ that may run on @cpu to the local DSQ, and set
 * its slice. Tasks of FIFO_DSQ are dispatched only in this way, so all of them run with this
 * slice. */
static void use_dsq_move(s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, FIFO_DSQ, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, SLICE_NS);
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			/* expect() may follow the move: the task cannot run before this callback
			 * returns. */
			expect(p, SLICE_NS, 0);
			judge(true);
			break;
		}
	}
}

/* Move all tasks of FIFO_DSQ to VTIME_DSQ, and the first task of VTIME_DSQ to the local DSQ. */
static void use_dsq_move_vtime(void)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, FIFO_DSQ, 0) {
		/* Call expect() before the move, because after the move another CPU may run the
		 * task. */
		expect(p, 0, own_vtime(p));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, own_vtime(p));
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, VTIME_DSQ, 0))
			judge(true);
		else
			expect_nothing(p);
	}
	scx_bpf_dsq_move_to_local(VTIME_DSQ, 0);
}

static void use_dsq_peek(void)
{
	struct task_struct *p = scx_bpf_dsq_peek(FIFO_DSQ);

	if (p)
		judge(p->pid > 0);
}

void BPF_STRUCT_OPS(compat_dispatch, s32 cpu, struct task_struct *prev)
{
	switch (use) {
	case USE_dsq_move:
		use_dsq_move(cpu);
		return;
	case USE_dsq_move_vtime:
		use_dsq_move_vtime();
		return;
	case USE_dsq_peek:
		use_dsq_peek();
		break;
	}
	if (!scx_bpf_dsq_move_to_local(VTIME_DSQ, 0))
		scx_bpf_dsq_move_to_local(FIFO_DSQ, 0);
}

/* ---- running ------------------------------------------------------------- */

/*
 * Check that the clock is monotonic and keeps pace with the boot clock. The tolerance is 10 %, plus
 * 2 s because an emulated CPU may be halted between two instructions.
 */
static void use_now(void)
{
	u32 zero = 0;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &zero);
	u64 boot_ns = bpf_ktime_get_boot_ns(), now_ns = scx_bpf_now();
	u64 passed_ns, slack_ns;

	if (!clock)
		return;
	if (!clock->first_boot_ns) {
		clock->first_boot_ns = boot_ns;
		clock->first_ns = clock->last_ns = now_ns;
	}
	passed_ns = boot_ns - clock->first_boot_ns;
	slack_ns = passed_ns / 10 + 2 * NSEC_PER_SEC;
	/* In the first seconds, even a clock that does not advance would be within the limits. */
	if (passed_ns > 4 * NSEC_PER_SEC)
		judge(time_in_range(now_ns - clock->first_ns + slack_ns, passed_ns,
				    passed_ns + 2 * slack_ns));
	if (time_before(now_ns, clock->last_ns))
		judge(false);
	clock->last_ns = now_ns;
}

void BPF_STRUCT_OPS(compat_running, struct task_struct *p)
{
	switch (use) {
	case USE_dsq_insert:
	case USE_dsq_insert_vtime:
	case USE_dsq_move:
	case USE_dsq_move_vtime:
		check_expected(p);
		break;
	case USE_task_set_slice:
		scx_bpf_task_set_slice(p, OTHER_SLICE_NS);
		judge(p->scx.slice == OTHER_SLICE_NS);
		break;
	case USE_task_set_dsq_vtime:
		scx_bpf_task_set_dsq_vtime(p, OTHER_VTIME);
		judge(p->scx.dsq_vtime == OTHER_VTIME);
		break;
	case USE_now:
		use_now();
		break;
	}
}

/* @p may have been dequeued before it ran, and may next be enqueued with other values. */
void BPF_STRUCT_OPS(compat_quiescent, struct task_struct *p, u64 deq_flags)
{
	expect_nothing(p);
}

static void use_events(void)
{
	if (scx_events_read(&events))
		event_bypass_activate = scx_event_count(&events, SCX_EV_BYPASS_ACTIVATE);
	judge(true);
}

void BPF_STRUCT_OPS(compat_tick, struct task_struct *p)
{
	struct task_struct *curr;

	switch (use) {
	case USE_cpu_curr:
		curr = scx_bpf_cpu_curr(scx_bpf_task_cpu(p));
		judge(curr && curr->pid == p->pid);
		break;
	case USE_reenqueue_local:
		if (scx_can_reenqueue_anywhere())
			scx_bpf_reenqueue_local();
		break;
	case USE_dsq_reenq:
		if (scx_can_reenqueue_anywhere())
			scx_dsq_reenq(SCX_DSQ_LOCAL, 0);
		break;
	case USE_events:
		use_events();
		break;
	}
}

/* User space sets this callback only on kernels that cannot re-enqueue tasks from other callbacks,
 * because newer kernels log that it is deprecated. */
SEC("?struct_ops/compat_cpu_release")
void BPF_PROG(compat_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	if (use == USE_dsq_reenq)
		scx_dsq_reenq(SCX_DSQ_LOCAL, 0);
	else
		scx_bpf_reenqueue_local();
}

/* ---- init and exit ------------------------------------------------------- */

static void use_nodes(void)
{
	s32 nr = scx_bpf_nr_cpu_ids();
	s32 cpu;

	nr_nodes = scx_bpf_nr_node_ids();
	nr_cpus = nr;
	bpf_for(cpu, 0, nr)
		if (cpu >= 0 && cpu < COMPAT_MAX_CPUS)
			node_of_cpu[cpu] = scx_bpf_cpu_node(cpu);
	judge(true);
}

static void use_enums(void)
{
	u32 i = 0;

#define COMPAT_STORE(type, name) constants[i++] = name;
	COMPAT_CONSTANTS(COMPAT_STORE)
	judge(true);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(compat_init)
{
	s32 err = scx_bpf_create_dsq(FIFO_DSQ, -1);

	if (err)
		return err;
	if (use == USE_nodes)
		use_nodes();
	if (use == USE_enums)
		use_enums();
	return scx_bpf_create_dsq(VTIME_DSQ, -1);
}

void BPF_STRUCT_OPS(compat_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

SCX_OPS(compat_ops) = {
	.select_cpu = (void *)compat_select_cpu,
	.enqueue = (void *)compat_enqueue,
	.dispatch = (void *)compat_dispatch,
	.running = (void *)compat_running,
	.quiescent = (void *)compat_quiescent,
	.tick = (void *)compat_tick,
	.init = (void *)compat_init,
	.exit = (void *)compat_exit,
	.name = "compat",
};
