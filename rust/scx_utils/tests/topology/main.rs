//! Topologies read from made-up trees of sysfs, from broken ones, and from this machine.

mod invariants;
mod machines;
mod shapes;
mod strength;
mod sysfs_tree;
