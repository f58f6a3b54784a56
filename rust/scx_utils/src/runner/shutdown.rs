// SPDX-License-Identifier: GPL-2.0-only
//! The wish of a user that the program ends. Once per process, whatever restarts.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;

/// The longest time that is waited in one go; longer than anybody means.
const LONGEST_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Debug)]
struct Wish {
    requested: AtomicBool,
    /// Readable from then on: it is never read.
    event: EventFd,
}

/// Whether the program should end. Clones are of the same wish.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<Wish>);

/// Makes the program end.
#[derive(Debug, Clone)]
pub struct Trigger(Arc<Wish>);

impl Shutdown {
    /// Not connected to signals.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left.
    pub fn new() -> Result<(Self, Trigger)> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wish = Arc::new(Wish {
            requested: AtomicBool::new(false),
            event: EventFd::from_value_and_flags(0, flags).context("cannot make an eventfd")?,
        });
        Ok((Self(Arc::clone(&wish)), Trigger(wish)))
    }

    /// Requested by SIGINT and SIGTERM, which are blocked from here on, in all threads made later,
    /// and waited for by one: there is no handler, and nothing is interrupted half-way. Call it
    /// before other threads are made.
    ///
    /// # Errors
    ///
    /// If signals cannot be blocked.
    pub fn on_signals() -> Result<(Self, Trigger)> {
        let (shutdown, trigger) = Self::new()?;
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
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Waits, at most so long; whether the program should end.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_or_readable(None, at_most);
        self.requested()
    }

    /// Waits until the program should end or something can be read from `other`, at most so long;
    /// whether something can be read. One system call.
    pub(super) fn wait_or_readable(
        &self,
        other: Option<BorrowedFd<'_>>,
        at_most: Duration,
    ) -> bool {
        if self.requested() {
            return false;
        }
        let event = self.0.event.as_fd();
        let of = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = [of(event), of(other.unwrap_or(event))];
        let timeout = TimeSpec::from_duration(at_most.min(LONGEST_WAIT));
        // What interrupts it is looked at like what it waits for.
        let ready = ppoll(&mut fds, Some(timeout), None).is_ok_and(|nr| nr > 0);
        ready && other.is_some() && fds[1].any().unwrap_or(false)
    }

    /// Waits until the program should end.
    pub(super) fn wait_for_ever(&self) {
        while !self.wait(LONGEST_WAIT) {}
    }
}

impl Trigger {
    /// The program should end.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Relaxed);
        // It can only be full, which is as good.
        let _ = self.0.event.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ends_a_wait() {
        let (shutdown, trigger) = Shutdown::new().unwrap();
        assert!(!shutdown.requested());
        assert!(!shutdown.wait(Duration::ZERO));
        let waiting = shutdown.clone();
        let waiter = std::thread::spawn(move || waiting.wait(Duration::from_secs(600)));
        trigger.request();
        assert!(waiter.join().unwrap());
        assert!(shutdown.requested());
        // And all later ones, however often it is requested.
        trigger.request();
        assert!(shutdown.wait(Duration::MAX));
        shutdown.wait_for_ever();
    }

    #[test]
    fn what_can_be_read_ends_a_wait_too() {
        let (shutdown, trigger) = Shutdown::new().unwrap();
        let (other, _other_trigger) = Shutdown::new().unwrap();
        let fd = other.0.event.as_fd();
        assert!(!shutdown.wait_or_readable(Some(fd), Duration::from_millis(1)));
        other.0.event.write(1).unwrap();
        assert!(shutdown.wait_or_readable(Some(fd), Duration::MAX));
        trigger.request();
        assert!(!shutdown.wait_or_readable(Some(fd), Duration::MAX));
    }
}
