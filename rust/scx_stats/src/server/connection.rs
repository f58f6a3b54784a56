//! A connection, with its partial request, its partial answer, and its deadlines.

use std::io::{self, Read};
use std::time::Instant;

use mio::net::UnixStream;
use rustix::io::Errno;
use rustix::net::{send, SendFlags};

use super::lines::{Lines, TooLong};
use super::targets::{Baselines, Targets};
use super::Limits;
use crate::protocol::{answer_line, Failure};

/// Size of a read in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

/// Maximum number of steps (a read, or a request answered) before other connections are served.
const STEPS_PER_TURN: usize = 8;

/// The result of a connection's turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The connection waits for its client.
    Waits,
    /// The connection has more to do.
    Again,
    /// The connection has ended, and can be closed.
    Ended,
}

/// A connection with a client. Reads nothing while an answer is pending, which bounds the memory
/// that a client can take up.
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    baselines: Baselines,
    input: Lines,
    output: Vec<u8>,
    /// Number of bytes of `output` that have been sent.
    sent: usize,
    /// Whether to end the connection once `output` has been sent.
    closing: bool,
    /// When the client last sent data. Initially, when the connection was accepted.
    last_heard: Instant,
    /// Start of the timeout of the partial line in `input`.
    line_began: Instant,
    /// When `output` was set, or a part of it was last sent.
    output_moved: Instant,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, baselines: Baselines) -> Self {
        let now = Instant::now();
        Self {
            stream,
            baselines,
            input: Lines::default(),
            output: Vec::new(),
            sent: 0,
            closing: false,
            last_heard: now,
            line_began: now,
            output_moved: now,
        }
    }

    /// When the client last sent data or, if it has sent none, when the connection was accepted.
    pub(super) fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// When the connection times out: because the client has not read from the pending answer, or
    /// else because it has not completed its request line. `None` if there is neither a pending
    /// answer nor a partial line, or if the timeout is too long for an [`Instant`].
    pub(super) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        if self.sent < self.output.len() {
            self.output_moved.checked_add(limits.write_timeout)
        } else if !self.input.is_empty() {
            self.line_began.checked_add(limits.line_timeout)
        } else {
            None
        }
    }

    /// Reads and answers a bounded number of requests.
    pub(super) fn turn(&mut self, targets: &mut Targets, limits: &Limits) -> Turn {
        for _ in 0..STEPS_PER_TURN {
            let step = self.step(targets, limits);
            match step {
                Ok(Turn::Again) => {}
                Ok(turn) => return turn,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Turn::Waits,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The client is gone.
                Err(_) => return Turn::Ended,
            }
        }
        Turn::Again
    }

    fn step(&mut self, targets: &mut Targets, limits: &Limits) -> io::Result<Turn> {
        self.flush()?;
        if self.closing {
            return Ok(Turn::Ended);
        }
        let answer = match self.input.next(limits.line_bytes) {
            Some(Ok(line)) => targets.answer(line, &mut self.baselines),
            Some(Err(TooLong)) => {
                self.closing = true;
                let message = format!("a request has more than {} bytes", limits.line_bytes);
                answer_line(Err(Failure::new(Errno::MSGSIZE, message)))
            }
            None => return self.fill(),
        };
        self.output = answer;
        self.output_moved = Instant::now();
        Ok(Turn::Again)
    }

    /// Sends the rest of the output.
    fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        while self.sent < self.output.len() {
            // If the client is gone and SIGPIPE is not ignored, the signal would end the scheduler.
            self.sent += send(&self.stream, &self.output[self.sent..], SendFlags::NOSIGNAL)?;
            self.output_moved = Instant::now();
        }
        self.output = Vec::new();
        self.sent = 0;
        // The timeout of the next line starts now, because the line could not be read before.
        self.line_began = Instant::now();
        Ok(())
    }

    /// Reads a chunk of input.
    fn fill(&mut self) -> io::Result<Turn> {
        let mut chunk = [0; CHUNK_BYTES];
        let len = self.stream.read(&mut chunk)?;
        if len == 0 {
            return Ok(Turn::Ended);
        }
        self.last_heard = Instant::now();
        if self.input.is_empty() {
            self.line_began = self.last_heard;
        }
        self.input.push(&chunk[..len]);
        Ok(Turn::Again)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream as Peer;

    use super::*;

    const REQUEST: &[u8] = b"{\"req\":\"stats_meta\"}\n";
    const ANSWER: &[u8] = b"{\"errno\":0,\"args\":{\"resp\":{}}}\n";

    /// A non-blocking client, and the server's end of its connection.
    fn pair() -> (Peer, Connection) {
        let (peer, stream) = Peer::pair().unwrap();
        peer.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let stream = UnixStream::from_std(stream);
        (peer, Connection::new(stream, Baselines::new()))
    }

    fn received(peer: &mut Peer) -> Vec<u8> {
        let mut bytes = Vec::new();
        let error = peer.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        bytes
    }

    #[test]
    fn a_turn_is_bounded() {
        let (mut peer, mut connection) = pair();
        let (mut targets, limits) = (Targets::default(), Limits::default());
        peer.write_all(&REQUEST.repeat(100)).unwrap();
        let mut nr_turns = 0;
        let mut answers = Vec::new();
        while connection.turn(&mut targets, &limits) == Turn::Again {
            let new = received(&mut peer);
            assert!(new.len() <= 20 * ANSWER.len());
            answers.extend(new);
            nr_turns += 1;
        }
        assert!(nr_turns >= 5, "{nr_turns}");
        answers.extend(received(&mut peer));
        assert_eq!(answers, ANSWER.repeat(100));
    }

    #[test]
    fn deadlines_are_those_of_the_client() {
        let (mut peer, mut connection) = pair();
        let (mut targets, limits) = (Targets::default(), Limits::default());
        let mut turn = |connection: &mut Connection| connection.turn(&mut targets, &limits);
        assert_eq!(turn(&mut connection), Turn::Waits);
        assert_eq!(connection.deadline(&limits), None);
        let (start, end) = REQUEST.split_at(5);
        peer.write_all(start).unwrap();
        assert_eq!(turn(&mut connection), Turn::Waits);
        let deadline = connection.deadline(&limits);
        assert!(deadline.is_some_and(|at| at > Instant::now()));
        // More data of the line does not extend its deadline.
        peer.write_all(&end[..1]).unwrap();
        assert_eq!(turn(&mut connection), Turn::Waits);
        assert_eq!(connection.deadline(&limits), deadline);
        peer.write_all(&end[1..]).unwrap();
        assert_eq!(turn(&mut connection), Turn::Waits);
        assert_eq!(connection.deadline(&limits), None);
        assert_eq!(received(&mut peer), ANSWER);
        drop(peer);
        assert_eq!(turn(&mut connection), Turn::Ended);
    }

    #[test]
    fn times_without_end_are_no_deadlines() {
        let (mut peer, mut connection) = pair();
        let limits = Limits {
            line_timeout: std::time::Duration::MAX,
            ..Limits::default()
        };
        peer.write_all(b"{").unwrap();
        connection.turn(&mut Targets::default(), &limits);
        assert_eq!(connection.deadline(&limits), None);
    }
}
