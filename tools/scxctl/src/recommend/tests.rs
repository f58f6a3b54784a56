// SPDX-License-Identifier: GPL-2.0-only
//! Tests with simulated machines, which are directories with the files that are read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use scx_loader::registry::Registry;
use scx_utils::manifest::{Manifest, Mode};

use super::facts::Facts;
use super::facts::{Cgroups, Role, Usage};
use super::load::{measure, Sample};
use super::{command, machine, print, recommend, Advice, Recommendation};

struct Root(tempfile::TempDir);

impl Root {
    /// A machine with four CPUs, one last-level cache and one process.
    fn new() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        let cpus = "sys/devices/system/cpu";
        root.put(&format!("{cpus}/online"), "0-3")
            .put(&format!("{cpus}/possible"), "0-3")
            .put("proc/stat", &stat(0, 0, 1))
            .put("proc/pressure/cpu", &pressure(0))
            .process(1, "systemd", 0)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(self, path: &str, text: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn without(self, path: &str) -> Self {
        fs::remove_file(self.path().join(path)).unwrap();
        self
    }

    fn supply(self, name: &str, files: &[(&str, &str)]) -> Self {
        files.iter().fold(self, |root, (file, text)| {
            root.put(&format!("sys/class/power_supply/{name}/{file}"), text)
        })
    }

    /// A process that has used this much CPU time since its start, in ticks.
    fn process(self, pid: i32, name: &str, ticks: u64) -> Self {
        self.put(&format!("proc/{pid}/stat"), &process(pid, name, ticks))
    }

    fn sample(&self) -> Sample {
        Sample::read(self.path())
    }
}

/// The text of /proc/stat if the CPUs together have been busy for this long, in ticks.
fn stat(busy: u64, switches: u64, running: u32) -> String {
    let half = busy / 2;
    format!(
        "cpu  {half} 0 {} 5000 0 0 {} 0 0 0\nintr 0\nctxt {switches}\nbtime 0\nprocesses 9\n\
         procs_running {running}\nprocs_blocked 0",
        half / 2,
        half / 2
    )
}

fn pressure(total_us: u64) -> String {
    let none = "avg10=0.00 avg60=0.00 avg300=0.00 total";
    format!("some {none}={total_us}\nfull {none}=0")
}

/// The text of /proc/PID/stat.
fn process(pid: i32, name: &str, ticks: u64) -> String {
    let (user, system) = (ticks / 2, ticks - ticks / 2);
    format!(
        "{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 7 1 1 1 1 1 0 0 0 0 \
         0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
    )
}

#[test]
fn topology_and_kernel_are_read() {
    let empty = machine::read(Root::new().path(), None).unwrap();
    assert_eq!((empty.nr_cpus, empty.nr_llcs, empty.nr_nodes), (4, 1, 1));
    assert_eq!(
        empty.obstacle.as_deref(),
        Some("this kernel has no sched_ext")
    );
    assert_eq!(
        (empty.running, empty.on_battery, empty.cgroups),
        (None, None, None)
    );
    assert_eq!(
        (empty.nr_tickless, empty.smt, empty.hybrid),
        (0, false, false)
    );

    let cpu = "sys/devices/system/cpu";
    let capacity =
        |root: Root, id, capacity| root.put(&format!("{cpu}/cpu{id}/cpu_capacity"), capacity);
    let root = (0..4).fold(Root::new(), |root, id| {
        capacity(root, id, ["1024", "1024", "400", "400"][id])
    });
    let root = root
        .put("sys/kernel/sched_ext/state", "enabled")
        .put("sys/kernel/sched_ext/root/ops", "lavd")
        .put(&format!("{cpu}/nohz_full"), "1-3");
    let machine = machine::read(root.path(), None).unwrap();
    assert!(machine.hybrid);
    assert_eq!(
        (machine.nr_tickless, machine.running.as_deref()),
        (3, Some("lavd"))
    );
    assert!(machine.obstacle.unwrap().contains("BTF"));
    let root = root.put(&format!("{cpu}/nohz_full"), "(null)");
    assert_eq!(machine::read(root.path(), None).unwrap().nr_tickless, 0);
    // A machine without CPUs is an error.
    let nothing = tempfile::tempdir().unwrap();
    assert!(machine::read(nothing.path(), None).is_err());
}

#[test]
fn battery_counts_while_it_powers_the_machine() {
    let on_battery = |root: Root| machine::read(root.path(), None).unwrap().on_battery;
    let battery = |status| {
        let files = [("type", "Battery"), ("status", status)];
        Root::new().supply("BAT0", &files)
    };
    assert_eq!(on_battery(Root::new()), None);
    assert_eq!(on_battery(battery("Discharging")), Some(true));
    assert_eq!(on_battery(battery("Full")), Some(false));
}

#[test]
fn cgroups_are_counted() {
    let cgroups = |root: Root| machine::read(root.path(), None).unwrap().cgroups;
    let root = || Root::new().put("sys/fs/cgroup/cgroup.controllers", "cpu");
    assert_eq!(cgroups(root()), Some(Cgroups::default()));
    let used = root()
        .put("sys/fs/cgroup/a/cpu.weight", "50")
        .put("sys/fs/cgroup/a/b/cpu.idle", "1")
        .put("sys/fs/cgroup/a/b/cpu.max", "1000 10000")
        .put("sys/fs/cgroup/c/cpu.max", "max 10000");
    let expected = Cgroups {
        weights: 2,
        quotas: 1,
    };
    assert_eq!(cgroups(used), Some(expected));
    let v1 = Root::new().put("sys/fs/cgroup/cpu/cpu.shares", "50");
    assert_eq!(cgroups(v1), None);
}

#[test]
fn rates_are_differences_by_time() {
    let ticks = procfs::ticks_per_second();
    let root = Root::new()
        .process(20, "hog", 7)
        .process(30, "nginx", ticks);
    let first = root.sample();
    let root = root
        .put("proc/stat", &stat(6 * ticks, 500, 1))
        .put("proc/pressure/cpu", &pressure(1_500_000))
        .process(20, "hog", 7 + 2 * ticks)
        .process(30, "nginx", 2 * ticks)
        // These processes start between the two samples.
        .process(40, "nginx", ticks)
        .process(41, "php-fpm8.4", 0);
    let load = first.until(&root.sample(), Duration::from_secs(2));
    // Without local servers, the sum is 0.0, not -0.0.
    assert!(load.local_servers_cpus.unwrap().is_sign_positive());
    assert_eq!(load.busy_cpus, Some(3.0));
    assert_eq!(load.cpu_pressure_pct, Some(75.0));
    assert_eq!(load.switches_per_s, Some(250.0));
    let usage = |name: &str, pid, cpus| Usage {
        name: name.into(),
        pid,
        cpus,
    };
    let top = [
        usage("hog", 20, 1.0),
        usage("nginx", 30, 0.5),
        usage("nginx", 40, 0.5),
    ];
    assert_eq!(load.top.as_deref(), Some(&top[..]));
    let web = load.group(Role::WebServer).unwrap();
    assert_eq!(
        (&web.names[..], web.cpus),
        (&["nginx".into(), "php-fpm8.4".into()][..], 1.0)
    );
    assert_eq!(load.groups.unwrap().len(), 1);
    // The start time distinguishes a process that reuses a pid from the earlier process. All CPU
    // time of the later process counts.
    let other = process(20, "other", ticks).replace(" 1 0 7 1 ", " 1 0 8 1 ");
    let before = root.sample();
    let after = root.put("proc/20/stat", &other).sample();
    let top = before.until(&after, Duration::from_secs(1)).top.unwrap();
    assert_eq!(top, [usage("other", 20, 1.0)]);
}

#[test]
fn control_characters_of_names_are_replaced() {
    let root = Root::new().process(20, "wineserver\u{1b}[2J", 0);
    let before = root.sample();
    let after = root.process(20, "wineserver\u{1b}[2J", 50).sample();
    let load = before.until(&after, Duration::from_secs(1));
    let names = load.top.unwrap().into_iter().map(|usage| usage.name);
    assert!(names
        .into_iter()
        .any(|name| name == "wineserver\u{fffd}[2J"));
}

#[test]
fn local_servers_are_measured() {
    let ticks = procfs::ticks_per_second();
    let first = Root::new().process(20, "Xorg", 0);
    let before = first.sample();
    let after = first
        .process(20, "Xorg", ticks)
        .process(21, "postgres", ticks / 2)
        .sample();
    let load = before.until(&after, Duration::from_secs(2));
    assert_eq!(load.local_servers_cpus, Some(0.75));
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let root = Root::new()
        .without("proc/stat")
        .without("proc/pressure/cpu")
        .without("proc/1/stat");
    let load = measure(root.path(), Duration::ZERO);
    let known = serde_json::to_value(&load).unwrap();
    let known = known
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null());
    assert_eq!(known.map(|(name, _)| name).collect::<Vec<_>>(), ["seconds"]);
}

const UNIX: &str = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 11 @/tmp/.X11-unix/X0
0000000000000000: 00000003 00000000 00000000 0001 03 12 @/tmp/.X11-unix/X0
0000000000000000: 00000003 00000000 00000000 0001 03 13
0000000000000000: 00000003 00000000 00000000 0001 03 14 /run/postgresql/.s.PGSQL.5432
0000000000000000: 00000003 00000000 00000000 0001 03 15 /run/dbus/system_bus_socket";

/// A server on port 0x1F90 with one connected client and one connection in TIME_WAIT, and an
/// outgoing connection to port 443.
const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 21
   1: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000 0 0 22
   2: 0100007F:C001 0200007F:01BB 01 00000000:00000000 00:00000000 00000000 0 0 23
   3: 0100007F:1F90 0100007F:C002 06 00000000:00000000 00:00000000 00000000 0 0 24";
const TCP6: &str = "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt
   0: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:C003 01 \
   00000000:00000000 00:00000000 00000000 0 0 31";

#[test]
fn clients_are_counted() {
    let load = |root: &Root| measure(root.path(), Duration::ZERO);
    let root = Root::new()
        .put("proc/net/unix", UNIX)
        .put("proc/net/tcp", TCP);
    assert_eq!(load(&root).local_clients, Some(2));
    assert_eq!(load(&root).tcp_clients, Some(1));
    let root = root.put("proc/net/tcp6", TCP6);
    assert_eq!(load(&root).tcp_clients, Some(2));
}

#[test]
fn only_root_sees_where_threads_wait() {
    let thread = |root: Root, pid, tid, function| {
        root.process(pid, "server", 0)
            .put(&format!("proc/{pid}/wchan"), function)
            .put(&format!("proc/{pid}/task/{tid}/wchan"), function)
    };
    let waits = |uid, first| {
        let root = thread(Root::new(), 1, 1, first);
        let root = thread(root, 20, 20, "futex_do_wait");
        let root = thread(root, 20, 21, "wait_woken.isra.0");
        let ids = format!("Name:\tscxctl\nUid:\t1000\t{uid}\t0\t0");
        let root = root.put("proc/self/status", &ids);
        measure(root.path(), Duration::ZERO).socket_threads
    };
    assert_eq!(waits(0, "ep_poll"), Some(2));
    assert_eq!(waits(1000, "ep_poll"), None);
}

#[test]
fn runnable_tasks_are_averaged_without_this_one() {
    let root = Root::new().put("proc/stat", &stat(0, 0, 6));
    let load = measure(root.path(), Duration::from_millis(150));
    assert_eq!(load.runnable_tasks, Some(5.0));
    assert!(load.seconds >= 0.15, "{load:?}");
}

#[test]
fn kernel_without_sched_ext_is_an_answer() {
    let manifest = Manifest {
        name: "scx_lavd".into(),
        options: Vec::new(),
        modes: [(Mode::Auto, Vec::new())].into(),
        power_profile_args: None,
        kfuncs: Vec::new(),
    };
    let registry = Registry::of([manifest]);
    let found = recommend(Root::new().path(), &registry, Duration::ZERO).unwrap();
    let text = print(&found);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "the kernel's own scheduler");
    assert_eq!(lines[1], "because:  this kernel has no sched_ext");
    assert!(
        lines[2].starts_with("measured: 4 CPUs, 1 LLC, 1 node; in "),
        "{text}"
    );
    assert_eq!(lines[3..], ["try:      scxctl check"]);
    let json = serde_json::to_value(&found).unwrap();
    assert!(json["scheduler"].is_null() && json["mode"].is_null());
    assert_eq!(json["rule"], "kernel");
    assert_eq!(json["reasons"][0], "this kernel has no sched_ext");
    assert_eq!(json["facts"]["machine"]["nr_cpus"], 4);
    assert!(json["facts"]["machine"]["on_battery"].is_null());
}

fn advice(scheduler: Option<&str>) -> Advice {
    Advice {
        rule: "game",
        scheduler: scheduler.map(Into::into),
        mode: scheduler.map(|_| Mode::Gaming),
        reasons: vec!["a game runs".into(), "frames go first".into()],
    }
}

#[test]
fn command_depends_on_what_runs() {
    let mut facts = Facts::default();
    let of = |scheduler, facts: &Facts| command(&advice(scheduler), facts);
    let lavd = Some("scx_lavd");
    assert_eq!(of(None, &facts), None);
    let start = "scxctl start lavd --mode gaming";
    assert_eq!(of(lavd, &facts).as_deref(), Some(start));
    facts.machine.running = Some("rusty".into());
    let switch = "scxctl switch lavd --mode gaming";
    assert_eq!(of(lavd, &facts).as_deref(), Some(switch));
    assert_eq!(of(None, &facts).as_deref(), Some("scxctl stop"));
}

#[test]
fn advice_has_at_most_four_lines() {
    let shown = |scheduler| {
        let (advice, facts) = (advice(scheduler), Facts::default());
        let command = command(&advice, &facts);
        print(&Recommendation {
            advice,
            command,
            facts,
        })
    };
    assert_eq!(
        shown(Some("scx_lavd")),
        "scx_lavd in mode gaming: frames go first\n\
         because:  a game runs\n\
         measured: 0 CPUs, 0 LLCs, 0 nodes; in 0 s CPU pressure unknown\n\
         try:      scxctl start lavd --mode gaming\n"
    );
    assert_eq!(shown(None).lines().count(), 3);
}
