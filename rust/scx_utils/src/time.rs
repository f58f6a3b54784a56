// SPDX-License-Identifier: GPL-2.0-only
//! The clock that BPF programs and user space share.

use anyhow::{Context as _, Result};
use nix::time::{clock_gettime, ClockId};

/// The time of CLOCK_MONOTONIC in ns, as `scx_monotonic_now()` returns it in BPF programs.
///
/// # Errors
///
/// If there is no such clock.
pub fn monotonic_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
    let (seconds, ns) = (now.tv_sec(), now.tv_nsec());
    Ok(u64::try_from(seconds)? * 1_000_000_000 + u64::try_from(ns)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_goes_on() {
        let before = monotonic_ns().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed_ns = monotonic_ns().unwrap() - before;
        assert!(passed_ns >= 2_000_000, "{passed_ns}");
    }
}
