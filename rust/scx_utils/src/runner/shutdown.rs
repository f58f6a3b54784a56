// SPDX-License-Identifier: GPL-2.0-only
//! The wish of a user that the program ends. Once per process, whatever restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use crossbeam_channel::{bounded, Receiver, RecvTimeoutError, Sender};
use nix::sys::signal::{SigSet, Signal};

/// Whether the program should end. Clones are of the same wish.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: Arc<AtomicBool>,
    /// Nothing is ever sent: it is disconnected when the wish is there, which wakes all.
    wake: Receiver<()>,
}

/// Makes the program end.
#[derive(Debug, Clone)]
pub struct Trigger {
    requested: Arc<AtomicBool>,
    wake: Arc<Mutex<Option<Sender<()>>>>,
}

impl Shutdown {
    /// Not connected to signals.
    #[must_use]
    pub fn new() -> (Self, Trigger) {
        let requested = Arc::new(AtomicBool::new(false));
        let (sender, wake) = bounded(0);
        let trigger = Trigger {
            requested: Arc::clone(&requested),
            wake: Arc::new(Mutex::new(Some(sender))),
        };
        (Self { requested, wake }, trigger)
    }

    /// Requested by SIGINT and SIGTERM, which are blocked from here on, in all threads made later,
    /// and waited for by one: there is no handler, and nothing is interrupted half-way. Call it
    /// before other threads are made.
    ///
    /// # Errors
    ///
    /// If signals cannot be blocked.
    pub fn on_signals() -> Result<(Self, Trigger)> {
        let (shutdown, trigger) = Self::new();
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block().context("cannot block signals")?;
        let on_signal = trigger.clone();
        thread::spawn(move || {
            while signals.wait().is_ok() {
                on_signal.request();
            }
        });
        Ok((shutdown, trigger))
    }

    /// Whether the program should end. Costs a load from memory.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits, at most so long; whether the program should end.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> bool {
        self.requested() || self.wake.recv_timeout(at_most) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Shutdown {
    /// Waits until the program should end.
    pub(super) fn wait_for_ever(&self) {
        // Nothing is ever sent, so this is the disconnection.
        let _ = self.wake.recv();
    }
}

impl Trigger {
    /// The program should end.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        self.wake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ends_a_wait() {
        let (shutdown, trigger) = Shutdown::new();
        assert!(!shutdown.requested());
        assert!(!shutdown.wait(Duration::ZERO));
        let waiting = shutdown.clone();
        let waiter = std::thread::spawn(move || waiting.wait(Duration::from_secs(600)));
        trigger.request();
        assert!(waiter.join().unwrap());
        assert!(shutdown.requested());
        // And all later ones.
        assert!(shutdown.wait(Duration::from_secs(600)));
        trigger.request();
    }
}
