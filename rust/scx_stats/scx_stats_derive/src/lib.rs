//! Derive macro of `scx_stats`.
