//! Serves statistics on a socket.
//!
//! `socket` creates the socket file, `event_loop` is the thread that serves all clients,
//! `connection` is the connection of a client, `lines` splits the client's data into requests, and
//! `targets` answers the requests.

mod connection;
mod event_loop;
mod lines;
mod socket;
mod targets;

use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::net::UnixListener;
use mio::Waker;
use thiserror::Error;

use self::event_loop::EventLoop;
use self::socket::SocketFile;
use self::targets::Targets;
use crate::{MetaError, Source};

/// Maximum length of a request line in bytes, without its newline.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Maximum number of connections.
pub const MAX_CONNECTIONS: usize = 512;

/// Timeout of an incomplete request line.
pub const LINE_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of a client that does not read its answer.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the server's thread.
const THREAD_NAME: &str = "scx_stats";

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Statistics that cannot be described.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// Two sources have the same name.
    #[error("two sources of statistics are named {0}")]
    SameTarget(String),
    /// The path exists and is not a socket. It is left unchanged.
    #[error("{}: exists and is not a socket", path.display())]
    NotASocket {
        /// The socket's path.
        path: PathBuf,
    },
    /// The kernel's limit is 108 bytes, for the path itself and for the path of the socket's
    /// temporary name in the same directory.
    #[error("{}: the path is too long for a socket", path.display())]
    PathTooLong {
        /// The socket's path.
        path: PathBuf,
    },
    /// The socket, a directory or the thread could not be created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the socket or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ServerError {
    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        Self::Io { path, source }
    }
}

/// Who may connect, regardless of the umask. By default, this is only root and the user that runs
/// the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The id of a group whose members may also connect.
    pub group: Option<u32>,
}

/// Limits for a server's clients. There is no timeout between requests: monitors may have long
/// intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a request line in bytes. A longer line is answered with EMSGSIZE and ends
    /// the connection. Default: [`MAX_LINE_BYTES`].
    pub line_bytes: usize,
    /// Maximum number of connections. At the limit, a new connection replaces the connection whose
    /// client has been silent longest. 0 counts as 1. Default: [`MAX_CONNECTIONS`].
    pub connections: usize,
    /// Timeout of an incomplete request line. Default: [`LINE_TIMEOUT`].
    pub line_timeout: Duration,
    /// Timeout of a client that does not read its answer. Meanwhile, no requests are read from this
    /// client. Default: [`WRITE_TIMEOUT`].
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: MAX_LINE_BYTES,
            connections: MAX_CONNECTIONS,
            line_timeout: LINE_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
        }
    }
}

/// Builds a server.
pub struct ServerBuilder {
    path: PathBuf,
    access: Access,
    limits: Limits,
    targets: Targets,
    error: Option<ServerError>,
}

impl ServerBuilder {
    /// Sets who may connect.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the limits of clients.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a source as `target`. Requests without a target use [`crate::DEFAULT_TARGET`]. If the
    /// source cannot be added, [`Self::launch`] returns the error.
    #[must_use]
    pub fn stats<S: Source>(mut self, target: &str, source: S) -> Self {
        let error = match self.targets.add(target, source) {
            Ok(true) => return self,
            Ok(false) => ServerError::SameTarget(target.to_string()),
            Err(error) => error.into(),
        };
        self.error.get_or_insert(error);
        self
    }

    /// Creates the socket and starts the thread that serves it.
    ///
    /// Missing directories of the path are created with mode 0755. An existing socket, such as one
    /// left by a killed scheduler, is replaced.
    ///
    /// # Errors
    /// See [`ServerError`]. Only created directories are left behind.
    pub fn launch(self) -> Result<Server, ServerError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (file, listener) = SocketFile::create(&self.path, self.access)?;
        let io_error = |error| ServerError::io(&self.path, error);
        let listener = UnixListener::from_std(listener);
        let (event_loop, waker) = EventLoop::new(listener, self.limits).map_err(io_error)?;
        let mut targets = self.targets;
        let work = move || {
            if let Err(error) = event_loop.run(&mut targets) {
                tracing::error!("statistics are no longer served: {error}");
            }
        };
        let thread = thread::Builder::new().name(THREAD_NAME.to_string());
        let thread = thread.spawn(work).map_err(io_error)?;
        Ok(Server {
            file: Some(file),
            waker,
            thread: Some(thread),
        })
    }
}

/// A thread that serves statistics on a socket. Dropping the server removes the socket file, unless
/// another server has replaced the file, and waits for the thread, even while the thread reads a
/// source.
///
/// One thread serves all clients and runs the sources: see [`Source`].
///
/// The server keeps a snapshot per connection and source, so that each client gets the changes
/// since its own last request. The first answer has the changes since the client connected.
#[derive(Debug)]
pub struct Server {
    file: Option<SocketFile>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Returns a builder for a server whose socket is at `path`, usually
    /// [`crate::DEFAULT_PATH`].
    pub fn builder(path: impl Into<PathBuf>) -> ServerBuilder {
        ServerBuilder {
            path: path.into(),
            access: Access::default(),
            limits: Limits::default(),
            targets: Targets::default(),
            error: None,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Remove the file first, so that no client connects to a server that is about to end.
        self.file = None;
        if let Err(error) = self.waker.wake() {
            // This is not expected. The thread may not end, so joining it could block forever.
            tracing::error!("stopping the statistics: {error}");
            return;
        }
        if let Some(thread) = self.thread.take() {
            // If a source panicked, that has been reported on standard error.
            let _ = thread.join();
        }
    }
}
