//! Threads that burn CPU all the time, to show how CPU time is shared out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::clock::{spin, thread_cpu_time};
use crate::control::{Control, Crew};

/// Rounds between two looks at the stop flag: a few microseconds.
const ROUNDS: u32 = 4096;

/// Adds `count` hogs, each of which returns the CPU time that it got.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire(count: u32, control: &Arc<Control>) -> Result<Crew<Duration>> {
    let mut crew = Crew::new("hog", control);
    for _ in 0..count {
        crew.hire(work)?;
    }
    Ok(crew)
}

/// Burns CPU until the stop, without a system call. Returns the CPU time used.
fn work(control: &Control) -> Result<Duration> {
    let start = thread_cpu_time()?;
    while !control.is_stopped() {
        spin(ROUNDS);
    }
    Ok(thread_cpu_time()?.saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hogs_get_cpu_time() {
        let control = Arc::new(Control::default());
        let crew = hire(2, &control).unwrap();
        control.start();
        control.wait_for_stop(Duration::from_millis(100));
        control.stop();
        let times = crew.join().unwrap();
        assert_eq!(times.len(), 2);
        assert!(times.iter().any(|time| !time.is_zero()));
    }
}
