//! Sources that fail, and sets of sources that are refused.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use scx_stats::{Args, Percent, Server, ServerError, Stats};
use serde::{Deserialize, Serialize};

use crate::common::{Counter, Metrics, Place, Raw};

/// An error with a cause.
#[derive(Debug)]
struct Reading(io::Error);

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading a map")
    }
}

impl std::error::Error for Reading {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn errors_are_answered() {
    let place = Place::new();
    let busy = || io::Error::from_raw_os_error(16);
    let server = Server::builder(&place.path)
        .stats("plain", |_: &Args| Err::<Metrics, _>("no luck"))
        .stats("errno", move |_: &Args| Err::<Metrics, _>(busy()))
        .stats("minus", |_: &Args| {
            Err::<Metrics, _>(io::Error::from_raw_os_error(-16))
        })
        .stats("cause", move |_: &Args| Err::<Metrics, _>(Reading(busy())))
        .stats("top", Counter::default().source());
    let _server = server.launch().unwrap();
    let mut raw = Raw::connect(&place.path);
    let mut ask = |target| {
        let line = raw.ask(format!(
            "{{\"req\":\"stats\",\"args\":{{\"target\":\"{target}\"}}}}"
        ));
        line.trim_end().to_string()
    };
    let expected = r#"{"errno":22,"args":{"resp":"no luck"}}"#;
    assert_eq!(ask("plain"), expected);
    assert!(ask("errno").starts_with(r#"{"errno":16,"args":{"resp":"#));
    assert!(ask("minus").starts_with(r#"{"errno":16,"args":{"resp":"#));
    let line = ask("cause");
    assert!(
        line.starts_with(r#"{"errno":16,"args":{"resp":"reading a map: "#),
        "{line}"
    );
    assert!(ask("top").starts_with(r#"{"errno":0,"#));
}

#[test]
fn failing_at_first_counts_from_zero() {
    let place = Place::new();
    let works = Arc::new(AtomicBool::new(false));
    let source = {
        let works = Arc::clone(&works);
        move |_: &Args| match works.load(Ordering::SeqCst) {
            true => Ok(Metrics {
                nr_dispatches: 7,
                nr_cpus: 4,
            }),
            false => Err("not yet"),
        }
    };
    let _server = Server::builder(&place.path)
        .stats("top", source)
        .launch()
        .unwrap();
    let mut raw = Raw::connect(&place.path);
    assert_eq!(raw.ask_errno(r#"{"req":"stats"}"#), 22);
    works.store(true, Ordering::SeqCst);
    assert!(raw
        .ask(r#"{"req":"stats"}"#)
        .contains("\"nr_dispatches\":7,"));
    assert!(raw
        .ask(r#"{"req":"stats"}"#)
        .contains("\"nr_dispatches\":0,"));
}

#[test]
fn without_counters_nothing_is_read_before_a_request() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Level {
        level: u32,
    }
    let place = Place::new();
    let nr_reads = Arc::new(AtomicUsize::new(0));
    let source = {
        let nr_reads = Arc::clone(&nr_reads);
        move |_: &Args| {
            nr_reads.fetch_add(1, Ordering::SeqCst);
            Ok::<_, io::Error>(Level { level: 1 })
        }
    };
    let _server = Server::builder(&place.path)
        .stats("top", source)
        .launch()
        .unwrap();
    let mut raw = Raw::connect(&place.path);
    assert_eq!(raw.ask_errno(r#"{"req":"stats_meta"}"#), 0);
    assert_eq!(nr_reads.load(Ordering::SeqCst), 0);
    assert_eq!(raw.ask_errno(r#"{"req":"stats"}"#), 0);
    assert_eq!(nr_reads.load(Ordering::SeqCst), 1);
}

#[test]
fn percentages_cover_the_time_since_the_connection() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Share {
        share: Percent,
    }
    // Nested, like the statistics of each node.
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Shares {
        shares: Vec<Share>,
    }
    let place = Place::new();
    let nr_events = Arc::new(AtomicU64::new(100));
    let source = {
        let nr_events = Arc::clone(&nr_events);
        move |_: &Args| {
            let share = Percent::of(100, nr_events.load(Ordering::SeqCst));
            Ok::<_, io::Error>(Shares {
                shares: vec![Share { share }],
            })
        }
    };
    let _server = Server::builder(&place.path)
        .stats("top", source)
        .launch()
        .unwrap();
    let mut raw = Raw::connect(&place.path);
    // The answer shows that the connection was accepted.
    assert_eq!(raw.ask_errno(r#"{"req":"stats_meta"}"#), 0);
    nr_events.store(200, Ordering::SeqCst);
    let line = raw.ask(r#"{"req":"stats"}"#);
    assert!(line.contains("\"share\":0.0"), "{line}");
}

#[test]
fn sets_that_are_refused() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    #[stat(top)]
    struct Rival {}
    let place = Place::new();
    let builder = || place.builder(&Counter::default());
    let same = builder().stats("top", Counter::default().source());
    let error = same.launch().unwrap_err();
    assert_eq!(error.to_string(), "two sources of statistics are named top");
    let rival = builder().stats("rival", |_: &Args| Ok::<_, io::Error>(Rival {}));
    assert!(matches!(rival.launch(), Err(ServerError::Meta(_))));
    assert!(!place.path.exists());
}
