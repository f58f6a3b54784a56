/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPU selection by SMT, capacity and node, with a primary domain: a set of CPUs that is used before
 * all other CPUs, such as the power-efficient CPUs of a hybrid machine.
 *
 * User space passes the table of CPUs (cpus.h). To change the primary domain of a running
 * scheduler, user space writes the words of struct scx_primary and runs the program
 * scx_set_primary.
 */
#ifndef __SCX_CPUS_BPF_H
#define __SCX_CPUS_BPF_H

#include <scx/common.bpf.h>
#include <scx/cpus.h>
#include <scx/idle.bpf.h>

const volatile struct scx_cpus scx_cpus SEC(".rodata.scx_cpus");
struct scx_primary scx_primary SEC(".data.scx_primary");

/* Whether there is a primary domain. */
static bool scx_has_primary;

struct scx_mask {
	struct bpf_cpumask __kptr *mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scx_mask);
} scx_primary_mask SEC(".maps");

static inline const volatile struct scx_cpu *scx_cpu_info(s32 cpu)
{
	return &scx_cpus.cpu[(u32)cpu % SCX_CPUS_MAX];
}

/* Return the index of the CPU's node, below SCX_NODES_MAX. */
static inline u32 scx_node_of(s32 cpu)
{
	return scx_cpus.nr_nodes > 1 ? scx_cpu_info(cpu)->node % SCX_NODES_MAX : 0;
}

/* Whether the task may run on one CPU only. */
static inline bool scx_task_is_pinned(const struct task_struct *p)
{
	return p->nr_cpus_allowed == 1;
}

/* Return the mask of the primary domain, NULL if there is none. */
static inline const struct cpumask *scx_primary_cpus(void)
{
	struct scx_mask *place;
	u32 zero = 0;

	if (!scx_has_primary)
		return NULL;
	place = bpf_map_lookup_elem(&scx_primary_mask, &zero);
	return place ? (const struct cpumask *)place->mask : NULL;
}

/* ---- SMT ------------------------------------------------------------------ */

/* Whether the CPU's sibling (cpus.h) is busy while another core, which the task may use, is fully
 * idle. */
static inline bool scx_is_smt_contended(s32 cpu, const struct task_struct *p)
{
	s32 sibling = scx_cpu_info(cpu)->sibling;
	const struct cpumask *idle;
	bool is_contended;

	if (!scx_cpus.has_smt || sibling == cpu)
		return false;
	idle = scx_bpf_get_idle_cpumask();
	is_contended = !bpf_cpumask_test_cpu(sibling, idle);
	scx_bpf_put_idle_cpumask(idle);
	if (!is_contended)
		return false;
	idle = scx_bpf_get_idle_smtmask();
	is_contended = bpf_cpumask_intersects(idle, p->cpus_ptr);
	scx_bpf_put_idle_cpumask(idle);
	return is_contended;
}

/* Whether @cpu is outside of the primary domain, a CPU of the domain is idle, and the task may use
 * some CPU of the domain. */
static inline bool scx_is_outside_primary(s32 cpu, const struct task_struct *p)
{
	const struct cpumask *primary = scx_primary_cpus(), *idle;
	bool has_idle;

	if (!primary || bpf_cpumask_test_cpu(cpu, primary) ||
	    !bpf_cpumask_intersects(primary, p->cpus_ptr))
		return false;
	idle = scx_bpf_get_idle_cpumask();
	has_idle = bpf_cpumask_intersects(primary, idle);
	scx_bpf_put_idle_cpumask(idle);
	return has_idle;
}

/* Whether to search for another CPU for a task on @cpu, because an idle CPU may suit the task
 * better. */
static inline bool scx_should_move(s32 cpu, const struct task_struct *p)
{
	if (scx_task_is_pinned(p))
		return false;
	return scx_is_smt_contended(cpu, p) || scx_is_outside_primary(cpu, p);
}

/* ---- idle CPUs ------------------------------------------------------------ */

/* Whether this is a wakeup, and the waker's CPU is faster than @prev_cpu and allowed for the task.
 * False if the machine is not hybrid, or if there is a primary domain. */
static inline bool scx_is_woken_by_faster(const struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = bpf_get_smp_processor_id();

	return scx_cpus.is_hybrid && !scx_has_primary && wake_flags & SCX_WAKE_TTWU &&
	       scx_cpu_info(cpu)->capacity > scx_cpu_info(prev_cpu)->capacity &&
	       bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * Claim an idle CPU for @p, in the primary domain if possible. Returns a negative number if there
 * is none. Call it only if scx_any_idle(): a search without success is slow.
 *
 * Since 6.16, the kernel prefers fully idle cores to other idle CPUs. Within each of these groups,
 * it prefers @prev_cpu, then the LLC and then the node of @prev_cpu. On a sync wakeup, it may
 * prefer the waker's CPU. For older kernels, see __scx_pick_idle_in(). On a hybrid machine without
 * a primary domain, a task whose waker runs on a faster CPU is placed near the waker's CPU, unless
 * @prev_cpu is idle, in the LLC of the waker's CPU, and not contended (scx_is_smt_contended()).
 */
static inline s32 scx_pick_idle(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct cpumask *primary = scx_primary_cpus();
	s32 cpu;

	cpu = bpf_get_smp_processor_id();
	if (scx_is_woken_by_faster(p, prev_cpu, wake_flags)) {
		if (scx_cpu_info(cpu)->llc == scx_cpu_info(prev_cpu)->llc &&
		    !scx_is_smt_contended(prev_cpu, p) && scx_bpf_test_and_clear_cpu_idle(prev_cpu))
			return prev_cpu;
		prev_cpu = cpu;
	}
	if (primary) {
		cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, primary, 0);
		if (cpu >= 0)
			return cpu;
	}
	return scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, p->cpus_ptr, 0);
}

/* Claim @cpu if it is idle and, if @whole_core, its core is fully idle. Returns whether it was
 * claimed. */
static inline bool scx_claim_idle(s32 cpu, bool whole_core)
{
	const struct cpumask *cores;
	bool is_idle;

	if (whole_core && scx_cpus.has_smt) {
		cores = scx_bpf_get_idle_smtmask();
		is_idle = bpf_cpumask_test_cpu(cpu, cores);
		scx_bpf_put_idle_cpumask(cores);
		if (!is_idle)
			return false;
	}
	return scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* Claim an idle CPU that the task may use: @prev_cpu if possible, else the fastest one. The CPU
 * must be in @primary unless @primary is NULL, and if @whole_core, its core must be fully idle.
 * Returns a negative number if there is none. */
static inline s32 scx_scan(struct task_struct *p, s32 prev_cpu, const struct cpumask *primary,
			   bool whole_core)
{
	s32 cpu;
	u32 i;

	bpf_for(i, 0, scx_cpus.nr_online + 1) {
		cpu = i ? scx_cpu_info(i - 1)->by_capacity : prev_cpu;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    (!primary || bpf_cpumask_test_cpu(cpu, primary)) &&
		    scx_claim_idle(cpu, whole_core))
			return cpu;
	}
	return -EBUSY;
}

/* Claim an idle CPU for @p: in the primary domain if possible, on a fully idle core if possible,
 * and then @prev_cpu if possible, else the fastest CPU. Returns a negative number if there is none.
 * Takes time proportional to the number of CPUs. */
static inline s32 scx_pick_fastest_idle(struct task_struct *p, s32 prev_cpu)
{
	const struct cpumask *primary = scx_primary_cpus();
	s32 cpu = -EBUSY;

	if (primary) {
		cpu = scx_scan(p, prev_cpu, primary, true);
		if (cpu < 0 && scx_cpus.has_smt)
			cpu = scx_scan(p, prev_cpu, primary, false);
	}
	if (cpu < 0)
		cpu = scx_scan(p, prev_cpu, NULL, true);
	if (cpu < 0 && scx_cpus.has_smt)
		cpu = scx_scan(p, prev_cpu, NULL, false);
	return cpu;
}

/* Claim an idle CPU that is better for the task than @prev_cpu, in the sense of scx_should_move().
 * Returns the CPU; -EBUSY if there is none; -EAGAIN if the task should stay. */
static inline s32 scx_pick_better(struct task_struct *p, s32 prev_cpu)
{
	const struct cpumask *primary = scx_primary_cpus();

	if (primary && scx_is_outside_primary(prev_cpu, p))
		return scx_bpf_select_cpu_and(p, prev_cpu, 0, primary, 0);
	if (scx_is_smt_contended(prev_cpu, p))
		return scx_bpf_select_cpu_and(p, prev_cpu, 0, primary ?: p->cpus_ptr,
					      SCX_PICK_IDLE_CORE);
	return -EAGAIN;
}

/*
 * In ops.enqueue(): claim an idle CPU for the task, which was last on @prev_cpu. If
 * ops.select_cpu() was called for the task, if no other task waits for @prev_cpu (SCX_ENQ_LAST), or
 * with @stays, the CPU has to be better than @prev_cpu (scx_pick_better()). With @stays, the caller
 * prefers that the task stays on @prev_cpu. A pinned task gets its own CPU only. If @fastest, use
 * scx_pick_fastest_idle(). Returns the CPU; -EBUSY if no suitable CPU is idle; -EAGAIN if the task
 * should stay on @prev_cpu, or if a pinned task cannot get its CPU.
 */
static inline s32 scx_claim_on_enqueue(struct task_struct *p, s32 prev_cpu, u64 enq_flags,
				       bool stays, bool fastest)
{
	s32 cpu;

	if (scx_task_is_pinned(p)) {
		/* While its affinity changes, the task may still be on another CPU. */
		cpu = bpf_cpumask_first(p->cpus_ptr);
		return cpu == prev_cpu && scx_bpf_test_and_clear_cpu_idle(cpu) ? cpu : -EAGAIN;
	}
	if (stays || enq_flags & (SCX_ENQ_CPU_SELECTED | SCX_ENQ_LAST))
		return scx_pick_better(p, prev_cpu);
	if (!scx_any_idle())
		return -EBUSY;
	return fastest ? scx_pick_fastest_idle(p, prev_cpu) : scx_pick_idle(p, prev_cpu, 0);
}

/*
 * In ops.enqueue(), after the call that queues the task: kick an idle CPU that the task may use,
 * since 6.16 one of the task's LLC or node if possible. Returns whether a CPU was kicked. The
 * kernel does the actual insertion when ops.enqueue() returns. A CPU that becomes idle between this
 * search and the insertion is missed, and the task waits until a CPU next dispatches, for example
 * at the end of a slice.
 */
static inline bool scx_kick_idle_for(struct task_struct *p)
{
	s32 cpu;

	if (!scx_any_idle())
		return false;
	cpu = scx_bpf_task_cpu(p);
	/* The CPU of a pinned task is not idle, or scx_claim_on_enqueue() would have claimed it. It
	 * cannot become idle before the task is inserted, because ops.enqueue() is called with its
	 * run queue locked. While the affinity of the task changes, the task may still be on
	 * another CPU. */
	if (scx_task_is_pinned(p) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return false;
	cpu = scx_bpf_select_cpu_and(p, cpu, 0, p->cpus_ptr, 0);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/* ---- the primary domain --------------------------------------------------- */

/* Apply struct scx_primary. User space runs this program before it attaches the scheduler, and
 * whenever it has changed the struct. Tasks that run outside of the new domain can move when their
 * slices expire or when they next wake up. */
SEC("syscall")
int scx_set_primary(void *ctx)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	bool has_primary = false;
	struct scx_mask *place;
	u32 cpu, zero = 0;

	if (!mask)
		return -ENOMEM;
	bpf_for(cpu, 0, scx_cpus.nr_cpu_ids) {
		if (scx_primary.words[cpu / 64 % SCX_CPU_WORDS] >> (cpu % 64) & 1) {
			bpf_cpumask_set_cpu(cpu, mask);
			has_primary = true;
		}
	}
	place = bpf_map_lookup_elem(&scx_primary_mask, &zero);
	if (!place) {
		bpf_cpumask_release(mask);
		return -ENOENT;
	}
	mask = bpf_kptr_xchg(&place->mask, mask);
	if (mask)
		bpf_cpumask_release(mask);
	scx_has_primary = has_primary;
	return 0;
}

#endif /* __SCX_CPUS_BPF_H */
