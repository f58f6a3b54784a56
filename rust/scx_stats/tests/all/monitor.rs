//! Following a scheduler. Where a monitor would sleep, the tests change something instead.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::Duration;

use scx_stats::{monitor, ClientError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Counter, Metrics, Place, LONG};

const INTERVAL: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Error {
    Client(ClientError),
    Pipe,
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Whether a wait was for the rest of an interval, rather than for a retry.
fn is_interval(time: Duration) -> bool {
    time > RETRY && time <= INTERVAL
}

#[test]
fn the_first_statistics_cover_an_interval() {
    let (place, counter) = (Place::new(), Counter::default());
    counter.add(100);
    let _server = place.builder(&counter).launch().unwrap();
    let mut growths = Vec::new();
    let mut nr_waits = 0;
    let wait = |time| {
        assert!(is_interval(time), "{time:?}");
        nr_waits += 1;
        // When a later connection is served, the monitor's has certainly been accepted.
        crate::common::assert_serves(&place.path);
        counter.add(nr_waits);
        nr_waits == 4
    };
    let result: Result<(), Error> = monitor(&place.path, INTERVAL, wait, |stats: Metrics| {
        growths.push(stats.nr_dispatches);
        Ok(())
    });
    result.unwrap();
    assert_eq!(growths, [1, 2, 3]);
}

/// Counts the log messages about the start and the end of outages.
#[derive(Clone, Default)]
struct Messages {
    nr_waiting: Arc<AtomicUsize>,
    nr_back: Arc<AtomicUsize>,
}

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" && text.contains("waiting for statistics") {
            self.nr_waiting.fetch_add(1, Ordering::SeqCst);
        } else if text.contains("statistics are back") {
            self.nr_back.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("scx_stats")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn outages_are_waited_for_and_logged_once() {
    let place = Place::new();
    let server = RefCell::new(None);
    let mut nr_waits = 0;
    let nr_stats = RefCell::new(0);
    let wait = |time: Duration| {
        nr_waits += 1;
        match nr_waits {
            // No scheduler yet.
            1 | 2 => assert_eq!(time, RETRY),
            3 => *server.borrow_mut() = Some(place.launch()),
            4 | 5 => assert!(is_interval(time), "{time:?}"),
            // The server ends, which is noticed after the wait.
            6 => *server.borrow_mut() = None,
            7..=9 => assert_eq!(time, RETRY),
            10 => *server.borrow_mut() = Some(place.launch()),
            11 => assert_eq!((is_interval(time), *nr_stats.borrow()), (true, 2)),
            // The server is restarted between two requests.
            12 => *server.borrow_mut() = Some(place.launch()),
            13 => assert_eq!(time, RETRY),
            _ => {
                assert!(nr_waits < 20, "the server is not found again");
                return *nr_stats.borrow() == 5;
            }
        }
        false
    };
    let messages = Messages::default();
    let on_stats = |_: Metrics| {
        *nr_stats.borrow_mut() += 1;
        Ok(())
    };
    let result: Result<(), Error> = tracing::subscriber::with_default(messages.clone(), || {
        monitor(&place.path, INTERVAL, wait, on_stats)
    });
    result.unwrap();
    assert_eq!(messages.nr_waiting.load(Ordering::SeqCst), 3);
    assert_eq!(messages.nr_back.load(Ordering::SeqCst), 3);
}

#[test]
fn a_short_interval_is_also_that_of_looking() {
    let place = Place::new();
    let interval = Duration::from_millis(10);
    let wait = |time| {
        assert_eq!(time, interval);
        true
    };
    let result: Result<(), Error> = monitor(&place.path, interval, wait, |_: Metrics| Ok(()));
    result.unwrap();
}

#[test]
fn an_error_of_the_output_is_the_end() {
    let place = Place::new();
    let _server = place.launch();
    let on_stats = |_: Metrics| Err(Error::Pipe);
    let result = monitor(&place.path, INTERVAL, |_| false, on_stats);
    assert!(matches!(result, Err(Error::Pipe)));
}

#[test]
fn an_answer_of_another_kind_is_the_end() {
    #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, scx_stats::Stats)]
    struct Other {
        missing: u64,
    }
    let place = Place::new();
    let _server = place.launch();
    let result: Result<(), Error> = monitor(&place.path, INTERVAL, |_| false, |_: Other| Ok(()));
    assert!(matches!(
        result,
        Err(Error::Client(ClientError::Unexpected { .. }))
    ));
}

#[test]
fn a_channel_stops_it_at_once() {
    let place = Place::new();
    let _server = place.launch();
    let (stop, stopped) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let path = place.path.clone();
    let thread = thread::spawn(move || {
        let wait = |time| {
            begin.send(()).unwrap();
            stopped.recv_timeout(time) != Err(mpsc::RecvTimeoutError::Timeout)
        };
        monitor(path, 10_000 * LONG, wait, |_: Metrics| Ok::<_, Error>(()))
    });
    begun.recv_timeout(LONG).unwrap();
    stop.send(()).unwrap();
    thread.join().unwrap().unwrap();
}
