// SPDX-License-Identifier: GPL-2.0-only
//! The service that starts, switches and supervises schedulers.
//!
//! `supervisor` is the state machine: events and the time go in, actions come out. `daemon` passes
//! it the events and executes the actions. `service` is the D-Bus object, whose callers are
//! authorized by `authority`; `operations` are those that callers watch; `view` is its properties;
//! `child` is a scheduler's process; `profile` is the machine's power profile; `config` and
//! [`registry`] determine what may be started, and how. Clients use [`boot`], [`bus`], [`paths`]
//! and [`registry`].

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

pub use daemon::main;
