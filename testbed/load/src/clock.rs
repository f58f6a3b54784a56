//! Clocks, and work of a given CPU time.

use std::arch::asm;
use std::num::{NonZeroU64, TryFromIntError};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::io::retry_on_intr;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{clock_gettime, ClockId, Timespec};

/// Number of no-ops in a block. An emulator translates a block with its loop as one unit. If the
/// emulator counts instructions, it stops within the unit at almost every timer, and translates the
/// remainder separately. A block of 500 no-ops would have so many places to stop that these
/// translations would take more time than all execution.
const BLOCK: u32 = 50;

/// The maximum number of blocks between two reads of the CPU time. The number must be small,
/// because the speed so far is a bad estimate in an emulator: as the emulator runs its CPUs in
/// turns, a thread may become many times slower.
const BLOCKS_MAX: u32 = 200;

/// The minimum timer slack, ns.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// Minimizes the calling thread's timer slack, because the default would add up to 50 us to each
/// measured wakeup latency.
///
/// # Errors
/// The system call fails.
pub(crate) fn be_punctual() -> Result<()> {
    set_current_timer_slack(Some(TIMER_SLACK_NS)).context("setting the timer slack")
}

/// The CPU time of the calling thread.
///
/// # Errors
/// The system call fails.
pub(crate) fn thread_cpu_time() -> Result<Duration> {
    read(ClockId::ThreadCPUTime).context("reading a thread's CPU time")
}

/// The monotonic clock.
///
/// # Errors
/// The system call fails.
pub(crate) fn monotonic_time() -> Result<Duration> {
    read(ClockId::Monotonic).context("reading the clock")
}

fn read(clock: ClockId) -> Result<Duration, TryFromIntError> {
    clock_gettime(clock).try_into()
}

/// Sleeps until the monotonic clock reaches `moment`, regardless of signals.
///
/// # Errors
/// A system call fails.
pub(crate) fn sleep_until(moment: Duration) -> Result<()> {
    let moment = Timespec::try_from(moment)?;
    retry_on_intr(|| clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &moment))
        .context("sleeping")
}

/// Computes until the calling thread has used `amount` of CPU time.
///
/// # Errors
/// A system call fails.
pub(crate) fn use_cpu(amount: Duration) -> Result<()> {
    let start = thread_cpu_time()?;
    let (mut done, mut blocks) = (0, 1);
    loop {
        spin(blocks);
        done += u64::from(blocks);
        let used = thread_cpu_time()? - start;
        if used >= amount {
            return Ok(());
        }
        blocks = blocks_for(amount - used, used, done);
    }
}

/// The number of blocks that take a quarter of `rest`, if `done` blocks took the time `used`.
fn blocks_for(rest: Duration, used: Duration, done: u64) -> u32 {
    let blocks = rest.as_nanos().saturating_mul(u128::from(done)) / used.as_nanos().max(1) / 4;
    u32::try_from(blocks).map_or(BLOCKS_MAX, |blocks| blocks.clamp(1, BLOCKS_MAX))
}

/// Executes `blocks` blocks of no-ops, without a system call. A block takes about 50 ns in a
/// guest whose time is the number of executed instructions, and much less on a real CPU. No-ops
/// cost an emulator almost nothing, so a guest with hogs is cheap.
pub(crate) fn spin(blocks: u32) {
    for _ in 0..blocks {
        no_ops();
    }
}

#[allow(unsafe_code)] // The compiler would remove a loop of safe code without effects.
fn no_ops() {
    // SAFETY: the instructions have no effect.
    unsafe {
        asm!(
            ".rept {BLOCK}",
            "nop",
            ".endr",
            BLOCK = const BLOCK,
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_takes_cpu_time() {
        let start = thread_cpu_time().unwrap();
        spin(100_000);
        assert!(thread_cpu_time().unwrap() > start);
    }

    #[test]
    fn time_passes() {
        let start = monotonic_time().unwrap();
        spin(100);
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

    #[test]
    fn blocks_follow_the_speed_so_far() {
        let us = Duration::from_micros;
        assert_eq!(blocks_for(us(30), us(10), 20), 15);
        assert_eq!(blocks_for(us(1), us(1000), 2), 1);
        assert_eq!(blocks_for(us(1000), us(0), 2), BLOCKS_MAX);
        assert_eq!(blocks_for(Duration::MAX, us(0), u64::MAX / 2), BLOCKS_MAX);
    }
}
