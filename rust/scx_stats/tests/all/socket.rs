//! The socket file: creation, permissions, removal.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use scx_stats::{Access, Server, ServerError};

use crate::common::{assert_serves, Child, Counter, Place};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in ["000", "022", "077", "777"] {
        let place = Place::new();
        fs::set_permissions(place.dir.path(), Permissions::from_mode(0o700)).unwrap();
        let path = place.dir.path().join("a/b/stats");
        let _child = Child::launch(&path, &format!("umask {umask}"));
        assert_eq!(mode(&path), 0o600, "{umask}");
        assert_eq!(mode(&place.dir.path().join("a/b")), 0o755, "{umask}");
        assert_eq!(mode(&place.dir.path().join("a")), 0o755, "{umask}");
        assert_eq!(mode(place.dir.path()), 0o700, "{umask}");
    }
}

#[test]
fn a_group_may_connect() {
    let place = Place::new();
    // Without root, a file can be given to the user's own groups only.
    let metadata = fs::metadata(place.dir.path()).unwrap();
    let group = if metadata.uid() == 0 {
        12345
    } else {
        metadata.gid()
    };
    let builder = place.builder(&Counter::default());
    let _server = builder
        .access(Access { group: Some(group) })
        .launch()
        .unwrap();
    assert_eq!(mode(&place.path), 0o660);
    assert_eq!(fs::metadata(&place.path).unwrap().gid(), group);
    assert_serves(&place.path);
}

#[test]
fn only_the_socket_is_left() {
    let place = Place::new();
    let server = place.launch();
    assert_eq!(names(place.dir.path()), ["stats"]);
    assert_eq!(mode(&place.path), 0o600);
    drop(server);
    assert!(names(place.dir.path()).is_empty());
}

#[test]
fn a_stale_socket_is_replaced() {
    let place = Place::new();
    Child::launch(&place.path, "").kill();
    assert!(fs::symlink_metadata(&place.path)
        .unwrap()
        .file_type()
        .is_socket());
    let _server = place.launch();
    assert_serves(&place.path);
}

#[test]
fn a_replaced_server_leaves_the_file() {
    let place = Place::new();
    let first = place.launch();
    let second = place.launch();
    drop(first);
    assert_serves(&place.path);
    drop(second);
    assert!(!place.path.exists());
}

#[test]
fn a_removed_file_is_no_trouble() {
    let place = Place::new();
    let server = place.launch();
    fs::remove_file(&place.path).unwrap();
    drop(server);
}

#[test]
fn nothing_but_a_socket_is_replaced() {
    let place = Place::new();
    let refused = |path: &Path| {
        let server = Server::builder(path).stats("top", Counter::default().source());
        let error = server.launch().unwrap_err();
        assert!(matches!(error, ServerError::NotASocket { .. }), "{error}");
        assert!(error.to_string().contains("exists and is not a socket"));
    };
    fs::write(&place.path, "precious").unwrap();
    refused(&place.path);
    assert_eq!(fs::read_to_string(&place.path).unwrap(), "precious");
    refused(place.dir.path());
    let link = place.dir.path().join("link");
    let target = place.dir.path().join("target");
    let _listener = UnixListener::bind(&target).unwrap();
    symlink(&target, &link).unwrap();
    refused(&link);
    let mut left = names(place.dir.path());
    left.sort();
    assert_eq!(left, ["link", "stats", "target"]);
}

#[test]
fn paths_that_cannot_be() {
    let place = Place::new();
    let launch = |path: &Path| Server::builder(path).launch().unwrap_err();
    let long = place.dir.path().join("x".repeat(107));
    assert!(long.as_os_str().as_bytes().len() > 107);
    let error = launch(&long);
    assert!(matches!(error, ServerError::PathTooLong { .. }), "{error}");
    fs::write(&place.path, "").unwrap();
    let error = launch(&place.path.join("stats")).to_string();
    assert!(error.contains(place.path.to_str().unwrap()), "{error}");
}

#[test]
fn a_failure_leaves_nothing() {
    let place = Place::new();
    // Not even root can create a socket here.
    let error = Server::builder("/proc/scx_stats_test")
        .launch()
        .err()
        .unwrap();
    assert!(
        error.to_string().starts_with("/proc/scx_stats_test: "),
        "{error}"
    );
    drop(Server::builder(&place.path).launch().unwrap());
    assert!(names(place.dir.path()).is_empty());
}
