/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_switches: at each context switch, record the run of the thread that is switched out, and
 * update the counters of this thread and of the thread that is switched in. Also count wakeups and,
 * on request, system calls.
 *
 * The ring buffer causes no wakeups: user space polls it, so that a record causes no context
 * switch. Runs that do not fit into the ring count as lost. The BPF side applies the filters, so
 * that threads that are not recorded cause little overhead.
 */
#include <scx/types.bpf.h>
#include <scx/switch_time.bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

/* The value of task_struct.__state of an exited task, in linux/sched.h since 4.14. */
#define TASK_DEAD 0x00000080

#define COMM_WORDS (SWITCHES_COMM_LEN / sizeof(u64))

/* --idle: whether idle tasks, pid 0, are recorded. */
const volatile u32 with_idle;
/* --pid: the number of ids in the map `pids`; 0 means all threads. */
const volatile u32 nr_pids;
/* --comm: which bytes of a name are compared, and with what. */
const volatile u64 comm_mask[COMM_WORDS];
const volatile u64 comm_bytes[COMM_WORDS];
/* --cpu: whether only the CPUs in the mask `cpus` are recorded. */
const volatile u32 some_cpus;
const volatile u64 cpus[SWITCHES_CPUS_MAX / 64];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SWITCHES_PIDS_MAX);
	__type(key, u32);
	__type(value, u32);
} pids SEC(".maps");

/* The current run of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct switches_run);
} running SEC(".maps");

/* Complete runs. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SWITCHES_THREADS_MAX);
	__type(key, u32);
	__type(value, struct switches_counts);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct switches_totals);
} totals SEC(".maps");

static struct switches_totals *this_cpu_totals(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

static bool cpu_wanted(u32 cpu)
{
	if (!some_cpus)
		return true;
	return cpu < SWITCHES_CPUS_MAX && (cpus[cpu / 64] & 1ULL << cpu % 64);
}

static void identify(struct switches_task *task, struct task_struct *p)
{
	task->pid = p->pid;
	task->tgid = p->tgid;
	bpf_probe_read_kernel(task->comm, sizeof(task->comm), p->comm);
}

static bool task_wanted(const struct switches_task *task)
{
	const u64 *comm = (const u64 *)task->comm;
	u32 pid = task->pid, tgid = task->tgid;

	if (!pid && !with_idle)
		return false;
	if (((comm[0] ^ comm_bytes[0]) & comm_mask[0]) | ((comm[1] ^ comm_bytes[1]) & comm_mask[1]))
		return false;
	return !nr_pids || bpf_map_lookup_elem(&pids, &pid) || bpf_map_lookup_elem(&pids, &tgid);
}

/* The addition is atomic, because the idle tasks of all CPUs share the counters of pid 0. Also, an
 * interrupt that wakes a thread may add to nr_uncounted while on_sys_enter() does so. */
static void add(u64 *count, u64 n)
{
	__sync_fetch_and_add(count, n);
}

/* Return the counters of a thread. Create them if necessary. If the table is full, count the event
 * in nr_uncounted, and return NULL. */
static struct switches_counts *counts_of(const struct switches_task *task)
{
	struct switches_counts *found, fresh = { .task = *task };
	struct switches_totals *t;
	u32 pid = task->pid;

	found = bpf_map_lookup_elem(&threads, &pid);
	if (found)
		return found;
	bpf_map_update_elem(&threads, &pid, &fresh, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&threads, &pid);
	t = this_cpu_totals();
	if (!found && t)
		add(&t->nr_uncounted, 1);
	return found;
}

static u32 end_of(bool preempt, struct task_struct *prev, u32 prev_state)
{
	/*
	 * A task that was about to sleep with a signal pending is runnable again. Linux 6.12
	 * shows this only in the task's state, not in @prev_state.
	 */
	if (preempt || !prev_state || !prev->__state)
		return SWITCHES_PREEMPTED;
	return prev_state & TASK_DEAD ? SWITCHES_EXITED : SWITCHES_SLEPT;
}

/* Record that @prev is switched out. This ends @run, unless it began before the recording. */
static void switch_out(struct switches_run *run, struct task_struct *prev, u32 end, u64 now)
{
	bool is_known = run->task.pid == (u32)prev->pid;
	struct switches_totals *t = this_cpu_totals();
	struct switches_counts *c;

	/* Identify the thread again: its name may have changed. */
	identify(&run->task, prev);
	if (!task_wanted(&run->task))
		return;
	c = counts_of(&run->task);
	if (c) {
		c->task = run->task;
		add(end == SWITCHES_PREEMPTED ? &c->nr_involuntary : &c->nr_voluntary, 1);
	}
	if (!run->start_ns)
		return;
	/* User space compares nr_runs with the number of received records. */
	if (t)
		t->nr_runs++;
	/* If a switch was missed, the run counts as lost. */
	if (!is_known)
		return;
	run->stop_ns = now;
	run->prio = prev->prio;
	run->policy = prev->policy;
	run->end = end;
	if (c) {
		add(&c->nr_runs, 1);
		add(&c->cpu_ns, run->stop_ns - run->start_ns);
	}
	bpf_ringbuf_output(&runs, run, sizeof(*run), BPF_RB_NO_WAKEUP);
}

static void switch_in(struct switches_run *run, struct task_struct *next, u64 now)
{
	struct switches_counts *c;

	identify(&run->task, next);
	run->start_ns = now;
	run->stop_ns = 0;
	run->prio = next->prio;
	run->policy = next->policy;
	run->end = SWITCHES_UNWANTED;
	if (!task_wanted(&run->task))
		return;
	run->end = SWITCHES_RUNNING;
	c = counts_of(&run->task);
	if (c)
		add(&c->nr_switches_in, 1);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 zero = 0, cpu = bpf_get_smp_processor_id();
	u64 now = scx_switch_time_ns();
	struct switches_run *run;

	if (!cpu_wanted(cpu))
		return 0;
	run = bpf_map_lookup_elem(&running, &zero);
	if (!run)
		return 0;
	run->cpu = cpu;
	switch_out(run, prev, end_of(preempt, prev, prev_state), now);
	switch_in(run, next, now);
	return 0;
}

static void count_wakeup(struct task_struct *p)
{
	struct switches_task task = {};
	struct switches_counts *c;

	identify(&task, p);
	if (!task_wanted(&task))
		return;
	/*
	 * The CPU on which the task will run is not known yet. With --cpu, count only the wakeups
	 * of threads that have already run on one of the given CPUs.
	 */
	c = some_cpus ? bpf_map_lookup_elem(&threads, &task.pid) : counts_of(&task);
	if (c)
		add(&c->nr_wakeups, 1);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
	count_wakeup(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
	count_wakeup(p);
	return 0;
}

/* Unlike a tp_btf program, this program can be loaded on a kernel without the tracepoint
 * raw_syscalls:sys_enter. Only attaching it fails there. */
SEC("raw_tp/sys_enter")
int on_sys_enter(void *ctx)
{
	struct switches_task task = {};
	struct switches_counts *c;

	if (!cpu_wanted(bpf_get_smp_processor_id()))
		return 0;
	identify(&task, bpf_get_current_task_btf());
	if (!task_wanted(&task))
		return 0;
	c = counts_of(&task);
	if (c)
		add(&c->nr_syscalls, 1);
	return 0;
}
