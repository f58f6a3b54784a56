// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's counters of sched_ext events.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::Event;

/// Reads the counters.
pub(crate) struct Events {
    path: PathBuf,
    before: Vec<Event>,
}

impl Events {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            path: root.join("sys/kernel/sched_ext/root/events"),
            before: Vec::new(),
        }
    }

    /// All counters, in the kernel's order. Empty without a scheduler, and before Linux 6.15.
    pub(crate) fn read(&mut self) -> Vec<Event> {
        let mut events = parse(&fs::read_to_string(&self.path).unwrap_or_default());
        for event in &mut events {
            let before = self.before.iter().find(|before| before.name == event.name);
            // The counters of a new scheduler start at 0.
            let total = before.map_or(0, |before| before.total);
            let total = if total > event.total { 0 } else { total };
            event.delta = event.total - total;
        }
        self.before.clone_from(&events);
        events
    }
}

/// Parses lines of a name and a number. Skips other lines.
fn parse(text: &str) -> Vec<Event> {
    let events = text.lines().filter_map(|line| {
        let (name, total) = line.split_once(' ')?;
        Some(Event {
            name: name.strip_prefix("SCX_EV_").unwrap_or(name).to_owned(),
            total: total.trim().parse().ok()?,
            delta: 0,
        })
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_since_the_last_reading() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sys/kernel/sched_ext/root");
        fs::create_dir_all(&path).unwrap();
        let mut events = Events::new(root.path());
        assert_eq!(events.read(), []);
        let mut read = |text: &str| {
            fs::write(path.join("events"), text).unwrap();
            let events = events.read();
            let events = events
                .iter()
                .map(|of| (of.name.clone(), of.total, of.delta));
            events.collect::<Vec<_>>()
        };
        assert_eq!(
            read("SCX_EV_A 5\nbad\nB 1\n"),
            [("A".into(), 5, 5), ("B".into(), 1, 1)]
        );
        assert_eq!(read("SCX_EV_A 7\n"), [("A".into(), 7, 2)]);
        assert_eq!(read("SCX_EV_A 3\n"), [("A".into(), 3, 3)]);
    }
}
