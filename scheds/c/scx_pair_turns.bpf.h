/* SPDX-License-Identifier: GPL-2.0-only */
/* The order in which scx_pair serves cgroups. */
#ifndef __SCX_PAIR_TURNS_BPF_H
#define __SCX_PAIR_TURNS_BPF_H

#include <scx/common.bpf.h>
#include "scx_pair.h"

struct cgroup_ctx {
	u64 nr_waiting; /* tasks that were enqueued, and have neither run nor been dequeued since */
	u64 is_queued; /* the cgroup is in the queue of turns */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PAIR_CGROUPS_MAX);
	__type(key, u64);
	__type(value, struct cgroup_ctx);
} cgroups SEC(".maps");

/* Cgroups that had waiting tasks when they were queued, in the order of their turns, each cgroup at
 * most once. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, PAIR_CGROUPS_MAX);
	__type(value, u64);
} turns SEC(".maps");

/* Cgroups that were first in this order, but that a pair could not serve, in most cases because
 * their tasks may not run on its CPUs. To keep their places, these cgroups are tried before those
 * in `turns`. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, PAIR_CGROUPS_MAX);
	__type(value, u64);
} skipped_turns SEC(".maps");

/* Length of both queues together, and of skipped_turns. */
static u64 nr_turns;
static u64 nr_skipped;

static bool push_turn(u64 cgid, bool is_skipped)
{
	if (!is_skipped)
		return !bpf_map_push_elem(&turns, &cgid, 0);
	if (bpf_map_push_elem(&skipped_turns, &cgid, 0))
		return false;
	__sync_fetch_and_add(&nr_skipped, 1);
	return true;
}

/* Queue a turn of @cgid, if it has waiting tasks and is not queued already. With @is_skipped, it
 * precedes all cgroups that have not been skipped. The function is global, so that the verifier
 * checks it only once. */
__noinline int queue_turn(u64 cgid, bool is_skipped)
{
	struct cgroup_ctx *cgrp = bpf_map_lookup_elem(&cgroups, &cgid);

	if (!cgrp || !cgrp->nr_waiting || __sync_val_compare_and_swap(&cgrp->is_queued, 0, 1))
		return 0;
	__sync_fetch_and_add(&nr_turns, 1);
	if (push_turn(cgid, is_skipped))
		return 0;
	/* The push failed, for example because the map was locked. The next call tries again. */
	__sync_fetch_and_sub(&nr_turns, 1);
	cgrp->is_queued = 0;
	return 0;
}

/* Remove the first cgroup from the queue of turns; with @of_skipped, from skipped_turns if it is
 * not empty. Returns the id of the cgroup, or 0 if there is none. */
static u64 pop_turn(bool of_skipped)
{
	struct cgroup_ctx *cgrp;
	u64 cgid = 0;

	if (of_skipped && !bpf_map_pop_elem(&skipped_turns, &cgid))
		__sync_fetch_and_sub(&nr_skipped, 1);
	else if (bpf_map_pop_elem(&turns, &cgid))
		return 0;
	__sync_fetch_and_sub(&nr_turns, 1);
	cgrp = bpf_map_lookup_elem(&cgroups, &cgid);
	if (cgrp)
		cgrp->is_queued = 0;
	return cgid;
}

/* Whether a cgroup other than @cgid waits for a turn. */
static bool others_wait(u64 cgid)
{
	struct cgroup_ctx *cgrp = bpf_map_lookup_elem(&cgroups, &cgid);

	return nr_turns > (cgrp && cgrp->is_queued);
}

#endif /* __SCX_PAIR_TURNS_BPF_H */
