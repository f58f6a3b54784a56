//! A client of a statistics server.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    connect, send, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::protocol::{request_line, Args, Response, STATS, STATS_META, TOTAL_ARG};
use crate::StructMeta;

/// Number of bytes after which an incomplete answer is an error.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Size of a read in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Minimum timeout. The socket option has a resolution of 1 us, and 0 means no timeout.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// Maximum timeout, so that a deadline does not overflow.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Write permission of the group. The members of the group need it to connect.
const GROUP_WRITES: u32 = 0o020;

/// Why statistics are not available. The texts contain their causes, so `source()` returns none,
/// and an error chain shows each cause once.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No server: nothing exists at the path, or no process listens.
    #[error("{}: no scheduler serves statistics here: {cause}", path.display())]
    NoServer {
        /// The socket's path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The caller may not connect.
    #[error("{}: permission denied: statistics are for {readers}", path.display())]
    PermissionDenied {
        /// The socket's path.
        path: PathBuf,
        /// Who may connect.
        readers: String,
    },
    /// The server closed the connection, or an earlier error made the connection unusable.
    #[error("{}: connection closed", path.display())]
    Closed {
        /// The socket's path.
        path: PathBuf,
    },
    /// The server did not accept the connection in time, or did not answer in time.
    #[error("{}: no answer within {timeout:?}", path.display())]
    TimedOut {
        /// The socket's path.
        path: PathBuf,
        /// The timeout.
        timeout: Duration,
    },
    /// The server could not answer the request.
    #[error("{}: {message} (errno {errno})", path.display())]
    Refused {
        /// The socket's path.
        path: PathBuf,
        /// A Linux errno.
        errno: i32,
        /// The server's message.
        message: String,
    },
    /// The answer is incomplete after more than [`MAX_ANSWER_BYTES`].
    #[error("{}: the answer is too long", path.display())]
    TooLong {
        /// The socket's path.
        path: PathBuf,
    },
    /// The answer does not conform to the protocol, or is not the requested struct. The server may
    /// be another scheduler or another version.
    #[error("{}: unexpected answer: {cause}", path.display())]
    Unexpected {
        /// The socket's path.
        path: PathBuf,
        /// The error of the parser.
        cause: serde_json::Error,
    },
    /// Any other error of the socket.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
}

impl ClientError {
    /// Whether a new connection may succeed later, such as when a scheduler has started. True for
    /// [`Self::NoServer`], [`Self::Closed`] and [`Self::TimedOut`].
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NoServer { .. } | Self::Closed { .. } | Self::TimedOut { .. }
        )
    }

    fn unexpected(path: &Path, cause: serde_json::Error) -> Self {
        let path = path.to_path_buf();
        Self::Unexpected { path, cause }
    }
}

/// A connection to a server of statistics.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    timeout: Duration,
    /// `None` after a request without a valid answer, because a late answer could be mistaken for
    /// the answer to the next request.
    stream: Option<UnixStream>,
}

impl Client {
    /// Connects to the server at `path`, usually [`crate::DEFAULT_PATH`]. `timeout` applies to
    /// connecting, and to each request with its answer. It is raised to a millisecond if it is
    /// shorter, and reduced to a day if it is longer.
    ///
    /// # Errors
    /// See [`ClientError`]; retryable errors are normal while no scheduler runs.
    pub fn connect(path: impl Into<PathBuf>, timeout: Duration) -> Result<Self, ClientError> {
        let path = path.into();
        let timeout = timeout.clamp(MIN_TIMEOUT, MAX_TIMEOUT);
        match open_stream(&path, timeout) {
            Ok(stream) => Ok(Self {
                path,
                timeout,
                stream: Some(stream),
            }),
            Err(error) => Err(connect_error(path, timeout, error)),
        }
    }

    /// Sends the request `name` and returns its answer.
    ///
    /// # Errors
    /// See [`ClientError`]. After any error but [`ClientError::Refused`], further requests fail
    /// with [`ClientError::Closed`].
    pub fn request(&mut self, name: &str, args: &Args) -> Result<Value, ClientError> {
        let unexpected = |cause| ClientError::unexpected(&self.path, cause);
        let line = request_line(name, args).map_err(unexpected)?;
        let Some(mut stream) = self.stream.take() else {
            return Err(self.closed());
        };
        let answer = self.exchange(&mut stream, &line)?;
        let unexpected = |cause| ClientError::unexpected(&self.path, cause);
        let response: Response = serde_json::from_slice(&answer).map_err(unexpected)?;
        self.stream = Some(stream);
        if response.errno == 0 {
            return Ok(response.args.resp);
        }
        Err(ClientError::Refused {
            path: self.path.clone(),
            errno: response.errno,
            message: match response.args.resp {
                Value::String(message) => message,
                other => other.to_string(),
            },
        })
    }

    /// The changes since the last call on this connection, or since the connection was opened. `T`
    /// is the scheduler's struct, or [`Value`] for any scheduler.
    ///
    /// # Errors
    /// See [`Client::request`]. However, if the answer is valid but is not a `T`, the connection
    /// remains usable after [`ClientError::Unexpected`].
    pub fn stats<T: DeserializeOwned>(&mut self) -> Result<T, ClientError> {
        self.stats_with(&Args::new())
    }

    /// Like [`Client::stats`], with arguments, such as a target other than the default.
    ///
    /// # Errors
    /// See [`Client::stats`].
    pub fn stats_with<T: DeserializeOwned>(&mut self, args: &Args) -> Result<T, ClientError> {
        self.typed_request(STATS, args)
    }

    /// Like [`Client::stats`], but totals since the scheduler's start. Does not affect the next
    /// [`Client::stats`].
    ///
    /// # Errors
    /// See [`Client::stats`].
    pub fn stats_total<T: DeserializeOwned>(&mut self) -> Result<T, ClientError> {
        let args = Args::from([(TOTAL_ARG.to_string(), "true".to_string())]);
        self.stats_with(&args)
    }

    /// The descriptions of all structs that the server may send.
    ///
    /// # Errors
    /// See [`Client::stats`].
    pub fn meta(&mut self) -> Result<Vec<StructMeta>, ClientError> {
        type Metas = std::collections::BTreeMap<String, StructMeta>;
        let metas: Metas = self.typed_request(STATS_META, &Args::new())?;
        Ok(metas.into_values().collect())
    }

    fn typed_request<T: DeserializeOwned>(
        &mut self,
        name: &str,
        args: &Args,
    ) -> Result<T, ClientError> {
        let answer = self.request(name, args)?;
        let unexpected = |cause| ClientError::unexpected(&self.path, cause);
        serde_json::from_value(answer).map_err(unexpected)
    }

    /// Sends a line, and receives a line without its newline, within the timeout.
    fn exchange(&self, stream: &mut UnixStream, line: &[u8]) -> Result<Vec<u8>, ClientError> {
        let deadline = Instant::now() + self.timeout;
        let mut unsent = line;
        while !unsent.is_empty() {
            self.set_timeout(stream, Timeout::Send, deadline)?;
            match send(&*stream, unsent, SendFlags::NOSIGNAL).map_err(io::Error::from) {
                Ok(len) => unsent = &unsent[len..],
                // The server may have sent a refusal before it closed the connection.
                Err(error) if is_closed(&error) => break,
                Err(error) => self.check(error)?,
            }
        }
        let mut answer = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            self.set_timeout(stream, Timeout::Recv, deadline)?;
            let len = match stream.read(&mut chunk) {
                Ok(0) => return Err(self.closed()),
                Ok(len) => len,
                Err(error) => {
                    self.check(error)?;
                    continue;
                }
            };
            answer.extend_from_slice(&chunk[..len]);
            // Data after the first line violates the protocol: parsing the answer will fail.
            if answer.last() == Some(&b'\n') {
                answer.pop();
                return Ok(answer);
            }
            if answer.len() > MAX_ANSWER_BYTES {
                return Err(ClientError::TooLong {
                    path: self.path.clone(),
                });
            }
        }
    }

    fn set_timeout(
        &self,
        stream: &UnixStream,
        direction: Timeout,
        deadline: Instant,
    ) -> Result<(), ClientError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.timed_out());
        }
        set_socket_timeout(stream, direction, Some(left.max(MIN_TIMEOUT)))
            .map_err(|error| self.io_error(error.into()))
    }

    /// Ignores interruptions and the socket's timeouts: `set_timeout` checks the deadline.
    fn check(&self, error: io::Error) -> Result<(), ClientError> {
        match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
            _ if is_closed(&error) => Err(self.closed()),
            _ => Err(self.io_error(error)),
        }
    }

    fn closed(&self) -> ClientError {
        let path = self.path.clone();
        ClientError::Closed { path }
    }

    fn timed_out(&self) -> ClientError {
        let path = self.path.clone();
        let timeout = self.timeout;
        ClientError::TimedOut { path, timeout }
    }

    fn io_error(&self, cause: io::Error) -> ClientError {
        let path = self.path.clone();
        ClientError::Io { path, cause }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
    )
}

fn open_stream(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // This timeout applies to connect() too, which blocks while the server's backlog is full.
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

fn connect_error(path: PathBuf, timeout: Duration, cause: io::Error) -> ClientError {
    match cause.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NoServer { path, cause },
        ErrorKind::PermissionDenied => ClientError::PermissionDenied {
            readers: readers(&path),
            path,
        },
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::TimedOut { path, timeout },
        ErrorKind::ConnectionReset => ClientError::Closed { path },
        _ => ClientError::Io { path, cause },
    }
}

/// Describes who may connect to the socket at `path`.
fn readers(path: &Path) -> String {
    let Ok(metadata) = fs::metadata(path) else {
        return "root and members of the socket's group".to_string();
    };
    if metadata.permissions().mode() & GROUP_WRITES != 0 {
        format!("root and members of group {}", metadata.gid())
    } else if metadata.uid() == 0 {
        "root only".to_string()
    } else {
        format!("root and user {} only", metadata.uid())
    }
}
