/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a trace. A record causes no wakeup: user space polls the rings. */
#ifndef __SCXTOP_TRACE_BPF_H
#define __SCXTOP_TRACE_BPF_H

#include "class.bpf.h"
#include <scx/barrier.h>
#include <scx/compiler.bpf.h>

static void identify(struct top_event_task *task, struct task_struct *p)
{
	task->pid = p->pid;
	task->tgid = p->tgid;
	task->prio = p->prio;
	task->class = class_of(p);
	copy_comm(task->comm, p);
}

/* Return a slot for a new record of this CPU. If the ring is full, count this and return NULL. */
static struct top_event *reserve(void)
{
	u32 slot, cpu = bpf_get_smp_processor_id();
	struct top_ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct top_lost *lost;
	u64 nr;

	if (!ring)
		return NULL; /* never: there is a ring for each possible CPU */
	if (ring->nr_reserved - READ_ONCE(ring->nr_read) > ring_size - TOP_RING_SPARE) {
		lost = this_cpu_losses();
		if (lost)
			__sync_fetch_and_add(&lost->nr_events, 1);
		return NULL;
	}
	/* Atomic, because an interrupt on this CPU may reserve a slot, too. */
	nr = scx_ordered(__sync_fetch_and_add(&ring->nr_reserved, 1));
	slot = cpu * ring_size + (nr & (ring_size - 1));
	return bpf_map_lookup_elem(&events, &slot);
}

/* Begin a record. Returns NULL if no trace is being recorded, or if there is no room. */
static struct top_event *begin_event(enum top_event_kind kind, u64 now)
{
	struct top_event *event;

	if (!control.is_tracing)
		return NULL;
	event = reserve();
	if (!event)
		return NULL;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = now;
	event->kind = kind;
	event->cpu = bpf_get_smp_processor_id();
	return event;
}

/* Pass the record to user space, which does not read beyond an incomplete record. */
static void end_event(struct top_event *event)
{
	scx_ordered(__sync_lock_test_and_set(&event->is_complete, 1));
}

static void trace_switch(struct task_struct *prev, struct task_struct *next, u32 state, u64 now)
{
	struct top_event *event = begin_event(TOP_EVENT_SWITCH, now);

	if (!event)
		return;
	event->state = state;
	if (bpf_core_field_exists(next->scx))
		event->slice_ns = next->scx.slice;
	identify(&event->task, prev);
	identify(&event->other, next);
	end_event(event);
}

/* Record an event of @p; @other may be NULL. */
static void trace_task(enum top_event_kind kind, struct task_struct *p, struct task_struct *other,
		       u32 target_cpu, u64 now)
{
	struct top_event *event = begin_event(kind, now);

	if (!event)
		return;
	event->target_cpu = target_cpu;
	identify(&event->task, p);
	if (other)
		identify(&event->other, other);
	end_event(event);
}

#endif /* __SCXTOP_TRACE_BPF_H */
