//! Follows the statistics of whatever scheduler runs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::{Client, ClientError, Stats};

/// The pause before a server that is not there is looked for again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Hands the statistics of the server at `path` to `on_stats`, each `interval`, which is
/// the time that they cover; so the first ones come one interval after connecting.
///
/// A server that is not there, or goes away as its scheduler is restarted, is waited for.
/// That is told once, and once more when it is back.
///
/// `wait` sleeps for a time at most and returns whether to stop, at once if that is known
/// before. A channel does: `|time| stop.recv_timeout(time) != Err(RecvTimeoutError::Timeout)`.
///
/// # Errors
/// The error of `on_stats`, or one that no waiting helps against: see
/// [`ClientError::is_retryable`].
pub fn monitor<T, E>(
    path: impl AsRef<Path>,
    interval: Duration,
    wait: impl FnMut(Duration) -> bool,
    on_stats: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    T: Stats + DeserializeOwned,
    E: From<ClientError>,
{
    monitor_with(path, interval, Client::stats, wait, on_stats)
}

/// As [`monitor`], for who does not know what runs: what is handed to `on_stats` is what `ask` gets
/// of the client.
///
/// # Errors
/// As those of [`monitor`]; an error of `ask` counts as one of the client.
pub fn monitor_with<T, E>(
    path: impl AsRef<Path>,
    interval: Duration,
    mut ask: impl FnMut(&mut Client) -> Result<T, ClientError>,
    mut wait: impl FnMut(Duration) -> bool,
    mut on_stats: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<ClientError>,
{
    let path = path.as_ref();
    let mut is_away = false;
    loop {
        let error = match follow(path, interval, &mut ask, &mut wait, &mut |stats| {
            if std::mem::take(&mut is_away) {
                tracing::info!("{}: statistics are back", path.display());
            }
            on_stats(stats)
        }) {
            Ok(()) => return Ok(()),
            Err(Ending::Output(error)) => return Err(error),
            Err(Ending::Client(error)) if !error.is_retryable() => return Err(error.into()),
            Err(Ending::Client(error)) => error,
        };
        if !std::mem::replace(&mut is_away, true) {
            tracing::info!("waiting for statistics: {error}");
        }
        if wait(RETRY_INTERVAL.min(interval)) {
            return Ok(());
        }
    }
}

/// Why a connection is no longer followed.
enum Ending<E> {
    Client(ClientError),
    Output(E),
}

/// Follows one connection until `wait` says to stop.
fn follow<T, E>(
    path: &Path,
    interval: Duration,
    ask: &mut impl FnMut(&mut Client) -> Result<T, ClientError>,
    wait: &mut impl FnMut(Duration) -> bool,
    on_stats: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), Ending<E>> {
    let mut client = Client::connect(path, TIMEOUT).map_err(Ending::Client)?;
    // By how much the last statistics were late, so that times do not drift.
    let mut late = Duration::ZERO;
    loop {
        let start = Instant::now();
        if wait(interval - late) {
            return Ok(());
        }
        let stats = ask(&mut client).map_err(Ending::Client)?;
        on_stats(stats).map_err(Ending::Output)?;
        late = (late + start.elapsed()).saturating_sub(interval);
        if late > interval {
            // Intervals that were missed, as in suspend, are not made up for.
            late = Duration::ZERO;
        }
    }
}
