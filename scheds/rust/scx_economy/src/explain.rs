// SPDX-License-Identifier: GPL-2.0-only
//! `--explain`: a text that says who pays for a task.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use scx_stats::{Args, Client, TARGET_ARG};
use scx_utils::cli;
use scx_utils::runner::client_error;

use crate::stats::{ms, Account, Accounts, Task, Tasks, ACCOUNTS, NUMBER, PID, TASKS};

/// How long to wait for a reply of the running scheduler.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Prints who pays for the task or process `pid` of the scheduler that serves its statistics on
/// `socket`.
pub(crate) fn explain(socket: &Path, pid: u32) -> Result<()> {
    let mut client = Client::connect(socket, TIMEOUT).map_err(client_error)?;
    let request = |target: &str, pid: u32, number: u64| {
        Args::from([
            (TARGET_ARG.to_owned(), target.to_owned()),
            (PID.to_owned(), pid.to_string()),
            (NUMBER.to_owned(), number.to_string()),
        ])
    };
    let answer = client.stats_with(&request(TASKS, pid, 1));
    let Tasks { tasks } = answer.map_err(client_error)?;
    let task = tasks.first();
    let task = task.with_context(|| format!("there is no task {pid} under this scheduler"))?;
    let answer = client.stats_with(&request(ACCOUNTS, task.process, u64::from(u32::MAX)));
    let Accounts { accounts } = answer.map_err(client_error)?;
    cli::print(text(task, &accounts).as_bytes()).context("standard output")
}

/// The explanation for `task`. `accounts` are the accounts of its process.
fn text(task: &Task, accounts: &[Account]) -> String {
    let mut text = format!("{} (PID {}) ", task.comm, task.pid);
    let owed_ms = ms(task.lag_ns.abs());
    text += &match task.lag_ns {
        0 => "has had exactly its share of CPU time".to_owned(),
        1.. => format!("has had {owed_ms:.3} ms of CPU time less than it is entitled to"),
        _ => format!("has had {owed_ms:.3} ms of CPU time more than it is entitled to"),
    };
    let earned_ms = ms(task.earned_ns.cast_signed());
    let paid_ms = ms(task.paid_ns.cast_signed());
    // A write to a String cannot fail.
    let _ = writeln!(
        text,
        ".\nIt has got {earned_ms:.3} ms from its clients, and has paid {paid_ms:.3} ms to others."
    );
    let paid: Vec<_> = accounts.iter().filter(|of| of.paid_ns > 0).collect();
    if paid.is_empty() {
        text += "No connection of its process was paid for.\n";
        return text;
    }
    text += "Who pays for its process:\n";
    for account in paid {
        let _ = writeln!(
            text,
            "  {} (PID {}) has paid last over a {}: {:.3} ms in total, {:.3} used, {:.3} left",
            account.payer_comm,
            account.payer_pid,
            account.kind,
            ms(account.paid_ns.cast_signed()),
            ms(account.withdrawn_ns.cast_signed()),
            ms(account.balance_ns),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task {
            pid: 12,
            process: 11,
            comm: "server".to_owned(),
            weight: 100,
            lag_ns: -1_500_000,
            paid_ns: 0,
            earned_ns: 2_000_000,
        }
    }

    #[test]
    fn names_those_that_paid() {
        let account = Account {
            server_pid: 11,
            server_comm: "server".to_owned(),
            payer_pid: 20,
            payer_comm: "client".to_owned(),
            kind: "socket".to_owned(),
            balance_ns: 500_000,
            paid_ns: 2_500_000,
            withdrawn_ns: 2_000_000,
        };
        let unpaid = Account::default();
        let expected =
            "server (PID 12) has had 1.500 ms of CPU time more than it is entitled to.\n\
                        It has got 2.000 ms from its clients, and has paid 0.000 ms to others.\n\
                        Who pays for its process:\n  client (PID 20) has paid last over a socket: \
                        2.500 ms in total, 2.000 used, 0.500 left\n";
        assert_eq!(text(&task(), &[unpaid, account]), expected);
    }

    #[test]
    fn says_that_nobody_pays() {
        assert!(text(&task(), &[]).ends_with("No connection of its process was paid for.\n"));
    }
}
