//! One run of all loads.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::client::{Clients, Trade};
use crate::control::{Control, Crew};
use crate::fork::Program;
use crate::group::Groups;
use crate::opts::Opts;
use crate::periodic::{Outcome, Task};
use crate::pipe::Pairs;
use crate::report::{self, Forks, Hogs, Movers, Pipes, Report, Sleepers};
use crate::request::{Servers, Staff};
use crate::sleeper::Rhythm;
use crate::stats::Latencies;
use crate::{client, fork, group, hog, mover, periodic, pipe, request, sleeper};

/// Runs the loads of `opts` until the time limit or a signal.
///
/// # Errors
/// A load cannot be started or fails, or signals cannot be caught.
pub(crate) fn run(opts: &Opts) -> Result<Report> {
    let control = Arc::new(Control::default());
    let on_signal = Arc::clone(&control);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("catching signals")?;
    thread::spawn(move || {
        for _ in signals.forever() {
            on_signal.stop();
        }
    });
    let crews = Crews::hire(opts, &control)?;
    let start = Instant::now();
    control.start();
    control.wait_for_stop(opts.seconds);
    control.stop();
    // Read the clock before joining the threads. A thread that waits for a CPU sees the stop late,
    // but does no work until then.
    let elapsed = start.elapsed();
    crews.join(opts, elapsed)
}

/// The threads of all kinds.
struct Crews {
    hogs: Crew<Duration>,
    sleepers: Crew<Latencies>,
    pipes: Pairs,
    forks: Crew<Latencies>,
    storms: Crew<u64>,
    periodic: Crew<Outcome>,
    servers: Servers,
    clients: Clients,
    groups: Groups,
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
        let task = Task {
            period: Duration::from_micros(opts.period_us.into()),
            work: Duration::from_micros(opts.period_work_us.into()),
        };
        let program = match &opts.fork_program {
            Some(path) => Program::named(path),
            None => Program::this()?,
        };
        let staff = Staff {
            count: opts.workers,
            work: Duration::from_micros(opts.request_us.into()),
            sharing: opts.locks,
        };
        let period = Duration::from_micros(opts.client_period_us.into());
        let trade = Trade {
            count: opts.clients,
            client_work: Duration::from_micros(opts.client_work_us.into()),
            server_work: Duration::from_micros(opts.server_work_us.into()),
            waits: opts.client_waits || !period.is_zero(),
            period,
        };
        Ok(Self {
            hogs: hog::hire(hogs, &opts.hog_nices, control)?,
            sleepers: sleeper::hire(opts.sleepers, rhythm, control)?,
            pipes: pipe::hire(opts.pipes, opts.pin_pipes, control)?,
            forks: fork::hire(opts.forks_per_s, &program, control)?,
            storms: fork::hire_storm(opts.fork_storms, &program, control)?,
            periodic: periodic::hire(opts.periodic, task, control)?,
            servers: request::hire(staff, control)?,
            clients: client::hire(trade, control)?,
            groups: group::hire(opts.groups, control)?,
            movers: mover::hire(opts.movers, control)?,
        })
    }

    fn join(self, opts: &Opts, elapsed: Duration) -> Result<Report> {
        // Join the clients first, because this reads the server's CPU time, and the server works
        // until it is killed.
        let market = self.clients.join()?;
        let hogs = self.hogs.join()?;
        let sleepers = self.sleepers.join()?;
        let pipes = self.pipes.join()?;
        let forks = self.forks.join()?;
        let storms = self.storms.join()?;
        let periodic = self.periodic.join()?;
        let service = self.servers.join()?;
        let mail = self.groups.join()?;
        let movers = self.movers.join()?;
        Ok(Report {
            elapsed_s: elapsed.as_secs_f64(),
            hogs: Hogs::new(&hogs),
            sleepers: Sleepers::new(&sleepers, opts.sleep_us, opts.work_us),
            pipes: Pipes::new(&pipes),
            forks: Forks::new(&forks, opts.forks_per_s),
            storms: report::Storms::new(&storms, elapsed),
            periodic: report::Periodic::new(&periodic),
            requests: service.as_ref().map(report::Requests::new),
            clients: market.as_ref().map(report::Clients::new),
            groups: report::Groups::new(&mail),
            movers: Movers::new(&movers, elapsed),
        })
    }
}
