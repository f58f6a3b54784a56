//! Threads that burn CPU all the time, to measure fairness.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::setpriority_process;

use crate::clock::{spin, thread_cpu_time};
use crate::control::{Control, Crew};

/// Blocks of no-ops between two checks of the stop flag. They take 25 us in a guest whose time is
/// the number of executed instructions, and about 2 us on a real CPU.
const BLOCKS: u32 = 500;

/// Adds `count` hogs, each of which returns its CPU time. The hogs get the values of `nices` in
/// turn; if `nices` is empty, they keep the nice value of this process.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire(count: u32, nices: &[i32], control: &Arc<Control>) -> Result<Crew<Duration>> {
    let mut crew = Crew::new("hog", control);
    let mut nices = nices.iter().copied().cycle();
    for _ in 0..count {
        let nice = nices.next();
        crew.hire(move |control| work(nice, control))?;
    }
    Ok(crew)
}

/// Burns CPU until the stop, without a system call. Returns the CPU time of the thread.
fn work(nice: Option<i32>, control: &Control) -> Result<Duration> {
    if let Some(nice) = nice {
        // For the kernel, pid 0 is the calling thread.
        setpriority_process(None, nice).with_context(|| format!("setting nice {nice}"))?;
    }
    let start = thread_cpu_time()?;
    while !control.is_stopped() {
        spin(BLOCKS);
    }
    Ok(thread_cpu_time()?.saturating_sub(start))
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn hogs_get_cpu_time() {
        let control = Arc::new(Control::stopping_after(10));
        let times = hire(2, &[], &control).unwrap().join().unwrap();
        assert_eq!(times.len(), 2);
        assert!(times.iter().all(|time| !time.is_zero()));
    }

    /// The nice value of a thread that was a hog until it was stopped.
    fn nice_of_hog(nice: Option<i32>) -> i32 {
        let hog = std::thread::spawn(move || {
            let control = Control::default();
            control.stop();
            work(nice, &control).unwrap();
            getpriority_process(None).unwrap()
        });
        hog.join().unwrap()
    }

    #[test]
    fn hogs_have_the_requested_nice_values() {
        assert_eq!(nice_of_hog(None), getpriority_process(None).unwrap());
        assert_eq!(nice_of_hog(Some(19)), 19);
    }
}
