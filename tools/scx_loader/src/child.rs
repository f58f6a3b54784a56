// SPDX-License-Identifier: GPL-2.0-only
//! The process of a scheduler. It is started without a shell, with only PATH in its environment. A
//! thread waits for its exit.

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

/// PATH of the process. A fixed value suffices, because the schedulers of this repository start no
/// programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Only the last lines of standard error are kept, at most this many.
const LINES_MAX: usize = 20;
/// A longer line is split into several, so that a line without end cannot fill the memory.
const LINE_BYTES_MAX: u64 = 4096;

/// How long to wait for the rest of standard error after the process has exited.
const TAIL_TIMEOUT: Duration = Duration::from_secs(1);

/// The process of a scheduler.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: u32,
    /// Used to send signals: after the process has exited, its `pid` may be reused.
    pidfd: OwnedFd,
}

impl Child {
    /// Starts the program of `job`, a file in the directory `folder`. When the process exits,
    /// another thread calls `ended`.
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

/// Opens the pidfd of a process. The process must not have been reaped, because its pid could then
/// belong to another process.
fn pidfd(process: &Process) -> Result<OwnedFd> {
    let number = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    let number = number.context("no process")?;
    pidfd_open(number, PidfdFlags::empty()).context("pidfd_open()")
}

/// Starts a thread that copies the process's standard error to the loader's, which systemd connects
/// to the journal. At the end of the stream, the thread sends the last lines to the receiver.
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
            // Schedulers print kernel messages with task names, which are untrusted.
            let line = String::from_utf8_lossy(&line);
            let line = line
                .trim_end()
                .replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
            // Ignore errors: the loader's standard error may be closed.
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
    // Wait with a timeout, because another process may have inherited the write end of the pipe.
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

    /// Held while a script is written and started. Otherwise a child that another test forks
    /// meanwhile would hold the script open for writing until its own exec(), and the start of the
    /// script would fail with ETXTBSY.
    static STARTING: Mutex<()> = Mutex::new(());

    /// Runs a script until it exits. Sends `signal`, if any, once the script has created the file
    /// `ready`.
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
