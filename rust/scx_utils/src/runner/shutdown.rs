// SPDX-License-Identifier: GPL-2.0-only
//! The wish of a user that the program ends. Once per process, whatever restarts.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
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
        if !self.requested() {
            let mut fds = [PollFd::new(self.0.event.as_fd(), PollFlags::POLLIN)];
            let timeout = TimeSpec::from_duration(at_most.min(LONGEST_WAIT));
            // What interrupts it is looked at like what it waits for.
            let _ = ppoll(&mut fds, Some(timeout), None);
        }
        self.requested()
    }

    /// Waits until the program should end.
    pub(super) fn wait_for_ever(&self) {
        while !self.wait(LONGEST_WAIT) {}
    }
}

/// Waits for the wish to end, and for what a scheduler waits for besides. By epoll, since a
/// scheduler in user space waits thousands of times a second, and ppoll() makes its table of what
/// it waits for each time anew.
#[derive(Debug)]
pub(super) struct Waiter {
    epoll: Epoll,
    shutdown: Shutdown,
}

/// What tells an event of the scheduler's from the wish to end.
const OF_WISH: u64 = 0;
const OF_OTHER: u64 = 1;

impl Waiter {
    /// Of `other` too, which is to stay the same.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left, or `other` cannot be waited for.
    pub(super) fn new(shutdown: &Shutdown, other: Option<BorrowedFd<'_>>) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let event = |of| EpollEvent::new(EpollFlags::EPOLLIN, of);
        epoll.add(&shutdown.0.event, event(OF_WISH))?;
        if let Some(other) = other {
            epoll.add(other, event(OF_OTHER))?;
        }
        Ok(Self {
            epoll,
            shutdown: shutdown.clone(),
        })
    }

    /// Waits until the program should end or the other can be read from, at most so long, in whole
    /// milliseconds; whether the other can be read from. One system call.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        if self.shutdown.requested() {
            return false;
        }
        let mut events = [EpollEvent::empty(); 2];
        let at_most = at_most.min(LONGEST_WAIT) + Duration::from_nanos(999_999);
        let timeout = EpollTimeout::try_from(at_most).unwrap_or(EpollTimeout::MAX);
        // What interrupts it is looked at like what it waits for.
        let nr = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        events[..nr].iter().any(|event| event.data() == OF_OTHER)
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
        let waiter = Waiter::new(&shutdown, Some(other.0.event.as_fd())).unwrap();
        assert!(!waiter.wait(Duration::from_micros(1)));
        other.0.event.write(1).unwrap();
        assert!(waiter.wait(Duration::MAX));
        // Until it was read.
        assert!(waiter.wait(Duration::MAX));
        other.0.event.read().unwrap();
        assert!(!waiter.wait(Duration::ZERO));
        trigger.request();
        assert!(!waiter.wait(Duration::MAX));
        let alone = Waiter::new(&shutdown, None).unwrap();
        assert!(!alone.wait(Duration::MAX));
    }
}
