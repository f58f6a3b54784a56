//! Threads that sleep and work by turns, to show how late they are woken up.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::time::{clock_nanosleep, ClockId, ClockNanosleepFlags};

use crate::clock::{monotonic_time, spin, thread_cpu_time};
use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// Rounds between two looks at the CPU time used: a microsecond or less.
const ROUNDS: u32 = 512;

/// The least timer slack, ns. The default of 50 us would be added to every
/// measured lateness.
const TIMER_SLACK_NS: u64 = 1;

/// What a sleeper does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// How long it sleeps.
    pub sleep: Duration,
    /// How much CPU time it uses before the next sleep.
    pub work: Duration,
}

/// Adds `count` sleepers, each of which returns how late it was running after each
/// sleep.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire(count: u32, rhythm: Rhythm, control: &Arc<Control>) -> Result<Crew<Latencies>> {
    let mut crew = Crew::new("sleeper", control);
    for _ in 0..count {
        crew.hire(move |control| work(rhythm, control))?;
    }
    Ok(crew)
}

fn work(rhythm: Rhythm, control: &Control) -> Result<Latencies> {
    set_timerslack(TIMER_SLACK_NS).context("setting the timer slack")?;
    let mut lateness = Latencies::new();
    while !control.is_stopped() {
        let wake_at = monotonic_time()? + rhythm.sleep;
        sleep_until(wake_at)?;
        lateness.record(monotonic_time()?.saturating_sub(wake_at));
        use_cpu(rhythm.work)?;
    }
    Ok(lateness)
}

/// Sleeps until the monotonic clock shows `moment`, through any signal.
fn sleep_until(moment: Duration) -> Result<()> {
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
fn use_cpu(amount: Duration) -> Result<()> {
    let end = thread_cpu_time()? + amount;
    while thread_cpu_time()? < end {
        spin(ROUNDS);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_ends_at_the_moment_or_later() {
        let moment = monotonic_time().unwrap() + Duration::from_millis(5);
        sleep_until(moment).unwrap();
        assert!(monotonic_time().unwrap() >= moment);
    }

    #[test]
    fn work_takes_the_cpu_time_asked_for() {
        let amount = Duration::from_millis(2);
        let start = thread_cpu_time().unwrap();
        use_cpu(amount).unwrap();
        assert!(thread_cpu_time().unwrap() - start >= amount);
    }

    #[test]
    fn every_wakeup_is_counted() {
        let control = Arc::new(Control::default());
        let rhythm = Rhythm {
            sleep: Duration::from_millis(1),
            work: Duration::ZERO,
        };
        let crew = hire(2, rhythm, &control).unwrap();
        let start = monotonic_time().unwrap();
        control.start();
        control.wait_for_stop(Duration::from_millis(100));
        control.stop();
        let lateness = crew.join().unwrap();
        let elapsed = monotonic_time().unwrap() - start;
        let wakeups: Vec<_> = lateness.iter().map(Latencies::count).collect();
        let most = elapsed.as_millis() + 1;
        assert!(
            wakeups.iter().all(|&n| u128::from(n) <= most),
            "{wakeups:?}"
        );
        assert!(wakeups.iter().any(|&n| n > 0), "{wakeups:?}");
    }
}
