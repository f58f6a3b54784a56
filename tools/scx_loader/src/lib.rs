// SPDX-License-Identifier: GPL-2.0-only
//! The service that starts, switches and supervises schedulers.
//!
//! `supervisor` decides: it is told what happened and what the time is, and says what is to be
//! done. `daemon` tells it and does it. `service` is the object on the bus, and asks polkit; `view`
//! is what its properties say; `child` is a scheduler's process; `config` and [`registry`] are what
//! may be started, and how. Clients use [`boot`], [`bus`], [`places`] and [`registry`].

#![forbid(unsafe_code)]

pub mod boot;
pub mod bus;
mod child;
mod config;
mod daemon;
mod job;
mod man;
mod opts;
pub mod places;
pub mod registry;
mod service;
mod supervisor;
mod view;

pub use daemon::main;
