// SPDX-License-Identifier: GPL-2.0-only
//! What is known about a machine and its load. `None`, null as JSON: it could not be read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// What a process is known for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// A game runs: Wine, Proton, gamescope, or a daemon that games start.
    Game,
    /// Starts games, and may be idle in the background.
    Launcher,
    /// A display server, compositor or desktop session.
    Desktop,
    /// An audio server.
    Audio,
    Database,
    WebServer,
    Container,
    VirtualMachine,
}

/// The processes of a role.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Group {
    /// Names, each once, the one with the most CPU time first.
    pub(crate) names: Vec<String>,
    /// CPUs that they kept busy, on average.
    pub(crate) cpus: f64,
}

/// CPU time of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    pub(crate) name: String,
    pub(crate) pid: i32,
    /// CPUs that it kept busy, on average.
    pub(crate) cpus: f64,
}

/// Cgroups with settings that sched_ext leaves to the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cgroups {
    /// With `cpu.weight` or `cpu.idle`.
    pub(crate) weights: usize,
    /// With `cpu.max`.
    pub(crate) quotas: usize,
}

/// A power profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile(pub(crate) scx_utils::power::Profile);

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Why the kernel can load no scheduler at all.
    pub(crate) obstacle: Option<String>,
    /// The running scheduler, as the kernel names it.
    pub(crate) running: Option<String>,
    /// Online CPUs.
    pub(crate) nr_cpus: usize,
    /// Last-level caches.
    pub(crate) nr_llcs: usize,
    /// NUMA nodes with CPUs.
    pub(crate) nr_nodes: usize,
    /// Whether a core has several threads.
    pub(crate) smt: bool,
    /// Whether there are big and little cores.
    pub(crate) hybrid: bool,
    /// CPUs of the boot option `nohz_full=`.
    pub(crate) nr_tickless: usize,
    pub(crate) on_battery: Option<bool>,
    pub(crate) power_profile: Option<Profile>,
    pub(crate) cgroups: Option<Cgroups>,
}

/// The load, measured for a short time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Load {
    pub(crate) seconds: f64,
    /// CPUs that were busy, on average.
    pub(crate) busy_cpus: Option<f64>,
    /// Tasks that ran or waited for a CPU, on average, without this program.
    pub(crate) runnable_tasks: Option<f64>,
    /// Share of the time in which a task waited for a CPU (PSI), in percent.
    pub(crate) cpu_pressure_pct: Option<f64>,
    pub(crate) switches_per_s: Option<f64>,
    /// The processes with the most CPU time. None if other users' processes are hidden.
    pub(crate) top: Option<Vec<Usage>>,
    /// Likewise.
    pub(crate) groups: Option<BTreeMap<Role, Group>>,
    /// Clients of local X and PostgreSQL servers, connected by Unix sockets.
    pub(crate) local_clients: Option<usize>,
    /// CPUs that these servers kept busy, on average.
    pub(crate) local_servers_cpus: Option<f64>,
    /// TCP connections to services of this machine.
    pub(crate) tcp_clients: Option<usize>,
    /// Threads that wait for sockets. Only root can count them.
    pub(crate) socket_threads: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Facts {
    pub(crate) machine: Machine,
    pub(crate) load: Load,
}

impl Load {
    /// The processes of this role; None if there are none.
    pub(crate) fn group(&self, role: Role) -> Option<&Group> {
        self.groups.as_ref()?.get(&role)
    }
}

/// `1 CPU`, `2 CPUs`.
fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// In one line.
impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (machine, load) = (&self.machine, &self.load);
        write!(f, "{}, ", count(machine.nr_cpus, "CPU"))?;
        write!(f, "{}, ", count(machine.nr_llcs, "LLC"))?;
        write!(f, "{}", count(machine.nr_nodes, "node"))?;
        for (is_so, word) in [
            (machine.smt, "SMT"),
            (machine.hybrid, "big and little cores"),
            (machine.on_battery == Some(true), "on battery"),
        ] {
            if is_so {
                write!(f, ", {word}")?;
            }
        }
        write!(f, "; in {} s", load.seconds)?;
        if let Some(cpus) = load.busy_cpus {
            write!(f, " {cpus:.1} CPUs busy,")?;
        }
        if let Some(tasks) = load.runnable_tasks {
            write!(f, " {tasks:.1} tasks runnable,")?;
        }
        match load.cpu_pressure_pct {
            Some(percent) => write!(f, " {percent:.0} % CPU pressure"),
            None => write!(f, " CPU pressure unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_one_line() {
        let mut facts = Facts::default();
        (facts.machine.nr_cpus, facts.machine.nr_llcs) = (1, 2);
        assert_eq!(
            facts.to_string(),
            "1 CPU, 2 LLCs, 0 nodes; in 0 s CPU pressure unknown"
        );
        (facts.machine.hybrid, facts.machine.on_battery) = (true, Some(true));
        facts.load = Load {
            seconds: 2.0,
            busy_cpus: Some(0.96),
            runnable_tasks: Some(3.0),
            cpu_pressure_pct: Some(12.4),
            ..Load::default()
        };
        assert_eq!(
            facts.to_string(),
            "1 CPU, 2 LLCs, 0 nodes, big and little cores, on battery; \
             in 2 s 1.0 CPUs busy, 3.0 tasks runnable, 12 % CPU pressure"
        );
    }
}
