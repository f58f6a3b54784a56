// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs as a policy sees them: which are idle, which share a core, and what they run.

use scx_utils::topology::Topology;

use crate::{QueuedTask, Target};

/// The state of the CPUs when it was last read from shared memory, which needs no system call. A
/// CPU that has been given a task since then no longer counts as idle.
#[derive(Debug, Clone)]
pub struct Cpus {
    /// A bit for each CPU.
    idle: Vec<u64>,
    online: Vec<u64>,
    /// The core of each CPU; `None`: the CPU counts as a core of its own, because it was offline at
    /// the start or because of [`of_single_threads`](Self::of_single_threads).
    core: Vec<Option<usize>>,
    /// The CPUs of each core: (index of a word of `idle`, bits of this word).
    threads: Vec<Vec<(usize, u64)>>,
    /// The vtime of each CPU's current task at the start of its slice, as last read; 0: the CPU is
    /// idle, or its task has no vtime or must not be preempted.
    running: Vec<u64>,
    /// The CPU of the policy thread.
    own_cpu: u32,
}

impl Cpus {
    /// All possible CPUs, none of them idle or online.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let nr_cpu_ids = topology.nr_cpu_ids();
        let core_of = |id| topology.cpu(id).map(|cpu| cpu.core);
        let threads_of = |core: &scx_utils::topology::Core| {
            let words = core.span().words().iter().copied().enumerate();
            words.filter(|(_, bits)| *bits != 0).collect()
        };
        Self {
            core: (0..nr_cpu_ids).map(core_of).collect(),
            threads: topology.cores().iter().map(threads_of).collect(),
            ..Self::of_single_threads(nr_cpu_ids)
        }
    }

    /// CPUs that share no cores, for tests of policies.
    #[must_use]
    pub fn of_single_threads(nr_cpu_ids: usize) -> Self {
        let words = vec![0; nr_cpu_ids.div_ceil(64)];
        Self {
            idle: words.clone(),
            online: words,
            core: vec![None; nr_cpu_ids],
            threads: Vec::new(),
            running: vec![0; nr_cpu_ids],
            own_cpu: u32::MAX,
        }
    }

    /// Number of CPU ids. All ids are smaller.
    #[must_use]
    pub fn nr_cpu_ids(&self) -> usize {
        self.core.len()
    }

    /// Number of idle CPUs.
    #[must_use]
    pub fn nr_idle(&self) -> u32 {
        self.idle.iter().map(|word| word.count_ones()).sum()
    }

    /// Number of online CPUs.
    #[must_use]
    pub fn nr_online(&self) -> u32 {
        self.online.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether a CPU is idle.
    #[must_use]
    pub fn is_idle(&self, cpu: u32) -> bool {
        is_set(&self.idle, cpu)
    }

    /// Whether a CPU is online.
    #[must_use]
    pub fn is_online(&self, cpu: u32) -> bool {
        is_set(&self.online, cpu)
    }

    /// Claims an idle CPU for the task, or returns [`Target::Any`] if there is none. If the task
    /// has a restricted affinity, only its previous CPU is considered, because the policy does not
    /// know the affinity. For [`Target::Any`], BPF finds a CPU.
    ///
    /// The order of preference is the kernel's, except that caches and nodes are ignored: the
    /// previous CPU if its whole core is idle, a CPU of a fully idle core, the previous CPU, any
    /// idle CPU.
    pub fn pick_idle(&mut self, task: &QueuedTask) -> Target {
        let found = self.find_idle(task);
        found.map_or(Target::Any, |cpu| {
            self.take(cpu);
            Target::IdleCpu(cpu)
        })
    }

    fn find_idle(&self, task: &QueuedTask) -> Option<u32> {
        let prev = Some(task.prev_cpu).filter(|cpu| self.is_idle(*cpu));
        if prev.is_some_and(|cpu| self.is_core_idle(cpu)) {
            return prev;
        }
        if self.is_bound(task) {
            return prev;
        }
        self.first_idle(|cpu| self.is_core_idle(cpu))
            .or(prev)
            .or_else(|| self.first_idle(|_| true))
    }

    /// An estimate of the number of CPUs that a task with unrestricted affinity may use: the number
    /// of CPUs that were online at the start, or that are online now, whichever is greater.
    fn nr_cpus_possible(&self) -> usize {
        let known = self.core.iter().filter(|core| core.is_some()).count();
        let online = usize::try_from(self.nr_online()).unwrap_or(usize::MAX);
        known.max(online)
    }

    fn is_core_idle(&self, cpu: u32) -> bool {
        let core = usize::try_from(cpu)
            .ok()
            .and_then(|cpu| *self.core.get(cpu)?);
        let threads = core.and_then(|core| self.threads.get(core));
        threads.is_none_or(|threads| {
            // An offline sibling is not marked as idle, but it is not busy either.
            let is_busy =
                |(word, bits): &(usize, u64)| bits & self.online[*word] & !self.idle[*word] != 0;
            !threads.iter().any(is_busy)
        })
    }

    fn first_idle(&self, good: impl Fn(u32) -> bool) -> Option<u32> {
        let bases = (0_u32..).step_by(64);
        self.idle.iter().zip(bases).find_map(|(word, base)| {
            let mut left = *word;
            while left != 0 {
                let cpu = base + left.trailing_zeros();
                if good(cpu) {
                    return Some(cpu);
                }
                left &= left - 1;
            }
            None
        })
    }

    /// Selects the CPU on which `task`, which is to run with `vtime`, should preempt the current
    /// task: the CPU whose current task has the greatest vtime. `None` if no vtime is greater than
    /// `vtime + margin`. The selected CPU then counts as running `task`. `vtime` and `margin` are
    /// in the unit of [`DispatchedTask::vtime`](crate::DispatchedTask::vtime).
    ///
    /// The CPU of the policy thread is preferred, because the policy thread has already preempted
    /// the task there. It is selected if the vtime of its task exceeds `vtime + margin` by at least
    /// half as much as the greatest vtime does.
    ///
    /// If `task` has a restricted affinity, only its previous CPU is considered.
    pub fn pick_victim(&mut self, task: &QueuedTask, vtime: u64, margin: u64) -> Option<u32> {
        let limit = vtime.saturating_add(margin);
        let cpu = if self.is_bound(task) {
            Some(task.prev_cpu).filter(|cpu| self.behind(*cpu, limit) > 0)
        } else {
            self.furthest_behind(limit)
        }?;
        if let Some(running) = usize::try_from(cpu)
            .ok()
            .and_then(|cpu| self.running.get_mut(cpu))
        {
            *running = vtime;
        }
        Some(cpu)
    }

    /// The CPU whose current task has the greatest vtime. The policy thread's CPU is preferred if
    /// the vtime of its task exceeds `limit` by at least half as much as the greatest vtime does.
    /// `None` if no vtime exceeds `limit`.
    fn furthest_behind(&self, limit: u64) -> Option<u32> {
        let cpus = (0..u32::try_from(self.running.len()).unwrap_or(u32::MAX)).rev();
        let furthest = cpus.max_by_key(|cpu| self.behind(*cpu, limit))?;
        let most = self.behind(furthest, limit);
        if most == 0 {
            return None;
        }
        let is_own_as_good = self.behind(self.own_cpu, limit) >= most.div_ceil(2);
        Some(if is_own_as_good {
            self.own_cpu
        } else {
            furthest
        })
    }

    /// By how much the vtime of the CPU's task exceeds `limit`; 0 if it is at most `limit`, or if
    /// the CPU has no task that may be preempted.
    fn behind(&self, cpu: u32, limit: u64) -> u64 {
        if self.is_online(cpu) {
            self.running_vtime(cpu).saturating_sub(limit)
        } else {
            0
        }
    }

    fn running_vtime(&self, cpu: u32) -> u64 {
        let vtime = usize::try_from(cpu)
            .ok()
            .and_then(|cpu| self.running.get(cpu));
        vtime.copied().unwrap_or(0)
    }

    /// Whether the task has a restricted affinity: some CPUs are not allowed.
    fn is_bound(&self, task: &QueuedTask) -> bool {
        usize::try_from(task.nr_cpus_allowed).is_ok_and(|nr| nr < self.nr_cpus_possible())
    }

    /// Sets the CPU of the policy thread, and the vtime of each CPU's current task (0: not
    /// preemptible), for tests of policies and for the driver.
    pub fn note_running(&mut self, own_cpu: u32, vtime_of: impl Fn(usize) -> u64) {
        self.own_cpu = own_cpu;
        for (cpu, vtime) in self.running.iter_mut().enumerate() {
            *vtime = vtime_of(cpu);
        }
    }

    /// Marks the CPU as busy. Returns whether it was idle.
    pub fn take(&mut self, cpu: u32) -> bool {
        let was_idle = self.is_idle(cpu);
        set(&mut self.idle, cpu, false);
        was_idle
    }

    /// Marks an arbitrary idle CPU as busy, if there is one.
    pub(crate) fn take_any(&mut self) {
        if let Some(cpu) = self.first_idle(|_| true) {
            self.take(cpu);
        }
    }

    /// Sets whether a CPU is idle, for tests of policies and for the driver.
    pub fn set_idle(&mut self, cpu: u32, is_idle: bool) {
        set(&mut self.idle, cpu, is_idle);
    }

    /// Sets whether a CPU is online, for tests of policies and for the driver.
    pub fn set_online(&mut self, cpu: u32, is_online: bool) {
        set(&mut self.online, cpu, is_online);
    }

    /// The bitmap of idle CPUs, for updates.
    pub(crate) fn idle_words_mut(&mut self) -> &mut [u64] {
        &mut self.idle
    }
}

fn place(cpu: u32) -> (usize, u64) {
    (
        usize::try_from(cpu / 64).unwrap_or(usize::MAX),
        1 << (cpu % 64),
    )
}

fn is_set(words: &[u64], cpu: u32) -> bool {
    let (word, bit) = place(cpu);
    words.get(word).is_some_and(|word| word & bit != 0)
}

fn set(words: &mut [u64], cpu: u32, value: bool) {
    let (word, bit) = place(cpu);
    if let Some(word) = words.get_mut(word) {
        *word = if value { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores with two threads each: 0 and 2, 1 and 3.
    fn two_cores(idle: u64) -> Cpus {
        Cpus {
            idle: vec![idle],
            online: vec![0b1111],
            core: vec![Some(0), Some(1), Some(0), Some(1)],
            threads: vec![vec![(0, 0b0101)], vec![(0, 0b1010)]],
            running: vec![0; 4],
            own_cpu: 0,
        }
    }

    fn task(prev_cpu: u32) -> QueuedTask {
        let mut task = QueuedTask::new(1);
        task.prev_cpu = prev_cpu;
        task
    }

    #[test]
    fn last_cpu_of_an_idle_core_is_first() {
        assert_eq!(two_cores(0b1111).pick_idle(&task(3)), Target::IdleCpu(3));
    }

    #[test]
    fn idle_core_precedes_the_last_cpu() {
        assert_eq!(two_cores(0b1110).pick_idle(&task(2)), Target::IdleCpu(1));
    }

    #[test]
    fn core_with_an_offline_thread_is_idle_if_the_other_one_is() {
        let mut cpus = two_cores(0b1001);
        assert_eq!(cpus.clone().pick_idle(&task(0)), Target::IdleCpu(0));
        cpus.set_online(1, false);
        assert_eq!(cpus.pick_idle(&task(0)), Target::IdleCpu(3));
    }

    #[test]
    fn last_cpu_precedes_another_thread() {
        assert_eq!(two_cores(0b1100).pick_idle(&task(3)), Target::IdleCpu(3));
    }

    #[test]
    fn any_cpu_is_better_than_none() {
        assert_eq!(two_cores(0b1000).pick_idle(&task(0)), Target::IdleCpu(3));
        assert_eq!(two_cores(0).pick_idle(&task(0)), Target::Any);
    }

    #[test]
    fn task_that_may_not_run_everywhere_goes_to_its_last_cpu_or_any() {
        let mut pinned = task(0);
        pinned.nr_cpus_allowed = 2;
        assert_eq!(two_cores(0b1111).pick_idle(&pinned), Target::IdleCpu(0));
        assert_eq!(two_cores(0b1110).pick_idle(&pinned), Target::Any);
    }

    #[test]
    fn own_cpu_is_the_victim_before_the_latest_and_each_is_taken_once() {
        let mut cpus = two_cores(0);
        cpus.note_running(2, |cpu| [50, 0, 40, 45][cpu]);
        let mut victim = || cpus.pick_victim(&task(1), 10, 5);
        let victims = [victim(), victim(), victim(), victim()];
        assert_eq!(victims, [Some(2), Some(0), Some(3), None]);
    }

    #[test]
    fn own_cpu_is_spared_if_its_task_is_nearly_as_urgent() {
        let mut cpus = two_cores(0);
        cpus.note_running(2, |cpu| [50, 0, 30, 40][cpu]);
        assert_eq!(cpus.pick_victim(&task(1), 10, 5), Some(0));
    }

    #[test]
    fn victim_is_later_by_more_than_the_margin_and_online() {
        let mut cpus = two_cores(0);
        cpus.note_running(u32::MAX, |_| 15);
        assert_eq!(cpus.pick_victim(&task(0), 10, 5), None);
        cpus.note_running(u32::MAX, |cpu| if cpu == 3 { 17 } else { 16 });
        cpus.set_online(3, false);
        assert_eq!(cpus.pick_victim(&task(0), 10, 5), Some(0));
    }

    #[test]
    fn task_that_may_not_run_everywhere_preempts_on_its_last_cpu() {
        let mut cpus = two_cores(0);
        cpus.note_running(0, |_| 50);
        let mut bound = task(3);
        bound.nr_cpus_allowed = 2;
        assert_eq!(cpus.pick_victim(&bound, 10, 5), Some(3));
        assert_eq!(cpus.pick_victim(&bound, 10, 5), None);
    }

    #[test]
    fn no_cpu_is_claimed_twice() {
        let mut cpus = two_cores(0b1111);
        let mut given: Vec<_> = (0..5).map(|_| cpus.pick_idle(&task(0))).collect();
        assert_eq!(given.pop(), Some(Target::Any));
        given.sort_by_key(|target| format!("{target:?}"));
        assert_eq!(given, [0, 1, 2, 3].map(Target::IdleCpu));
    }

    #[test]
    fn ids_beyond_all_are_neither_idle_nor_an_error() {
        let mut cpus = Cpus::of_single_threads(65);
        cpus.set_idle(1 << 20, true);
        assert!(!cpus.is_idle(1 << 20));
        cpus.set_idle(64, true);
        assert_eq!(cpus.pick_idle(&task(1 << 20)), Target::IdleCpu(64));
    }
}
