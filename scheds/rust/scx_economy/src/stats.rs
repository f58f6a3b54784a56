// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics: totals, and the targets `accounts` and `tasks`.

use std::cmp::Reverse;
use std::fmt;

use anyhow::{Context as _, Result};
use scx_stats::{Args, Stats};
use scx_utils::bpf::text;
use serde::{Deserialize, Serialize};

use crate::books::{Books, Sums, UNIT};
use crate::bpf_intf::{economy_account_view, economy_counts, economy_task_view};

/// Names of the targets, and of their arguments: the maximum number of entries, and the process or
/// task to select.
pub(crate) const ACCOUNTS: &str = "accounts";
pub(crate) const TASKS: &str = "tasks";
pub(crate) const NUMBER: &str = "n";
pub(crate) const PID: &str = "pid";

/// Maximum number of entries of a reply, unless the request sets another one.
const NUMBER_DFL: usize = 20;

/// Totals over all CPUs, tasks and accounts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "Payments between tasks", _om_prefix = "economy_")]
pub(crate) struct Metrics {
    #[stat(counter, desc = "Messages that were paid for")]
    pub(crate) nr_pay: u64,
    #[stat(counter, desc = "Withdrawals by receivers")]
    pub(crate) nr_withdraw: u64,
    #[stat(counter, desc = "Loans to owners of PI futexes")]
    pub(crate) nr_loan: u64,
    #[stat(
        counter,
        desc = "Messages and loans not paid for because the sender had too little"
    )]
    pub(crate) nr_refused_poor: u64,
    #[stat(counter, desc = "Messages not paid for because the account was full")]
    pub(crate) nr_refused_full: u64,
    #[stat(counter, desc = "CPU time paid for messages (ns)")]
    pub(crate) paid_ns: u64,
    #[stat(counter, desc = "CPU time withdrawn by receivers (ns)")]
    pub(crate) withdrawn_ns: u64,
    #[stat(counter, desc = "CPU time in accounts that were closed (ns)")]
    pub(crate) closed_ns: u64,
    #[stat(counter, desc = "CPU time lent to owners of PI futexes (ns)")]
    pub(crate) lent_ns: u64,
    #[stat(counter, desc = "Tasks preempted by others that were new or woke up")]
    pub(crate) nr_preemptions: u64,
    #[stat(desc = "Accounts")]
    pub(crate) nr_accounts: u64,
    #[stat(desc = "CPU time in all accounts (ns)")]
    pub(crate) balance_ns: i64,
    #[stat(desc = "CPU time that belongs to no task and no account (ns)")]
    pub(crate) bank_ns: i64,
    #[stat(
        desc = "CPU time created (positive) or lost, at the last audit (ns): always 0, unless the \
                scheduler has a bug"
    )]
    pub(crate) money_error_ns: i64,
    #[stat(
        counter,
        desc = "Audits: readings of all tasks and accounts during which no money moved"
    )]
    pub(crate) nr_audits: u64,
}

impl Metrics {
    /// Sums up the counters of all CPUs.
    fn set_counts(&mut self, counts: &[economy_counts]) {
        let sum = |of: fn(&economy_counts) -> u64| counts.iter().map(of).sum::<u64>();
        self.nr_pay = sum(|of| of.nr_pay);
        self.nr_withdraw = sum(|of| of.nr_withdraw);
        self.nr_loan = sum(|of| of.nr_loan);
        self.nr_refused_poor = sum(|of| of.nr_refused_poor);
        self.nr_refused_full = sum(|of| of.nr_refused_full);
        self.paid_ns = sum(|of| of.paid_ns);
        self.withdrawn_ns = sum(|of| of.withdrawn_ns);
        self.closed_ns = sum(|of| of.closed_ns);
        self.lent_ns = sum(|of| of.lent_ns);
        self.nr_preemptions = sum(|of| of.nr_preemptions);
    }

    fn set_sums(&mut self, sums: Sums, is_audit: bool) {
        self.nr_accounts = sums.nr_accounts;
        self.balance_ns = sums.balance_ns;
        self.bank_ns = sums.bank_ns;
        if is_audit {
            self.money_error_ns = sums.error_ns;
            self.nr_audits += 1;
        }
    }
}

/// A reader of the totals. A reading counts as an audit if no money moves meanwhile.
pub(crate) fn reader(books: Books) -> impl FnMut() -> Result<Metrics> + Send {
    let mut metrics = Metrics::default();
    move || {
        let audit = books.audit()?;
        metrics.set_counts(&audit.counts);
        metrics.set_sums(audit.sums, audit.is_consistent);
        Ok(metrics.clone())
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "paid={} ({:.3} ms) withdrawn={} ({:.3} ms) poor={} full={} accounts={} \
             balance={:.3} ms bank={:.3} ms error={} ns",
            self.nr_pay,
            ms(self.paid_ns.cast_signed()),
            self.nr_withdraw,
            ms(self.withdrawn_ns.cast_signed()),
            self.nr_refused_poor,
            self.nr_refused_full,
            self.nr_accounts,
            ms(self.balance_ns),
            ms(self.bank_ns),
            self.money_error_ns,
        )
    }
}

/// Converts ns to ms.
#[expect(clippy::cast_precision_loss, reason = "for display")]
pub(crate) fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// The account of a connection, or of a pipe.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "The account of a connection, or of a pipe")]
pub(crate) struct Account {
    #[stat(desc = "Process that reads from it; 0: unknown")]
    pub(crate) server_pid: u32,
    #[stat(desc = "Its name")]
    pub(crate) server_comm: String,
    #[stat(desc = "Process that paid last; 0: none")]
    pub(crate) payer_pid: u32,
    #[stat(desc = "Its name")]
    pub(crate) payer_comm: String,
    #[stat(desc = "What it belongs to: socket or pipe")]
    pub(crate) kind: String,
    #[stat(desc = "CPU time in it (ns)")]
    pub(crate) balance_ns: i64,
    #[stat(desc = "CPU time paid in total (ns)")]
    pub(crate) paid_ns: u64,
    #[stat(desc = "CPU time withdrawn in total (ns)")]
    pub(crate) withdrawn_ns: u64,
}

/// Accounts, ordered by turnover.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "The accounts with the most turnover", _om_skip)]
pub(crate) struct Accounts {
    #[stat(desc = "The accounts")]
    pub(crate) accounts: Vec<Account>,
}

impl From<&economy_account_view> for Account {
    fn from(view: &economy_account_view) -> Self {
        Self {
            server_pid: view.server,
            server_comm: text(&view.server_comm),
            payer_pid: view.payer,
            payer_comm: text(&view.payer_comm),
            kind: if view.is_pipe == 0 { "socket" } else { "pipe" }.to_owned(),
            balance_ns: view.balance_ns,
            paid_ns: view.paid_ns,
            withdrawn_ns: view.withdrawn_ns,
        }
    }
}

/// Replies to requests for the target `accounts`.
pub(crate) fn accounts(books: Books) -> impl FnMut(&Args) -> Result<Accounts> + Send {
    move |args| {
        let (number, pid) = (number(args, NUMBER)?, number(args, PID)?);
        let mut accounts: Vec<Account> = books.accounts()?.iter().map(Account::from).collect();
        accounts.retain(|account| pid.is_none_or(|pid| u64::from(account.server_pid) == pid));
        accounts.sort_by_key(|account| Reverse(account.paid_ns + account.withdrawn_ns));
        truncate(&mut accounts, number);
        Ok(Accounts { accounts })
    }
}

/// A task's entry in [`Tasks`].
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "A task")]
pub(crate) struct Task {
    #[stat(desc = "Its PID")]
    pub(crate) pid: u32,
    #[stat(desc = "PID of its process")]
    pub(crate) process: u32,
    #[stat(desc = "Its name")]
    pub(crate) comm: String,
    #[stat(desc = "Its weight: 100 for nice 0")]
    pub(crate) weight: u32,
    #[stat(desc = "CPU time that it is owed (positive) or owes (ns)")]
    pub(crate) lag_ns: i64,
    #[stat(desc = "CPU time that it has paid in total (ns)")]
    pub(crate) paid_ns: u64,
    #[stat(desc = "CPU time that it has withdrawn from accounts in total (ns)")]
    pub(crate) earned_ns: u64,
}

/// Tasks, ordered by what they have paid and earned.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "The tasks that have paid and earned most", _om_skip)]
pub(crate) struct Tasks {
    #[stat(desc = "The tasks")]
    pub(crate) tasks: Vec<Task>,
}

impl From<&economy_task_view> for Task {
    fn from(view: &economy_task_view) -> Self {
        Self {
            pid: view.pid,
            process: view.tgid,
            comm: text(&view.comm),
            weight: view.weight,
            lag_ns: view.lag / UNIT,
            paid_ns: view.paid_ns,
            earned_ns: view.earned_ns,
        }
    }
}

/// Replies to requests for the target `tasks`.
pub(crate) fn tasks(books: Books) -> impl FnMut(&Args) -> Result<Tasks> + Send {
    move |args| {
        let (number, pid) = (number(args, NUMBER)?, number(args, PID)?);
        let mut tasks: Vec<Task> = books.tasks()?.iter().map(Task::from).collect();
        tasks.retain(|task| pid.is_none_or(|pid| u64::from(task.pid) == pid));
        tasks.sort_by_key(|task| Reverse(task.paid_ns + task.earned_ns));
        truncate(&mut tasks, number);
        Ok(Tasks { tasks })
    }
}

fn truncate<T>(entries: &mut Vec<T>, number: Option<u64>) {
    let number = number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    entries.truncate(number.unwrap_or(NUMBER_DFL));
}

/// The value of a request's argument, which must be a number; `None` if there is no such argument.
fn number(args: &Args, name: &str) -> Result<Option<u64>> {
    let number = args.get(name).map(|text| {
        text.parse()
            .ok()
            .with_context(|| format!("{name} is {text:?}, not a number"))
    });
    number.transpose()
}
