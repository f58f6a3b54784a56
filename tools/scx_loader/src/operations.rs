// SPDX-License-Identifier: GPL-2.0-only
//! Operations whose callers watch the progress instead of waiting for a reply.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use zbus::names::OwnedUniqueName;

use crate::authority::ASKING_MAX;

/// Maximum number of unfinished operations of all users. Each operation has a thread.
const UNFINISHED_MAX: usize = 48;
/// How many finished operations are remembered.
const FINISHED_MAX: usize = 64;

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Authorizing,
    Running,
    Done,
    Denied,
    Failed,
}

impl Stage {
    fn is_final(self) -> bool {
        !matches!(self, Self::Authorizing | Self::Running)
    }
}

/// Name on the bus.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Authorizing => "authorizing",
            Self::Running => "running",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Failed => "failed",
        })
    }
}

/// An operation, started by `RunOperation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) id: u32,
    user: u32,
    /// The connection to which changes are signalled.
    pub(crate) caller: OwnedUniqueName,
    pub(crate) stage: Stage,
    /// The current activity, or why the operation was denied or failed. Empty if it succeeded, or
    /// has just been authorized.
    pub(crate) message: String,
}

/// All unfinished operations, and the last [`FINISHED_MAX`] finished operations.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    last_id: u32,
    all: BTreeMap<u32, Operation>,
    /// Ids of the finished operations, in the order in which they finished.
    finished: VecDeque<u32>,
}

impl Operations {
    /// Adds an operation that awaits authorization, and returns its id.
    ///
    /// # Errors
    ///
    /// If too many operations of all users, or of this user, are unfinished. Root has no limit of
    /// its own.
    pub(crate) fn begin(&mut self, user: u32, caller: OwnedUniqueName) -> Result<u32, String> {
        let unfinished = || self.all.values().filter(|one| !one.stage.is_final());
        let nr_own = unfinished().filter(|one| one.user == user).count();
        if unfinished().count() >= UNFINISHED_MAX || (user != 0 && nr_own >= ASKING_MAX) {
            return Err("too many operations are unfinished".into());
        }
        self.last_id = self.last_id.wrapping_add(1);
        let operation = Operation {
            id: self.last_id,
            user,
            caller,
            stage: Stage::Authorizing,
            message: "waiting for authorization".into(),
        };
        self.all.insert(self.last_id, operation);
        Ok(self.last_id)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Operation> {
        self.all.get(&id)
    }

    /// Changes an operation. Returns the changed operation; `None` if the id is unknown.
    pub(crate) fn set(&mut self, id: u32, stage: Stage, message: &str) -> Option<Operation> {
        let operation = self.all.get_mut(&id)?;
        let was_final = operation.stage.is_final();
        (operation.stage, operation.message) = (stage, message.into());
        let changed = operation.clone();
        if stage.is_final() && !was_final {
            self.finished.push_back(id);
        }
        if self.finished.len() > FINISHED_MAX {
            self.finished.pop_front().map(|id| self.all.remove(&id));
        }
        Some(changed)
    }

    /// Sets the message of all running operations. Returns the operations that changed.
    pub(crate) fn progress(&mut self, message: &str) -> Vec<Operation> {
        let mut changed = Vec::new();
        for operation in self.all.values_mut() {
            if operation.stage == Stage::Running && operation.message != message {
                operation.message = message.into();
                changed.push(operation.clone());
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> OwnedUniqueName {
        OwnedUniqueName::try_from(":1.7").unwrap()
    }

    #[test]
    fn progress_concerns_running_operations() {
        let mut operations = Operations::default();
        let waiting = operations.begin(1000, caller()).unwrap();
        let running = operations.begin(1000, caller()).unwrap();
        operations.set(running, Stage::Running, "").unwrap();
        let changed = operations.progress("starting scx_simple");
        assert_eq!(changed.len(), 1);
        assert_eq!(changed[0], *operations.get(running).unwrap());
        assert_eq!(changed[0].message, "starting scx_simple");
        assert!(operations.progress("starting scx_simple").is_empty());
        operations.set(running, Stage::Done, "").unwrap();
        assert!(operations.progress("running scx_simple").is_empty());
        assert_eq!(operations.get(waiting).unwrap().stage, Stage::Authorizing);
    }

    #[test]
    fn users_have_a_limit() {
        let mut operations = Operations::default();
        let ids: Vec<_> = (0..ASKING_MAX)
            .map(|_| operations.begin(1000, caller()).unwrap())
            .collect();
        assert!(operations.begin(1000, caller()).is_err());
        operations.begin(1001, caller()).unwrap();
        operations.set(ids[3], Stage::Denied, "no").unwrap();
        operations.begin(1000, caller()).unwrap();
        // Root is subject only to the limit for all users together.
        let nr_root = (0..).take_while(|_| operations.begin(0, caller()).is_ok());
        assert_eq!(nr_root.count(), UNFINISHED_MAX - ASKING_MAX - 1);
    }

    #[test]
    fn oldest_finished_operations_are_forgotten() {
        let mut operations = Operations::default();
        let unfinished = operations.begin(0, caller()).unwrap();
        let ids: Vec<_> = (0..=FINISHED_MAX)
            .map(|_| {
                let id = operations.begin(0, caller()).unwrap();
                operations.set(id, Stage::Done, "").unwrap().id
            })
            .collect();
        assert!(operations.get(unfinished).is_some());
        assert_eq!(operations.get(ids[0]), None);
        assert!(ids[1..].iter().all(|id| operations.get(*id).is_some()));
    }

    #[test]
    fn an_old_operation_that_finishes_late_is_remembered() {
        let mut operations = Operations::default();
        let late = operations.begin(0, caller()).unwrap();
        for _ in 0..FINISHED_MAX {
            let id = operations.begin(0, caller()).unwrap();
            operations.set(id, Stage::Done, "").unwrap();
        }
        operations.set(late, Stage::Failed, "too late").unwrap();
        assert_eq!(operations.get(late).unwrap().message, "too late");
    }
}
