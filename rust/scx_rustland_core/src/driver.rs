// SPDX-License-Identifier: GPL-2.0-only
//! The loop around a policy.

use std::os::fd::BorrowedFd;

use anyhow::Result;
use libbpf_rs::skel::{OpenSkel, Skel};
use scx_utils::bpf::{Opened, Slot};
use scx_utils::exit_info::ExitInfo;
use scx_utils::runner::{Instance, Start, StatsReader, Tick};

use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::{BpfScheduler, Cpus, DispatchedTask, Event, Metrics, Options, Policy, Target};

/// Runs a [`Policy`] as an [`Instance`] of the runner: passes events to the policy, and requests
/// decisions while CPUs are idle, plus one decision in advance.
#[derive(Debug)]
pub struct Driver<'obj, P, S = BpfSkel<'obj>> {
    bpf: BpfScheduler<'obj, S>,
    policy: P,
    cpus: Cpus,
    /// A bit for each CPU, set when a decision for this CPU is sent. Until BPF drains the decision,
    /// shared memory still shows the CPU as idle. The bits are cleared when all decisions are
    /// drained.
    taken: Vec<u64>,
    /// Sequence number of the last decision for [`Target::Any`] on a task that is not pinned; the
    /// first decision sent has number 1. If it exceeds the number of drained decisions, BPF has not
    /// drained that decision yet.
    last_any: u64,
    /// A decision that did not fit into the ring, and is sent later.
    stuck: Option<DispatchedTask>,
    hotplug_seq: u64,
    /// [`BpfScheduler::nr_stalls`] when the policy last had no further decision.
    nr_stalls: u64,
}

impl<'obj, P: Policy> Driver<'obj, P> {
    /// Attaches a scheduler with this policy and this crate's BPF side.
    ///
    /// # Errors
    ///
    /// Those of [`BpfScheduler::attach`].
    pub fn attach(
        start: &Start<'_>,
        options: &Options,
        policy: P,
        slot: &'obj mut Slot,
    ) -> Result<Self> {
        let opened = start.open(BpfSkelBuilder::default(), slot)?;
        Self::attach_opened(start, options, policy, opened)
    }
}

impl<'obj, P: Policy, S: Skel<'obj>> Driver<'obj, P, S> {
    /// Attaches a scheduler with this policy and with a BPF side of its own
    /// ([`BpfScheduler::attach_opened`]).
    ///
    /// # Errors
    ///
    /// Those of [`BpfScheduler::attach_opened`].
    pub fn attach_opened<O>(
        start: &Start<'_>,
        options: &Options,
        policy: P,
        opened: Opened<O>,
    ) -> Result<Self>
    where
        O: OpenSkel<'obj, Output = S>,
    {
        let cpus = Cpus::new(&start.topology()?);
        let mut driver = Self {
            bpf: BpfScheduler::attach_opened(start, options, opened)?,
            policy,
            taken: vec![0; cpus.nr_cpu_ids().div_ceil(64)],
            cpus,
            last_any: 0,
            stuck: None,
            hotplug_seq: 0,
            nr_stalls: 0,
        };
        driver.follow_hotplug();
        Ok(driver)
    }

    /// The skeleton: access to a scheduler's own BPF side.
    #[must_use]
    pub fn skel(&self) -> &S {
        self.bpf.skel()
    }

    /// Reads all pending events. Passes tasks to the policy, and reports CPU hotplug to it.
    fn drain_events(&mut self) {
        self.bpf.wake_up();
        while let Some(event) = self.bpf.dequeue_task() {
            if let Event::Task(task) = event {
                let now_ns = self.bpf.now_ns();
                self.policy.enqueue(task, now_ns);
            }
        }
        if self.hotplug_seq != self.bpf.hotplug_seq() {
            self.follow_hotplug();
        }
    }

    fn follow_hotplug(&mut self) {
        self.hotplug_seq = self.bpf.hotplug_seq();
        let nr_cpu_ids = u32::try_from(self.cpus.nr_cpu_ids()).unwrap_or(u32::MAX);
        for cpu in 0..nr_cpu_ids {
            let is_online = self.bpf.is_online(cpu);
            if is_online == self.cpus.is_online(cpu) {
                continue;
            }
            self.cpus.set_online(cpu, is_online);
            let now_ns = self.bpf.now_ns();
            if is_online {
                self.policy.cpu_online(cpu, now_ns);
            } else {
                self.policy.cpu_offline(cpu, now_ns);
            }
        }
    }

    /// Reads which CPUs are idle.
    fn read_idle(&mut self) {
        let (sent, drained) = self.bpf.progress();
        if sent == drained {
            self.taken.fill(0);
        }
        self.bpf.read_idle(&mut self.cpus, &self.taken);
    }

    /// Whether a CPU is idle, or no task has been decided in advance.
    fn wants_dispatch(&self) -> bool {
        let (_, drained) = self.bpf.progress();
        let has_spare = self.last_any > drained || self.bpf.nr_spare() > 0;
        self.cpus.nr_idle() > 0 || !has_spare
    }

    /// Sends decisions while they are wanted. Returns true if the policy has no further decision
    /// for now, or if the ring is full.
    ///
    /// After a stall, this decides on all tasks at once. BPF has run most of them meanwhile, so
    /// most decisions have no effect. If decisions were sent one by one, those on the remaining
    /// tasks would come too late. While the policy is slow, this also decides on all tasks at once,
    /// because the CPUs will need many decisions before the next call.
    fn decide(&mut self) -> bool {
        if self.policy.is_urgent() {
            self.bpf.read_running(&mut self.cpus);
        }
        let nr_stalls = self.bpf.nr_stalls();
        let is_behind = nr_stalls != self.nr_stalls || self.bpf.is_slow();
        while is_behind || self.wants_dispatch() || self.policy.is_urgent() {
            let now_ns = self.bpf.now_ns();
            let decision = self.stuck.take();
            let decision = decision.or_else(|| self.policy.dispatch(&mut self.cpus, now_ns));
            let Some(decision) = decision else {
                self.nr_stalls = nr_stalls;
                return true;
            };
            if !self.bpf.dispatch_task(&decision) {
                self.stuck = Some(decision);
                return true;
            }
            self.mark_busy(&decision);
        }
        false
    }

    /// Marks the CPU that will run a decided task as busy.
    fn mark_busy(&mut self, decision: &DispatchedTask) {
        match decision.target() {
            Target::Cpu(cpu) | Target::IdleCpu(cpu) => {
                self.cpus.take(cpu);
                let word = usize::try_from(cpu / 64).unwrap_or(usize::MAX);
                if let Some(word) = self.taken.get_mut(word) {
                    *word |= 1 << (cpu % 64);
                }
            }
            // A pinned task runs on its only CPU, so no other CPU becomes busy.
            Target::Any if decision.is_pinned() => {}
            Target::Any => {
                self.last_any = self.bpf.progress().0;
                self.cpus.take_any();
            }
        }
    }

    fn nr_waiting(&self) -> u64 {
        let nr = self.policy.nr_waiting() + usize::from(self.stuck.is_some());
        u64::try_from(nr).unwrap_or(u64::MAX)
    }
}

impl<'obj, P: Policy, S: Skel<'obj>> Instance for Driver<'obj, P, S> {
    type Stats = Metrics;

    fn tick(&mut self) -> Result<Tick> {
        self.drain_events();
        self.read_idle();
        let ran_out = self.decide();
        self.bpf.set_mode(self.policy.mode());
        self.bpf.set_vtime_floor(self.policy.vtime_floor());
        self.bpf.notify_complete(self.nr_waiting());
        if !self.bpf.fall_asleep() || self.hotplug_seq != self.bpf.hotplug_seq() {
            return Ok(Tick::Now);
        }
        // A CPU that became idle before `fall_asleep` did not wake this thread, so check again.
        self.read_idle();
        if self.nr_waiting() > 0 && !ran_out && self.wants_dispatch() {
            return Ok(Tick::Now);
        }
        if self.bpf.is_woken() {
            return Ok(Tick::Now);
        }
        Ok(Tick::Never)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bpf.wake_fd())
    }

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        self.bpf.stats_reader()
    }

    fn exited(&self) -> bool {
        self.bpf.exited()
    }

    fn detach(self) -> ExitInfo {
        self.bpf.detach()
    }
}
