//! Follows the statistics of any scheduler.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::{Client, ClientError, Stats};

/// The pause between attempts to connect, unless the interval of the statistics is shorter.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout of connecting, and of each request with its answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Passes the statistics of the server at `path` to `on_stats` once per `interval`. Each call
/// covers one interval, so the first call comes one interval after connecting.
///
/// While there is no server, as when the scheduler restarts, this function waits for one. Each
/// time, it logs once that it waits, and once that statistics are back.
///
/// `wait` sleeps for at most the given time and returns whether to stop; it should return early
/// when a stop is requested. For example with a channel:
/// `|time| stop.recv_timeout(time) != Err(RecvTimeoutError::Timeout)`.
///
/// # Errors
/// The error of `on_stats`, or an error that is not retryable: see [`ClientError::is_retryable`].
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

/// Like [`monitor`], but passes the result of `ask` to `on_stats`. `ask` can request another
/// target, or the statistics of any scheduler as a `serde_json::Value`.
///
/// # Errors
/// Those of [`monitor`]. An error of `ask` is treated like an error of the client.
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

/// The error that ended [`follow`]: of the client, or of `on_stats`.
enum Ending<E> {
    Client(ClientError),
    Output(E),
}

/// Uses one connection, until `wait` returns true or there is an error.
fn follow<T, E>(
    path: &Path,
    interval: Duration,
    ask: &mut impl FnMut(&mut Client) -> Result<T, ClientError>,
    wait: &mut impl FnMut(Duration) -> bool,
    on_stats: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), Ending<E>> {
    let mut client = Client::connect(path, TIMEOUT).map_err(Ending::Client)?;
    // How late the last statistics were; subtracted from the next wait to avoid drift.
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
            // Missed intervals, such as after a slow answer, are not made up for.
            late = Duration::ZERO;
        }
    }
}
