// SPDX-License-Identifier: GPL-2.0-only
//! A pending task as a policy sees it, and the decision on it.

use std::borrow::Cow;

use crate::intf::{rl_decision, rl_queued, RL_IF_IDLE, RL_PREEMPT_CPU, RL_STANDING};
use crate::intf::{RL_COMM_LEN, RL_CPU_ANY, RL_CTX_WORDS};

/// An infinite slice: the task runs until it sleeps or is preempted (the kernel's
/// `SCX_SLICE_INF`).
pub const SLICE_INF_NS: u64 = u64::MAX;

/// The weight of a task of nice 0 (`p->scx.weight`). The kernel's range is 1 to 10000.
pub const WEIGHT_DFL: u32 = 100;

/// A policy's per-task context. It is sent with each decision and comes back when the task is
/// enqueued again. A new task inherits the context of the task that forks it. All other tasks start
/// with zeros. So a policy needs no memory for tasks that are not enqueued, and need not know when
/// a task exits. A task keeps its parent's context until its first decision, even if it has already
/// run without a decision.
pub type TaskCtx = [u64; RL_CTX_WORDS as usize];

/// A runnable task that needs a decision. `start_ns` and `stop_ns` are `CLOCK_MONOTONIC`, like a
/// policy's `now_ns`.
#[derive(Debug, Clone)]
pub struct QueuedTask {
    /// The thread id.
    pub pid: i32,
    /// The process id.
    pub tgid: i32,
    /// The CPU where the task ran last, or a CPU that the kernel has selected since then.
    pub prev_cpu: u32,
    /// Number of CPUs on which the task may run. If it is 1, the task runs on its only CPU whatever
    /// the decision.
    pub nr_cpus_allowed: u32,
    /// The weight, to which the task's share of CPU time should be proportional: 1 to 10000,
    /// [`WEIGHT_DFL`] for nice 0.
    pub weight: u32,
    /// Whether the task is a kernel thread.
    pub is_kthread: bool,
    /// When the task last started to run; 0 if it has not run since the scheduler was attached.
    pub start_ns: u64,
    /// When the task last stopped running: `start_ns` plus the CPU time of that run, which excludes
    /// interrupts and time taken by the hypervisor; 0 if it has not run since the scheduler was
    /// attached.
    pub stop_ns: u64,
    /// CPU time since the task last slept.
    pub exec_ns: u64,
    /// CPU time since fork.
    pub sum_exec_ns: u64,
    /// The vtime of the last decision; 0 without a decision or without a vtime. With
    /// [`DispatchedTask::advance`], it has advanced since then by the weighted CPU time of the
    /// task.
    pub vtime: u64,
    /// Number of voluntary context switches. Interactive tasks have many.
    pub nvcsw: u64,
    /// `SCX_ENQ_*` flags, with the running kernel's values.
    pub enq_flags: u64,
    /// The task context of the last decision, or inherited from the parent on fork.
    pub ctx: TaskCtx,
    comm: [u8; RL_COMM_LEN as usize],
    enq_seq: u64,
}

impl QueuedTask {
    /// A task of nice 0 that may run on all CPUs and has not run yet. It is for tests of policies:
    /// a test modifies the fields. BPF would ignore a decision on it.
    #[must_use]
    pub fn new(pid: i32) -> Self {
        Self {
            pid,
            tgid: pid,
            prev_cpu: 0,
            nr_cpus_allowed: u32::MAX,
            weight: WEIGHT_DFL,
            is_kthread: false,
            start_ns: 0,
            stop_ns: 0,
            exec_ns: 0,
            sum_exec_ns: 0,
            vtime: 0,
            nvcsw: 0,
            enq_flags: 0,
            ctx: TaskCtx::default(),
            comm: [0; RL_COMM_LEN as usize],
            enq_seq: 0,
        }
    }

    /// The thread's name, which the kernel truncates to 15 bytes.
    #[must_use]
    pub fn comm(&self) -> Cow<'_, str> {
        let end = self.comm.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(&self.comm[..end.unwrap_or(self.comm.len())])
    }

    /// Whether the task may run on one CPU only.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.nr_cpus_allowed == 1
    }

    /// Converts a record of the ring.
    pub(crate) fn from_record(record: &rl_queued) -> Self {
        Self {
            pid: record.pid,
            tgid: record.tgid,
            prev_cpu: record.cpu.unsigned_abs(),
            nr_cpus_allowed: record.nr_cpus_allowed,
            weight: record.weight,
            is_kthread: record.is_kthread != 0,
            start_ns: record.start_ns,
            stop_ns: record.stop_ns,
            exec_ns: record.exec_ns,
            sum_exec_ns: record.sum_exec_ns,
            vtime: record.vtime,
            nvcsw: record.nvcsw,
            enq_flags: record.enq_flags,
            ctx: record.ctx,
            comm: record.comm.map(i8::cast_unsigned),
            enq_seq: record.enq_seq,
        }
    }
}

/// Where a task is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// On the first CPU that becomes free.
    Any,
    /// On this CPU, even if the task has to wait for it. A task that is also to preempt
    /// ([`DispatchedTask::preempt`]) moves to an idle CPU if it has to wait.
    Cpu(u32),
    /// On this CPU if it is still idle, else on any CPU. With
    /// [`Options::low_power`](crate::Options::low_power), also on any CPU if the task may use a
    /// busy CPU. Returned by [`Cpus::pick_idle`].
    ///
    /// [`Cpus::pick_idle`]: crate::Cpus::pick_idle
    IdleCpu(u32),
}

/// A decision on a task. It has no effect if the task was meanwhile enqueued again or dispatched
/// without a decision, or has slept or exited.
#[derive(Debug, Clone)]
#[must_use]
pub struct DispatchedTask {
    pid: i32,
    enq_seq: u64,
    is_pinned: bool,
    target: Target,
    slice_ns: u64,
    vtime: u64,
    ctx: TaskCtx,
    weight: u32,
    preempts: bool,
    stands: bool,
}

impl DispatchedTask {
    /// A decision for any CPU with the default slice, ordered after all earlier decisions. It
    /// leaves the task context unchanged.
    pub fn new(task: &QueuedTask) -> Self {
        Self {
            pid: task.pid,
            enq_seq: task.enq_seq,
            is_pinned: task.is_pinned(),
            target: Target::Any,
            slice_ns: 0,
            vtime: 0,
            ctx: task.ctx,
            weight: 0,
            preempts: false,
            stands: false,
        }
    }

    /// Sets where the task runs. If it may not use the CPU, or the CPU is offline or runs a task of
    /// a higher scheduling class, the target is [`Target::Any`].
    pub fn to(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// Sets the slice. 0 stands for [`Options::slice_ns`](crate::Options::slice_ns), and
    /// [`SLICE_INF_NS`] is infinite. The kernel checks slices at ticks only.
    pub fn slice_ns(mut self, slice_ns: u64) -> Self {
        self.slice_ns = slice_ns;
        self
    }

    /// Sets the vtime, the place in the order of decided tasks: the task with the smallest vtime
    /// runs first. It must be less than 2^62. The default, 0, means after all earlier decisions. A
    /// policy must not use both 0 and other values.
    pub fn vtime(mut self, vtime: u64) -> Self {
        self.vtime = vtime;
        self
    }

    /// Lets the vtime advance while the task runs, by CPU time (ns) * 100 / `weight` (1 to 10000,
    /// like [`QueuedTask::weight`]; 0: no advance). No effect without [`vtime`](Self::vtime). When
    /// the slice of the task expires, the task then continues if it still precedes all tasks
    /// decided for its CPU or for any CPU, but at most 500 ms after it started to run. Without an
    /// advancing vtime, it yields the CPU to such tasks.
    pub fn advance(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// Sets the context that the task has when it is enqueued again.
    pub fn ctx(mut self, ctx: TaskCtx) -> Self {
        self.ctx = ctx;
        self
    }

    /// Preempts the current task of the target CPU, which for a pinned task is its only CPU. The
    /// preempted task resumes later. No effect with [`Target::Any`], unless the task is pinned.
    pub fn preempt(mut self) -> Self {
        self.preempts = true;
        self
    }

    /// Lets the decision stand for later wakeups of the task, for 100 ms or until the task uses up
    /// a slice. The policy does not see these wakeups. At such a wakeup the vtime of the task is
    /// its advanced vtime or [`Policy::vtime_floor`](crate::Policy::vtime_floor), whichever is
    /// later.
    ///
    /// A standing decision is used only while the policy holds no task, and no CPU runs a task
    /// without a standing decision, because the policy might preempt such a task.
    /// [`Cpus::pick_victim`](crate::Cpus::pick_victim) selects no CPU that runs a task with a
    /// standing decision, so use this for exactly the tasks that no other task should preempt. No
    /// effect without [`advance`](Self::advance), or with
    /// [`IdleSelection::FullUser`](crate::IdleSelection::FullUser).
    pub fn standing(mut self) -> Self {
        self.stands = true;
        self
    }

    /// The thread id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// See [`to`](Self::to).
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// See [`slice_ns`](Self::slice_ns).
    #[must_use]
    pub fn get_slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// See [`vtime`](Self::vtime).
    #[must_use]
    pub fn get_vtime(&self) -> u64 {
        self.vtime
    }

    /// See [`ctx`](Self::ctx).
    #[must_use]
    pub fn get_ctx(&self) -> TaskCtx {
        self.ctx
    }

    /// See [`preempt`](Self::preempt).
    #[must_use]
    pub fn preempts(&self) -> bool {
        self.preempts
    }

    /// See [`standing`](Self::standing).
    #[must_use]
    pub fn stands(&self) -> bool {
        self.stands
    }

    /// Whether the task may run on one CPU only.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Converts to a record of the ring.
    pub(crate) fn to_record(&self) -> rl_decision {
        let any = RL_CPU_ANY.cast_signed();
        let (cpu, mut flags) = match self.target {
            Target::Any => (any, 0),
            Target::Cpu(cpu) => (i32::try_from(cpu).unwrap_or(any), 0),
            Target::IdleCpu(cpu) => (i32::try_from(cpu).unwrap_or(any), RL_IF_IDLE),
        };
        if self.preempts {
            flags |= RL_PREEMPT_CPU;
        }
        if self.stands {
            flags |= RL_STANDING;
        }
        rl_decision {
            enq_seq: self.enq_seq,
            slice_ns: self.slice_ns,
            vtime: self.vtime,
            ctx: self.ctx,
            pid: self.pid,
            cpu,
            flags,
            weight: self.weight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_becomes_task_and_decision() {
        let mut record = rl_queued {
            enq_seq: 7,
            pid: 42,
            cpu: 3,
            weight: 100,
            nr_cpus_allowed: 1,
            ctx: [1, 2, 3, u64::MAX],
            ..rl_queued::default()
        };
        record.comm[..3].copy_from_slice(&[b'a', b'b', 0].map(u8::cast_signed));
        let task = QueuedTask::from_record(&record);
        assert_eq!(task.comm(), "ab");
        assert!(task.is_pinned());
        let decision = DispatchedTask::new(&task)
            .to(Target::IdleCpu(3))
            .slice_ns(5)
            .vtime(6)
            .advance(7)
            .preempt()
            .standing()
            .to_record();
        assert_eq!((decision.pid, decision.enq_seq), (42, 7));
        assert_eq!((decision.slice_ns, decision.vtime), (5, 6));
        assert_eq!(decision.weight, 7);
        assert_eq!(decision.cpu, 3);
        assert_eq!(decision.ctx, [1, 2, 3, u64::MAX]);
        assert_eq!(decision.flags, RL_IF_IDLE | RL_PREEMPT_CPU | RL_STANDING);
    }

    #[test]
    fn any_cpu_is_none_that_exists() {
        let decision = DispatchedTask::new(&QueuedTask::new(1)).to_record();
        assert_eq!(decision.cpu, RL_CPU_ANY.cast_signed());
        assert_eq!(decision.flags, 0);
        let far = DispatchedTask::new(&QueuedTask::new(1)).to(Target::Cpu(u32::MAX));
        assert_eq!(far.to_record().cpu, RL_CPU_ANY.cast_signed());
    }
}
