// SPDX-License-Identifier: GPL-2.0-only
//! Reads the state of all tasks, accounts and ledgers, and checks that all amounts add up to zero.

use std::io::Read as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, MapHandle};
use scx_utils::percpu::PerCpu;
use scx_utils::zerocopy::FromBytes;

use crate::bpf_intf::{
    economy_account_view, economy_counts, economy_ledger_view, economy_task_view,
};

/// `ECONOMY_UNIT`: units in 1 ns.
pub(crate) const UNIT: i64 = 100;

/// Maximum number of times that [`Books::audit`] reads the state.
const ATTEMPTS: usize = 20;

/// The pause between two readings of [`Books::audit`].
const PAUSE: Duration = Duration::from_millis(1);

/// The maps and iterators to read from. They own only file descriptors, so any thread can use them.
pub(crate) struct Books {
    pub(crate) counts: PerCpu<economy_counts>,
    pub(crate) ledgers: MapHandle,
    pub(crate) nr_ledgers: u32,
    /// The iterator over tasks.
    pub(crate) tasks: Link,
    /// The iterators over accounts.
    pub(crate) accounts: Vec<Link>,
}

/// The sums over all tasks, accounts and ledgers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) nr_accounts: u64,
    /// Sum of the balances of all accounts.
    pub(crate) balance_ns: i64,
    /// Sum of the banks, the inflows to banks, and the pots of all ledgers.
    pub(crate) bank_ns: i64,
    /// Sum of all lags, balances, banks, inflows and pots, which should be 0. Rounded away from 0.
    pub(crate) error_ns: i64,
}

/// The result of reading all tasks, accounts, ledgers and counters.
pub(crate) struct Audit {
    pub(crate) sums: Sums,
    pub(crate) counts: Vec<economy_counts>,
    /// Whether no money moved while the state was read.
    pub(crate) is_consistent: bool,
}

impl Books {
    /// Reads all tasks.
    pub(crate) fn tasks(&self) -> Result<Vec<economy_task_view>> {
        records(&self.tasks).context("cannot read the tasks")
    }

    /// Reads all accounts.
    pub(crate) fn accounts(&self) -> Result<Vec<economy_account_view>> {
        let mut accounts = Vec::new();
        for link in &self.accounts {
            accounts
                .extend(records::<economy_account_view>(link).context("cannot read the accounts")?);
        }
        Ok(accounts)
    }

    /// Reads the state until no money has moved meanwhile and the sums are right, but at most
    /// [`ATTEMPTS`] times.
    pub(crate) fn audit(&self) -> Result<Audit> {
        let mut audit = self.attempt()?;
        for _ in 1..ATTEMPTS {
            // A task that is about to end still has its lag, but can no longer be read, so an error
            // may go away.
            if audit.is_consistent && audit.sums.error_ns == 0 {
                break;
            }
            thread::sleep(PAUSE);
            audit = self.attempt()?;
        }
        Ok(audit)
    }

    fn attempt(&self) -> Result<Audit> {
        let before = self.counts.read(0)?;
        let sums = self.sums()?;
        let counts = self.counts.read(0)?;
        let transfers = |counts: &[economy_counts]| -> (u64, u64) {
            let begun = counts.iter().map(|of| of.nr_begun).sum();
            (begun, counts.iter().map(|of| of.nr_ended).sum())
        };
        let (begun, ended) = transfers(&before);
        let is_consistent = begun == ended && transfers(&counts) == (begun, ended);
        Ok(Audit {
            sums,
            counts,
            is_consistent,
        })
    }

    fn sums(&self) -> Result<Sums> {
        let tasks = self.tasks()?;
        let accounts = self.accounts()?;
        let bank = self.bank()?;
        let lags: i128 = tasks.iter().map(|task| i128::from(task.lag)).sum();
        let balance_ns: i128 = accounts.iter().map(|of| i128::from(of.balance_ns)).sum();
        let unit = i128::from(UNIT);
        let error = lags + balance_ns * unit + bank;
        // Round away from zero, so that an error below 1 ns is seen too.
        let error_ns = error / unit + (error % unit).signum();
        Ok(Sums {
            nr_accounts: accounts.len().try_into()?,
            balance_ns: balance_ns.try_into()?,
            bank_ns: (bank / unit).try_into()?,
            error_ns: error_ns.try_into()?,
        })
    }

    /// Sum of the banks, the inflows to banks, and the pots of all ledgers, in units ([`UNIT`]).
    fn bank(&self) -> Result<i128> {
        let mut sum = 0;
        for index in 0..self.nr_ledgers {
            let bytes = self.ledgers.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
            let bytes = bytes.with_context(|| format!("there is no ledger {index}"))?;
            let ledger = economy_ledger_view::read_from_bytes(&bytes).ok();
            let ledger = ledger.context("a ledger has an unexpected size")?;
            sum += i128::from(ledger.bank) + i128::from(ledger.inflow) + i128::from(ledger.pot);
        }
        Ok(sum)
    }
}

/// Runs an iterator that writes records of type `T`, and returns the records.
fn records<T: FromBytes>(iterator: &Link) -> Result<Vec<T>> {
    let mut bytes = Vec::new();
    Iter::new(iterator)?.read_to_end(&mut bytes)?;
    let records = bytes.chunks_exact(size_of::<T>());
    let records = records.map(|record| T::read_from_bytes(record).ok());
    records
        .collect::<Option<_>>()
        .context("a record has an unexpected size")
}
