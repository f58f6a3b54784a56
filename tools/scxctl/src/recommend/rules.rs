// SPDX-License-Identifier: GPL-2.0-only
//! The table of rules by which a scheduler is recommended. docs/bench.md, docs/results and
//! docs/schedulers describe what each scheduler is good at.

use scx_utils::manifest::{Manifest, Mode};
use serde::Serialize;

use super::facts::{Facts, Role};

#[cfg(test)]
mod tests;

/// CPU pressure (PSI) above which CPUs count as contended. A machine that is half idle has a
/// pressure of a few percent, because some tasks happen to wake up on the same CPU.
const CONTENDED_PCT: f64 = 20.0;
/// A group of processes counts as active if it keeps at least this many CPUs busy. Idle services
/// use less.
const ACTIVE_CPUS: f64 = 0.02;
/// Local servers (X, PostgreSQL) count as busy if together they use at least this many CPUs.
const BUSY_SERVER_CPUS: f64 = 0.1;
/// With fewer clients than this, a local server needs little more CPU time than its fair share.
const MANY_LOCAL_CLIENTS: usize = 4;
/// A machine with at least this many TCP clients counts as a server. Fewer connections may just be
/// SSH sessions of administrators.
const MANY_TCP_CLIENTS: usize = 16;
/// A machine with at least this many threads that wait for sockets counts as a server. An idle
/// system has about twenty such threads.
const MANY_SOCKET_THREADS: usize = 64;
/// scx_flatcg is recommended up to this number of CPUs, because it has a single queue for all CPUs.
const SINGLE_QUEUE_MAX_CPUS: usize = 16;

/// A scheduler with a mode, and what it does for the load.
type Choice = (&'static str, Mode, &'static str);

/// One row of the table.
pub(super) struct Rule {
    pub(super) name: &'static str,
    applies: fn(&Facts) -> bool,
    /// The finding, as text for the user.
    found: fn(&Facts) -> String,
    /// The best choice comes first. Without choices, the kernel's own scheduler is recommended.
    choices: &'static [Choice],
}

/// The recommendation. If `scheduler` is None, the kernel's own scheduler is recommended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Advice {
    pub(crate) rule: &'static str,
    pub(crate) scheduler: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// The finding and, if a scheduler is recommended, what it does for such a load.
    pub(crate) reasons: Vec<String>,
}

/// For games. The order is based on measurements of frames beside two hogs per CPU:
/// docs/results/recommend.md.
const GAMING: &[Choice] = &[
    ("scx_bpfland", Mode::Gaming, BRIEF),
    ("scx_lavd", Mode::Gaming, FRAMES),
    ("scx_rustland", Mode::Gaming, INTERACTIVE),
    ("scx_flash", Mode::Gaming, SLEEPERS),
];
/// For a desktop beside tasks that compute. The order is based on docs/results/recommend.md.
const BUSY_DESKTOP: &[Choice] = &[
    ("scx_bpfland", Mode::Auto, BRIEF),
    ("scx_flash", Mode::Auto, SLEEPERS),
    ("scx_lavd", Mode::Auto, FRAMES),
    ("scx_rustland", Mode::Auto, INTERACTIVE),
];
/// For a shell beside tasks that compute. The order is based on docs/results/recommend.md.
const BUSY_SHELL: &[Choice] = &[
    ("scx_flash", Mode::Auto, SLEEPERS),
    ("scx_lavd", Mode::Auto, FRAMES),
    ("scx_bpfland", Mode::Auto, BRIEF),
    ("scx_rustland", Mode::Auto, INTERACTIVE),
];
const FRAMES: &str = "tasks that others wait for, as for each frame of a game, go first";
const BRIEF: &str = "tasks that wake up often and run briefly go first";
const INTERACTIVE: &str = "interactive tasks run before those that compute";
const SLEEPERS: &str = "tasks that have slept go first, and shares stay fair";
const FEW_CPUS: &str = "the work is kept on as few CPUs as it needs, so that the others sleep";
const CACHES: &str = "each last-level cache has a queue, and load is balanced between them";
const WORKERS: &str = "workers that have slept go first, so that requests are answered more evenly";

/// The rules in order of precedence. The first rule that applies, and has a usable choice or no
/// choices at all, decides.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "kernel",
        applies: |facts| facts.machine.obstacle.is_some(),
        found: |facts| {
            let obstacle = facts.machine.obstacle.clone();
            obstacle.unwrap_or_default()
        },
        choices: &[],
    },
    Rule {
        name: "game-on-battery",
        applies: |facts| has(facts, Role::Game) && saves_power(facts),
        found: |facts| {
            format!(
                "a game runs ({}), {}",
                names(facts, Role::Game),
                saving(facts)
            )
        },
        choices: &[
            (
                "scx_lavd",
                Mode::Auto,
                "it uses as few CPUs as the game needs",
            ),
            ("scx_bpfland", Mode::Auto, BRIEF),
        ],
    },
    Rule {
        name: "game",
        applies: |facts| has(facts, Role::Game),
        found: |facts| format!("a game runs ({})", names(facts, Role::Game)),
        choices: GAMING,
    },
    Rule {
        name: "local-server",
        applies: |facts| {
            let load = &facts.load;
            is_contended(facts)
                && load.local_clients >= Some(MANY_LOCAL_CLIENTS)
                && load.local_servers_cpus >= Some(BUSY_SERVER_CPUS)
        },
        found: |facts| {
            let clients = facts.load.local_clients.unwrap_or(0);
            format!("a busy X or PostgreSQL server has {clients} local clients, and tasks wait")
        },
        choices: &[(
            "scx_economy",
            Mode::Auto,
            "clients give the server of their CPU time for its work",
        )],
    },
    Rule {
        name: "saving-desktop",
        applies: |facts| saves_power(facts) && has(facts, Role::Desktop) && !is_contended(facts),
        found: |facts| {
            format!(
                "a desktop ({}), {}",
                names(facts, Role::Desktop),
                saving(facts)
            )
        },
        choices: &[
            ("scx_lavd", Mode::PowerSave, FEW_CPUS),
            (
                "scx_bpfland",
                Mode::PowerSave,
                "it prefers efficient CPUs and injects idle time",
            ),
            ("scx_flash", Mode::PowerSave, "it prefers efficient CPUs"),
            (
                "scx_rustland",
                Mode::PowerSave,
                "it lets CPUs sleep rather than wake them",
            ),
        ],
    },
    Rule {
        name: "saving",
        applies: |facts| saves_power(facts) && !is_contended(facts),
        found: |facts| format!("the machine is partly idle, {}", saving(facts)),
        choices: &[
            (
                "scx_nest",
                Mode::PowerSave,
                "the work is kept on few warm CPUs",
            ),
            ("scx_lavd", Mode::PowerSave, FEW_CPUS),
        ],
    },
    Rule {
        name: "launcher",
        applies: |facts| has(facts, Role::Launcher),
        found: |facts| format!("games are played here ({})", names(facts, Role::Launcher)),
        choices: &[
            ("scx_bpfland", Mode::Auto, BRIEF),
            ("scx_lavd", Mode::Auto, FRAMES),
            ("scx_flash", Mode::Auto, SLEEPERS),
            ("scx_rustland", Mode::Auto, INTERACTIVE),
        ],
    },
    Rule {
        name: "audio",
        applies: |facts| {
            has(facts, Role::Desktop) && is_active(facts, Role::Audio) && is_contended(facts)
        },
        found: |facts| {
            format!(
                "sound is played ({}) while tasks wait",
                names(facts, Role::Audio)
            )
        },
        choices: &[
            ("scx_bpfland", Mode::LowLatency, BRIEF),
            ("scx_flash", Mode::LowLatency, SLEEPERS),
            ("scx_lavd", Mode::LowLatency, FRAMES),
            ("scx_rustland", Mode::LowLatency, INTERACTIVE),
        ],
    },
    Rule {
        name: "busy-desktop",
        applies: |facts| has(facts, Role::Desktop) && is_contended(facts),
        found: |facts| {
            format!(
                "a desktop ({}) whose tasks wait",
                names(facts, Role::Desktop)
            )
        },
        choices: BUSY_DESKTOP,
    },
    Rule {
        name: "one-cpu",
        applies: |facts| facts.machine.nr_cpus == 1 && !is_contended(facts),
        found: |_| "no task waits for the only CPU: there is nothing to gain".into(),
        choices: &[],
    },
    Rule {
        name: "desktop",
        applies: |facts| has(facts, Role::Desktop),
        found: |facts| format!("a desktop ({})", names(facts, Role::Desktop)),
        choices: &[
            ("scx_bpfland", Mode::Auto, BRIEF),
            ("scx_flash", Mode::Auto, SLEEPERS),
            ("scx_lavd", Mode::Auto, FRAMES),
            ("scx_rustland", Mode::Auto, INTERACTIVE),
        ],
    },
    Rule {
        name: "tickless",
        applies: |facts| facts.machine.nr_tickless > 0 && is_busy(facts) && !is_contended(facts),
        found: |facts| {
            format!(
                "{} CPUs are to run without a tick",
                facts.machine.nr_tickless
            )
        },
        choices: &[(
            "scx_central",
            Mode::Auto,
            "one CPU decides, so that the others need no tick",
        )],
    },
    Rule {
        name: "idle",
        applies: |facts| !is_contended(facts),
        found: |_| "tasks hardly wait for a CPU: there is nothing to gain".into(),
        choices: &[],
    },
    Rule {
        name: "cgroups",
        applies: |facts| limits_cgroups(facts) && is_small(facts),
        found: |facts| format!("tasks wait, and {}", limits(facts)),
        choices: &[(
            "scx_flatcg",
            Mode::Auto,
            "it honours weights and quotas at every level; most others ignore them",
        )],
    },
    Rule {
        name: "many-cgroups",
        applies: limits_cgroups,
        found: |facts| format!("{}: most other schedulers would ignore this", limits(facts)),
        choices: &[],
    },
    // The choices for servers and for several caches are based on docs/results/recommend.md.
    Rule {
        name: "large-server",
        applies: |facts| is_server(facts) && facts.machine.nr_llcs > 1,
        found: |facts| {
            format!(
                "a server ({}) on several caches, and tasks wait",
                server(facts)
            )
        },
        choices: &[
            ("scx_lavd", Mode::Server, CACHES),
            ("scx_rusty", Mode::Server, CACHES),
        ],
    },
    Rule {
        name: "server",
        applies: is_server,
        found: |facts| format!("a server ({}) whose tasks wait", server(facts)),
        choices: &[
            ("scx_flash", Mode::Server, WORKERS),
            ("scx_lavd", Mode::Server, WORKERS),
            ("scx_bpfland", Mode::Server, WORKERS),
            ("scx_rustland", Mode::Server, WORKERS),
        ],
    },
    Rule {
        name: "large",
        applies: |facts| facts.machine.nr_llcs > 1,
        found: |_| "tasks wait, and there are several last-level caches".into(),
        choices: &[
            ("scx_lavd", Mode::Auto, CACHES),
            ("scx_rusty", Mode::Auto, CACHES),
        ],
    },
    Rule {
        name: "overloaded",
        applies: |_| true,
        found: |_| "more tasks want to run than there are CPUs".into(),
        choices: BUSY_SHELL,
    },
];

/// The advice for a machine on which these schedulers are installed and can be loaded.
pub(crate) fn advise(facts: &Facts, usable: &[&Manifest]) -> Advice {
    for rule in RULES.iter().filter(|rule| (rule.applies)(facts)) {
        let found = (rule.found)(facts);
        if rule.choices.is_empty() {
            return own(rule.name, found);
        }
        for (name, mode, gain) in rule.choices {
            if usable
                .iter()
                .any(|one| one.name == *name && one.modes.contains_key(mode))
            {
                return Advice {
                    rule: rule.name,
                    scheduler: Some((*name).into()),
                    mode: Some(*mode),
                    reasons: vec![found, (*gain).into()],
                };
            }
        }
    }
    let reason = "no scheduler that would suit this load is installed and can be loaded";
    own("none", reason.into())
}

/// Recommends the kernel's own scheduler.
fn own(rule: &'static str, reason: String) -> Advice {
    Advice {
        rule,
        scheduler: None,
        mode: None,
        reasons: vec![reason],
    }
}

fn has(facts: &Facts, role: Role) -> bool {
    facts.load.group(role).is_some()
}

fn is_active(facts: &Facts, role: Role) -> bool {
    let group = facts.load.group(role);
    group.is_some_and(|group| group.cpus >= ACTIVE_CPUS)
}

/// Up to two names of processes of the role, the busiest process first.
fn names(facts: &Facts, role: Role) -> String {
    let group = facts.load.group(role);
    let names = group.map(|group| group.names.iter().take(2).cloned().collect::<Vec<_>>());
    names.unwrap_or_default().join(", ")
}

/// Whether tasks wait for CPUs.
fn is_contended(facts: &Facts) -> bool {
    let nr_cpus = facts.machine.nr_cpus as f64;
    facts.load.cpu_pressure_pct > Some(CONTENDED_PCT) || facts.load.runnable_tasks > Some(nr_cpus)
}

/// Whether the load keeps about one CPU busy, or more.
fn is_busy(facts: &Facts) -> bool {
    facts.load.busy_cpus >= Some(0.9)
}

/// Whether power should be saved, and there are several CPUs, so that some CPUs can sleep.
fn saves_power(facts: &Facts) -> bool {
    use scx_utils::power::Profile;
    if facts.machine.nr_cpus == 1 {
        return false;
    }
    let profile = facts.machine.power_profile.map(|profile| profile.0);
    facts.machine.on_battery == Some(true) || profile == Some(Profile::PowerSave)
}

fn saving(facts: &Facts) -> &'static str {
    match facts.machine.on_battery {
        Some(true) => "on battery",
        _ => "with a power profile that saves power",
    }
}

fn limits_cgroups(facts: &Facts) -> bool {
    let cgroups = facts.machine.cgroups;
    cgroups.is_some_and(|cgroups| cgroups.weights + cgroups.quotas > 0)
}

fn limits(facts: &Facts) -> String {
    let cgroups = facts.machine.cgroups.unwrap_or_default();
    format!(
        "cgroups have weights ({}) or quotas ({})",
        cgroups.weights, cgroups.quotas
    )
}

/// Whether a single queue serves all CPUs well.
fn is_small(facts: &Facts) -> bool {
    facts.machine.nr_llcs == 1 && facts.machine.nr_cpus <= SINGLE_QUEUE_MAX_CPUS
}

const SERVERS: [Role; 2] = [Role::Database, Role::WebServer];

fn is_server(facts: &Facts) -> bool {
    SERVERS.iter().any(|role| is_active(facts, *role))
        || facts.load.tcp_clients >= Some(MANY_TCP_CLIENTS)
        || facts.load.socket_threads >= Some(MANY_SOCKET_THREADS)
}

/// What shows that the machine is a server.
fn server(facts: &Facts) -> String {
    let load = &facts.load;
    if let Some(role) = SERVERS.into_iter().find(|role| is_active(facts, *role)) {
        return names(facts, role);
    }
    match load
        .tcp_clients
        .filter(|clients| *clients >= MANY_TCP_CLIENTS)
    {
        Some(clients) => format!("{clients} TCP clients"),
        None => format!(
            "{} threads wait for sockets",
            load.socket_threads.unwrap_or(0)
        ),
    }
}
