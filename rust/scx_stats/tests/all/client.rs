//! The client, also with servers that violate the protocol.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use scx_stats::{monitor, Access, Args, Client, ClientError, Kind, Shape};

use crate::common::{child_path, command, set_child_path, Counter, Metrics, Place, LONG};

const SHORT: Duration = Duration::from_millis(100);

/// The id of the user nobody.
const NOBODY: u32 = 65534;

#[test]
fn statistics_totals_and_descriptions() {
    let (place, counter) = (Place::new(), Counter::default());
    counter.add(4);
    let _server = place.builder(&counter).launch().unwrap();
    let mut client = Client::connect(&place.path, LONG).unwrap();
    let metas = client.meta().unwrap();
    assert_eq!(
        (metas.len(), metas[0].name.as_str(), metas[0].top),
        (1, "Metrics", true)
    );
    let field = &metas[0].fields[1];
    assert_eq!(
        (field.name.as_str(), &field.shape),
        ("nr_dispatches", &Shape::Datum(Kind::U64))
    );
    assert!(field.is_counter() && !metas[0].fields[0].is_counter());
    counter.add(3);
    let total = client.stats_total::<Metrics>().unwrap();
    assert_eq!(
        total,
        Metrics {
            nr_dispatches: 7,
            nr_cpus: 4
        }
    );
    assert_eq!(client.stats::<Metrics>().unwrap().nr_dispatches, 3);
    assert_eq!(client.stats::<Metrics>().unwrap().nr_dispatches, 0);
}

#[test]
fn refusals_are_typed_and_end_nothing() {
    let place = Place::new();
    let _server = place.launch();
    let mut client = Client::connect(&place.path, LONG).unwrap();
    let error = client.request("what", &Args::new()).unwrap_err();
    assert!(matches!(error, ClientError::Refused { errno: 22, .. }) && !error.is_retryable());
    let expected = format!(
        "{}: unknown request \"what\" (errno 22)",
        place.path.display()
    );
    assert_eq!(error.to_string(), expected);
    client.stats::<Metrics>().unwrap();
}

#[test]
fn a_refusal_reaches_a_client_that_still_sends() {
    let place = Place::new();
    let _server = place.launch();
    let mut client = Client::connect(&place.path, LONG).unwrap();
    let args = Args::from([("pad".to_string(), "x".repeat(1 << 20))]);
    let error = client.request("stats", &args).unwrap_err();
    assert!(
        matches!(error, ClientError::Refused { errno: 90, .. }),
        "{error}"
    );
    let error = client.stats::<Metrics>().unwrap_err();
    assert!(matches!(error, ClientError::Closed { .. }), "{error}");
}

#[test]
fn timeouts_of_any_length() {
    let place = Place::new();
    let _server = place.launch();
    let mut client = Client::connect(&place.path, Duration::MAX).unwrap();
    client.stats::<Metrics>().unwrap();
    // The minimum timeout of a millisecond may or may not suffice.
    if let Ok(mut client) = Client::connect(&place.path, Duration::ZERO) {
        let _ = client.stats::<Metrics>();
    }
}

#[test]
fn no_server_is_retryable() {
    let place = Place::new();
    let connect = |path: &Path| Client::connect(path, LONG).unwrap_err();
    let error = connect(&place.path);
    assert!(error.is_retryable(), "{error}");
    assert!(
        error.to_string().contains(place.path.to_str().unwrap()),
        "{error}"
    );
    drop(UnixListener::bind(&place.path).unwrap());
    assert!(connect(&place.path).is_retryable());
    assert!(!connect(&place.dir.path().join("x".repeat(200))).is_retryable());
}

#[test]
fn a_server_that_ends_is_retryable() {
    let place = Place::new();
    let server = place.launch();
    let mut client = Client::connect(&place.path, LONG).unwrap();
    client.stats::<Metrics>().unwrap();
    drop(server);
    for _ in 0..2 {
        let error = client.stats::<Metrics>().unwrap_err();
        assert!(matches!(error, ClientError::Closed { .. }) && error.is_retryable());
    }
}

/// Returns the error of a client whose server runs `serve` with the connection.
fn error_of(timeout: Duration, serve: impl FnOnce(UnixStream) + Send) -> ClientError {
    let place = Place::new();
    let listener = UnixListener::bind(&place.path).unwrap();
    thread::scope(|scope| {
        let mut client = Client::connect(&place.path, timeout).unwrap();
        let (stream, _) = listener.accept().unwrap();
        scope.spawn(|| serve(stream));
        let error = client.stats::<Metrics>().unwrap_err();
        if !matches!(error, ClientError::Unexpected { .. }) {
            let next = client.stats::<Metrics>().unwrap_err();
            assert!(matches!(next, ClientError::Closed { .. }), "{next}");
        }
        error
    })
}

#[test]
fn no_answer_in_time() {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let error = error_of(SHORT, move |mut stream| {
        // An incomplete answer does not prevent the timeout.
        stream.write_all(b"{\"errno\"").unwrap();
        drop(hold);
        std::mem::forget(stream);
    });
    drop(held);
    assert!(
        matches!(error, ClientError::TimedOut { .. }) && error.is_retryable(),
        "{error}"
    );
}

#[test]
fn a_server_whose_queue_is_full() {
    let place = Place::new();
    let listener = UnixListener::bind(&place.path).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let mut clients = Vec::new();
    let error = loop {
        match Client::connect(&place.path, SHORT) {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
        assert!(clients.len() < 10, "the queue has no end");
    };
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
}

#[test]
fn invalid_answers() {
    let answers: [&[u8]; 6] = [
        b"\n",
        b"hello\n",
        b"\xff\n",
        b"{}\n",
        b"{\"errno\":0,\"args\":{\"resp\":{\"nr_cpus\":true}}}\n",
        b"{\"errno\":0,\"args\":{\"resp\":{}}}\n{}\n",
    ];
    for answer in answers {
        let error = error_of(LONG, move |mut stream| stream.write_all(answer).unwrap());
        assert!(matches!(error, ClientError::Unexpected { .. }), "{error}");
        assert!(!error.is_retryable());
    }
}

#[test]
fn an_answer_without_end() {
    let error = error_of(LONG, |mut stream| {
        let chunk = vec![b' '; 1 << 20];
        while stream.write_all(&chunk).is_ok() {}
    });
    assert!(
        matches!(error, ClientError::TooLong { .. }) && !error.is_retryable(),
        "{error}"
    );
}

/// The message for a user who may not connect. If the test runs as root, which may always connect,
/// the client runs as nobody. Otherwise, the user's own permission is removed.
fn error_for_others(place: &Place) -> String {
    let is_root = fs::metadata(place.dir.path()).unwrap().uid() == 0;
    let program = place.dir.path().join("program");
    // Another process writes the file. If this process did, a child that another test forks
    // meanwhile would have the file open for writing until its exec(), and the file could not be
    // executed.
    let mut copy = Command::new("cp");
    copy.arg(std::env::current_exe().unwrap()).arg(&program);
    assert!(copy.status().unwrap().success());
    let mut command = command(&program, "", "client::child_connects");
    set_child_path(&mut command, &place.path);
    if is_root {
        fs::set_permissions(place.dir.path(), Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
    } else {
        let mode = fs::metadata(&place.path).unwrap().permissions().mode();
        fs::set_permissions(&place.path, Permissions::from_mode(mode & 0o077)).unwrap();
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "run by other tests, in a separate process"]
fn child_connects() {
    let Some(path) = child_path() else { return };
    let error = Client::connect(&path, LONG).unwrap_err();
    assert!(matches!(error, ClientError::PermissionDenied { .. }) && !error.is_retryable());
    // A monitor does not retry on this error.
    let result: Result<(), ClientError> =
        monitor(&path, LONG, |_| panic!("waited"), |_: Metrics| Ok(()));
    assert_eq!(result.unwrap_err().to_string(), error.to_string());
    println!("{error}");
}

#[test]
fn error_without_permission_names_the_readers() {
    let place = Place::new();
    let uid = fs::metadata(place.dir.path()).unwrap().uid();
    let _server = place.launch();
    let told = error_for_others(&place);
    assert!(
        told.contains("permission denied: statistics are for root"),
        "{told}"
    );
    assert!(uid != 0 || told.contains("for root only"), "{told}");
}

#[test]
fn error_without_permission_names_the_group() {
    let place = Place::new();
    let group = fs::metadata(place.dir.path()).unwrap().gid();
    let builder = place.builder(&Counter::default());
    let _server = builder
        .access(Access { group: Some(group) })
        .launch()
        .unwrap();
    let told = error_for_others(&place);
    assert!(
        told.contains(&format!("root and members of group {group}")),
        "{told}"
    );
}
