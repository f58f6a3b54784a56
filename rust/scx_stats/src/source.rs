//! Sources of statistics.

use std::error::Error;

use crate::{Args, Stats};

/// Reads statistics for a server. Closures are sources: any `FnMut(&Args) -> Result<T, E>` whose
/// error converts into a boxed error, as the errors of `std` and `anyhow` do.
///
/// A source runs on the server's thread: once per request for its statistics and, if these have
/// counters or percentages, when clients connect. It should read only data that it shares with the
/// scheduler, such as BPF maps by their file descriptors, or atomics, so that no request delays a
/// scheduling loop. It should not block, because other clients wait meanwhile.
pub trait Source: Send + 'static {
    /// The statistics.
    type Stats: Stats;

    /// Takes a snapshot. Counters count from the start of the scheduler; clients get the difference
    /// of two snapshots. `args` are the arguments of the request; they are empty when a client
    /// connects.
    ///
    /// # Errors
    /// The client gets the messages of the error and of its causes, and the errno of the first of
    /// these that is an `std::io::Error` with an errno, or else EINVAL. (An `anyhow::Error` hides
    /// the type of its outermost error: add a context to an `std::io::Error`, so that it becomes a
    /// cause.) An error ends neither the connection nor the server.
    fn read(&mut self, args: &Args) -> Result<Self::Stats, Box<dyn Error + Send + Sync>>;
}

impl<F, T, E> Source for F
where
    F: FnMut(&Args) -> Result<T, E> + Send + 'static,
    T: Stats,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Stats = T;

    fn read(&mut self, args: &Args) -> Result<T, Box<dyn Error + Send + Sync>> {
        self(args).map_err(Into::into)
    }
}
