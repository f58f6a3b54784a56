/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_qmap: five FIFOs by weight, kept in BPF queue maps. A test bed for the features that
 * sched_ext offers to schedulers, and for the kernel's reaction to a scheduler that fails.
 *
 * A task that finds no idle CPU is pushed to the queue of its weight class. CPUs serve the queues
 * in turn, up to 2^i tasks in a turn of queue i: while tasks wait in all queues, CPU time is shared
 * in the ratio 1:2:4:8:16 between the classes. Most schedulers keep their tasks in DSQs instead,
 * from which the kernel removes a task that no longer waits. An entry of a queue map may outlive
 * the wait of its task. So each wait has a ticket, and an entry is valid only if its task still
 * holds the ticket.
 *
 * A popped task goes through a shared DSQ, where the CPUs that it may run on find it. With --boost,
 * tasks of nice -20 wait in a separate DSQ, and preempt other tasks on wakeup.
 */
#include <scx/common.bpf.h>
#include <scx/exit_info.bpf.h>
#include <scx/immed.bpf.h>
#include <scx/kick.bpf.h>
#include <scx/migration.bpf.h>
#include <scx/own.bpf.h>
#include "scx_qmap.h"

char _license[] SEC("license") = "GPL";

#define SHARED_DSQ 0
#define BOOST_DSQ 1
#define OVERFLOW_DSQ 2

/* p->scx.weight of nice -20. It does not include the weights of cgroups. */
#define BOOST_WEIGHT 8668

/* Approximate maximum wait of the last task of a queue. Slices shrink if many tasks wait. */
#define MAX_WAIT_NS (8 * NSEC_PER_SEC)
#define MIN_SLICE_NS (1 * NSEC_PER_MSEC)

/* Maximum number of tasks that are served in a round, which is one turn of each queue. */
#define ROUND ((1 << QMAP_NR_QUEUES) - 1)

/* Maximum number of steps of serve_queues(), each of which pops an entry or goes on to the next
 * queue. Entries that remain are served by the next call. */
#define POPS_MAX (2 * ROUND)

const volatile u64 slice_ns = 20 * NSEC_PER_MSEC;
const volatile u32 batch = 1;
const volatile bool boost;
const volatile s32 disallowed_tgid;
const volatile bool no_dump;

/*
 * Failures on request. 0 disables a failure.
 *  - error_after: N raises an error at the Nth enqueue.
 *  - loop_after: N makes the Nth and all later calls of ops.dispatch() dispatch only a sleeping
 *    task.
 *  - stall_user_nth, stall_kernel_nth: N loses the task at every Nth enqueue of a user task, or of
 *    a kernel thread.
 */
const volatile u64 error_after;
const volatile u64 loop_after;
const volatile u64 stall_user_nth;
const volatile u64 stall_kernel_nth;

static u64 nr_enqueued, nr_dispatched, nr_user, nr_kernel;

SCX_PERCPU_COUNTERS(stats, struct qmap_stats);
SCX_PERCPU_COUNTERS(cpus, struct qmap_cpu);

struct entry {
	u64 ticket;
	s32 pid;
};

struct queue {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, QMAP_QUEUE_LEN);
	__type(value, struct entry);
} queue0 SEC(".maps"), queue1 SEC(".maps"), queue2 SEC(".maps"), queue3 SEC(".maps"),
	queue4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, QMAP_NR_QUEUES);
	__type(key, u32);
	__array(values, struct queue);
} queues SEC(".maps") = {
	.values = { &queue0, &queue1, &queue2, &queue3, &queue4 },
};

/* Total number of entries pushed to and popped from each queue. Both count a push that failed. */
u64 nr_pushed[QMAP_NR_QUEUES], nr_popped[QMAP_NR_QUEUES];

/* A ticket: the sequence number of an entry in its queue, and in the low 3 bits the index of the
 * queue. Sequence numbers start at 1, so that no ticket is 0. */
#define TICKET(nr, queue) ((nr) << 3 | (queue))
#define TICKET_NR(ticket) ((ticket) >> 3)
#define TICKET_QUEUE(ticket) ((ticket) & 7)

struct task_ctx {
	u64 ticket; /* 0 while the task does not wait in a queue */
	u64 place; /* like a ticket, but never reset: see due() */
	bool has_idle_cpu; /* ops.select_cpu() has found an idle CPU for the task */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Return the context of a task, NULL if it cannot be created. ops.init_task() creates it. If the
 * creation failed, the next call tries again. */
static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static struct qmap_cpu *cpu_ctx(s32 cpu)
{
	u32 zero = 0;

	return bpf_map_lookup_percpu_elem(&cpus, &zero, cpu);
}

static u32 queue_of_weight(u32 weight)
{
	if (weight <= 25)
		return 0;
	if (weight <= 50)
		return 1;
	if (weight < 200)
		return 2;
	return weight < 400 ? 3 : 4;
}

static u64 nr_waiting_in(u32 queue)
{
	u64 nr = queue < QMAP_NR_QUEUES ? nr_pushed[queue] - nr_popped[queue] : 0;

	return (s64)nr > 0 ? nr : 0;
}

static bool any_waiting(void)
{
	u32 i;

	bpf_for(i, 0, QMAP_NR_QUEUES)
		if (nr_waiting_in(i))
			return true;
	return false;
}

/* Return the slice of the next task. Serving n tasks of queue i takes n / 2^i rounds, in which up
 * to n / 2^i * ROUND tasks run. The sum of this number over all queues is an upper estimate of the
 * number of tasks that run before the last waiting task. If that many slices of slice_ns would take
 * longer than MAX_WAIT_NS, the slice is shorter. */
static u64 next_slice_ns(void)
{
	u64 nr = 0, i;

	bpf_for(i, 0, QMAP_NR_QUEUES)
		nr += nr_waiting_in(i) * ROUND >> i;
	return scx_slice_shared(slice_ns, MAX_WAIT_NS, nr, MIN_SLICE_NS);
}

static bool is_nth(u64 *counter, u64 nth)
{
	return nth && __sync_add_and_fetch(counter, 1) % nth == 0;
}

/* Fail on request. Returns whether to lose the task, in which case the kernel's watchdog ejects the
 * scheduler. No task of the scheduler's own process is lost, so that the process can report the
 * ejection. */
static bool inject_failure(const struct task_struct *p)
{
	bool is_kernel = p->flags & PF_KTHREAD;

	if (error_after && __sync_add_and_fetch(&nr_enqueued, 1) == error_after)
		scx_bpf_error("failing after %llu enqueues as asked", error_after);
	if (scx_task_is_own(p) || !is_nth(is_kernel ? &nr_kernel : &nr_user,
					  is_kernel ? stall_kernel_nth : stall_user_nth))
		return false;
	scx_count(stats, dropped);
	return true;
}

/* Record the place of a task that bypasses its queue: the first place in the queue if @nrs is
 * nr_popped, the last place if @nrs is nr_pushed. */
static void take_place(struct task_struct *p, const u64 *nrs)
{
	struct task_ctx *tctx = task_ctx(p);
	u32 queue = queue_of_weight(p->scx.weight);

	if (tctx)
		tctx->place = TICKET(nrs[queue], queue);
}

static void insert_local(struct task_struct *p, s32 cpu, u64 enq_flags)
{
	scx_count(stats, direct);
	take_place(p, nr_popped);
	scx_bpf_dsq_insert(p, cpu < 0 ? SCX_DSQ_LOCAL : SCX_DSQ_LOCAL_ON | cpu, next_slice_ns(),
			   enq_flags);
}

s32 BPF_STRUCT_OPS(qmap_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	bool is_idle = false;
	s32 cpu;

	/* Tasks in the queues count like tasks in the DSQ: see scx_sync_unless_waiting(). */
	if (any_waiting())
		wake_flags &= ~SCX_WAKE_SYNC;
	cpu = scx_select_cpu(p, prev_cpu, &wake_flags, SHARED_DSQ, &is_idle);
	/* The task is not inserted here, so that failures can be injected in one place. */
	if (tctx)
		tctx->has_idle_cpu = is_idle;
	return cpu;
}

/* Push a task to the queue of its weight. Returns false if the queue is full or locked, or if the
 * task has no context. */
static bool push(struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	u32 queue = queue_of_weight(p->scx.weight), key = queue;
	void *map = bpf_map_lookup_elem(&queues, &key);
	struct entry entry = { .pid = p->pid };

	if (!tctx || !map)
		return false;
	/* Count before the push, so that a CPU that becomes idle meanwhile looks for the task. */
	entry.ticket = TICKET(__sync_add_and_fetch(&nr_pushed[queue], 1), queue);
	tctx->ticket = entry.ticket;
	tctx->place = entry.ticket;
	if (!bpf_map_push_elem(map, &entry, 0))
		return true;
	tctx->ticket = 0;
	__sync_fetch_and_add(&nr_popped[queue], 1);
	return false;
}

/* Insert a task into the local DSQ of an idle CPU, if there is one. Returns whether the task was
 * inserted. */
static bool insert_on_idle_cpu(struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx(p);
	s32 cpu;

	if (tctx && tctx->has_idle_cpu) {
		tctx->has_idle_cpu = false;
		insert_local(p, -1, enq_flags);
		return true;
	}
	/* Search for an idle CPU only if ops.select_cpu() has not done so. It is called only for
	 * wakeups and forks, and not for tasks that are bound to one CPU. */
	if (enq_flags & SCX_ENQ_CPU_SELECTED || !scx_this_cpu_is_online())
		return false;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu < 0)
		return false;
	insert_local(p, cpu, enq_flags);
	scx_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/* Enqueue a task of nice -20: it runs before other tasks, has twice the slice, and preempts on
 * wakeup. */
static void enqueue_boosted(struct task_struct *p, u64 enq_flags)
{
	scx_count(stats, boosted);
	take_place(p, nr_popped);
	scx_bpf_dsq_insert(p, BOOST_DSQ, 2 * next_slice_ns(), enq_flags);
	if (enq_flags & SCX_ENQ_WAKEUP)
		scx_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

static void enqueue_waiting(struct task_struct *p, u64 enq_flags)
{
	/* The task was already dispatched, so it does not wait for another turn. With a slice of 0,
	 * the kernel lets it keep the rest of its slice. */
	if (enq_flags & SCX_ENQ_REENQ) {
		scx_bpf_dsq_insert(p, SHARED_DSQ, 0, enq_flags);
		return;
	}
	if (push(p)) {
		scx_count(stats, enqueued);
		return;
	}
	scx_count(stats, overflow);
	scx_bpf_dsq_insert(p, OVERFLOW_DSQ, next_slice_ns(), enq_flags);
}

/* Enqueue a task with SCX_ENQ_LAST. Either ops.dispatch() has found no other task for this CPU, or
 * core scheduling leaves the CPU idle for a moment. The kernel is about to switch to the idle task,
 * so kick the CPU. */
static void enqueue_last(struct task_struct *p, u64 enq_flags)
{
	insert_local(p, -1, enq_flags);
	scx_kick_cpu(scx_bpf_task_cpu(p), 0);
}

void BPF_STRUCT_OPS(qmap_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (inject_failure(p))
		return;
	if (enq_flags & SCX_ENQ_REENQ)
		scx_count(stats, reenqueued);
	/* Per-CPU kernel threads bypass the queues, because other tasks depend on them. So do tasks
	 * whose migration is disabled, because no other CPU can run them. */
	if (scx_task_is_percpu_kthread(p) || scx_task_is_migration_disabled(p, enq_flags))
		insert_local(p, -1, enq_flags);
	else if (enq_flags & SCX_ENQ_LAST)
		enqueue_last(p, enq_flags);
	else if (insert_on_idle_cpu(p, enq_flags))
		return;
	else if (boost && p->scx.weight >= BOOST_WEIGHT)
		enqueue_boosted(p, enq_flags);
	else
		enqueue_waiting(p, enq_flags);
}

/* Since 7.1 the kernel also calls ops.dequeue() after a dispatch, when the task no longer has a
 * ticket. */
void BPF_STRUCT_OPS(qmap_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx(p);

	if (!tctx || !__sync_lock_test_and_set(&tctx->ticket, 0))
		return;
	scx_count(stats, dequeued);
	if (deq_flags & SCX_DEQ_CORE_SCHED_EXEC)
		scx_count(stats, core_picked);
}

static void next_turn(struct qmap_cpu *c)
{
	c->queue = (c->queue + 1) % QMAP_NR_QUEUES;
	c->left = 1ULL << c->queue;
}

static void count_dispatched(u32 queue)
{
	struct qmap_stats *s = scx_counters(stats);

	if (!s)
		return;
	s->dispatched++;
	if (queue < QMAP_NR_QUEUES)
		(&s->queue0)[queue]++;
}

/* Kick a CPU that @p may use. Call this if @p must not run on this CPU. The CPU is kicked even if
 * it is not idle, because it may be about to become idle. */
static void wake_other_cpu(const struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = bpf_cpumask_any_distribute(p->cpus_ptr);
	scx_kick_cpu(cpu, 0);
}

/* Move the task of an entry to the shared DSQ. Returns false if the task has exited, or has left
 * its queue since the push. */
static bool dispatch_entry(const struct entry *entry, s32 cpu)
{
	struct task_struct *p = bpf_task_from_pid(entry->pid);
	struct task_ctx *tctx = p ? task_ctx(p) : NULL;
	bool is_valid = tctx && __sync_bool_compare_and_swap(&tctx->ticket, entry->ticket, 0);

	if (is_valid) {
		count_dispatched(TICKET_QUEUE(entry->ticket));
		scx_bpf_dsq_insert(p, SHARED_DSQ, next_slice_ns(), 0);
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			wake_other_cpu(p);
	} else {
		scx_count(stats, stale);
	}
	if (p)
		bpf_task_release(p);
	return is_valid;
}

/* Pop an entry of the queue whose turn it is. Returns false if the queue is empty or locked. */
static bool pop(struct qmap_cpu *c, struct entry *entry)
{
	u32 queue = c->queue, key = queue;
	void *map = bpf_map_lookup_elem(&queues, &key);

	if (queue >= QMAP_NR_QUEUES || !map || bpf_map_pop_elem(map, entry))
		return false;
	__sync_fetch_and_add(&nr_popped[queue], 1);
	return true;
}

/* Serve the queues until this CPU has a task. Returns whether it has one. */
static bool serve_queues(s32 cpu, struct qmap_cpu *c)
{
	struct entry entry;
	u32 i;

	c->nr_empty = 0;
	c->nr_moved = 0;
	bpf_for(i, 0, POPS_MAX) {
		if (c->nr_empty > QMAP_NR_QUEUES || !scx_bpf_dispatch_nr_slots())
			break;
		if (!c->left || !pop(c, &entry)) {
			c->nr_empty++;
			next_turn(c);
			continue;
		}
		c->nr_empty = 0;
		if (!dispatch_entry(&entry, cpu))
			continue;
		c->left--;
		if (++c->nr_moved % batch == 0 && scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
			return true;
	}
	return scx_bpf_dsq_move_to_local(SHARED_DSQ, 0);
}

/* Let @prev continue, if it is the turn of its queue and no other task waits there. The kernel
 * enqueues @prev only after ops.dispatch(), which would be too late for this turn. Returns whether
 * @prev continues. */
static bool keep_prev(struct qmap_cpu *c, struct task_struct *prev)
{
	u32 queue;

	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED) || !c->left)
		return false;
	queue = queue_of_weight(prev->scx.weight);
	if (queue != c->queue || nr_waiting_in(queue))
		return false;
	c->left--;
	scx_count(stats, kept);
	take_place(prev, nr_pushed);
	scx_bpf_task_set_slice(prev, next_slice_ns());
	return true;
}

/* From call number loop_after of ops.dispatch() on, insert a sleeping task and return true. The
 * kernel ignores the task and calls ops.dispatch() again, so no CPU makes progress. */
static bool loop_forever(void)
{
	struct task_struct *kthreadd;

	if (!loop_after || __sync_add_and_fetch(&nr_dispatched, 1) < loop_after)
		return false;
	kthreadd = bpf_task_from_pid(2);
	if (!kthreadd)
		return false;
	scx_bpf_dsq_insert(kthreadd, SHARED_DSQ, slice_ns, 0);
	bpf_task_release(kthreadd);
	return true;
}

/* Dispatch a boosted task before all other tasks, but not twice in succession while other tasks
 * wait, so that these do not starve. Returns whether it dispatched one. */
static bool dispatch_boosted(struct qmap_cpu *c)
{
	if (!boost)
		return false;
	c->is_boost_turn = !c->is_boost_turn;
	return c->is_boost_turn && scx_bpf_dsq_move_to_local(BOOST_DSQ, 0);
}

void BPF_STRUCT_OPS(qmap_dispatch, s32 cpu, struct task_struct *prev)
{
	struct qmap_cpu *c = cpu_ctx(cpu);

	scx_learn_trampoline();
	if (!c || loop_forever() || dispatch_boosted(c) || scx_bpf_dsq_move_to_local(SHARED_DSQ, 0))
		return;
	/* In every second call, OVERFLOW_DSQ precedes the queues. */
	c->is_overflow_turn = !c->is_overflow_turn;
	if (c->is_overflow_turn && scx_bpf_dsq_move_to_local(OVERFLOW_DSQ, 0))
		return;
	if (!keep_prev(c, prev) && !serve_queues(cpu, c) &&
	    !scx_bpf_dsq_move_to_local(OVERFLOW_DSQ, 0))
		dispatch_boosted(c);
}

/* Let the CPU look again if a task waits. The task may have just been pushed by a CPU that did not
 * see this CPU as idle. */
void BPF_STRUCT_OPS(qmap_update_idle, s32 cpu, bool is_idle)
{
	if (is_idle && any_waiting())
		scx_kick_cpu(cpu, 0);
}

/* Request a performance level for the CPU: the larger the average weight of its tasks, the
 * higher. */
void BPF_STRUCT_OPS(qmap_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct qmap_cpu *c = cpu_ctx(cpu);

	if (!c)
		return;
	c->avg_weight = (3 * c->avg_weight + p->scx.weight) / 4;
	c->perf = SCX_CPUPERF_ONE * queue_of_weight(c->avg_weight) / (QMAP_NR_QUEUES - 1);
	scx_bpf_cpuperf_set(cpu, c->perf);
}

/* Return how soon a task is due: the distance of its place from the head of its queue, negative if
 * the head has passed the place. The more often the queue is served, the less a positive distance
 * counts, and the more a negative one. */
static s64 due(struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);
	u64 place = tctx ? tctx->place : 0;
	u32 queue = TICKET_QUEUE(place);
	s64 distance;

	if (queue >= QMAP_NR_QUEUES)
		return 0;
	distance = TICKET_NR(place) - nr_popped[queue];
	return distance >= 0 ? distance << (QMAP_NR_QUEUES - 1 - queue) : distance << queue;
}

/* Whether a core runs @a before @b, if they must not run on it at the same time. */
bool BPF_STRUCT_OPS(qmap_core_sched_before, struct task_struct *a, struct task_struct *b)
{
	return due(a) < due(b);
}

/* Used only on kernels where qmap_sched_switch() cannot re-enqueue. */
void BPF_STRUCT_OPS(qmap_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* If a real-time task takes the CPU, enqueue the tasks in the CPU's local DSQ again, so that other
 * CPUs can run them. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(qmap_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (next->prio < MAX_RT_PRIO && scx_can_reenqueue_anywhere() && scx_this_cpu_is_online())
		scx_bpf_reenqueue_local();
	return 0;
}

/* Without this callback and the next one, the kernel would end the scheduler on hotplug. No queue
 * belongs to a CPU, so there are no tasks to move. */
void BPF_STRUCT_OPS(qmap_cpu_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(qmap_cpu_offline, s32 cpu)
{
	struct qmap_cpu *c = cpu_ctx(cpu);

	if (c)
		c->perf = 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(qmap_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	/* The kernel accepts `disallow` only for tasks that exist when the scheduler is loaded. */
	if (disallowed_tgid && p->tgid == disallowed_tgid && !args->fork)
		p->scx.disallow = true;
	task_ctx(p);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(qmap_init)
{
	return scx_bpf_create_dsq(SHARED_DSQ, -1)	 ?:
		       scx_bpf_create_dsq(BOOST_DSQ, -1) ?:
							   scx_bpf_create_dsq(OVERFLOW_DSQ, -1);
}

void BPF_STRUCT_OPS(qmap_exit, struct scx_exit_info *info)
{
	scx_record_exit(info);
}

void BPF_STRUCT_OPS(qmap_dump, struct scx_dump_ctx *dctx)
{
	u32 i;

	if (no_dump)
		return;
	bpf_for(i, 0, QMAP_NR_QUEUES)
		scx_bpf_dump("qmap: queue %u: %llu waiting, %llu popped\n", i, nr_waiting_in(i),
			     nr_popped[i % QMAP_NR_QUEUES]);
	scx_bpf_dump("qmap: shared DSQ: %d, boosted: %d, overflow: %d",
		     scx_bpf_dsq_nr_queued(SHARED_DSQ), scx_bpf_dsq_nr_queued(BOOST_DSQ),
		     scx_bpf_dsq_nr_queued(OVERFLOW_DSQ));
}

void BPF_STRUCT_OPS(qmap_dump_cpu, struct scx_dump_ctx *dctx, s32 cpu, bool idle)
{
	struct qmap_cpu *c = cpu_ctx(cpu);

	if (c && !no_dump && !idle)
		scx_bpf_dump("qmap: turn of queue %llu, %llu left, avg_weight=%llu perf=%llu",
			     c->queue, c->left, c->avg_weight, c->perf);
}

void BPF_STRUCT_OPS(qmap_dump_task, struct scx_dump_ctx *dctx, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx(p);

	if (tctx && !no_dump)
		scx_bpf_dump("qmap: weight=%u queue=%u ticket=%llu", p->scx.weight,
			     queue_of_weight(p->scx.weight), TICKET_NR(tctx->ticket));
}

/* Tasks in the shared DSQ. User space runs qmap_list() before it reads them. */
struct qmap_listed listed[QMAP_LISTED_MAX];
u32 nr_listed;

SEC("syscall")
int qmap_list(void *ctx)
{
	struct task_struct *p;

	nr_listed = 0;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, SHARED_DSQ, 0) {
		u32 i = nr_listed;

		if (i >= QMAP_LISTED_MAX)
			break;
		listed[i].pid = p->pid;
		bpf_probe_read_kernel_str(listed[i].comm, sizeof(listed[i].comm), p->comm);
		nr_listed++;
	}
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int qmap_register(void *ctx)
{
	scx_note_own();
	return 0;
}

SCX_OPS(qmap_ops) = {
	.select_cpu = (void *)qmap_select_cpu,
	.enqueue = (void *)qmap_enqueue,
	.dequeue = (void *)qmap_dequeue,
	.dispatch = (void *)qmap_dispatch,
	.update_idle = (void *)qmap_update_idle,
	.tick = (void *)qmap_tick,
	.core_sched_before = (void *)qmap_core_sched_before,
	.cpu_release = (void *)qmap_cpu_release,
	.cpu_online = (void *)qmap_cpu_online,
	.cpu_offline = (void *)qmap_cpu_offline,
	.init_task = (void *)qmap_init_task,
	.init = (void *)qmap_init,
	.exit = (void *)qmap_exit,
	.dump = (void *)qmap_dump,
	.dump_cpu = (void *)qmap_dump_cpu,
	.dump_task = (void *)qmap_dump_task,
	.name = "qmap",
};
