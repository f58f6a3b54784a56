//! What schedulers share.

pub mod cpumask;
pub mod hotplug;
pub mod topology;
