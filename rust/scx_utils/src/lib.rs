//! What schedulers share.
