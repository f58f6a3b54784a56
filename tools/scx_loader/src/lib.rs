// SPDX-License-Identifier: GPL-2.0-only
//! The service that starts, switches and supervises schedulers.
//!
//! - `supervisor` is a state machine: events and the current time go in, actions come out.
//! - `daemon` passes events to the supervisor, and executes its actions.
//! - `service` is the D-Bus object. `view` holds its properties, `wanted` converts calls to
//!   requests for the supervisor, `operations` holds the operations whose progress callers watch,
//!   and `authority` authorizes callers.
//! - `child` is the process of a scheduler.
//! - `profile` is the machine's power profile.
//! - `config` and [`registry`] determine which schedulers may be started, with which arguments.
//!
//! Clients use [`boot`], [`bus`], [`paths`] and [`registry`].

#![forbid(unsafe_code)]

mod authority;
pub mod boot;
pub mod bus;
mod child;
mod config;
mod daemon;
mod job;
mod man;
mod operations;
mod opts;
pub mod paths;
mod profile;
pub mod registry;
mod service;
mod supervisor;
mod view;
mod wanted;

pub use daemon::main;
