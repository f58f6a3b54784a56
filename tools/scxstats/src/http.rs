// SPDX-License-Identifier: GPL-2.0-only
//! An HTTP server for Prometheus: `GET /metrics`.
//!
//! Each of a fixed number of threads serves one client at a time, for a bounded time. So a client
//! that is silent or never finishes occupies one thread only, until the time limit.

use std::io::{self, Read, Write};
use std::net::{Shutdown as Half, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use httparse::{Error, Request, Status};
use scx_utils::runner::Shutdown;

use crate::openmetrics;
use crate::source::{describe, Reading};

/// Maximum number of concurrent clients. Further clients wait. This is enough for a few scrapers,
/// even if some of them hang.
const THREADS: usize = 16;

/// Time limit of each step: receiving a request, sending the answer, and waiting for the client to
/// close.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum size of a request in bytes. Other web servers have similar limits.
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// Maximum number of header lines. Prometheus sends far fewer.
const MAX_HEADERS: usize = 64;

/// The delay after a failed accept(), such as when there are no free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs until interrupted. For each request, connects to the scheduler that is running at the time.
pub(crate) fn serve(address: SocketAddr, path: &Path) -> Result<()> {
    // Block the signals before other threads are created, so that these inherit the signal mask.
    let (shutdown, _trigger) = Shutdown::on_signals()?;
    let listener = TcpListener::bind(address);
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    // If the port is 0, the kernel has chosen one.
    let address = listener.local_addr()?;
    let listener = Arc::new(listener);
    for _ in 0..THREADS {
        let (listener, path) = (Arc::clone(&listener), path.to_path_buf());
        thread::Builder::new()
            .spawn(move || take_clients(&listener, &path))
            .context("cannot start a thread")?;
    }
    let _ = writeln!(io::stderr(), "scxstats: http://{address}/metrics");
    while !shutdown.wait(Duration::MAX) {}
    Ok(())
}

fn take_clients(listener: &TcpListener, path: &Path) {
    loop {
        match listener.accept() {
            // Ignore errors of answer(): the client has disconnected or is too slow.
            Ok((stream, _)) => drop(answer(stream, path)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn answer(stream: TcpStream, path: &Path) -> io::Result<()> {
    let mut client = Bounded::new(stream);
    let Some(asked) = read_request(&mut client)? else {
        return Ok(());
    };
    let response = match asked {
        Asked::Metrics => scrape(path),
        Asked::Wrong(status, text) => Response::of_text(status, text.to_owned()),
    };
    client.start_anew();
    client.write_all(&response.to_bytes())?;
    client.stream.shutdown(Half::Write)?;
    // Closing a connection with unread data would reset it, and discard the answer.
    client.start_anew();
    io::copy(&mut client, &mut io::sink())?;
    Ok(())
}

/// A client's request.
#[derive(Debug, PartialEq)]
enum Asked {
    Metrics,
    /// Any other request, even if it is not HTTP: status and text of the answer.
    Wrong(&'static str, &'static str),
}

/// Reads a request. `None` if the client has disconnected.
fn read_request(client: &mut Bounded) -> io::Result<Option<Asked>> {
    let mut head = [0; MAX_HEAD_BYTES];
    let mut len = 0;
    loop {
        match client.read(&mut head[len..])? {
            0 => return Ok(None),
            more => len += more,
        }
        if let Some(asked) = understand(&head[..len]) {
            return Ok(Some(asked));
        }
    }
}

/// Parses a request. `None` if it is incomplete.
fn understand(head: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    Some(match request.parse(head) {
        Ok(Status::Partial) if head.len() < MAX_HEAD_BYTES => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            Asked::Wrong("431 Request Header Fields Too Large", "too long")
        }
        Err(_) => Asked::Wrong("400 Bad Request", "not HTTP"),
        Ok(Status::Complete(_)) if request.method != Some("GET") => {
            Asked::Wrong("405 Method Not Allowed", "only GET")
        }
        Ok(Status::Complete(_)) => match request.path.and_then(|path| path.split('?').next()) {
            Some("/metrics") => Asked::Metrics,
            _ => Asked::Wrong("404 Not Found", "see /metrics"),
        },
    })
}

fn scrape(path: &Path) -> Response {
    match scrape_text(path) {
        Ok(body) => Response {
            status: "200 OK",
            kind: openmetrics::CONTENT_TYPE,
            body,
        },
        Err(error) => Response::of_text("503 Service Unavailable", describe(&error)),
    }
}

fn scrape_text(path: &Path) -> Result<String> {
    openmetrics::encode(Reading::total(path)?.metrics()?)
}

struct Response {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Response {
    fn of_text(status: &'static str, text: String) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: text + "\n",
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { status, kind, body } = self;
        let len = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
             Allow: GET\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// A connection with a time limit of [`TIMEOUT`] for all reads and writes of a step.
struct Bounded {
    stream: TcpStream,
    until: Instant,
}

impl Bounded {
    fn new(stream: TcpStream) -> Self {
        let until = Instant::now() + TIMEOUT;
        Self { stream, until }
    }

    fn start_anew(&mut self) {
        self.until = Instant::now() + TIMEOUT;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> Option<String> {
        understand(head.as_bytes()).map(|asked| match asked {
            Asked::Metrics => "200".to_owned(),
            Asked::Wrong(status, _) => status[..3].to_owned(),
        })
    }

    #[test]
    fn complete_requests_are_parsed() {
        let whole = "GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(status(&whole[..len]), None, "{len}");
        }
        assert_eq!(status(whole).as_deref(), Some("200"));
    }

    #[test]
    fn invalid_requests_get_the_right_status() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        let long = format!("GET /{}", "x".repeat(MAX_HEAD_BYTES));
        for (head, expected) in [
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", "404"),
            ("GET / HTTP/1.0\r\n\r\n", "404"),
            ("\u{1}\u{2}\u{3}", "400"),
            ("GET /metrics HTTP/9\r\n\r\n", "400"),
            (many.as_str(), "431"),
            (long.as_str(), "431"),
        ] {
            assert_eq!(status(head).as_deref(), Some(expected), "{head}");
        }
    }
}
