// SPDX-License-Identifier: GPL-2.0-only
//! Tests the command with a real statistics server.

// clippy.toml allows `unwrap()` in test functions, but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use scx_stats::{Args, Server, Stats};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "A scheduler", _om_prefix = "x_")]
struct Top {
    #[stat(counter, desc = "Tasks")]
    nr_tasks: u64,
    #[stat(desc = "Time used (%)")]
    busy: f64,
    #[stat(desc = "The nodes", _om_label = "node")]
    nodes: BTreeMap<u32, Node>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A node", _om_prefix = "n_")]
struct Node {
    #[stat(desc = "Load")]
    load: f64,
}

/// Launches a server whose number of tasks increases by ten with each read.
fn launch(path: &Path) -> Server {
    let nr_tasks = AtomicU64::new(100);
    let source = move |_: &Args| -> Result<Top, Infallible> {
        Ok(Top {
            nr_tasks: nr_tasks.fetch_add(10, Ordering::Relaxed),
            busy: 12.5,
            nodes: BTreeMap::from([(3, Node { load: 0.5 })]),
        })
    };
    Server::builder(path).stats("top", source).launch().unwrap()
}

fn command(path: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scxstats"));
    command.arg("--path").arg(path).args(args);
    command
}

#[test]
fn totals_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats");
    let _server = launch(&path);
    let output = command(&path, &["--openmetrics"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for expected in [
        "# HELP x_nr_tasks Tasks",
        "# TYPE x_nr_tasks counter",
        "# TYPE x_busy gauge",
        "x_busy{} 12.5",
        "n_load{node=\"3\"} 0.5",
    ] {
        assert!(lines.contains(&expected), "{expected}: {text}");
    }
    let total = text.split("x_nr_tasks_total{} ").nth(1).unwrap();
    let total: f64 = total.lines().next().unwrap().parse().unwrap();
    assert!(total >= 100.0, "{text}");
    assert_eq!(lines.last(), Some(&"# EOF"));
}

#[test]
fn changes_with_watch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats");
    let _server = launch(&path);
    let mut watch = command(&path, &["--watch=0.1"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let lines = lines.map(|line| line.unwrap());
    let tasks: Vec<_> = lines
        .filter_map(|line| Some(line.strip_prefix("x_nr_tasks ")?.trim().to_owned()))
        .take(3)
        .collect();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert_eq!(tasks, ["10", "10", "10"]);
}
