// SPDX-License-Identifier: GPL-2.0-only
//! The request to end the program. It stays in effect when the scheduler is restarted.

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
use procfs::process::Process;

/// The longest wait; a longer timeout is clamped to it.
const LONGEST_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Debug)]
struct Request {
    requested: AtomicBool,
    /// Stays readable after the request, because nothing reads it.
    event: EventFd,
}

/// Whether the program should end. Clones refer to the same request.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<Request>);

/// Requests the end of the program.
#[derive(Debug, Clone)]
pub struct Trigger(Arc<Request>);

impl Shutdown {
    /// Creates a request that is not connected to signals.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptors left.
    pub fn new() -> Result<(Self, Trigger)> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let request = Arc::new(Request {
            requested: AtomicBool::new(false),
            event: EventFd::from_value_and_flags(0, flags).context("cannot create an eventfd")?,
        });
        Ok((Self(Arc::clone(&request)), Trigger(request)))
    }

    /// Creates a request that SIGINT, SIGTERM and SIGHUP (the terminal is closed) trigger. From
    /// here on, these signals are blocked in this thread and in all threads that it creates, and a
    /// dedicated thread waits for them. There is no handler, so no system call is interrupted. If
    /// SIGHUP is ignored, because `nohup` has started the program, it stays ignored. Call this
    /// function before other threads are created.
    ///
    /// # Errors
    ///
    /// If signals cannot be blocked, or the process has no file descriptors left.
    pub fn on_signals() -> Result<(Self, Trigger)> {
        let (shutdown, trigger) = Self::new()?;
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        // A blocked signal would be waited for even if it is ignored.
        if !is_ignored(Signal::SIGHUP) {
            signals.add(Signal::SIGHUP);
        }
        signals.thread_block().context("cannot block signals")?;
        let on_signal = trigger.clone();
        thread::spawn(move || {
            while signals.wait().is_ok() {
                on_signal.request();
            }
        });
        Ok((shutdown, trigger))
    }

    /// Whether the program should end. This costs only a load from memory.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Waits for at most `at_most`; returns whether the program should end.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> bool {
        if !self.requested() {
            let mut fds = [PollFd::new(self.0.event.as_fd(), PollFlags::POLLIN)];
            let timeout = TimeSpec::from_duration(at_most.min(LONGEST_WAIT));
            // An interruption is handled like a timeout.
            let _ = ppoll(&mut fds, Some(timeout), None);
        }
        self.requested()
    }

    /// Waits until the program should end.
    pub(super) fn wait_for_ever(&self) {
        while !self.wait(LONGEST_WAIT) {}
    }
}

/// Whether this process ignores the signal.
fn is_ignored(signal: Signal) -> bool {
    let status = Process::myself().and_then(|process| process.status());
    status.is_ok_and(|status| status.sigign >> (signal as u32 - 1) & 1 == 1)
}

/// Waits for the shutdown request, and for a scheduler's file descriptor. It uses epoll, because a
/// user-space scheduler waits thousands of times a second, and ppoll() would add the thread to all
/// wait queues each time.
#[derive(Debug)]
pub(super) struct Waiter {
    epoll: Epoll,
    shutdown: Shutdown,
}

/// The data of epoll events, for the shutdown request and for the scheduler's file descriptor.
const OF_REQUEST: u64 = 0;
const OF_OTHER: u64 = 1;

impl Waiter {
    /// Creates a waiter for the shutdown request and, if given, for `other`, which has to remain
    /// open.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptors left, or `other` cannot be polled.
    pub(super) fn new(shutdown: &Shutdown, other: Option<BorrowedFd<'_>>) -> Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let event = |of| EpollEvent::new(EpollFlags::EPOLLIN, of);
        epoll.add(&shutdown.0.event, event(OF_REQUEST))?;
        if let Some(other) = other {
            epoll.add(other, event(OF_OTHER))?;
        }
        Ok(Self {
            epoll,
            shutdown: shutdown.clone(),
        })
    }

    /// Waits until the program should end or `other` is readable, for at most `at_most`, rounded up
    /// to milliseconds. Returns whether `other` is readable; false if the end was requested before
    /// the call. Makes at most one system call.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        if self.shutdown.requested() {
            return false;
        }
        let mut events = [EpollEvent::empty(); 2];
        let at_most = at_most.min(LONGEST_WAIT) + Duration::from_nanos(999_999);
        let timeout = EpollTimeout::try_from(at_most).unwrap_or(EpollTimeout::MAX);
        // An interruption is handled like a timeout.
        let nr = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        events[..nr].iter().any(|event| event.data() == OF_OTHER)
    }
}

impl Trigger {
    /// Requests the end of the program.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Relaxed);
        // Fails only if the counter is full. Then the eventfd is readable already.
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
        // The request also ends all later waits, however often the end is requested.
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
        // The descriptor is level-triggered: it ends every wait until it is read.
        assert!(waiter.wait(Duration::MAX));
        other.0.event.read().unwrap();
        assert!(!waiter.wait(Duration::ZERO));
        trigger.request();
        assert!(!waiter.wait(Duration::MAX));
        let alone = Waiter::new(&shutdown, None).unwrap();
        assert!(!alone.wait(Duration::MAX));
    }
}
