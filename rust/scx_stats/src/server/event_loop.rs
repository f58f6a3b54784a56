//! The server's thread: an event loop that serves all connections in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::net::UnixListener;
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::{Connection, Turn};
use super::targets::{Baselines, Targets};
use super::Limits;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST_CONNECTION: usize = 2;

/// Maximum number of connections that are accepted before existing connections are served.
const ACCEPTS_PER_TURN: usize = 64;

/// The pause if accept() fails even after a connection was closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Minimum time between warnings about accept().
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of events fetched at once. The next poll fetches further events.
const EVENTS: usize = 256;

/// Waits for connections and serves them.
pub(super) struct EventLoop {
    poll: Poll,
    listener: UnixListener,
    limits: Limits,
    connections: BTreeMap<Token, Connection>,
    /// Connections that may have work.
    ready: BTreeSet<Token>,
    /// Tokens are not reused, so that a late event cannot reach another connection.
    next_token: usize,
    /// When to accept connections; `None` if no connection is pending.
    accept_at: Option<Instant>,
    /// Time of the last warning about accept().
    warned_at: Option<Instant>,
}

impl EventLoop {
    /// An event loop that has not started, and a waker that ends it from another thread.
    pub(super) fn new(listener: UnixListener, limits: Limits) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut listener = listener;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let event_loop = Self {
            poll,
            listener,
            limits,
            connections: BTreeMap::new(),
            ready: BTreeSet::new(),
            next_token: FIRST_CONNECTION,
            accept_at: None,
            warned_at: None,
        };
        Ok((event_loop, waker))
    }

    /// Serves until the waker is used.
    ///
    /// # Errors
    /// If polling for events fails.
    pub(super) fn run(mut self, targets: &mut Targets) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            match self.poll.poll(&mut events, self.timeout()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            let now = Instant::now();
            for event in &events {
                match event.token() {
                    WAKER => return Ok(()),
                    LISTENER => self.accept_at = self.accept_at.or(Some(now)),
                    token => {
                        self.ready.insert(token);
                    }
                }
            }
            if self.accept_at.is_some_and(|at| at <= now) {
                self.accept(targets);
            }
            self.take_turns(targets);
            self.close_overdue(now);
        }
    }

    /// The maximum time to wait for an event.
    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let connections = self.connections.values();
        let deadlines = connections.filter_map(|connection| connection.deadline(&self.limits));
        let next = deadlines.chain(self.accept_at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Gives a turn to every connection that may have work.
    fn take_turns(&mut self, targets: &mut Targets) {
        for token in std::mem::take(&mut self.ready) {
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            match connection.turn(targets, &self.limits) {
                Turn::Waits => {}
                Turn::Again => {
                    self.ready.insert(token);
                }
                Turn::Ended => self.close(token),
            }
        }
    }

    /// Closes connections that were overdue at `now`, when the last events were fetched.
    /// Connections with pending work are kept.
    fn close_overdue(&mut self, now: Instant) {
        let limits = &self.limits;
        let overdue = self.connections.iter().filter(|(token, connection)| {
            let deadline = connection.deadline(limits);
            deadline.is_some_and(|at| at <= now) && !self.ready.contains(token)
        });
        let overdue: Vec<_> = overdue.map(|(token, _)| *token).collect();
        for token in overdue {
            tracing::debug!("a client of the statistics is stuck: disconnecting it");
            self.close(token);
        }
    }

    /// Accepts a bounded number of connections.
    fn accept(&mut self, targets: &mut Targets) {
        // All connections accepted in this turn share a snapshot.
        let mut baselines = None;
        let mut has_made_room = false;
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    has_made_room = false;
                    let baselines = baselines.get_or_insert_with(|| targets.baselines());
                    self.open(stream, baselines);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.accept_at = None;
                        return;
                    }
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Out of file descriptors or memory: close the connection of the most silent
                    // client. If accept() fails even then, pause before the next attempt.
                    _ if !has_made_room => {
                        self.warn(&error);
                        has_made_room = true;
                        self.close_most_silent();
                    }
                    _ => {
                        self.accept_at = Some(Instant::now() + ACCEPT_PAUSE);
                        return;
                    }
                },
            }
        }
    }

    /// Logs why accept() failed, rate-limited.
    fn warn(&mut self, error: &io::Error) {
        let is_told = |at: Instant| at.elapsed() < WARNING_INTERVAL;
        if !self.warned_at.is_some_and(is_told) {
            self.warned_at = Some(Instant::now());
            tracing::warn!("accepting a client of the statistics: {error}");
        }
    }

    fn open(&mut self, stream: mio::net::UnixStream, baselines: &Baselines) {
        while self.connections.len() >= self.limits.connections.max(1) {
            self.close_most_silent();
        }
        let token = Token(self.next_token);
        self.next_token += 1;
        let mut connection = Connection::new(stream, baselines.clone());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        match registry.register(&mut connection.stream, token, interest) {
            Ok(()) => {
                self.connections.insert(token, connection);
                self.ready.insert(token);
            }
            Err(error) => tracing::warn!("a client of the statistics: {error}"),
        }
    }

    /// Closes the connection whose client has been silent longest; among equals, the oldest
    /// connection.
    fn close_most_silent(&mut self) {
        let connections = self.connections.iter();
        let most_silent = connections.min_by_key(|(_, connection)| connection.last_heard());
        if let Some(token) = most_silent.map(|(token, _)| *token) {
            self.close(token);
        }
    }

    fn close(&mut self, token: Token) {
        self.ready.remove(&token);
        // Closing its file descriptor removes the connection from the poll.
        self.connections.remove(&token);
    }
}
