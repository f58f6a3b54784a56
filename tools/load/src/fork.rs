//! Starts processes one after the other, to show how soon a new task runs.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};

use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// The only argument of a process that is started here. It ends at once.
const CHILD: &str = "--child";

/// Whether this process is one of those.
pub(crate) fn is_child() -> bool {
    env::args_os().nth(1).is_some_and(|arg| arg == CHILD)
}

/// Adds a thread that starts up to `per_s` processes per second. It returns the
/// times from the start of a process to its end.
///
/// # Errors
/// The thread cannot be created, or this program does not find itself (without
/// /proc).
pub(crate) fn hire(per_s: u32, control: &Arc<Control>) -> Result<Crew<Latencies>> {
    let mut crew = Crew::new("forker", control);
    if per_s > 0 {
        let program = env::current_exe().context("finding this program's file")?;
        let period = Duration::from_secs(1) / per_s;
        crew.hire(move |control| work(&program, period, control))?;
    }
    Ok(crew)
}

fn work(program: &Path, period: Duration, control: &Control) -> Result<Latencies> {
    let mut latencies = Latencies::new();
    let mut next = Instant::now();
    while !control.sleep_until(next) {
        let start = Instant::now();
        run_child(program)?;
        latencies.record(start.elapsed());
        // Starts that are missed are not made up for: that would be a burst.
        next = (next + period).max(start);
    }
    Ok(latencies)
}

/// Starts a process and waits for its end.
fn run_child(program: &Path) -> Result<()> {
    let mut command = Command::new(program);
    command
        .arg(CHILD)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Out of reach of a Ctrl-C, which is for the load.
        .process_group(0);
    let status = command.status().context("starting a process")?;
    ensure!(status.success(), "a started process ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_not_started_faster_than_asked_for() {
        let control = Control::default();
        let period = Duration::from_millis(20);
        let start = Instant::now();
        let latencies = std::thread::scope(|scope| {
            let worker = scope.spawn(|| work(Path::new("true"), period, &control));
            control.wait_for_stop(Duration::from_millis(200));
            control.stop();
            worker.join().unwrap().unwrap()
        });
        let most = start.elapsed().as_millis() / period.as_millis() + 1;
        let count = latencies.count();
        assert!(count > 0 && u128::from(count) <= most, "{count} of {most}");
        assert!(latencies.max() > Some(Duration::ZERO));
    }

    #[test]
    fn a_program_that_fails_or_is_missing_is_an_error() {
        let error = run_child(Path::new("/nonexistent")).unwrap_err();
        assert!(format!("{error:#}").contains("No such file"), "{error:#}");
        let error = run_child(Path::new("false")).unwrap_err();
        assert!(error.to_string().contains("exit status: 1"), "{error}");
    }

    #[test]
    fn no_forks_no_thread() {
        let control = Arc::new(Control::default());
        assert!(hire(0, &control).unwrap().join().unwrap().is_empty());
    }
}
