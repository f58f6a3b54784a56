//! Clocks, and work of a given CPU time.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

/// Iterations between two reads of the CPU time: a microsecond or less.
const ROUNDS: u32 = 512;

/// The least timer slack, ns.
const TIMER_SLACK_NS: u64 = 1;

/// Minimizes the calling thread's timer slack: the default of 50 us would be added to every
/// measured wakeup latency.
///
/// # Errors
/// The system call fails.
pub(crate) fn be_punctual() -> Result<()> {
    set_timerslack(TIMER_SLACK_NS).context("setting the timer slack")
}

/// The CPU time of the calling thread.
///
/// # Errors
/// The system call fails.
pub(crate) fn thread_cpu_time() -> Result<Duration> {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID).context("reading a thread's CPU time")
}

/// The monotonic clock.
///
/// # Errors
/// The system call fails.
pub(crate) fn monotonic_time() -> Result<Duration> {
    read(ClockId::CLOCK_MONOTONIC).context("reading the clock")
}

fn read(clock: ClockId) -> nix::Result<Duration> {
    Ok(clock_gettime(clock)?.into())
}

/// Sleeps until the monotonic clock reaches `moment`, regardless of signals.
///
/// # Errors
/// A system call fails.
pub(crate) fn sleep_until(moment: Duration) -> Result<()> {
    let moment = TimeSpec::from(moment);
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    loop {
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &moment) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("sleeping"),
        }
    }
}

/// Computes until the calling thread has used `amount` of CPU time.
///
/// # Errors
/// A system call fails.
pub(crate) fn use_cpu(amount: Duration) -> Result<()> {
    let end = thread_cpu_time()? + amount;
    while thread_cpu_time()? < end {
        spin(ROUNDS);
    }
    Ok(())
}

/// Computes for `rounds` short iterations (about a nanosecond each), without a system call.
pub(crate) fn spin(rounds: u32) {
    let mut value = 1u64;
    for _ in 0..rounds {
        value = black_box(
            value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_takes_cpu_time() {
        let start = thread_cpu_time().unwrap();
        spin(10_000_000);
        assert!(thread_cpu_time().unwrap() > start);
    }

    #[test]
    fn time_passes() {
        let start = monotonic_time().unwrap();
        spin(1000);
        assert!(monotonic_time().unwrap() > start);
    }

    #[test]
    fn sleep_does_not_end_early() {
        let moment = monotonic_time().unwrap() + Duration::from_millis(5);
        sleep_until(moment).unwrap();
        assert!(monotonic_time().unwrap() >= moment);
    }

    #[test]
    fn work_takes_the_requested_cpu_time() {
        let amount = Duration::from_millis(2);
        let start = thread_cpu_time().unwrap();
        use_cpu(amount).unwrap();
        assert!(thread_cpu_time().unwrap() - start >= amount);
    }
}
