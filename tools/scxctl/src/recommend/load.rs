// SPDX-License-Identifier: GPL-2.0-only
//! Measures the load with the files in /proc below a root directory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use procfs::net::{TcpNetEntries, TcpState, UnixNetEntries, UnixState};
use procfs::process::all_processes_with_root;
use procfs::{CpuPressure, FromRead as _, FromReadSI as _, KernelStats};

use super::facts::{Group, Load, Role, Usage};
use super::names;
use crate::check;

/// Time between two readings of the number of runnable tasks. It is not a multiple of common
/// periods, such as a tick of 1, 4 or 10 ms or a frame, so that periodic tasks do not bias the
/// average.
const INTERVAL: Duration = Duration::from_micros(97_300);
/// Maximum number of processes that are shown.
const NR_TOP: usize = 3;
/// Processes that keep fewer CPUs busy than this, on average, are not shown.
const TOP_MIN_CPUS: f64 = 0.05;

#[derive(Debug)]
struct Process {
    name: String,
    cpu_ticks: u64,
}

/// The kernel's counters at one time.
#[derive(Debug)]
pub(super) struct Sample {
    stats: Option<KernelStats>,
    pressure_us: Option<u64>,
    /// The processes by pid and start time. None if the processes of other users are hidden
    /// (hidepid=).
    processes: Option<HashMap<(i32, u64), Process>>,
}

/// Measures, for the duration `time`, the load of the machine whose root directory is `root`.
pub(super) fn measure(root: &Path, time: Duration) -> Load {
    let start = Instant::now();
    let first = Sample::read(root);
    let mut runnable = Vec::new();
    loop {
        runnable.extend(runnable_tasks(root));
        let left = time.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        thread::sleep(INTERVAL.min(left));
    }
    let last = Sample::read(root);
    let load = first.until(&last, start.elapsed());
    let nr_readings = runnable.len() as f64;
    Load {
        runnable_tasks: (!runnable.is_empty())
            .then(|| round(runnable.iter().sum::<f64>() / nr_readings)),
        local_clients: local_clients(root),
        tcp_clients: tcp_clients(root),
        socket_threads: socket_threads(root),
        ..load
    }
}

fn stats(root: &Path) -> Option<KernelStats> {
    KernelStats::from_file(root.join("proc/stat"), procfs::current_system_info()).ok()
}

/// The number of runnable tasks, without the thread that reads the number.
fn runnable_tasks(root: &Path) -> Option<f64> {
    let running = stats(root)?.procs_running?;
    Some(f64::from(running.saturating_sub(1)))
}

/// Rounds to two decimals, because a short measurement is not more precise. Adding 0.0 turns -0.0,
/// which is the sum of an empty list, into 0.0.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0 + 0.0
}

impl Sample {
    pub(super) fn read(root: &Path) -> Self {
        let pressure = CpuPressure::from_file(root.join("proc/pressure/cpu"));
        Self {
            stats: stats(root),
            pressure_us: pressure.ok().map(|pressure| pressure.some.total),
            processes: processes(root),
        }
    }

    /// The load between this sample and the sample `later`, which was taken `time` after this one.
    pub(super) fn until(&self, later: &Self, time: Duration) -> Load {
        let seconds = time.as_secs_f64();
        // The differences are far below 2^52, so that f64 represents them exactly.
        let per_second = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
        let ticks_per_second = procfs::ticks_per_second() as f64;
        let cpus = |first, last| per_second(first, last) / ticks_per_second;
        let both_stats = self.stats.as_ref().zip(later.stats.as_ref());
        let both_pressures = self.pressure_us.zip(later.pressure_us);
        let usage = self.usage(later, cpus);
        Load {
            seconds: round(seconds),
            busy_cpus: both_stats.map(|(a, b)| round(cpus(busy_ticks(a), busy_ticks(b)))),
            cpu_pressure_pct: both_pressures
                .map(|(a, b)| round((per_second(a, b) / 1e4).min(100.0))),
            switches_per_s: both_stats.map(|(a, b)| per_second(a.ctxt, b.ctxt).round()),
            groups: usage.as_deref().map(groups),
            local_servers_cpus: usage.as_deref().map(local_servers_cpus),
            top: usage.map(top),
            ..Load::default()
        }
    }

    /// The CPU time of each process between the samples, in descending order.
    fn usage(&self, later: &Self, cpus: impl Fn(u64, u64) -> f64) -> Option<Vec<Usage>> {
        let (before, after) = (self.processes.as_ref()?, later.processes.as_ref()?);
        let usage = after.iter().map(|(id, process)| {
            let first_ticks = before.get(id).map_or(0, |earlier| earlier.cpu_ticks);
            Usage {
                name: process.name.clone(),
                pid: id.0,
                cpus: round(cpus(first_ticks, process.cpu_ticks)),
            }
        });
        let mut usage: Vec<_> = usage.collect();
        usage.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
        Some(usage)
    }
}

/// Time for which all CPUs together were busy, in ticks. The time of guests is not added, because
/// `user` and `nice` include this time.
fn busy_ticks(stats: &KernelStats) -> u64 {
    let total = &stats.total;
    let interrupts = total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
    total.user + total.nice + total.system + interrupts
}

/// All processes except this one. None if the processes of other users are hidden.
fn processes(root: &Path) -> Option<HashMap<(i32, u64), Process>> {
    let own = fs::read_link(root.join("proc/self")).unwrap_or_default();
    let own = own.to_str().and_then(|pid| pid.parse().ok());
    let stats = all_processes_with_root(root.join("proc")).ok()?;
    // A process that ends meanwhile is left out.
    let stats = stats.filter_map(|process| process.ok()?.stat().ok());
    let all: HashMap<_, _> = stats
        .filter(|stat| Some(stat.pid) != own)
        .map(|stat| {
            let cpu_ticks = stat.utime + stat.stime;
            // Any user can choose the name of a process.
            let name = stat.comm.replace(char::is_control, "\u{fffd}");
            ((stat.pid, stat.starttime), Process { name, cpu_ticks })
        })
        .collect();
    // Process 1 belongs to root, so it is missing if the processes of other users are hidden.
    let is_first = |(pid, _): &(i32, u64)| *pid == 1;
    all.keys().any(is_first).then_some(all)
}

fn groups(usage: &[Usage]) -> BTreeMap<Role, Group> {
    let mut groups = BTreeMap::<_, Group>::new();
    for one in usage {
        if let Some(role) = names::role(&one.name) {
            let group = groups.entry(role).or_default();
            group.cpus = round(group.cpus + one.cpus);
            if !group.names.contains(&one.name) {
                group.names.push(one.name.clone());
            }
        }
    }
    groups
}

fn local_servers_cpus(usage: &[Usage]) -> f64 {
    let servers = usage.iter().filter(|one| names::is_local_server(&one.name));
    round(servers.map(|one| one.cpus).sum())
}

fn top(usage: Vec<Usage>) -> Vec<Usage> {
    let shown = usage.into_iter().take(NR_TOP);
    shown.filter(|one| one.cpus >= TOP_MIN_CPUS).collect()
}

/// The number of connections to local servers. At the server's end, and only there, a connection
/// has the path of the socket on which the server listens.
fn local_clients(root: &Path) -> Option<usize> {
    let sockets = UnixNetEntries::from_file(root.join("proc/net/unix")).ok()?;
    let is_client = |path: &Path| path.to_str().is_some_and(names::is_local_socket);
    let connected = sockets
        .0
        .iter()
        .filter(|one| one.state == UnixState::CONNECTED);
    let paths = connected.filter_map(|one| one.path.as_deref());
    Some(paths.filter(|path| is_client(path)).count())
}

/// The number of connections to ports on which processes of this machine listen.
fn tcp_clients(root: &Path) -> Option<usize> {
    let read = |name: &str| {
        let path = root.join("proc/net").join(name);
        TcpNetEntries::from_file(path, procfs::current_system_info()).ok()
    };
    // IPv6 may be disabled.
    let sockets = [read("tcp")?.0, read("tcp6").map_or(Vec::new(), |six| six.0)].concat();
    let of_state = |state| {
        let found = sockets.iter().filter(move |one| one.state == state);
        found.map(|one| one.local_address.port())
    };
    let services: HashSet<_> = of_state(TcpState::Listen).collect();
    let clients = of_state(TcpState::Established);
    Some(clients.filter(|port| services.contains(port)).count())
}

/// The number of threads that wait for sockets. Only root can see where the threads of other users
/// wait.
fn socket_threads(root: &Path) -> Option<usize> {
    let proc = root.join("proc");
    if check::effective_uid(root)? != 0 || !proc.join("1/wchan").exists() {
        return None;
    }
    let processes = all_processes_with_root(&proc).ok()?.flatten();
    let threads = processes.filter_map(|process| process.tasks().ok());
    let waits = threads.flatten().flatten().filter(|thread| {
        let path = proc.join(format!("{}/task/{}/wchan", thread.pid, thread.tid));
        fs::read_to_string(path).is_ok_and(|function| names::is_socket_wait(&function))
    });
    Some(waits.count())
}
