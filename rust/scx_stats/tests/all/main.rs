//! Tests of the public interface, one module per topic, in one binary, which is also the program of
//! child processes: see `common::command`.

// clippy.toml allows `unwrap()` in test functions, but not in their helpers.
#![allow(clippy::unwrap_used)]

mod client;
mod common;
mod describe;
mod hostile;
mod limits;
mod meta;
mod monitor;
mod since;
mod socket;
mod sources;
mod wire;
