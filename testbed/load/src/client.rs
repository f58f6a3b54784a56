//! Threads that send requests over Unix sockets to a server process, to measure how much CPU time
//! clients and server get.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::retry_on_intr;

use crate::clock::{thread_cpu_time, use_cpu};
use crate::control::{Control, Crew};
use crate::stats::Latencies;

/// The first argument of the server process. The further arguments are the number of clients, the
/// work per request in us, and whether the server replies (1 or 0).
const SERVER: &str = "--server";

/// Length of a request or reply, bytes.
const MESSAGE_LEN: usize = 64;

/// The clients, and what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trade {
    /// Number of clients.
    pub count: u32,
    /// CPU time of a client per request.
    pub client_work: Duration,
    /// CPU time of the server per request.
    pub server_work: Duration,
    /// Whether clients wait for a reply.
    pub waits: bool,
    /// A client sends at most one request per period. If the period is zero, the next request
    /// follows at once.
    pub period: Duration,
}

/// The result of a client.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// The client's CPU time.
    pub cpu: Duration,
    /// Requests that the client has sent.
    pub requests: u64,
    /// Requests whose reply came after the end of their period.
    pub missed: u64,
    /// The longest time between the ends of two successive requests, or from the start of the
    /// client to the end of its first request.
    pub gap_max: Duration,
    /// If the client waits for replies, the times from the moment when a request was due until its
    /// reply. A request is due when its period begins and the previous request has ended.
    pub latencies: Latencies,
}

/// The result of all clients, and the CPU time of the server.
#[derive(Clone, Debug)]
pub(crate) struct Market {
    pub clients: Vec<Served>,
    pub server_cpu: Duration,
}

/// The clients and their server.
pub(crate) struct Clients {
    crew: Crew<Served>,
    server: Option<Server>,
}

/// The server process. Dropping this value kills the process.
struct Server(Child);

impl Server {
    /// The server's CPU time so far.
    fn cpu(&self) -> Result<Duration> {
        let path = format!("/proc/{}/schedstat", self.0.id());
        let text = fs::read_to_string(&path).context("reading the server's CPU time")?;
        let ns = text
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse().ok());
        Ok(Duration::from_nanos(
            ns.with_context(|| format!("{path} has no CPU time"))?,
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ignore errors, because the server may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Clients {
    /// Waits for all threads, and ends the server; `None` without clients. Call this right after
    /// the stop: it reads the server's CPU time, and the server may still have requests to serve.
    ///
    /// # Errors
    /// A thread or the server failed.
    pub(crate) fn join(self) -> Result<Option<Market>> {
        let server_cpu = self.server.as_ref().map(Server::cpu).transpose();
        let clients = self.crew.join()?;
        Ok(server_cpu?.map(|server_cpu| Market {
            clients,
            server_cpu,
        }))
    }
}

/// Starts the server and adds the clients.
///
/// # Errors
/// The server cannot be started or reached, or a thread cannot be created.
pub(crate) fn hire(trade: Trade, control: &Arc<Control>) -> Result<Clients> {
    let mut crew = Crew::new("client", control);
    if trade.count == 0 {
        return Ok(Clients { crew, server: None });
    }
    let (server, streams) = start_server(trade).context("starting the server")?;
    for stream in streams {
        crew.hire(move |control| work(trade, stream, control))?;
    }
    Ok(Clients {
        crew,
        server: Some(server),
    })
}

/// Starts a server, and connects all clients to it.
fn start_server(trade: Trade) -> Result<(Server, Vec<UnixStream>)> {
    let name = format!("scx_load-{}-{:p}", std::process::id(), &raw const trade);
    let address = SocketAddr::from_abstract_name(name)?;
    let listener = UnixListener::bind_addr(&address)?;
    let streams = (0..trade.count).map(|_| UnixStream::connect_addr(&address));
    let streams = streams.collect::<io::Result<_>>()?;
    let mut command = Command::new(env::current_exe()?);
    command
        .arg(SERVER)
        .arg(trade.count.to_string())
        .arg(trade.server_work.as_micros().to_string())
        .arg(u8::from(trade.waits).to_string())
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        // The server is not in the foreground process group, so that Ctrl-C does not reach it.
        .process_group(0);
    Ok((Server(command.spawn()?), streams))
}

/// Sends requests until the stop.
fn work(trade: Trade, mut stream: UnixStream, control: &Control) -> Result<Served> {
    let mut served = Served {
        cpu: Duration::ZERO,
        requests: 0,
        missed: 0,
        gap_max: Duration::ZERO,
        latencies: Latencies::new(),
    };
    let cpu = thread_cpu_time()?;
    let mut message = [0; MESSAGE_LEN];
    let (mut next, mut last) = (Instant::now(), Instant::now());
    while !control.sleep_until(next) {
        let start = next.max(last);
        use_cpu(trade.client_work)?;
        stream.write_all(&message).context("sending a request")?;
        if trade.waits {
            stream.read_exact(&mut message).context("reading a reply")?;
            served.latencies.record(start.elapsed());
        }
        let now = Instant::now();
        served.requests += 1;
        served.gap_max = served.gap_max.max(now - last);
        last = now;
        if !trade.period.is_zero() {
            served.missed += u64::from(now > next + trade.period);
            // Skip missed periods. Making up for them would cause a burst.
            next +=
                trade.period * u32::try_from((now - next).as_nanos() / trade.period.as_nanos())?;
            next += trade.period;
        }
    }
    served.cpu = thread_cpu_time()?.saturating_sub(cpu);
    Ok(served)
}

/// Serves until the end if this process was started as a server. Otherwise, returns `None`.
pub(crate) fn serve_if_asked() -> Option<Result<()>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [kind, count, work_us, replies] = args.as_slice() else {
        return None;
    };
    (kind == SERVER).then(|| {
        let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        let work = Duration::from_micros(work_us.parse()?);
        let connections = (0..count.parse()?).map(|_| Ok(listener.accept()?.0));
        serve(connections.collect::<Result<_>>()?, work, replies != "0")
    })
}

/// Serves requests, one of each client in turn, until all clients have closed their sockets.
fn serve(mut clients: Vec<UnixStream>, work: Duration, replies: bool) -> Result<()> {
    let mut message = [0; MESSAGE_LEN];
    while !clients.is_empty() {
        for index in ready(&clients)?.into_iter().rev() {
            // An error means that the client has closed its socket.
            let is_open = clients[index].read_exact(&mut message).is_ok() && {
                use_cpu(work)?;
                !replies || clients[index].write_all(&message).is_ok()
            };
            if !is_open {
                clients.remove(index);
            }
        }
    }
    Ok(())
}

/// Waits until clients have sent requests or closed their sockets, and returns their indices.
fn ready(clients: &[UnixStream]) -> Result<Vec<usize>> {
    let mut fds: Vec<_> = clients
        .iter()
        .map(|of| PollFd::new(of, PollFlags::IN))
        .collect();
    retry_on_intr(|| poll(&mut fds, None)).context("waiting for requests")?;
    let is_ready = |(index, fd): (usize, &PollFd<'_>)| (!fd.revents().is_empty()).then_some(index);
    Ok(fds.iter().enumerate().filter_map(is_ready).collect())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn trade(waits: bool, period: Duration) -> Trade {
        Trade {
            count: 2,
            client_work: Duration::from_micros(100),
            server_work: Duration::from_micros(100),
            waits,
            period,
        }
    }

    /// The result of one client with a server thread.
    fn traded(trade: Trade, checks: u32) -> Served {
        let (client, server) = UnixStream::pair().unwrap();
        let server =
            thread::spawn(move || serve(vec![server], trade.server_work, trade.waits).unwrap());
        let served = work(trade, client, &Control::stopping_after(checks)).unwrap();
        server.join().unwrap();
        served
    }

    #[test]
    fn replies_are_waited_for() {
        let served = traded(trade(true, Duration::ZERO), 10);
        assert!(served.requests > 0, "{served:?}");
        assert_eq!(served.latencies.count(), served.requests);
        assert!(served.latencies.max() >= Some(Duration::from_micros(200)));
        assert!(served.gap_max >= Duration::from_micros(200));
        assert!(served.cpu >= Duration::from_micros(100));
    }

    #[test]
    fn without_replies_only_requests_count() {
        let served = traded(trade(false, Duration::ZERO), 10);
        assert!(served.requests > 0, "{served:?}");
        assert_eq!(served.latencies.count(), 0);
        assert_eq!(served.missed, 0);
    }

    #[test]
    fn missed_periods_are_counted() {
        let served = traded(trade(true, Duration::from_micros(10)), 10);
        assert_eq!(served.missed, served.requests, "{served:?}");
    }
}
