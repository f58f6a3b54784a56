//! Clocks, and work that takes time on them.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{clock_gettime, ClockId};

/// The CPU time that the calling thread has used so far.
///
/// # Errors
/// The kernel refuses to tell.
pub(crate) fn thread_cpu_time() -> Result<Duration> {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID).context("reading a thread's CPU time")
}

/// The time since some fixed moment.
///
/// # Errors
/// The kernel refuses to tell.
pub(crate) fn monotonic_time() -> Result<Duration> {
    read(ClockId::CLOCK_MONOTONIC).context("reading the clock")
}

fn read(clock: ClockId) -> nix::Result<Duration> {
    Ok(clock_gettime(clock)?.into())
}

/// Computes for `rounds` short rounds (a nanosecond or so each), without a system
/// call.
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
}
