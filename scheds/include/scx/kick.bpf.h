/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kicks that are safe during CPU hotplug.
 *
 * scx_bpf_kick_cpu() raises an interrupt on the CPU that calls it (irq_work), and so do deferred
 * re-enqueues. A CPU that is going offline still calls callbacks, such as ops.update_idle(), after
 * it has handled its last interrupt. A request that it makes then stays pending, even after the CPU
 * is online again, and blocks all later requests of that CPU. Its kicks get lost, and the scheduler
 * cannot be unloaded.
 */
#ifndef __SCX_KICK_BPF_H
#define __SCX_KICK_BPF_H

#include <scx/common.bpf.h>

/* Whether this CPU may still raise interrupts on itself. */
static inline bool scx_this_cpu_is_online(void)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool is_online = bpf_cpumask_test_cpu(bpf_get_smp_processor_id(), online);

	scx_bpf_put_cpumask(online);
	return is_online;
}

/* Call scx_bpf_kick_cpu(), unless this CPU is going offline. */
static inline void scx_kick_cpu(s32 cpu, u64 flags)
{
	if (scx_this_cpu_is_online())
		scx_bpf_kick_cpu(cpu, flags);
}

/*
 * In ops.enqueue(), after the call that queues a task for @cpu only: kick @cpu if it is idle.
 *
 * If the task wakes up while another task runs on this CPU, and @cpu is this CPU, the CPU is not
 * idle, and needs no interrupt (the pid of the idle task is 0). The CPU cannot become idle before
 * the task is inserted, because the kernel holds the lock of its run queue. Other enqueues may come
 * from a context switch, after which the CPU may be idle.
 */
static inline void scx_kick_idle_cpu(s32 cpu, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP && cpu == (s32)bpf_get_smp_processor_id() &&
	    bpf_get_current_task_btf()->pid)
		return;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif /* __SCX_KICK_BPF_H */
