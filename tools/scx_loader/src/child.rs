// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler's process: started without a shell, with only PATH in its environment, and watched
//! until it exits.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{
    pidfd_open, pidfd_send_signal, waitid, Pid, PidfdFlags, WaitId, WaitIdOptions,
};

use crate::job::Job;
use crate::supervisor::{Exit, Signal};

/// PATH of the process. The schedulers of this repository start no programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Limits of the kept tail of standard error: lines, and bytes per line.
const LINES_MAX: usize = 20;
const LINE_BYTES_MAX: u64 = 4096;

/// How long to wait for the rest of standard error after the exit.
const TAIL_TIMEOUT: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: u32,
    /// For signals: by then, the pid may have been reused.
    pidfd: OwnedFd,
}

impl Child {
    /// Starts the program of `job`, a file in `folder`. `ended` is called on its exit, from another
    /// thread.
    pub(crate) fn spawn(
        folder: &Path,
        job: &Job,
        ended: impl FnOnce(Exit) + Send + 'static,
    ) -> Result<Self> {
        let program = folder.join(&job.scheduler);
        let mut process = Command::new(&program)
            .args(&job.args)
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = process.id();
        let pidfd = pidfd(&process).inspect_err(|_| {
            // Without a pidfd, the process could not be stopped later.
            let _ = process.kill().and_then(|()| process.wait());
        })?;
        let tail = process.stderr.take().map(listen).transpose();
        let child = Self { pid, pidfd };
        let watched = tail.and_then(|tail| {
            let thread = thread::Builder::new().name("child".into());
            thread.spawn(move || ended(wait(process, tail)))
        });
        if let Err(error) = watched {
            child.signal(Signal::Kill);
            let _ = waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED);
            return Err(error).context("starting a thread");
        }
        Ok(child)
    }

    /// Sends a signal, unless the process has exited.
    pub(crate) fn signal(&self, signal: Signal) {
        let number = match signal {
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        let _ = pidfd_send_signal(&self.pidfd, number);
    }
}

/// The pidfd of a process that has not been reaped yet, so that its pid cannot have been reused.
fn pidfd(process: &Process) -> Result<OwnedFd> {
    let number = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    let number = number.context("no process")?;
    pidfd_open(number, PidfdFlags::empty()).context("pidfd_open()")
}

/// Copies the process's standard error to that of the loader, for the journal. At the end of the
/// stream, the receiver gets the last lines.
fn listen(stderr: impl Read + Send + 'static) -> io::Result<Receiver<Vec<String>>> {
    let (sender, receiver) = mpsc::channel();
    let repeat = move || {
        let mut last = VecDeque::new();
        let mut lines = BufReader::new(stderr);
        loop {
            let mut line = Vec::new();
            let read = lines
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                break;
            }
            // Messages of the kernel contain task names, which are untrusted.
            let line = String::from_utf8_lossy(&line);
            let line = line
                .trim_end()
                .replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
            // The loader's standard error may be closed.
            let _ = writeln!(io::stderr(), "{line}");
            if last.len() == LINES_MAX {
                last.pop_front();
            }
            last.push_back(line);
        }
        let _ = sender.send(last.into());
    };
    thread::Builder::new().name("tail".into()).spawn(repeat)?;
    Ok(receiver)
}

fn wait(mut process: Process, tail: Option<Receiver<Vec<String>>>) -> Exit {
    let status = process.wait();
    // Another process may have inherited the write end of the pipe.
    let tail = tail.and_then(|tail| tail.recv_timeout(TAIL_TIMEOUT).ok());
    Exit {
        well: status.as_ref().is_ok_and(ExitStatus::success),
        how: status.map_or_else(|error| error.to_string(), describe),
        stderr_tail: tail.unwrap_or_default(),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with status {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Mutex;

    use scx_utils::manifest::Mode;

    use super::*;
    use crate::job::Follower;

    /// Held from before a script is opened for writing until it is executed. A child that another
    /// test forks meanwhile would have the script open for writing until its exec(), and a file
    /// that is open for writing cannot be executed (ETXTBSY).
    static STARTING: Mutex<()> = Mutex::new(());

    /// Runs a script until it exits. Signals it once it has created the file `ready`.
    fn run(script: &str, args: &[&str], signal: Option<Signal>) -> Exit {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("scx_script");
        let starting = STARTING.lock().unwrap();
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let job = Job {
            scheduler: "scx_script".into(),
            mode: Mode::Auto,
            effective: Mode::Auto,
            follower: Follower::None,
            is_custom: true,
            args: args.iter().map(ToString::to_string).collect(),
        };
        let (sender, receiver) = mpsc::channel();
        let child = Child::spawn(folder.path(), &job, move |exit| sender.send(exit).unwrap());
        drop(starting);
        let child = child.unwrap();
        if let Some(signal) = signal {
            let ready = folder.path().join("ready");
            while !ready.exists() {
                thread::sleep(Duration::from_millis(10));
            }
            child.signal(signal);
        }
        receiver.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn exit_is_described() {
        let exit = run("echo one >&2; echo two >&2; exit 3", &[], None);
        assert_eq!((exit.well, exit.how.as_str()), (false, "with status 3"));
        assert_eq!(exit.stderr_tail, ["one", "two"]);
        assert!(run("exit 0", &[], None).well);
    }

    #[test]
    fn signals_are_delivered() {
        let script = "trap 'exit 7' INT; : >${0%/*}/ready; while :; do sleep 0.01; done";
        assert_eq!(
            run(script, &[], Some(Signal::Interrupt)).how,
            "with status 7"
        );
        assert_eq!(run(script, &[], Some(Signal::Kill)).how, "by signal 9");
    }

    #[test]
    fn arguments_are_passed_and_the_environment_is_not() {
        let exit = run("echo \"$#:$1:$2\" >&2; env >&2", &["a b; $(id)", "*"], None);
        assert_eq!(exit.stderr_tail[0], "2:a b; $(id):*");
        let known = ["PATH=", "PWD=", "SHLVL=", "_="];
        for line in &exit.stderr_tail[1..] {
            assert!(known.iter().any(|name| line.starts_with(name)), "{line}");
        }
    }

    #[test]
    fn only_the_tail_is_kept() {
        let exit = run("for n in $(seq 100); do echo $n >&2; done", &[], None);
        assert_eq!(exit.stderr_tail.len(), LINES_MAX);
        assert_eq!(exit.stderr_tail[LINES_MAX - 1], "100");
    }

    #[test]
    fn control_characters_are_replaced() {
        let exit = run(r"printf 'a\033]0;b\007c\td\r\n' >&2", &[], None);
        assert_eq!(exit.stderr_tail, ["a\u{fffd}]0;b\u{fffd}c\td"]);
    }

    #[test]
    fn missing_program_is_an_error() {
        let job = Job {
            scheduler: "scx_none".into(),
            mode: Mode::Auto,
            effective: Mode::Auto,
            follower: Follower::None,
            is_custom: false,
            args: Vec::new(),
        };
        let _starting = STARTING.lock().unwrap();
        let error = Child::spawn(Path::new("/nonexistent"), &job, |_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("/nonexistent/scx_none"));
    }
}
