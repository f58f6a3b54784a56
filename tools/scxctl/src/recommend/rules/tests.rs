// SPDX-License-Identifier: GPL-2.0-only
//! Tests each rule with a machine on which it decides, and the whole table with random machines.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scx_utils::power;

use super::*;
use crate::recommend::facts::{Cgroups, Group, Load, Machine, Profile};

/// The schedulers of the table.
fn names() -> BTreeSet<&'static str> {
    let choices = RULES.iter().flat_map(|rule| rule.choices);
    choices.map(|(name, _, _)| *name).collect()
}

fn manifest(name: &str, modes: impl IntoIterator<Item = Mode>) -> Manifest {
    Manifest {
        name: name.into(),
        options: Vec::new(),
        modes: modes.into_iter().map(|mode| (mode, Vec::new())).collect(),
        power_profile_args: None,
        kfuncs: Vec::new(),
    }
}

/// The advice if all schedulers of the table are installed except these.
fn advice(facts: &Facts, except: &[&str]) -> Advice {
    let all: Vec<_> = names()
        .into_iter()
        .filter(|name| !except.contains(name))
        .map(|name| manifest(name, Mode::ALL))
        .collect();
    advise(facts, &all.iter().collect::<Vec<_>>())
}

/// Four equal CPUs that are idle.
fn idle() -> Facts {
    Facts {
        machine: Machine {
            nr_cpus: 4,
            nr_llcs: 1,
            nr_nodes: 1,
            on_battery: Some(false),
            cgroups: Some(Cgroups::default()),
            ..Machine::default()
        },
        load: Load {
            seconds: 2.0,
            busy_cpus: Some(0.1),
            runnable_tasks: Some(0.2),
            cpu_pressure_pct: Some(1.0),
            groups: Some(BTreeMap::new()),
            ..Load::default()
        },
    }
}

/// The machine of `idle()` when it is overloaded.
fn busy() -> Facts {
    let mut facts = idle();
    facts.load.busy_cpus = Some(4.0);
    facts.load.runnable_tasks = Some(9.5);
    facts.load.cpu_pressure_pct = Some(97.0);
    facts
}

fn with(mut facts: Facts, role: Role, name: &str, cpus: f64) -> Facts {
    let names = vec![name.into()];
    let groups = facts.load.groups.get_or_insert_default();
    groups.insert(role, Group { names, cpus });
    facts
}

fn desktop(facts: Facts) -> Facts {
    with(facts, Role::Desktop, "gnome-shell", 0.2)
}

fn change(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

fn on_battery(facts: Facts) -> Facts {
    change(facts, |facts| facts.machine.on_battery = Some(true))
}

fn large(facts: Facts) -> Facts {
    change(facts, |facts| {
        (facts.machine.nr_cpus, facts.machine.nr_llcs) = (64, 8);
        facts.load.runnable_tasks = facts.load.runnable_tasks.map(|tasks| 16.0 * tasks);
    })
}

/// The name of a rule, a machine on which the rule decides, and the recommendation.
type Example = (&'static str, Facts, Option<(&'static str, Mode)>);

/// Examples for the rules before `tickless`: mostly machines with games or a desktop.
fn interactive() -> Vec<Example> {
    let game = |facts| with(facts, Role::Game, "wineserver", 0.1);
    let old = change(busy(), |facts| facts.machine.obstacle = Some("old".into()));
    let launcher = desktop(with(idle(), Role::Launcher, "steam", 0.0));
    let audio = desktop(with(busy(), Role::Audio, "pipewire", 0.03));
    let one_cpu = change(desktop(idle()), |facts| facts.machine.nr_cpus = 1);
    let local = change(desktop(busy()), |facts| {
        facts.load.local_clients = Some(6);
        facts.load.local_servers_cpus = Some(0.3);
    });
    let bpfland = |mode| Some(("scx_bpfland", mode));
    let lavd = |mode| Some(("scx_lavd", mode));
    let saving = on_battery(desktop(idle()));
    vec![
        ("kernel", game(old), None),
        (
            "game-on-battery",
            on_battery(game(idle())),
            lavd(Mode::Auto),
        ),
        ("game", game(busy()), bpfland(Mode::Gaming)),
        ("local-server", local, Some(("scx_economy", Mode::Auto))),
        ("saving-desktop", saving, lavd(Mode::PowerSave)),
        (
            "saving",
            on_battery(idle()),
            Some(("scx_nest", Mode::PowerSave)),
        ),
        ("launcher", launcher, bpfland(Mode::Auto)),
        ("audio", audio, bpfland(Mode::LowLatency)),
        ("busy-desktop", desktop(busy()), bpfland(Mode::Auto)),
        ("one-cpu", one_cpu, None),
        ("desktop", desktop(idle()), bpfland(Mode::Auto)),
    ]
}

/// Examples for `tickless` and the rules after it: mostly servers and large machines.
fn servers() -> Vec<Example> {
    let limits = |facts| {
        change(facts, |facts| {
            let (weights, quotas) = (1, 2);
            facts.machine.cgroups = Some(Cgroups { weights, quotas });
        })
    };
    let web = |facts| with(facts, Role::WebServer, "nginx", 1.5);
    let tickless = change(idle(), |facts| {
        (facts.machine.nr_tickless, facts.load.busy_cpus) = (3, Some(3.0));
    });
    let lavd = |mode| Some(("scx_lavd", mode));
    vec![
        ("tickless", tickless, Some(("scx_central", Mode::Auto))),
        ("idle", web(idle()), None),
        ("cgroups", limits(busy()), Some(("scx_flatcg", Mode::Auto))),
        ("many-cgroups", limits(large(busy())), None),
        ("large-server", large(web(busy())), lavd(Mode::Server)),
        ("server", web(busy()), Some(("scx_flash", Mode::Server))),
        ("large", large(busy()), lavd(Mode::Auto)),
        ("overloaded", busy(), Some(("scx_flash", Mode::Auto))),
    ]
}

/// All examples, in the order of the rules in the table.
fn examples() -> Vec<Example> {
    [interactive(), servers()].concat()
}

#[test]
fn each_rule_decides_on_its_machine() {
    let examples = examples();
    let names = examples.iter().map(|(name, ..)| *name);
    assert!(names.eq(RULES.iter().map(|rule| rule.name)));
    for (name, facts, expected) in &examples {
        let advice = advice(facts, &[]);
        assert_eq!(advice.rule, *name, "{facts:?}");
        let (scheduler, mode) = (advice.scheduler.as_deref(), advice.mode);
        assert_eq!(scheduler.zip(mode), *expected, "{name}");
        assert!(advice
            .reasons
            .iter()
            .all(|one| !one.is_empty() && !one.contains('\n')));
    }
}

#[test]
fn next_choice_is_taken_if_the_best_is_not_installed() {
    let desktop = desktop(busy());
    let second = advice(&desktop, &["scx_bpfland"]);
    assert_eq!(second.scheduler.as_deref(), Some("scx_flash"));
    // If no choice of a rule is installed, the next rule that applies decides.
    let local = &examples()[3].1;
    assert_eq!(advice(local, &["scx_economy"]).rule, "busy-desktop");
    let none = advise(&desktop, &[]);
    assert_eq!((none.rule, none.scheduler), ("none", None));
}

#[test]
fn modes_that_a_scheduler_lacks_are_not_recommended() {
    let game = with(idle(), Role::Game, "proton", 1.0);
    let lavd = manifest("scx_lavd", [Mode::Auto]);
    let flash = manifest("scx_flash", Mode::ALL);
    let advice = advise(&game, &[&lavd, &flash]);
    assert_eq!(advice.scheduler.as_deref(), Some("scx_flash"));
    assert_eq!(advice.mode, Some(Mode::Gaming));
}

#[test]
fn unknown_facts_decide_nothing() {
    let unknown = change(Facts::default(), |facts| facts.machine.nr_cpus = 4);
    let advice = advice(&unknown, &[]);
    assert_eq!((advice.rule, advice.scheduler), ("idle", None));
}

#[test]
fn waiting_tasks_show_in_either_figure() {
    let rule = |pressure, tasks| {
        let facts = change(idle(), |facts| {
            (facts.load.cpu_pressure_pct, facts.load.runnable_tasks) = (pressure, tasks);
        });
        advice(&facts, &[]).rule
    };
    assert_eq!(rule(Some(21.0), None), "overloaded");
    assert_eq!(rule(None, Some(4.5)), "overloaded");
    assert_eq!(rule(Some(19.0), Some(4.0)), "idle");
}

#[test]
fn servers_are_known_by_programs_connections_or_threads() {
    let rule = |of: fn(&mut Load)| advice(&change(busy(), |facts| of(&mut facts.load)), &[]);
    let tcp = rule(|load| load.tcp_clients = Some(16));
    assert!(
        tcp.rule == "server" && tcp.reasons[0].contains("16 TCP clients"),
        "{tcp:?}"
    );
    let threads = rule(|load| load.socket_threads = Some(64));
    assert!(
        threads.reasons[0].contains("64 threads wait"),
        "{threads:?}"
    );
    assert_eq!(rule(|load| load.tcp_clients = Some(15)).rule, "overloaded");
    // A service that uses no CPU time does not make the machine a server.
    let sleeping = with(busy(), Role::Database, "postgres", 0.0);
    assert_eq!(advice(&sleeping, &[]).rule, "overloaded");
}

#[test]
fn power_is_saved_on_battery_or_by_profile() {
    let profile = |profile| {
        change(desktop(idle()), |facts| {
            facts.machine.power_profile = Some(Profile(profile));
        })
    };
    let saving = advice(&profile(power::Profile::PowerSave), &[]);
    assert_eq!(saving.rule, "saving-desktop");
    assert!(saving.reasons[0].contains("power profile"));
    assert_eq!(
        advice(&profile(power::Profile::Performance), &[]).rule,
        "desktop"
    );
    let one_cpu = change(on_battery(desktop(idle())), |facts| {
        facts.machine.nr_cpus = 1
    });
    assert_eq!(advice(&one_cpu, &[]).rule, "one-cpu");
    // A busy desktop has to stay responsive on battery, too.
    assert_eq!(
        advice(&on_battery(desktop(busy())), &[]).rule,
        "busy-desktop"
    );
}

fn machines() -> impl Strategy<Value = Machine> {
    let cgroups = proptest::option::of((0..3_usize, 0..3_usize));
    let topology = (1..128_usize, 1..9_usize, any::<bool>(), 0..4_usize);
    let power = (any::<Option<bool>>(), any::<Option<bool>>());
    (
        topology,
        power,
        cgroups,
        proptest::option::weighted(0.1, "[a-z]{1,9}"),
    )
        .prop_map(
            |((nr_cpus, nr_llcs, smt, nr_tickless), (on_battery, saves), cgroups, obstacle)| {
                let profile = |saves| match saves {
                    true => power::Profile::PowerSave,
                    false => power::Profile::Performance,
                };
                Machine {
                    obstacle,
                    nr_cpus,
                    nr_llcs,
                    nr_nodes: 1,
                    smt,
                    nr_tickless,
                    on_battery,
                    power_profile: saves.map(|saves| Profile(profile(saves))),
                    cgroups: cgroups.map(|(weights, quotas)| Cgroups { weights, quotas }),
                    ..Machine::default()
                }
            },
        )
}

fn loads() -> impl Strategy<Value = Load> {
    use proptest::option::of;
    let role = prop::sample::select(vec![
        Role::Game,
        Role::Launcher,
        Role::Desktop,
        Role::Audio,
        Role::Database,
        Role::WebServer,
        Role::Container,
        Role::VirtualMachine,
    ]);
    let groups = of(prop::collection::btree_map(role, 0.0..4.0, 0..4));
    let figures = (of(0.0..128.0), of(0.0..300.0), of(0.0..100.0), of(0.0..4.0));
    (
        figures,
        groups,
        of(0..9_usize),
        of(0..99_usize),
        of(0..99_usize),
    )
        .prop_map(
            |((busy, runnable, pressure, servers), groups, local, tcp, threads)| Load {
                seconds: 2.0,
                busy_cpus: busy,
                runnable_tasks: runnable,
                cpu_pressure_pct: pressure,
                groups: groups.map(|groups: BTreeMap<_, _>| {
                    let group = |cpus| Group {
                        names: vec!["x".into()],
                        cpus,
                    };
                    groups
                        .into_iter()
                        .map(|(role, cpus)| (role, group(cpus)))
                        .collect()
                }),
                local_clients: local,
                local_servers_cpus: servers,
                tcp_clients: tcp,
                socket_threads: threads,
                ..Load::default()
            },
        )
}

/// Random sets of schedulers, each with a random set of modes.
fn installations() -> impl Strategy<Value = Vec<Manifest>> {
    let all: Vec<_> = names().into_iter().chain(["scx_other"]).collect();
    let modes = prop::collection::btree_set(prop::sample::select(&Mode::ALL[..]), 0..=5);
    let one = (prop::sample::select(all), modes);
    let some = prop::collection::btree_map(one.0, one.1, 0..=9);
    some.prop_map(|some| {
        some.into_iter()
            .map(|(n, modes)| manifest(n, modes))
            .collect()
    })
}

proptest! {
    /// A recommended scheduler is installed and has the recommended mode.
    #[test]
    fn advice_can_be_followed(
        machine in machines(),
        load in loads(),
        installed in installations(),
    ) {
        let facts = Facts { machine, load };
        let advice = advise(&facts, &installed.iter().collect::<Vec<_>>());
        prop_assert!(!advice.reasons.is_empty());
        prop_assert_eq!(advice.scheduler.is_some(), advice.mode.is_some());
        if let Some(name) = &advice.scheduler {
            prop_assert!(facts.machine.obstacle.is_none());
            let found = installed.iter().find(|one| one.name == *name);
            let has_mode = |one: &Manifest| one.modes.contains_key(&advice.mode.unwrap());
            prop_assert!(found.is_some_and(has_mode));
        }
    }
}
