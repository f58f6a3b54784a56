// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's own statistics.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scx_stats::Client;
use serde_json::Value;

/// Minimum time between two attempts to connect.
const RETRY: Duration = Duration::from_secs(1);

/// A connection to the scheduler, opened again when it is lost.
pub(crate) struct Source {
    path: PathBuf,
    /// How long the scheduler may take to answer. The caller waits meanwhile.
    timeout: Duration,
    client: Option<Client>,
    retry: Instant,
}

impl Source {
    pub(crate) fn new(path: &Path, timeout: Duration) -> Self {
        Self {
            path: path.into(),
            timeout,
            client: None,
            retry: Instant::now(),
        }
    }

    /// Names and values of the totals. Empty if the scheduler does not answer.
    pub(crate) fn read(&mut self) -> Vec<(String, Value)> {
        let mut flat = Vec::new();
        if let Some(stats) = self.totals() {
            flatten("", stats, &mut flat);
        }
        flat
    }

    fn totals(&mut self) -> Option<Value> {
        let client = self.client.take();
        let client = client.or_else(|| {
            let is_due = Instant::now() >= self.retry;
            is_due.then(|| Client::connect(&self.path, self.timeout).ok())?
        });
        let stats = client.and_then(|mut client| {
            let stats = client.stats_total().ok()?;
            self.client = Some(client);
            Some(stats)
        });
        if self.client.is_none() && Instant::now() >= self.retry {
            self.retry = Instant::now() + RETRY;
        }
        stats
    }
}

/// Appends the values of nested objects and lists, with the path to each as its name.
fn flatten(path: &str, value: Value, flat: &mut Vec<(String, Value)>) {
    let join = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&join(&key), value, flat);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.into_iter().enumerate() {
                flatten(&join(&index.to_string()), value, flat);
            }
        }
        value => flat.push((path.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths() {
        let stats = serde_json::json!({"a": 1, "b": {"c": [2, "x"]}, "d": {}});
        let mut flat = Vec::new();
        flatten("", stats, &mut flat);
        let flat: Vec<_> = flat
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(flat, ["a=1", "b.c.0=2", "b.c.1=\"x\""]);
    }
}
