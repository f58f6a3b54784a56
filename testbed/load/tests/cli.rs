//! Tests of the command line and of its output.

// clippy.toml allows unwrap() in test functions, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

/// Timeout of operations that normally finish much earlier.
const TIMEOUT: Duration = Duration::from_secs(30);

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_load"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn stdout(output: Output) -> String {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_default_load_has_a_line() {
    let text = stdout(run(&["--seconds", "0.3"]));
    let names: Vec<_> = text
        .lines()
        .map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        ["hogs", "sleepers", "pipes", "forks"].map(Some),
        "{text}"
    );
}

#[test]
fn json_has_figures_of_each_kind() {
    let args = [
        "--json",
        "--seconds=0.5",
        "--hogs=3",
        "--sleepers=2",
        "--pipes=1",
    ];
    let json: Value = serde_json::from_str(&stdout(run(&args))).unwrap();
    assert!(json["elapsed_s"].as_f64() >= Some(0.5), "{json}");
    assert_eq!(json["hogs"]["cpu_s"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["sleepers"]["count"], 2);
    assert!(json["sleepers"]["wakeups"].as_u64() > Some(0), "{json}");
    assert!(json["pipes"]["round_trips"].as_u64() > Some(0), "{json}");
    assert!(json["forks"]["done"].as_u64() > Some(0), "{json}");
}

#[test]
fn optional_loads_have_figures() {
    let args = [
        "--json",
        "--seconds=1",
        "--hogs=2",
        "--hog-nices=10,19",
        "--fork-storms=1",
        "--periodic=1",
        "--period-us=10000",
        "--period-work-us=100",
        "--workers=2",
        "--request-us=100",
        "--groups=1",
    ];
    let json: Value = serde_json::from_str(&stdout(run(&args))).unwrap();
    for (kind, figure) in [
        ("storms", "done"),
        ("periodic", "done"),
        ("requests", "done"),
        ("groups", "messages"),
    ] {
        assert!(json[kind][figure].as_u64() > Some(0), "{kind}: {json}");
    }
}

#[test]
fn loads_of_count_0_are_omitted() {
    let args = [
        "--seconds=0.1",
        "--hogs=0",
        "--sleepers=0",
        "--forks-per-s=0",
    ];
    let text = stdout(run(&args));
    assert!(
        text.starts_with("pipes") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn signals_stop_the_run_with_figures() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = command(&["--hogs=1", "--seconds=600"]);
        let child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_caught(&child, signal);
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).unwrap();
        let text = stdout(child.wait_with_output().unwrap());
        assert_eq!(text.lines().count(), 4, "{signal:?}: {text}");
    }
}

/// Waits until `child` has a handler for `signal`.
fn wait_until_caught(child: &Child, signal: Signal) {
    let start = Instant::now();
    while !is_caught(child.id(), signal) {
        assert!(start.elapsed() < TIMEOUT, "no handler for {signal:?}");
        sleep(Duration::from_millis(5));
    }
}

fn is_caught(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & 1 << (signal.as_raw() - 1) != 0
}

#[test]
fn wrong_usage_is_a_line_and_status_2() {
    for args in [
        &["--seconds", "NaN"][..],
        &["--seconds", "-1"],
        &["--hogs", "-1"],
        &["--sleepers", "1e9"],
        &["--hogs=0", "--sleepers=0", "--pipes=0", "--forks-per-s=0"],
        &["--no-such-option"],
        &["operand"],
    ] {
        let output = run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("scx_load: "), "{stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn full_disk_is_status_1() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let args = ["--seconds=0.1", "--hogs=1"];
    let child = command(&args).stdout(full).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("No space left"), "{stderr}");
}

#[test]
fn failing_load_is_status_1() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 8 && exec \"$0\" --pipes 100"]);
    let output = shell.arg(env!("CARGO_BIN_EXE_scx_load")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("creating a pipe"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn help_and_version_succeed() {
    assert!(stdout(run(&["--help"])).contains("--seconds"));
    assert!(stdout(run(&["--version"])).starts_with("scx_load "));
}
