//! Topologies read from generated trees of sysfs, from damaged trees, and from this machine.

mod broken;
mod invariants;
mod machines;
mod primary;
mod printed;
mod shapes;
mod strength;
mod sysfs_tree;
