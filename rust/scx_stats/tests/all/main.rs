//! Tests of the public interface, one module per concern, in one binary, which also serves as
//! the other process: see `common::Child`.

// clippy.toml allows this in test functions, but not in their helpers.
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
