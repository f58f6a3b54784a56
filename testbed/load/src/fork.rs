//! Starts processes one after the other, to measure the latency of new tasks.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};

use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// The only argument with which this program starts itself as a process that exits at once.
const CHILD: &str = "--child";

/// Whether this process was started with [`CHILD`].
pub(crate) fn is_child() -> bool {
    env::args_os().nth(1).is_some_and(|arg| arg == CHILD)
}

/// The program that the processes execute.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    argument: Option<&'static str>,
}

impl Program {
    /// This program, with the argument that makes it exit at once.
    ///
    /// # Errors
    /// The path of this program is unknown, because there is no /proc.
    pub(crate) fn this() -> Result<Self> {
        Ok(Self {
            path: env::current_exe().context("finding this program's file")?,
            argument: Some(CHILD),
        })
    }

    /// Another program, searched for in PATH.
    pub(crate) fn named(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            argument: None,
        }
    }
}

/// Adds a thread that starts up to `per_s` processes per second, unless `per_s` is 0. The thread
/// returns the times from the start of each process to its exit.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn hire(
    per_s: u32,
    program: &Program,
    control: &Arc<Control>,
) -> Result<Crew<Latencies>> {
    let mut crew = Crew::new("forker", control);
    if per_s > 0 {
        let program = program.clone();
        let period = Duration::from_secs(1) / per_s;
        crew.hire(move |control| work(&program, period, control))?;
    }
    Ok(crew)
}

/// Adds `count` threads that each start processes one after the other, as fast as possible. Each
/// thread returns the number of its processes.
///
/// # Errors
/// A thread cannot be created.
pub(crate) fn hire_storm(
    count: u32,
    program: &Program,
    control: &Arc<Control>,
) -> Result<Crew<u64>> {
    let mut crew = Crew::new("storm", control);
    for _ in 0..count {
        let program = program.clone();
        crew.hire(move |control| storm(&program, control))?;
    }
    Ok(crew)
}

fn storm(program: &Program, control: &Control) -> Result<u64> {
    let mut started = 0;
    while !control.is_stopped() {
        run_child(program)?;
        started += 1;
    }
    Ok(started)
}

fn work(program: &Program, period: Duration, control: &Control) -> Result<Latencies> {
    let mut latencies = Latencies::new();
    let mut next = Instant::now();
    while !control.sleep_until(next) {
        let start = Instant::now();
        run_child(program)?;
        latencies.record(start.elapsed());
        // Skip missed starts. Making up for them would cause a burst.
        next = (next + period).max(start);
    }
    Ok(latencies)
}

/// Starts a process and waits for its exit.
fn run_child(program: &Program) -> Result<()> {
    let mut command = Command::new(&program.path);
    command
        .args(program.argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // The process is not in the foreground process group, so that Ctrl-C does not reach it.
        .process_group(0);
    let status = command.status().context("starting a process")?;
    ensure!(status.success(), "a started process ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_not_exceeded() {
        let control = Control::stopping_after(20);
        let period = Duration::from_millis(20);
        let start = Instant::now();
        let latencies = work(&Program::named(Path::new("true")), period, &control).unwrap();
        let most = start.elapsed().as_millis() / period.as_millis() + 1;
        let count = latencies.count();
        assert!(count > 0 && u128::from(count) <= most, "{count} of {most}");
        assert!(latencies.max() > Some(Duration::ZERO));
    }

    #[test]
    fn failing_or_missing_program_is_an_error() {
        let error = run_child(&Program::named(Path::new("/nonexistent"))).unwrap_err();
        assert!(format!("{error:#}").contains("No such file"), "{error:#}");
        let error = run_child(&Program::named(Path::new("false"))).unwrap_err();
        assert!(error.to_string().contains("exit status: 1"), "{error}");
    }

    #[test]
    fn storm_lasts_until_the_stop() {
        let control = Control::stopping_after(3);
        assert_eq!(
            storm(&Program::named(Path::new("true")), &control).unwrap(),
            3
        );
    }

    #[test]
    fn rate_zero_needs_no_thread() {
        let control = Arc::new(Control::default());
        assert!(hire(0, &Program::this().unwrap(), &control)
            .unwrap()
            .join()
            .unwrap()
            .is_empty());
    }
}
