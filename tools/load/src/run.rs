//! One run of the whole load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::control::{Control, Crew};
use crate::opts::Opts;
use crate::pipe::Pairs;
use crate::report::{Forks, Hogs, Movers, Pipes, Report, Sleepers};
use crate::sleeper::Rhythm;
use crate::stats::Latencies;
use crate::{fork, hog, mover, pipe, sleeper};

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
    movers: Crew<u64>,
}

impl Crews {
    fn hire(opts: &Opts, control: &Arc<Control>) -> Result<Self> {
        let hogs = match opts.hogs {
            Some(count) => count,
            None => u32::try_from(mover::usable_cpus()?.len())?,
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
            movers: mover::hire(opts.movers, control)?,
        })
    }

    fn join(self, opts: &Opts, elapsed: Duration) -> Result<Report> {
        let hogs = self.hogs.join()?;
        let sleepers = self.sleepers.join()?;
        let pipes = self.pipes.join()?;
        let forks = self.forks.join()?;
        let movers = self.movers.join()?;
        Ok(Report {
            elapsed_s: elapsed.as_secs_f64(),
            hogs: Hogs::new(&hogs),
            sleepers: Sleepers::new(&sleepers, opts.sleep_us, opts.work_us),
            pipes: Pipes::new(&pipes),
            forks: Forks::new(&forks, opts.forks_per_s),
            movers: Movers::new(&movers, elapsed),
        })
    }
}
