// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the command line, without recording.

// clippy.toml allows unwrap() in test functions, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_switches"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

#[test]
fn wrong_usage_is_a_line_and_status_2() {
    for args in [
        &["--seconds", "NaN"][..],
        &["--seconds", "-1"],
        &["--pid", "0"],
        &["--pid", "-1"],
        &["--comm", "abcdefghijklmnop"],
        &["--cpu", "1000000"],
        &["--ring-kib", "5"],
        &["--syscalls"],
        &["--no-such-option"],
        &["operand"],
    ] {
        let output = run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("scx_switches: "), "{stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_succeed() {
    for (option, part) in [("--help", "--ring-kib"), ("--version", "scx_switches ")] {
        let output = run(&[option]);
        assert_eq!(output.status.code(), Some(0), "{option}");
        assert!(String::from_utf8(output.stdout).unwrap().contains(part));
        assert!(output.stderr.is_empty(), "{option}");
    }
}

#[test]
fn full_disk_is_status_1() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = command(&["--help"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("No space left"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
