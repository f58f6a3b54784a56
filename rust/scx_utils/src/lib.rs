//! What schedulers share.

pub mod cpumask;
