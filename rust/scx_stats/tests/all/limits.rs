//! Clients that exceed limits, or are too slow.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use scx_stats::{Args, Limits, Server, Stats, MAX_CONNECTIONS, MAX_LINE_BYTES};
use serde::{Deserialize, Serialize};

use crate::common::{assert_serves, wait_for, Child, Counter, Metrics, Place, Raw, LONG};

/// A timeout that expires soon.
const SHORT: Duration = Duration::from_millis(100);

const REQUEST: &str = "{\"req\":\"stats\"}\n";
const BIG_REQUEST: &str = "{\"req\":\"stats\",\"args\":{\"target\":\"big\"}}\n";

/// More than fits into the buffers of a socket.
const BIG_BYTES: usize = 4 << 20;

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
struct Big {
    text: String,
}

/// A server of small and of big answers.
fn launch(place: &Place, limits: Limits) -> Server {
    let big = |_: &Args| {
        Ok::<_, std::io::Error>(Big {
            text: "x".repeat(BIG_BYTES),
        })
    };
    let builder = place.builder(&Counter::default()).stats("big", big);
    builder.limits(limits).launch().unwrap()
}

/// Limits with timeouts that do not expire in a test.
fn patient() -> Limits {
    Limits {
        line_timeout: LONG,
        write_timeout: LONG,
        ..Limits::default()
    }
}

/// A request of `len` bytes, without its newline.
fn request_of(len: usize) -> String {
    let start = r#"{"req":"stats","args":{"pad":""#;
    let end = r#""}}"#;
    let padding = "x".repeat(len - start.len() - end.len());
    format!("{start}{padding}{end}")
}

#[test]
fn defaults_are_documented() {
    let limits = Limits::default();
    assert_eq!((limits.line_bytes, limits.connections), (64 << 10, 512));
    let timeout = Duration::from_secs(10);
    assert_eq!(
        (limits.line_timeout, limits.write_timeout),
        (timeout, timeout)
    );
}

#[test]
fn the_longest_line() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    assert_eq!(raw.ask_errno(request_of(MAX_LINE_BYTES)), 0);
    assert_eq!(raw.ask_errno(request_of(MAX_LINE_BYTES + 1)), 90);
    assert_eq!(raw.receive(), "");
}

#[test]
fn a_line_without_end() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    // The server may close the connection before the whole line is sent.
    let _ = raw.0.get_mut().write_all(&vec![b'x'; 1 << 20]);
    assert_eq!(raw.receive_errno(), 90);
    assert_eq!(raw.receive(), "");
    assert_serves(&place.path);
}

#[test]
fn half_a_line_is_not_waited_for() {
    let place = Place::new();
    let _server = launch(
        &place,
        Limits {
            line_timeout: SHORT,
            ..patient()
        },
    );
    let mut silent = Raw::connect(&place.path);
    let mut half = Raw::connect(&place.path);
    half.send("{\"req\"");
    assert_eq!(half.receive(), "");
    // A line that arrives byte by byte times out, too.
    Raw::connect(&place.path).wait_for_end();
    // The same applies to half a line after a request.
    let mut half = Raw::connect(&place.path);
    assert_eq!(half.ask_errno(REQUEST.trim_end()), 0);
    half.send("{");
    assert_eq!(half.receive(), "");
    // Silence between requests is allowed.
    assert_eq!(silent.ask_errno(REQUEST.trim_end()), 0);
}

#[test]
fn client_that_never_reads_is_closed() {
    let place = Place::new();
    let _server = launch(
        &place,
        Limits {
            write_timeout: SHORT,
            ..patient()
        },
    );
    let mut raw = Raw::connect(&place.path);
    raw.send(BIG_REQUEST);
    assert_serves(&place.path);
    raw.wait_for_end();
}

#[test]
fn client_that_never_reads_is_not_read_from() {
    let place = Place::new();
    let _server = launch(&place, patient());
    let mut raw = Raw::connect(&place.path);
    raw.0.get_ref().set_nonblocking(true).unwrap();
    raw.0.get_mut().write_all(BIG_REQUEST.as_bytes()).unwrap();
    // The requests fill the kernel's buffers, because the server has stopped reading.
    let mut sent = 0;
    let requests = REQUEST.repeat(1000);
    loop {
        let rest = &requests.as_bytes()[sent % REQUEST.len()..];
        match raw.0.get_mut().write(rest) {
            Ok(len) => sent += len,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
        assert!(sent < BIG_BYTES, "read while an answer is pending");
    }
    assert_serves(&place.path);
    // Nothing is lost: the server continues when its answer is read.
    raw.0.get_ref().set_nonblocking(false).unwrap();
    assert!(raw.receive().len() > BIG_BYTES);
    for _ in 0..sent / REQUEST.len() {
        assert_eq!(raw.receive_errno(), 0);
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    let place = Place::new();
    let _server = launch(&place, patient());
    let mut raw = Raw::connect(&place.path);
    raw.send(BIG_REQUEST);
    let mut bytes = 0;
    let mut piece = vec![0; 10_000];
    while !piece.ends_with(b"\n") {
        piece.resize(10_000, 0);
        let len = raw.0.read(&mut piece).unwrap();
        piece.truncate(len);
        bytes += len;
    }
    assert!(bytes > BIG_BYTES);
    raw.send(REQUEST);
    assert_eq!(raw.receive_errno(), 0);
}

#[test]
fn a_flood_does_not_lock_others_out() {
    let place = Place::new();
    let _server = launch(&place, patient());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut raw = Raw::connect(&place.path);
                let mut writer = raw.0.get_ref().try_clone().unwrap();
                let flood = scope.spawn(move || {
                    let flood = REQUEST.repeat(1000);
                    while writer.write_all(flood.as_bytes()).is_ok() {}
                });
                while !stop.load(Ordering::SeqCst) {
                    assert_eq!(raw.receive_errno(), 0);
                }
                raw.0.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
                flood.join().unwrap();
            });
        }
        let mut raw = Raw::connect(&place.path);
        for _ in 0..50 {
            assert_eq!(raw.ask_errno(REQUEST.trim_end()), 0);
        }
        assert_serves(&place.path);
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn the_most_silent_makes_room() {
    let place = Place::new();
    let _server = launch(
        &place,
        Limits {
            connections: 2,
            ..patient()
        },
    );
    let mut first = Raw::connect(&place.path);
    assert_eq!(first.ask_errno(REQUEST.trim_end()), 0);
    let mut second = Raw::connect(&place.path);
    assert_eq!(second.ask_errno(REQUEST.trim_end()), 0);
    assert_eq!(first.ask_errno(REQUEST.trim_end()), 0);
    let mut third = Raw::connect(&place.path);
    assert_eq!(third.ask_errno(REQUEST.trim_end()), 0);
    assert_eq!(second.receive(), "");
    assert_eq!(first.ask_errno(REQUEST.trim_end()), 0);
}

#[test]
fn idle_connections_never_lock_anyone_out() {
    let place = Place::new();
    // In another process, because a process has a limited number of file descriptors.
    let _child = Child::launch(&place.path, "");
    let mut idle: Vec<_> = (0..200).map(|_| Raw::connect(&place.path)).collect();
    assert_serves(&place.path);
    idle.extend((0..400).map(|_| Raw::connect(&place.path)));
    assert_serves(&place.path);
    // At the limit the oldest connections are closed.
    let spare = idle.len() - MAX_CONNECTIONS;
    for raw in &mut idle[..spare] {
        assert_eq!(raw.receive(), "");
    }
    assert_eq!(idle.last_mut().unwrap().ask_errno(REQUEST.trim_end()), 0);
}

#[test]
fn running_out_of_file_descriptors_ends_nothing() {
    let place = Place::new();
    let _child = Child::launch(&place.path, "ulimit -n 32");
    let idle: Vec<_> = (0..80).map(|_| Raw::connect(&place.path)).collect();
    wait_for("an answer in spite of others", || {
        let client = scx_stats::Client::connect(&place.path, LONG);
        client
            .and_then(|mut client| client.stats::<Metrics>())
            .is_ok()
    });
    drop(idle);
    assert_serves(&place.path);
}
