//! Invalid input.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use scx_stats::Server;
use serde_json::Value;

use crate::common::{assert_serves, Counter, Place, Raw};

#[test]
fn garbage_is_answered_and_the_connection_stays() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    let deep = "[".repeat(60_000);
    let lines: [&[u8]; 18] = [
        b"",
        b" ",
        b"\0",
        b"\xff\xfe",
        b"hello",
        b"null",
        b"17",
        b"[]",
        b"{}",
        b"{\"req\":17}",
        b"{\"req\":null}",
        b"{\"req\":\"stats\"",
        b"{\"req\":\"stats\"}{\"req\":\"stats\"}",
        b"{\"req\":\"stats\",\"args\":[]}",
        b"{\"req\":\"stats\",\"args\":{\"target\":1}}",
        b"{\"req\":\"stats\",\"req\":\"stats\"}",
        b"{\"req\":\"\xff\"}",
        deep.as_bytes(),
    ];
    for line in lines {
        assert_eq!(raw.ask_errno(line), 22, "{line:?}");
        assert_eq!(raw.ask_errno(r#"{"req":"stats"}"#), 0);
    }
}

#[test]
fn disconnect_without_a_request() {
    let place = Place::new();
    let _server = place.launch();
    for bytes in ["", "{", "{\"req\":\"stats\"}\n", "x\nx\nx\n"] {
        let mut raw = Raw::connect(&place.path);
        raw.send(bytes);
        drop(raw);
    }
    assert_serves(&place.path);
}

/// The server for all cases of the property test.
static SERVED: LazyLock<(Place, Server)> = LazyLock::new(|| {
    let place = Place::new();
    let server = place.builder(&Counter::default()).launch().unwrap();
    (place, server)
});

/// Sends bytes and returns all answers.
fn exchange(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Raw::connect(&SERVED.0.path);
    let stream = raw.0.get_mut();
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    match stream.read_to_end(&mut answers) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => answers,
    }
}

/// Parts of requests, and arbitrary bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        vec(any::<u8>(), 0..40),
        Just(b"\n".to_vec()),
        Just(b"{\"req\":\"stats\"}\n".to_vec()),
        Just(b"{\"req\":\"stats_meta\"}".to_vec()),
        Just(b"{\"req\":\"stats\",\"args\":{\"target\":\"".to_vec()),
        Just(b"\"}}\n".to_vec()),
    ];
    vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_line_is_answered_once(bytes in pieces()) {
        let answers = exchange(&bytes);
        let nr_lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let answers = String::from_utf8(answers).unwrap();
        prop_assert_eq!(answers.lines().count(), nr_lines);
        for answer in answers.lines() {
            let answer: Value = serde_json::from_str(answer).unwrap();
            prop_assert!(answer["errno"] == 0 || answer["errno"] == 22);
        }
        assert_serves(&SERVED.0.path);
    }
}
