//! Threads that keep moving each other to other CPUs (an affinity storm). A scheduler must handle a
//! change of affinity at any time: of a task that is running, runnable, sleeping or waking up.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use rustix::io::Errno;
use rustix::thread::{gettid, sched_getaffinity, sched_setaffinity, CpuSet, Pid};

use crate::clock::use_cpu;
use crate::control::{Control, Crew};

/// CPU time that a mover uses between two changes.
const INTERVAL: Duration = Duration::from_micros(50);

/// The average number of iterations between two sleeps of a mover. Movers sleep so that they are
/// also moved while they sleep.
const SLEEP_EVERY: u32 = 8;
const SLEEP: Duration = Duration::from_micros(200);

/// Adds `count` movers, each of which returns its number of affinity changes.
///
/// # Errors
/// The CPUs cannot be determined, or a thread cannot be created.
pub(crate) fn hire(count: u32, control: &Arc<Control>) -> Result<Crew<u64>> {
    let mut crew = Crew::new("mover", control);
    let cpus = Arc::new(usable_cpus()?);
    let movers: Arc<[AtomicI32]> = (0..count).map(|_| AtomicI32::new(0)).collect();
    for index in 0..count {
        let (cpus, movers) = (Arc::clone(&cpus), Arc::clone(&movers));
        crew.hire(move |control| work(index, &movers, &cpus, control))?;
    }
    Ok(crew)
}

/// The online CPUs that the calling thread may use, in ascending order.
///
/// # Errors
/// The system call fails.
pub(crate) fn usable_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("counting CPUs")?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

fn work(index: u32, movers: &[AtomicI32], cpus: &[usize], control: &Control) -> Result<u64> {
    movers[index as usize].store(gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    let mut dice = Dice::new(index);
    let mut changes = 0;
    while !control.is_stopped() {
        let other = movers[dice.below(movers.len())].load(Ordering::Relaxed);
        // The id is 0 if that mover has not started yet.
        if let Some(other) = Pid::from_raw(other) {
            changes += u64::from(change(other, &dice.pick(cpus))?);
        }
        use_cpu(INTERVAL)?;
        if dice.below(SLEEP_EVERY as usize) == 0 {
            std::thread::sleep(SLEEP);
        }
    }
    Ok(changes)
}

/// Changes the affinity of a thread. Returns false if the thread has exited, or if all CPUs of the
/// set are offline.
fn change(thread: Pid, cpus: &CpuSet) -> Result<bool> {
    match sched_setaffinity(Some(thread), cpus) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH | Errno::INVAL) => Ok(false),
        Err(errno) => bail!("changing an affinity: {errno}"),
    }
}

/// Pseudo-random numbers (xorshift64, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn new(seed: u32) -> Self {
        Self(u64::from(seed) + 0x9E37_79B9_7F4A_7C15)
    }

    /// A number below `limit`, which is above 0.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 32).unwrap_or(0) % limit
    }

    /// Randomly, either one of `cpus`, or all of them from a random CPU on.
    fn pick(&mut self, cpus: &[usize]) -> CpuSet {
        let first = self.below(cpus.len());
        let last = if self.below(2) == 0 {
            first + 1
        } else {
            cpus.len()
        };
        let mut set = CpuSet::new();
        for &cpu in &cpus[first..last] {
            set.set(cpu);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_cpu_is_usable() {
        assert!(!usable_cpus().unwrap().is_empty());
    }

    #[test]
    fn all_numbers_occur() {
        let mut dice = Dice::new(0);
        let mut seen = [false; 6];
        for _ in 0..200 {
            seen[dice.below(6)] = true;
        }
        assert_eq!(seen, [true; 6]);
    }

    #[test]
    fn picks_are_never_empty_and_among_the_cpus() {
        let mut dice = Dice::new(7);
        for _ in 0..200 {
            let set = dice.pick(&[1, 5, 9]);
            let chosen = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
            let chosen: Vec<_> = chosen.collect();
            assert!(!chosen.is_empty());
            assert!(chosen.iter().all(|cpu| [1, 5, 9].contains(cpu)));
        }
    }

    #[test]
    fn exited_thread_is_not_an_error() {
        let thread = std::thread::spawn(gettid).join().unwrap();
        let set = sched_getaffinity(None).unwrap();
        assert!(!change(thread, &set).unwrap());
    }

    #[test]
    fn movers_move_each_other() {
        let control = Arc::new(Control::stopping_after(100));
        let changes = hire(3, &control).unwrap().join().unwrap();
        assert!(changes.iter().sum::<u64>() > 0);
    }
}
