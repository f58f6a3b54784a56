// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler tells.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use scx_stats::{Client, ClientError, StructMeta};
use serde_json::Value;

use crate::flatten::{flatten, Metric};

/// How long a scheduler may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Statistics, and what they mean. The latter is asked for each time: the scheduler may be another
/// one by then.
#[derive(Debug)]
pub(crate) struct Reading {
    meta: Vec<StructMeta>,
    pub(crate) stats: Value,
}

impl Reading {
    /// As a list of numbers.
    pub(crate) fn metrics(&self) -> Result<Vec<Metric>> {
        flatten(&self.meta, &self.stats).context("the scheduler does not describe its statistics")
    }

    /// Of the time since the scheduler's start.
    pub(crate) fn total(path: &Path) -> Result<Self, ClientError> {
        let mut client = Client::connect(path, TIMEOUT)?;
        let meta = client.meta()?;
        let stats = client.stats_total()?;
        Ok(Self { meta, stats })
    }

    /// Of the time since the last call for this client, or since it was connected.
    pub(crate) fn since(client: &mut Client) -> Result<Self, ClientError> {
        let meta = client.meta()?;
        let stats = client.stats()?;
        Ok(Self { meta, stats })
    }
}

/// An error in one line, with its causes.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    if error.is::<ClientError>() {
        // Names its cause itself.
        error.to_string()
    } else {
        format!("{error:#}")
    }
}
