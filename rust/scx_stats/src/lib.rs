//! Statistics as plain structs, served to other programs as lines of JSON over a Unix
//! socket.
//!
//! The author of a scheduler derives [`Stats`] for a struct of numbers. A [`Server`] serves the
//! numbers, a [`Client`] or [`monitor()`] reads them, and [`describe()`] lists them with their
//! descriptions:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use scx_stats::{describe, Args, Client, Server, Stats};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
//! #[stat(top, desc = "What the scheduler has done", _om_prefix = "s_")]
//! struct Metrics {
//!     #[stat(counter, desc = "Tasks dispatched")]
//!     nr_dispatches: u64,
//!     #[stat(desc = "CPUs that are online")]
//!     nr_cpus: u32,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nr_dispatches = Arc::new(AtomicU64::new(3));
//! let counter = Arc::clone(&nr_dispatches);
//! let source = move |_: &Args| -> Result<Metrics, std::io::Error> {
//!     Ok(Metrics {
//!         nr_dispatches: counter.load(Ordering::Relaxed),
//!         nr_cpus: 4,
//!     })
//! };
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("stats");
//! let server = Server::builder(&path).stats("top", source).launch()?;
//!
//! let mut client = Client::connect(&path, Duration::from_secs(5))?;
//! # client.meta()?;
//! nr_dispatches.fetch_add(2, Ordering::Relaxed);
//! assert_eq!(client.stats::<Metrics>()?.nr_dispatches, 2);
//! assert_eq!(client.stats_total::<Metrics>()?.nr_dispatches, 5);
//!
//! assert_eq!(
//!     describe::<Metrics>(),
//!     "[Metrics] What the scheduler has done\n  \
//!        nr_dispatches (u64) : Tasks dispatched\n  \
//!        nr_cpus       (u64) : CPUs that are online\n"
//! );
//! # Ok(())
//! # }
//! ```
//!
//! The scheduler increments its counters and never resets them: a [`Source`] returns totals, and
//! the server answers each client with the changes since the client's last request. This happens on
//! the server's thread, so requests do not delay a scheduling loop.

#![forbid(unsafe_code)]

mod client;
#[cfg(doctest)]
mod compile_fail;
mod describe;
mod meta;
mod monitor;
mod percent;
mod protocol;
mod registry;
mod server;
mod source;
mod stats;

pub use client::{Client, ClientError, MAX_ANSWER_BYTES};
pub use describe::describe;
pub use meta::{FieldMeta, Kind, Shape, StructMeta};
pub use monitor::{monitor, monitor_with};
pub use percent::Percent;
pub use protocol::{Args, DEFAULT_PATH, DEFAULT_TARGET, TARGET_ARG};
pub use registry::{MetaError, Registry};
pub use scx_stats_derive::Stats;
pub use server::{
    Access, Limits, Server, ServerBuilder, ServerError, LINE_TIMEOUT, MAX_CONNECTIONS,
    MAX_LINE_BYTES, WRITE_TIMEOUT,
};
pub use source::Source;
pub use stats::{Counter, Datum, FieldType, Key, Stats};
