// SPDX-License-Identifier: GPL-2.0-only
//! The BPF side as seen from user space, for authors who write their own loop. The
//! [`Driver`](crate::Driver) is built on this.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{
    AsRawLibbpf as _, MapCore as _, MapHandle, Object, RingBuffer, RingBufferBuilder,
    UserRingBuffer,
};
use scx_utils::bpf::{Attached, Opened, Slot};
use scx_utils::exit_info::ExitInfo;
use scx_utils::runner::{Start, StatsReader};
use scx_utils::zerocopy::{FromBytes as _, IntoBytes as _};

use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::faults::PageFaults;
use crate::intf::{rl_config, rl_decision, rl_find_idle_args, rl_queued, RL_IN_FLIGHT_MAX};
use crate::intf::{RL_IDLE_BUILTIN, RL_IDLE_FULL_USER, RL_IDLE_PREV_CPU};
use crate::memory::Locked;
use crate::metrics::Reader;
use crate::program::SyscallProgram;
use crate::shared::{self, Shared};
use crate::{Cpus, DispatchedTask, IdleSelection, Metrics, Options, QueuedTask};

/// Result of [`BpfScheduler::dequeue_task`].
#[derive(Debug)]
pub enum Event {
    /// A task is runnable and needs a decision.
    Task(QueuedTask),
    /// BPF has woken the policy thread without a task, for example because a CPU became idle.
    Wakeup,
}

/// A loaded and attached BPF side. As long as it exists, the memory of this process is locked. `S`
/// is the skeleton of the BPF side: this crate's, or a skeleton built by `RustLandBuilder`.
pub struct BpfScheduler<'obj, S = BpfSkel<'obj>> {
    bpf: Attached<S>,
    shared: Shared,
    ring: RingBuffer<'static>,
    queued: MapHandle,
    /// Records that were read from the ring but not dequeued yet.
    records: Rc<RefCell<VecDeque<rl_queued>>>,
    decisions: UserRingBuffer,
    find_idle: SyscallProgram,
    reader: Reader,
    faults: PageFaults,
    /// Whether the policy thread has started to dequeue.
    has_begun: bool,
    nr_cpu_ids: u32,
    /// Time of the newest record.
    now_ns: u64,
    /// Declared after all fields that use the memory, so that it is dropped after them.
    _memory: Locked,
    _object: PhantomData<&'obj ()>,
}

impl<S> fmt::Debug for BpfScheduler<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BpfScheduler")
            .field("shared", &self.shared)
            .field("now_ns", &self.now_ns)
            .finish_non_exhaustive()
    }
}

impl<'obj> BpfScheduler<'obj> {
    /// Loads and attaches this crate's BPF side. The calling thread becomes the policy thread.
    ///
    /// # Errors
    ///
    /// If [`Options::name`] is too long, the kernel refuses the BPF side, the CPUs cannot be
    /// determined, memory cannot be locked, page faults cannot be counted, or [`Options::heap`] has
    /// an owner.
    pub fn attach(start: &Start<'_>, options: &Options, slot: &'obj mut Slot) -> Result<Self> {
        let opened = start.open(BpfSkelBuilder::default(), slot)?;
        Self::attach_opened(start, options, opened)
    }
}

impl<'obj, S: Skel<'obj>> BpfScheduler<'obj, S> {
    /// Loads and attaches a BPF side that was built by `RustLandBuilder` and opened by
    /// [`Start::open`]. The calling thread becomes the policy thread.
    ///
    /// # Errors
    ///
    /// Those of [`attach`](BpfScheduler::attach). Also if the object lacks what
    /// `<rustland/rustland.bpf.h>` defines.
    pub fn attach_opened<O>(
        start: &Start<'_>,
        options: &Options,
        mut opened: Opened<O>,
    ) -> Result<Self>
    where
        O: OpenSkel<'obj, Output = S>,
    {
        prepare(start, &mut opened, options)?;
        let loaded = opened.load()?;
        program(loaded.object(), "rl_register_policy")?.run(&mut [])?;
        let find_idle = program(loaded.object(), "rl_find_idle")?;
        let nr_cpu_ids = u32::try_from(start.topology()?.nr_cpu_ids())?;
        let shared = Shared::map(&map(loaded.object(), shared::SECTION)?)?;
        let records = Rc::new(RefCell::new(VecDeque::with_capacity(capacity())));
        let queued = map(loaded.object(), "rl_queued")?;
        let ring = read_into(&queued, Rc::clone(&records))?;
        let decisions = UserRingBuffer::new(&map(loaded.object(), "rl_decisions")?)?;
        let memory = Locked::hold(options.heap)?;
        let faults = PageFaults::of_this_thread()?;
        Ok(Self {
            reader: reader(loaded.object(), faults.clone(), nr_cpu_ids)?,
            bpf: start.attach(loaded)?,
            shared,
            ring,
            queued,
            records,
            decisions,
            find_idle,
            faults,
            has_begun: false,
            nr_cpu_ids,
            now_ns: 0,
            _memory: memory,
            _object: PhantomData,
        })
    }

    /// Tells BPF that the policy thread is awake. Call it before dequeueing.
    pub fn wake_up(&mut self) {
        if !self.has_begun {
            self.has_begun = true;
            // Page faults are counted from here on. If `begin` fails, the count stays 0.
            let _ = self.faults.begin();
        }
        self.shared.wake_up();
    }

    /// The next event for the policy, if there is one. This makes no system call.
    pub fn dequeue_task(&mut self) -> Option<Event> {
        if self.records.borrow().is_empty() {
            self.ring.consume_raw_n(capacity());
        }
        let record = self.records.borrow_mut().pop_front()?;
        self.now_ns = self.now_ns.max(record.now_ns);
        Some(if record.pid == 0 {
            Event::Wakeup
        } else {
            self.shared.set_seen(record.enq_seq);
            Event::Task(QueuedTask::from_record(&record))
        })
    }

    /// Time of the newest event (`CLOCK_MONOTONIC`), 0 before the first event. This does not read a
    /// clock, which would take a system call on some machines.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Sends a decision. Returns whether the ring had room for it. This makes no system call. BPF
    /// drains the decision when a CPU looks for work. At the latest, the CPU of the policy thread
    /// does so when the thread sleeps.
    pub fn dispatch_task(&mut self, task: &DispatchedTask) -> bool {
        let record = task.to_record();
        let Ok(mut sample) = self.decisions.reserve(size_of::<rl_decision>()) else {
            self.shared.note_failed();
            return false;
        };
        sample.copy_from_slice(record.as_bytes());
        let is_sent = self.decisions.submit(sample).is_ok();
        if is_sent {
            self.shared.sent();
        }
        is_sent
    }

    /// Claims an idle CPU within the task's affinity, with a system call. CPUs of fully idle cores
    /// come first, and `prev_cpu` comes first among CPUs of the same kind. `None` if no allowed CPU
    /// is idle, or if the task has exited. Send the task to the CPU with
    /// [`Target::IdleCpu`](crate::Target::IdleCpu). [`Cpus::pick_idle`] makes no system call, but
    /// does not know the affinity.
    ///
    /// # Errors
    ///
    /// If the system call fails, or `prev_cpu` exceeds `i32::MAX`.
    pub fn select_cpu(&self, pid: i32, prev_cpu: u32) -> Result<Option<u32>> {
        let mut args = rl_find_idle_args {
            pid,
            prev_cpu: i32::try_from(prev_cpu)?,
        };
        let cpu = self.find_idle.run(args.as_mut_bytes())?;
        Ok(u32::try_from(cpu).ok())
    }

    /// Tells BPF that the policy has handled all events, and how many tasks it still holds. Call
    /// this function in each iteration: BPF considers the policy stalled if there is work for it,
    /// but no call for 0.5 s (2.5 s while the policy is slow: [`is_slow`](Self::is_slow)).
    pub fn notify_complete(&mut self, nr_pending: u64) {
        self.shared.set_nr_waiting(nr_pending);
        self.shared.cycle();
    }

    /// Call it before waiting for [`wake_fd`](Self::wake_fd). From then on, events wake the thread.
    /// Returns false if there is an event already. The thread must not wait then.
    pub fn fall_asleep(&mut self) -> bool {
        self.shared.fall_asleep();
        let is_calm = self.records.borrow().is_empty() && self.nr_unread_bytes() == 0;
        if !is_calm {
            self.shared.wake_up();
        }
        is_calm
    }

    /// Number of unread bytes in the ring. A record that is still being written counts: it cannot
    /// be read yet, but a wait for the ring would return at once.
    fn nr_unread_bytes(&self) -> u64 {
        // SAFETY: the `ring_buffer` was created with one map, so it has a `ring` 0, which is valid
        // as long as the `ring_buffer` exists.
        unsafe {
            let ring = libbpf_sys::ring_buffer__ring(self.ring.as_libbpf_object().as_ptr(), 0);
            libbpf_sys::ring__avail_data_size(ring)
        }
    }

    /// Whether an event has come since [`fall_asleep`](Self::fall_asleep). The thread must not wait
    /// then.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.shared.is_woken()
    }

    /// Number of decisions sent, and number of decisions drained by BPF.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        self.shared.progress()
    }

    /// Number of decided tasks that wait for the first CPU that becomes free, when BPF last counted
    /// them. If the policy holds tasks, BPF also sets it to 0 when a CPU finds no decided task that
    /// it may run.
    #[must_use]
    pub fn nr_spare(&self) -> u64 {
        self.shared.spare()
    }

    /// How often the policy stalled. During a stall, BPF dispatches tasks without decisions. So
    /// when this number has changed, most of the tasks that the policy still holds have already
    /// run. Decide on all of them at once, because otherwise the decisions on the tasks that still
    /// wait would be late as well.
    #[must_use]
    pub fn nr_stalls(&self) -> u64 {
        self.shared.stalls()
    }

    /// Whether the policy is slow: within the last minute it stalled, but answered within 2.5 s.
    /// If so, decide on all tasks in each iteration. If a slow policy decided on one task at a
    /// time, CPUs would wait for long.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.shared.has_been_slow()
    }

    /// A number that changes with each CPU hotplug event.
    #[must_use]
    pub fn hotplug_seq(&self) -> u64 {
        self.shared.hotplug()
    }

    /// Whether a CPU is online.
    #[must_use]
    pub fn is_online(&self, cpu: u32) -> bool {
        cpu < self.nr_cpu_ids && self.shared.is_online(cpu)
    }

    /// Reads which CPUs are idle, except those in `taken`.
    pub(crate) fn read_idle(&self, cpus: &mut Cpus, taken: &[u64]) {
        self.shared.read_idle(cpus, taken);
    }

    pub(crate) fn set_mode(&self, mode: u64) {
        self.shared.set_mode(mode);
    }

    /// Publishes the minimum vtime of a task that wakes up with a standing decision
    /// ([`DispatchedTask::standing`]).
    pub(crate) fn set_vtime_floor(&self, vtime: u64) {
        self.shared.set_vtime_floor(vtime);
    }

    /// Reads the vtime of each CPU's current task.
    pub(crate) fn read_running(&self, cpus: &mut Cpus) {
        self.shared.read_running(cpus);
    }

    /// A file descriptor that becomes readable when there is an event.
    #[must_use]
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.queued.as_fd()
    }

    /// A reader of the statistics, for another thread.
    ///
    /// # Errors
    ///
    /// If a file descriptor cannot be duplicated, or the shared memory cannot be mapped.
    pub fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        let reader = reader(self.bpf.object(), self.faults.clone(), self.nr_cpu_ids)?;
        Ok(Box::new(move || reader.read()))
    }

    /// The skeleton: access to a scheduler's own BPF side.
    #[must_use]
    pub fn skel(&self) -> &S {
        &self.bpf
    }

    /// Whether the kernel has ended the scheduler. This makes no system call.
    #[must_use]
    pub fn exited(&self) -> bool {
        self.bpf.exited()
    }

    /// Detaches the scheduler, logs its statistics, and returns how it ended.
    #[must_use]
    pub fn detach(self) -> ExitInfo {
        let info = self.bpf.detach();
        match self.reader.read() {
            Ok(metrics) => report(&metrics),
            Err(error) => tracing::warn!("no statistics: {error:#}"),
        }
        info
    }
}

fn report(metrics: &Metrics) {
    let troubles = metrics.troubles();
    if troubles.is_empty() {
        tracing::info!("healthy: {metrics}");
    } else {
        tracing::warn!("{}: {metrics}", troubles.join(", "));
    }
}

/// Maximum number of records read at once.
fn capacity() -> usize {
    RL_IN_FLIGHT_MAX as usize
}

fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.with_context(|| format!("the BPF side has no map {name}"))?;
    Ok(MapHandle::try_from(&map)?)
}

fn program(object: &Object, name: &str) -> Result<SyscallProgram> {
    let program = object.progs().find(|program| program.name() == name);
    SyscallProgram::new(&program.with_context(|| format!("the BPF side has no program {name}"))?)
}

fn prepare<'obj, O: OpenSkel<'obj>>(
    start: &Start<'_>,
    opened: &mut Opened<O>,
    options: &Options,
) -> Result<()> {
    let btf = start.kernel_btf()?;
    opened.set_ops_name(options.name)?;
    // The kernel disables its own idle selection for a scheduler with ops.update_idle(), unless
    // this flag is set. The BPF side has that callback, and also uses the kernel's selection, for
    // example in select_cpu_for_own().
    opened.set_ops_flag(btf, "SCX_OPS_KEEP_BUILTIN_IDLE")?;
    opened.reenqueue_on_cpu_release(btf)?;
    opened.enqueue_migration_disabled(btf)?;
    let config = rl_config {
        slice_ns: options.slice_ns,
        idle_selection: match options.idle {
            IdleSelection::FullUser => RL_IDLE_FULL_USER,
            IdleSelection::PrevCpu => RL_IDLE_PREV_CPU,
            IdleSelection::Builtin => RL_IDLE_BUILTIN,
        },
        low_power: options.low_power.into(),
    };
    opened.set_section(CONFIG, &config)
}

/// The section that holds `struct rl_config` only.
const CONFIG: &str = ".rodata.rl_config";

fn read_into(
    map: &MapHandle,
    records: Rc<RefCell<VecDeque<rl_queued>>>,
) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(map, move |bytes: &[u8]| {
        // All records that BPF writes have this length.
        if let Ok(record) = rl_queued::read_from_bytes(bytes) {
            records.borrow_mut().push_back(record);
        }
        0
    })?;
    Ok(builder.build()?)
}

fn reader(object: &Object, faults: PageFaults, nr_cpu_ids: u32) -> Result<Reader> {
    Reader::new(
        map(object, "rl_counters")?,
        &map(object, shared::SECTION)?,
        program(object, "rl_nr_pending")?,
        faults,
        nr_cpu_ids,
    )
}
