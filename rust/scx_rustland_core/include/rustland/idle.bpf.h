/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPUs are idle: a bitmap that user space reads, so that it can choose one without a system
 * call. The kernel's own masks, which its idle selection goes by, are kept beside it.
 *
 * No wake-up is lost: a CPU that finds nothing to do sets its bit and then looks once more; who
 * inserts a task does so first and then looks for a bit. One of the two sees the other.
 */
#ifndef __RL_IDLE_BPF_H
#define __RL_IDLE_BPF_H

/* A remainder needs no comparison, which the compiler might move out of the verifier's sight. Each
 * CPU id is below RL_CPUS_MAX. */
static u64 *word_of(u64 *words, u32 cpu)
{
	return &words[cpu / 64 % RL_CPU_WORDS];
}

static bool test_cpu(u64 *words, u32 cpu)
{
	return *(volatile u64 *)word_of(words, cpu) >> (cpu % 64) & 1;
}

/* A full barrier, as clear_cpu() is: see above. */
static void set_cpu(u64 *words, u32 cpu)
{
	scx_ordered(__sync_fetch_and_or(word_of(words, cpu), 1ULL << (cpu % 64)));
}

/* Whether it was set. */
static bool clear_cpu(u64 *words, u32 cpu)
{
	u64 bit = 1ULL << (cpu % 64);

	return scx_ordered(__sync_fetch_and_and(word_of(words, cpu), ~bit)) & bit;
}

/*
 * Whether this CPU is in the last steps of its way out, in which it still wakes tasks up, such as
 * RCU's. What is to be done by an interrupt to itself it does no more: to wake the policy's thread,
 * and to kick CPUs. Worse, it would stand first in line when the CPU is back, and keep all that
 * comes after it from being done until it goes again; and the policy's thread could not be woken by
 * any CPU. The timer does it instead.
 */
static bool is_dying_cpu(void)
{
	s32 cpu = bpf_get_smp_processor_id();
	const struct cpumask *online;
	bool is_online;

	if (test_cpu(shared.online, cpu))
		return false;
	online = scx_bpf_get_online_cpumask();
	is_online = bpf_cpumask_test_cpu(cpu, online);
	scx_bpf_put_cpumask(online);
	return !is_online;
}

/* Takes an idle CPU for oneself: it is to be kicked, or to be given a task. */
static bool claim_idle(s32 cpu)
{
	scx_bpf_test_and_clear_cpu_idle(cpu);
	return clear_cpu(shared.idle, cpu);
}

/* Takes an idle CPU of the 64 that a word stands for; negative: there is none. */
static s32 claim_idle_of_word(u32 word, const struct cpumask *allowed)
{
	u32 bit, cpu;

	bpf_for(bit, 0, 64) {
		cpu = word * 64 + bit;
		if (test_cpu(shared.idle, cpu) &&
		    (!allowed || bpf_cpumask_test_cpu(cpu, allowed)) && claim_idle(cpu))
			return cpu;
	}
	return -EBUSY;
}

/* Takes an idle CPU that may run tasks with the mask @allowed, or any one without a mask. */
static s32 claim_idle_in(const struct cpumask *allowed)
{
	u32 word;
	s32 cpu;

	bpf_for(word, 0, ((u32)nr_cpu_ids + 63) / 64) {
		if (word >= RL_CPU_WORDS)
			break;
		if (!*(volatile u64 *)&shared.idle[word])
			continue;
		cpu = claim_idle_of_word(word, allowed);
		if (cpu >= 0)
			return cpu;
	}
	return -EBUSY;
}

/* Whether a CPU has something to do. */
static bool anybody_runs(void)
{
	u32 word;

	bpf_for(word, 0, ((u32)nr_cpu_ids + 63) / 64) {
		if (*(volatile u64 *)word_of(shared.online, word * 64) &
		    ~*(volatile u64 *)word_of(shared.idle, word * 64))
			return true;
	}
	return false;
}

/* To save power, tasks wait for a CPU that runs already. The watch looks after those who wait in
 * vain (wake_for()). */
static bool may_wake_idle(void)
{
	return !config.low_power || !anybody_runs();
}

/* The same for a task that not every CPU may run. */
static bool may_wake_idle_for(const struct task_struct *p)
{
	s32 cpu;

	if (!config.low_power)
		return true;
	bpf_for(cpu, 0, nr_cpu_ids) {
		if (test_cpu(shared.online, cpu) && !test_cpu(shared.idle, cpu) &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return false;
	}
	return true;
}

static void kick_idle(s32 cpu)
{
	count(nr_idle_kicks);
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * The functions with __noinline are the verifier's units: it reads each once, and not again at
 * each place that it is called from, often within a loop.
 */

/* Wakes an idle CPU, if there is one. */
__noinline int kick_any_idle(void)
{
	s32 cpu = -EBUSY;

	scx_full_barrier();
	if (may_wake_idle() && !is_dying_cpu())
		cpu = claim_idle_in(NULL);
	if (cpu >= 0)
		kick_idle(cpu);
	return cpu;
}

/* Wakes an idle CPU that may run @p, if there is one. */
__noinline int kick_idle_for(struct task_struct *p __arg_trusted)
{
	s32 cpu;

	scx_full_barrier();
	if (!may_wake_idle_for(p) || is_dying_cpu())
		return -EBUSY;
	/* The kernel's choice minds cores with two threads. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	/* A CPU that is about to be idle has set its bit, and not yet the kernel's. */
	if (cpu < 0 || !clear_cpu(shared.idle, cpu))
		cpu = claim_idle_in(p->cpus_ptr);
	if (cpu >= 0)
		kick_idle(cpu);
	return cpu;
}

#endif /* __RL_IDLE_BPF_H */
