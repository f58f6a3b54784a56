/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The idle CPUs: a bitmap (shared.idle) that user space reads to select a CPU without a system
 * call. The kernel's idle CPU selection uses its own masks.
 *
 * No wakeup is lost: a CPU without work sets its bit and then checks the queues again. A CPU that
 * inserts a task does so first, and then checks the bits. Each has a full barrier between its two
 * steps, so the CPU without work sees the task, or the other CPU sees the bit.
 */
#ifndef __RL_IDLE_BPF_H
#define __RL_IDLE_BPF_H

/* CPU ids are below RL_CPUS_MAX, so the modulo changes nothing. It replaces a bounds check, which
 * the compiler might transform so that the verifier does not recognize it. */
static u64 *word_of(u64 *words, u32 cpu)
{
	return &words[cpu / 64 % RL_CPU_WORDS];
}

static bool test_cpu(u64 *words, u32 cpu)
{
	return *(volatile u64 *)word_of(words, cpu) >> (cpu % 64) & 1;
}

/* Set a bit. This is a full barrier, like clear_cpu() (see the top of this file). */
static void set_cpu(u64 *words, u32 cpu)
{
	scx_ordered(__sync_fetch_and_or(word_of(words, cpu), 1ULL << (cpu % 64)));
}

/* Clear a bit. Returns whether it was set. */
static bool clear_cpu(u64 *words, u32 cpu)
{
	u64 bit = 1ULL << (cpu % 64);

	return scx_ordered(__sync_fetch_and_and(word_of(words, cpu), ~bit)) & bit;
}

/*
 * Whether this CPU is in the last steps of going offline. Such a CPU still wakes up tasks, such as
 * RCU's kernel threads, but it must not wake the policy thread or kick a CPU. Both need an
 * irq_work, which no longer runs on this CPU. It would stay pending, even after the CPU is online
 * again (scx/kick.bpf.h), and no CPU can queue it while it is pending. The watchdog's timer does
 * both instead.
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

/* Claim @cpu if it is idle. The caller then kicks it or gives it a task. Returns whether it was
 * idle. */
static bool claim_idle(s32 cpu)
{
	scx_bpf_test_and_clear_cpu_idle(cpu);
	return clear_cpu(shared.idle, cpu);
}

/* Like claim_idle_in(), but only for the 64 CPUs of one bitmap word. */
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

/* Claim an idle CPU within @allowed, or any idle CPU if @allowed is NULL. Returns a negative number
 * if there is none. */
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

static bool any_cpu_busy(void)
{
	u32 word;

	bpf_for(word, 0, ((u32)nr_cpu_ids + 63) / 64) {
		if (*(volatile u64 *)word_of(shared.online, word * 64) &
		    ~*(volatile u64 *)word_of(shared.idle, word * 64))
			return true;
	}
	return false;
}

/* Whether an idle CPU may be woken for a task. With low_power, tasks wait for a busy CPU instead,
 * if there is one. If they are still queued in the next period of the watchdog, the watchdog wakes
 * an idle CPU (wake_for()). */
static bool may_wake_idle(void)
{
	return !config.low_power || !any_cpu_busy();
}

/* Whether an idle CPU may be woken for @p: like may_wake_idle(), but only the CPUs that @p may use
 * count. */
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
 * The functions below are global: not static, and __noinline. The verifier checks a global function
 * only once, but a static function at each call, and many of these calls are in loops.
 */

/* Kick an idle CPU, if there is one. */
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

/* Kick an idle CPU that may run @p, if there is one. */
__noinline int kick_idle_for(struct task_struct *p __arg_trusted)
{
	s32 cpu;

	scx_full_barrier();
	if (!may_wake_idle_for(p) || is_dying_cpu())
		return -EBUSY;
	/* The kernel's selection prefers fully idle cores. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	/* A CPU that is about to go idle has set its bit in shared.idle, but not yet in the
	 * kernel's mask. */
	if (cpu < 0 || !clear_cpu(shared.idle, cpu))
		cpu = claim_idle_in(p->cpus_ptr);
	if (cpu >= 0)
		kick_idle(cpu);
	return cpu;
}

#endif /* __RL_IDLE_BPF_H */
