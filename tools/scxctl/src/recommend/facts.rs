// SPDX-License-Identifier: GPL-2.0-only
//! What is known about a machine and its load. Unless noted otherwise, `None` (null in JSON) means
//! that a value could not be read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// The purpose of a process, which is known from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// A sign that a game runs: Wine, Proton, gamescope, or a daemon that games start.
    Game,
    /// A program that starts games, and may be idle in the background.
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
    /// The names of the processes, each once. The name of the busiest process comes first.
    pub(crate) names: Vec<String>,
    /// Average number of CPUs that the processes kept busy.
    pub(crate) cpus: f64,
}

/// CPU time of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    pub(crate) name: String,
    pub(crate) pid: i32,
    /// Average number of CPUs that the process kept busy.
    pub(crate) cpus: f64,
}

/// How many cgroups have settings that sched_ext leaves to the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cgroups {
    /// Number of cgroups that set `cpu.weight` or `cpu.idle`.
    pub(crate) weights: usize,
    /// Number of cgroups that set `cpu.max`.
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

/// What is known about the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Why the kernel can load no scheduler at all. None if no reason is known.
    pub(crate) obstacle: Option<String>,
    /// Ops name of the running scheduler. None if no sched_ext scheduler runs.
    pub(crate) running: Option<String>,
    /// Number of online CPUs.
    pub(crate) nr_cpus: usize,
    /// Number of last-level caches.
    pub(crate) nr_llcs: usize,
    /// Number of NUMA nodes with CPUs.
    pub(crate) nr_nodes: usize,
    /// Whether any core has several online threads.
    pub(crate) smt: bool,
    /// Whether there are big and little cores.
    pub(crate) hybrid: bool,
    /// Number of CPUs of the boot option `nohz_full=`.
    pub(crate) nr_tickless: usize,
    /// Whether a battery powers the machine. None without a battery.
    pub(crate) on_battery: Option<bool>,
    pub(crate) power_profile: Option<Profile>,
    /// None without cgroup v2.
    pub(crate) cgroups: Option<Cgroups>,
}

/// The load during a measurement of `seconds`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Load {
    pub(crate) seconds: f64,
    /// Average number of busy CPUs.
    pub(crate) busy_cpus: Option<f64>,
    /// Average number of tasks that ran or waited for a CPU, without this program.
    pub(crate) runnable_tasks: Option<f64>,
    /// Percentage of the time during which at least one task waited for a CPU (PSI).
    pub(crate) cpu_pressure_pct: Option<f64>,
    pub(crate) switches_per_s: Option<f64>,
    /// At most three processes: those with the most CPU time. None if other users' processes are
    /// hidden.
    pub(crate) top: Option<Vec<Usage>>,
    /// The processes of each role. None if other users' processes are hidden.
    pub(crate) groups: Option<BTreeMap<Role, Group>>,
    /// Number of connections to X and PostgreSQL servers over Unix sockets.
    pub(crate) local_clients: Option<usize>,
    /// Average number of CPUs that X and PostgreSQL servers kept busy.
    pub(crate) local_servers_cpus: Option<f64>,
    /// Number of TCP connections to services of this machine.
    pub(crate) tcp_clients: Option<usize>,
    /// Number of threads that wait for sockets. Only root can count them.
    pub(crate) socket_threads: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Facts {
    pub(crate) machine: Machine,
    pub(crate) load: Load,
}

impl Load {
    /// The processes of this role. None if there are no such processes, or they are unknown.
    pub(crate) fn group(&self, role: Role) -> Option<&Group> {
        self.groups.as_ref()?.get(&role)
    }
}

/// A number with a noun, such as `1 CPU` or `2 CPUs`.
fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The most important facts in one line.
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
