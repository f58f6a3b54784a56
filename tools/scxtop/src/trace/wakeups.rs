// SPDX-License-Identifier: GPL-2.0-only
//! Follows wakeups from the waker to the moment when the wakee runs.

use std::collections::{HashMap, HashSet};

use crate::bpf::top_event;

use super::event::{kind, Kind};

/// A wakeup whose wakee begins to run. `K` identifies a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Woken<K> {
    /// The record WAKING, or FORK of a new task; `None` if there is none.
    pub waker: Option<K>,
    /// From WAKEUP to SWITCH.
    pub latency_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending<K> {
    waker: Option<K>,
    time_ns: u64,
}

/// Follows wakeups. It needs the records in the order of their times.
#[derive(Debug)]
pub(super) struct Wakeups<K> {
    /// WAKING and FORK of tasks that are not runnable yet.
    wakers: HashMap<u32, K>,
    /// WAKEUP of tasks that do not run yet.
    pending: HashMap<u32, Pending<K>>,
    running: HashSet<u32>,
}

impl<K> Default for Wakeups<K> {
    fn default() -> Self {
        Self {
            wakers: HashMap::new(),
            pending: HashMap::new(),
            running: HashSet::new(),
        }
    }
}

impl<K: Copy> Wakeups<K> {
    /// Takes the next record, which `key` identifies. Returns the wakeup of the task that begins to
    /// run with this record.
    pub(super) fn take(&mut self, key: K, event: &top_event) -> Option<Woken<K>> {
        let pid = event.task.pid;
        match kind(event)? {
            Kind::Waking | Kind::Fork => {
                self.wakers.insert(pid, key);
            }
            Kind::Wakeup => {
                let waker = self.wakers.remove(&pid);
                // A task that is woken on its way to sleep goes on running.
                if !self.running.contains(&pid) {
                    let time_ns = event.time_ns;
                    self.pending.insert(pid, Pending { waker, time_ns });
                }
            }
            Kind::Switch => return self.switch(event),
            Kind::Exit => {
                self.wakers.remove(&pid);
            }
            Kind::Migrate | Kind::Exec | Kind::Insert => {}
        }
        None
    }

    fn switch(&mut self, event: &top_event) -> Option<Woken<K>> {
        self.running.remove(&event.task.pid);
        // If prev began to run before the first record, it was not in `running`, and a wakeup while
        // it ran was added to `pending`: discard that wakeup.
        self.pending.remove(&event.task.pid);
        let next = event.other.pid;
        // All idle tasks have the pid 0.
        if next == 0 {
            return None;
        }
        self.running.insert(next);
        let pending = self.pending.remove(&next)?;
        Some(Woken {
            waker: pending.waker,
            latency_ns: event.time_ns.saturating_sub(pending.time_ns),
        })
    }

    /// Forgets all wakeups. To be called where records are missing, because tasks may have run
    /// unseen there.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{example, switch, wakeup, waking};
    use super::*;
    use crate::bpf::top_event;

    fn latencies(events: &[top_event]) -> Vec<(usize, Woken<usize>)> {
        let mut wakeups = Wakeups::default();
        let taken = events.iter().enumerate();
        taken
            .filter_map(|(key, event)| Some((key, wakeups.take(key, event)?)))
            .collect()
    }

    #[test]
    fn latency_is_from_runnable_to_running() {
        let events = [
            waking(100, 0, 7, 9),
            wakeup(150, 7),
            switch(400, 0, 9, 1, 7),
        ];
        let woken = Woken {
            waker: Some(0),
            latency_ns: 250,
        };
        assert_eq!(latencies(&events), [(2, woken)]);
        assert_eq!(latencies(&events[1..])[0].1.waker, None);
        assert_eq!(latencies(&events[2..]), []);
    }

    #[test]
    fn new_tasks_are_woken_by_their_parent() {
        let all = example();
        let woken = latencies(&all);
        let new = woken.iter().find(|(key, _)| all[*key].other.pid == 12);
        let waker = new.unwrap().1.waker.unwrap();
        assert_eq!(kind(&all[waker]), Some(Kind::Fork));
    }

    #[test]
    fn a_wakeup_of_a_running_task_has_no_latency() {
        let events = [
            switch(100, 0, 0, 0, 7),
            waking(200, 1, 7, 9),
            wakeup(210, 7),
            switch(300, 0, 7, 0, 9),
            switch(400, 0, 9, 0, 7),
        ];
        assert_eq!(latencies(&events), []);
        // The same without the record of the switch to the task.
        assert_eq!(latencies(&events[1..]), []);
    }

    #[test]
    fn a_gap_ends_all_wakeups() {
        let mut wakeups = Wakeups::default();
        assert_eq!(wakeups.take(0, &wakeup(100, 7)), None);
        wakeups.forget();
        assert_eq!(wakeups.take(1, &switch(900, 0, 9, 1, 7)), None);
    }
}
