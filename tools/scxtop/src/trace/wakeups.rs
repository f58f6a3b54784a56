// SPDX-License-Identifier: GPL-2.0-only
//! Follows wakeups from the waker to the moment when the wakee runs.

use std::collections::HashMap;

use crate::bpf::top_event;

use super::event::{kind, Kind};

/// A wakeup whose wakee begins to run. `K` identifies a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Woken<K> {
    /// The record WAKING, or FORK of a new task; `None` if there is none.
    pub waker: Option<K>,
    /// Time from WAKING, or from WAKEUP_NEW of a new task, to the SWITCH to the wakee. If the wakee
    /// was still on its way to sleep when it was woken, the time begins when it is switched out.
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
    /// FORK of tasks that are not runnable yet.
    parents: HashMap<u32, K>,
    /// Wakeups since the task was last switched in.
    pending: HashMap<u32, Pending<K>>,
}

impl<K> Default for Wakeups<K> {
    fn default() -> Self {
        Self {
            parents: HashMap::new(),
            pending: HashMap::new(),
        }
    }
}

impl<K: Copy> Wakeups<K> {
    /// Takes the next record, which `key` identifies. Returns the wakeup of the task that begins to
    /// run with this record.
    pub(super) fn take(&mut self, key: K, event: &top_event) -> Option<Woken<K>> {
        let pid = event.task.pid;
        let time_ns = event.time_ns;
        match kind(event)? {
            Kind::Fork => {
                self.parents.insert(pid, key);
            }
            Kind::WakeupNew => {
                let waker = self.parents.remove(&pid);
                self.pending.insert(pid, Pending { waker, time_ns });
            }
            Kind::Waking => {
                let waker = Some(key);
                self.pending.insert(pid, Pending { waker, time_ns });
            }
            Kind::Switch => return self.switch(event),
            Kind::Exit => {
                self.parents.remove(&pid);
            }
            Kind::Migrate | Kind::Exec | Kind::Insert => {}
        }
        None
    }

    fn switch(&mut self, event: &top_event) -> Option<Woken<K>> {
        let prev = event.task.pid;
        if event.state == 0 {
            // prev is still runnable. If it was woken while it ran, that wakeup has no latency.
            self.pending.remove(&prev);
        } else if let Some(pending) = self.pending.get_mut(&prev) {
            // prev was woken on its way to sleep, or earlier. If it ran on after an earlier wakeup,
            // another wakeup follows before prev runs again, and replaces `pending`.
            pending.time_ns = event.time_ns;
        }
        let next = event.other.pid;
        // All idle tasks have the pid 0.
        if next == 0 {
            return None;
        }
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
    use super::super::synthetic::{example, switch, waking};
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
    fn latency_is_from_the_wakeup_until_the_task_runs() {
        let events = [waking(150, 0, 7, 9), switch(400, 0, 9, 1, 7)];
        let woken = Woken {
            waker: Some(0),
            latency_ns: 250,
        };
        assert_eq!(latencies(&events), [(1, woken)]);
        assert_eq!(latencies(&events[1..]), []);
    }

    #[test]
    fn new_tasks_are_woken_by_their_parent() {
        let all = example();
        let woken = latencies(&all);
        let new = woken.iter().find(|(key, _)| all[*key].other.pid == 12);
        let waker = new.unwrap().1.waker.unwrap();
        assert_eq!(kind(&all[waker]), Some(Kind::Fork));
        // The same without the record of the fork.
        let (key, woken) = latencies(&all[waker + 1..])[0];
        assert_eq!(all[waker + 1 + key].other.pid, 12);
        assert_eq!(woken.waker, None);
    }

    #[test]
    fn a_wakeup_of_a_running_task_has_no_latency() {
        let events = [
            switch(100, 0, 0, 0, 7),
            waking(200, 1, 7, 9),
            switch(300, 0, 7, 0, 9),
            switch(400, 0, 9, 0, 7),
        ];
        assert_eq!(latencies(&events), []);
        // The same without the record of the switch to the task.
        assert_eq!(latencies(&events[1..]), []);
    }

    #[test]
    fn a_task_may_be_woken_on_its_way_to_sleep() {
        let events = [
            switch(100, 0, 0, 0, 7),
            waking(200, 1, 7, 9),
            switch(300, 0, 7, 1, 8),
            switch(450, 1, 9, 0, 7),
        ];
        let woken = Woken {
            waker: Some(1),
            latency_ns: 150,
        };
        assert_eq!(latencies(&events), [(3, woken)]);
    }

    #[test]
    fn a_gap_ends_all_wakeups() {
        let mut wakeups = Wakeups::default();
        assert_eq!(wakeups.take(0, &waking(100, 0, 7, 9)), None);
        wakeups.forget();
        assert_eq!(wakeups.take(1, &switch(900, 0, 9, 1, 7)), None);
    }
}
