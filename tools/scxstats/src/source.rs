// SPDX-License-Identifier: GPL-2.0-only
//! Queries the scheduler.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use scx_stats::{Client, ClientError, StructMeta};
use serde_json::Value;

use crate::flatten::{flatten, Metric};

/// How long a scheduler may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Statistics and their metadata. The metadata is queried each time, since the scheduler may have
/// been replaced.
#[derive(Debug)]
pub(crate) struct Reading {
    meta: Vec<StructMeta>,
    pub(crate) stats: Value,
}

impl Reading {
    /// The statistics as a list of numbers. Fails if no struct of the metadata is the top struct.
    pub(crate) fn metrics(&self) -> Result<Vec<Metric>> {
        flatten(&self.meta, &self.stats).context("the scheduler provides no metadata")
    }

    /// Totals since the scheduler's start.
    pub(crate) fn total(path: &Path) -> Result<Self, ClientError> {
        let mut client = Client::connect(path, TIMEOUT)?;
        let meta = client.meta()?;
        let stats = client.stats_total()?;
        Ok(Self { meta, stats })
    }

    /// The changes since the last call for this client, or since the client connected.
    pub(crate) fn since(client: &mut Client) -> Result<Self, ClientError> {
        let meta = client.meta()?;
        let stats = client.stats()?;
        Ok(Self { meta, stats })
    }
}

/// An error in one line, with its causes.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    if error.is::<ClientError>() {
        // The message includes the cause.
        error.to_string()
    } else {
        format!("{error:#}")
    }
}
