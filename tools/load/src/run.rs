//! One run of the whole load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

use crate::control::{Control, Crew};
use crate::opts::Opts;
use crate::pipe::Pairs;
use crate::report::{Forks, Hogs, Pipes, Report, Sleepers};
use crate::sleeper::Rhythm;
use crate::stats::Latencies;
use crate::{fork, hog, pipe, sleeper};

/// Runs the load that `opts` ask for, until its time is over or a signal comes.
///
/// # Errors
/// A load cannot start, or breaks.
pub(crate) fn run(opts: &Opts) -> Result<Report> {
    let control = Arc::new(Control::default());
    let on_signal = Arc::clone(&control);
    ctrlc::set_handler(move || on_signal.stop()).context("catching signals")?;
    let crews = Crews::hire(opts, &control)?;
    let start = Instant::now();
    control.start();
    control.wait_for_stop(opts.seconds);
    control.stop();
    // Taken before the threads are joined: a thread that waits for a CPU is late to
    // see the stop, and does nothing in between.
    let elapsed = start.elapsed();
    crews.join(opts, elapsed)
}

/// The threads of all kinds.
struct Crews {
    hogs: Crew<Duration>,
    sleepers: Crew<Latencies>,
    pipes: Pairs,
    forks: Crew<Latencies>,
}

impl Crews {
    fn hire(opts: &Opts, control: &Arc<Control>) -> Result<Self> {
        let hogs = match opts.hogs {
            Some(count) => count,
            None => usable_cpus()?,
        };
        let rhythm = Rhythm {
            sleep: Duration::from_micros(opts.sleep_us.into()),
            work: Duration::from_micros(opts.work_us.into()),
        };
        Ok(Self {
            hogs: hog::hire(hogs, control)?,
            sleepers: sleeper::hire(opts.sleepers, rhythm, control)?,
            pipes: pipe::hire(opts.pipes, control)?,
            forks: fork::hire(opts.forks_per_s, control)?,
        })
    }

    fn join(self, opts: &Opts, elapsed: Duration) -> Result<Report> {
        let hogs = self.hogs.join()?;
        let sleepers = self.sleepers.join()?;
        let pipes = self.pipes.join()?;
        let forks = self.forks.join()?;
        Ok(Report {
            elapsed_s: elapsed.as_secs_f64(),
            hogs: Hogs::new(&hogs),
            sleepers: Sleepers::new(&sleepers, opts.sleep_us, opts.work_us),
            pipes: Pipes::new(&pipes),
            forks: Forks::new(&forks, opts.forks_per_s),
        })
    }
}

/// The number of CPUs that this process may use and that are online.
fn usable_cpus() -> Result<u32> {
    let cpus = sched_getaffinity(Pid::from_raw(0)).context("counting CPUs")?;
    let is_usable = |&cpu: &usize| cpus.is_set(cpu).unwrap_or(false);
    Ok(u32::try_from(
        (0..CpuSet::count()).filter(is_usable).count(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_cpu_is_usable() {
        assert!(usable_cpus().unwrap() >= 1);
    }
}
