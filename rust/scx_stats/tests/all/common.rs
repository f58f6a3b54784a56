//! Shared by the tests: a struct, servers in this process and in another, and a client that sends
//! raw lines.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use scx_stats::{Args, Client, Server, ServerBuilder, Stats};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

/// A timeout that is never reached, even on slow machines.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The environment variable that tells a child process the path of the socket.
const CHILD_PATH: &str = "SCX_STATS_TEST_PATH";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(top)]
pub(crate) struct Metrics {
    #[stat(counter)]
    pub(crate) nr_dispatches: u64,
    pub(crate) nr_cpus: u32,
}

/// A counter that a test increments and a server reads.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::SeqCst);
    }

    pub(crate) fn source(&self) -> impl FnMut(&Args) -> io::Result<Metrics> + Send + 'static {
        let counter = Arc::clone(&self.0);
        move |_| {
            Ok(Metrics {
                nr_dispatches: counter.load(Ordering::SeqCst),
                nr_cpus: 4,
            })
        }
    }
}

/// A directory for a socket.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        Self { dir, path }
    }

    /// A builder of a server of [`Metrics`].
    pub(crate) fn builder(&self, counter: &Counter) -> ServerBuilder {
        Server::builder(&self.path).stats("top", counter.source())
    }

    pub(crate) fn launch(&self) -> Server {
        self.builder(&Counter::default()).launch().unwrap()
    }
}

/// Asserts that a new client of the server at `path` gets its answer.
#[track_caller]
pub(crate) fn assert_serves(path: &Path) {
    let mut client = Client::connect(path, LONG).unwrap();
    assert_eq!(client.stats::<Metrics>().unwrap().nr_cpus, 4);
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A connection for raw lines.
pub(crate) struct Raw(pub(crate) BufReader<UnixStream>);

impl Raw {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// The next line with its newline; empty when the connection is closed.
    pub(crate) fn receive(&mut self) -> String {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(_) => line,
            // The server closed the connection with unread data.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => line,
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a line in one write, because a partial line may time out.
    fn send_line(&mut self, line: &[u8]) {
        self.send([line, b"\n"].concat());
    }

    /// Sends a line and returns the answer.
    pub(crate) fn ask(&mut self, line: impl AsRef<[u8]>) -> String {
        self.send_line(line.as_ref());
        self.receive()
    }

    /// The errno of the next answer.
    pub(crate) fn receive_errno(&mut self) -> i64 {
        let line = self.receive();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let resp = &answer["args"]["resp"];
        assert!(resp.is_string() || answer["errno"] == 0, "{line}");
        answer["errno"].as_i64().unwrap()
    }

    pub(crate) fn ask_errno(&mut self, line: impl AsRef<[u8]>) -> i64 {
        self.send_line(line.as_ref());
        self.receive_errno()
    }

    /// Sends spaces, without reading, until the server has closed the connection.
    pub(crate) fn wait_for_end(&mut self) {
        self.0.get_mut().set_nonblocking(true).unwrap();
        wait_for("the end of a connection", || {
            let result = self.0.get_mut().write(b" ");
            result.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
        });
    }
}

/// A server in another process, with its own umask and limits.
pub(crate) struct Child(process::Child);

impl Child {
    /// Starts a server at `path` after the shell commands `setup`.
    pub(crate) fn launch(path: &Path, setup: &str) -> Self {
        let mut command = command(&env::current_exe().unwrap(), setup, "common::child_serves");
        let child = command.env(CHILD_PATH, path).stdin(Stdio::piped());
        let child = Self(child.stdout(Stdio::null()).spawn().unwrap());
        wait_for("the server of a child", || {
            Client::connect(path, LONG).is_ok()
        });
        child
    }

    /// Kills the server, which leaves its socket file behind.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// A command that runs `test` of the test binary `program`, after the shell commands `setup`.
pub(crate) fn command(program: &Path, setup: &str, test: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{setup}\nexec \"$0\" \"$@\"")]);
    command.arg(program);
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    // Ctrl-C should end only the test: a server child then reads end of file, and exits.
    command.process_group(0);
    command
}

/// The path of the socket, in a child process; `None` in any other process.
pub(crate) fn child_path() -> Option<PathBuf> {
    env::var_os(CHILD_PATH).map(PathBuf::from)
}

/// Sets the path for a child.
pub(crate) fn set_child_path(command: &mut Command, path: &Path) {
    command.env(CHILD_PATH, path);
}

#[test]
#[ignore = "run by other tests, in a separate process"]
fn child_serves() {
    let Some(path) = child_path() else { return };
    let server = Server::builder(path).stats("top", Counter::default().source());
    let server = server.launch().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(server);
}
