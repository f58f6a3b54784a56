//! Tests of the public interface, one module per concern. They are one program, which
//! also is the other process where one is needed: see `common::Child`.

// clippy.toml allows this in test functions, but not in what they share.
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
