// SPDX-License-Identifier: GPL-2.0-only
//! Checks simulated machines, which are directories with the files that the checks read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::Compression;
use insta::assert_snapshot;
use scx_loader::registry::Registry;
use scx_utils::manifest::Manifest;

use super::{check, print, status, Finding, Verdict};

const BTF: &str = "sys/kernel/btf/vmlinux";
const STATE: &str = "sys/kernel/sched_ext/state";
const OPS: &str = "sys/kernel/sched_ext/root/ops";
const RELEASE: &str = "proc/sys/kernel/osrelease";
const STATUS: &str = "proc/self/status";
const ROOT: &str = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff";
const CONFIG: &str = "CONFIG_SCHED_CLASS_EXT=y\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\n\
                      CONFIG_DEBUG_INFO_BTF=y";
const OPTIONS_WITHOUT: &str = "CONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_DEBUG_INFO_BTF=y";

/// Builds the BTF of a kernel.
#[derive(Debug, Default)]
struct Btf {
    strings: Vec<u8>,
    types: Vec<u8>,
    nr_types: u32,
}

impl Btf {
    /// BTF of these functions with their numbers of parameters, and of `struct rq`, with or without
    /// the deadline server of sched_ext.
    fn of(functions: &[(&str, u32)], has_ext_server: bool) -> Vec<u8> {
        const INT: u32 = 1;
        let mut btf = Self {
            strings: vec![0],
            ..Self::default()
        };
        btf.add("int", 1, 0, &[4, 32]);
        let member = btf.string(["fair_server", "ext_server"][usize::from(has_ext_server)]);
        btf.add("rq", 4, 1, &[4, member, INT, 0]);
        for (name, nr_params) in functions {
            // The third parameter is the hidden `aux`, which makes the BTF defective.
            let aux = if *nr_params > 2 { btf.string("aux") } else { 0 };
            let params = [vec![0; 2 * (*nr_params as usize - 1)], vec![aux, 0]].concat();
            let prototype = btf.add("", 13, *nr_params, &[&[INT][..], &params].concat());
            btf.add(name, 12, 1, &[prototype]);
        }
        let sizes = [&btf.types, &btf.strings].map(|part| u32::try_from(part.len()).unwrap());
        let header = [0x0001_eb9f, 24, 0, sizes[0], sizes[0], sizes[1]];
        [
            header.map(u32::to_ne_bytes).concat(),
            btf.types,
            btf.strings,
        ]
        .concat()
    }

    fn string(&mut self, text: &str) -> u32 {
        let at = self.strings.len();
        self.strings.extend(text.bytes().chain([0]));
        u32::try_from(at).unwrap()
    }

    /// Adds a type, and returns its id. `words` follow the name and the info word of the type, and
    /// their meaning depends on `kind`.
    fn add(&mut self, name: &str, kind: u32, len: u32, words: &[u32]) -> u32 {
        let info = kind << 24 | len;
        let name = if name.is_empty() {
            0
        } else {
            self.string(name)
        };
        for word in [&[name, info], words].concat() {
            self.types.extend(word.to_ne_bytes());
        }
        self.nr_types += 1;
        self.nr_types
    }
}

/// A machine with two schedulers installed.
struct Machine {
    root: tempfile::TempDir,
    registry: Registry,
}

impl Machine {
    /// A machine without any of the kernel's files.
    fn empty() -> Self {
        let manifest = |name: &str, kfuncs: &[&str]| Manifest {
            power_profile_args: None,
            name: name.into(),
            options: Vec::new(),
            modes: BTreeMap::new(),
            kfuncs: kfuncs.iter().map(ToString::to_string).collect(),
        };
        Self {
            root: tempfile::tempdir().unwrap(),
            registry: Registry::of([
                manifest("scx_old", &["scx_bpf_create_dsq"]),
                manifest("scx_new", &["scx_bpf_create_dsq", "scx_bpf_dsq_peek___new"]),
            ]),
        }
    }

    /// A machine that meets all requirements of schedulers.
    fn good() -> Self {
        let functions = [("scx_bpf_create_dsq", 2), ("scx_bpf_dsq_peek", 1)];
        Self::empty()
            .put(RELEASE, "7.2.13")
            .put("boot/config-7.2.13", CONFIG)
            .put(STATE, "disabled")
            .put_bytes(BTF, &Btf::of(&functions, true))
            .put("proc/sys/net/core/bpf_jit_enable", "1")
            .put(STATUS, ROOT)
            .put("proc/self/uid_map", "         0          0 4294967295")
            .put(
                "sys/kernel/security/lockdown",
                "none [integrity] confidentiality",
            )
            .put("proc/cmdline", "quiet")
            .put("sys/devices/system/cpu/isolated", "")
            .put("sys/fs/cgroup/a/cpu.weight", "100")
    }

    fn put(self, path: &str, text: &str) -> Self {
        self.put_bytes(path, format!("{text}\n").as_bytes())
    }

    fn put_bytes(self, path: &str, bytes: &[u8]) -> Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    fn without(self, path: &str) -> Self {
        let path = self.root.path().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        self
    }

    fn check(&self) -> Vec<Finding> {
        check(self.root.path(), &self.registry)
    }

    fn print(&self) -> String {
        print(&self.check()).replace(self.root.path().to_str().unwrap(), "")
    }

    fn names(&self) -> Vec<String> {
        self.check().into_iter().map(|one| one.name).collect()
    }

    /// Asserts the finding with this name, and that the verdict of all other findings is ok.
    #[track_caller]
    fn has(&self, name: &str, verdict: Verdict, words: &str) {
        let found = self.check();
        let one = found.iter().find(|one| one.name == name).expect(name);
        assert_eq!(one.verdict, verdict, "{one:?}");
        assert!(one.text.contains(words), "{one:?}");
        assert_eq!(one.cure.is_some(), verdict != Verdict::Ok, "{one:?}");
        for other in found.iter().filter(|other| other.name != name) {
            assert_eq!(other.verdict, Verdict::Ok, "{other:?}");
        }
        assert_eq!(status(&found), u8::from(verdict == Verdict::Problem));
    }
}

#[test]
fn good_machine() {
    let machine = Machine::good();
    assert_snapshot!(machine.print(), @r"
    ok       kernel      Linux 7.2.13
    ok       config      sched_ext and its dependencies are enabled
    ok       sched_ext   this kernel has sched_ext
    ok       jit         the BPF JIT is enabled
    ok       btf         the kernel has BTF
    ok       scx_new     the kernel has all required kfuncs
    ok       scx_old     the kernel has all required kfuncs
    ok       ext_server  the kernel reserves CPU time for sched_ext
    ok       rights      this process may load schedulers
    ok       lockdown    BPF programs may read the kernel's memory
    ok       scheduler   no sched_ext scheduler runs
    ok       isolation   no CPUs are isolated
    ok       cgroups     no cgroup sets cpu.weight, cpu.idle or cpu.max
    ok       boot        schedulers may start at boot
    ");
    assert_eq!(status(&machine.check()), 0);
}

#[test]
fn bad_machine() {
    let functions = [("scx_bpf_create_dsq", 2)];
    let machine = Machine::good()
        .put(RELEASE, "6.12.107")
        .put_bytes(BTF, &Btf::of(&functions, false))
        .put(STATE, "enabled")
        .put(OPS, "stranger")
        .put("proc/sys/net/core/bpf_jit_enable", "0")
        .put(
            STATUS,
            "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000",
        )
        .put(
            "sys/kernel/security/lockdown",
            "none integrity [confidentiality]",
        )
        .put("proc/cmdline", "quiet scx=off isolcpus=2-3")
        .put("sys/devices/system/cpu/isolated", "2-3")
        .put("sys/fs/cgroup/a/cpu.max", "1000 10000");
    assert_snapshot!(machine.print(), @r"
    ok       kernel      Linux 6.12.107
    ok       sched_ext   this kernel has sched_ext
    problem  jit         the BPF JIT is disabled: no scheduler can be loaded
                         cure: sysctl net.core.bpf_jit_enable=1
    ok       btf         the kernel has BTF
    problem  scx_new     the kernel lacks required kfuncs: scx_bpf_dsq_peek
                         cure: boot a newer kernel, or use another scheduler
    ok       scx_old     the kernel has all required kfuncs
    warning  ext_server  no CPU time is reserved for sched_ext: kill -9 can hang the machine
                         cure: stop schedulers by SIGTERM, or boot a newer kernel, such as 7.2
    warning  rights      loading a scheduler requires root privileges, which this user lacks
                         cure: use scx_loader: sudo scxctl start
    problem  lockdown    BPF programs may not read the kernel's memory (lockdown=confidentiality)
                         cure: boot with lockdown=integrity, or without lockdown=
    problem  scheduler   the running scheduler 'stranger' is not installed here
                         cure: stop it first
    problem  isolation   the CPUs 2-3 are isolated: the kernel rejects schedulers
                         cure: boot without isolcpus=
    warning  cgroups     cgroup controls ignored: 1 set them, e.g. cpu.max of /sys/fs/cgroup/a
                         cure: use scx_flatcg, or the kernel's own scheduler, where they are needed
    warning  boot        scx=off is on the kernel command line: no scheduler starts at boot
                         cure: boot without scx=off
    ");
    assert_eq!(status(&machine.check()), 1);
}

#[test]
fn lack_of_sched_ext_is_reported_once() {
    let machine = || Machine::good().without("sys/kernel/sched_ext");
    let config = |text| machine().put("boot/config-7.2.13", text);
    let lacking =
        config("# CONFIG_SCHED_CLASS_EXT is not set\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y");
    let without = "built without CONFIG_SCHED_CLASS_EXT, CONFIG_DEBUG_INFO_BTF";
    lacking.has("config", Verdict::Problem, without);
    assert_eq!(lacking.names(), ["kernel", "config"]);

    let unknown = machine().without("boot").without(BTF);
    unknown.has("sched_ext", Verdict::Problem, "has no sched_ext");
    assert_eq!(unknown.names(), ["kernel", "sched_ext"]);

    let old = machine().put(RELEASE, "6.11.0-1-generic");
    old.has("kernel", Verdict::Problem, "6.11.0-1-generic is too old");
    assert_eq!(old.names(), ["kernel"]);

    assert_eq!(Machine::empty().names(), ["sched_ext"]);
}

#[test]
fn way_to_another_kernel_is_shown() {
    let debian = |machine: Machine| machine.put("etc/os-release", "ID=debian\nVERSION_ID=\"13\"");
    let stock = debian(Machine::empty())
        .put(RELEASE, "6.12.107+deb13-amd64")
        .put("boot/config-6.12.107+deb13-amd64", OPTIONS_WITHOUT);
    let text = stock.print();
    let lines: Vec<_> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "cure: boot a kernel built with these options, Linux 6.12 or newer",
            "Debian 13: its kernel has no sched_ext; add trixie-backports to apt's sources",
            "apt update; apt install linux-image-6.17.13+deb13-amd64",
            "reboot. Do not use 7.1 and 7.2 from there: their BTF is damaged",
        ]
    );
    // The steps are aligned with the remedy above them.
    let column = |words| text.lines().find_map(|line| line.find(words));
    assert_eq!(column("reboot."), column("boot a kernel"));
    let steps = |machine: Machine, name: &str| {
        let found = debian(machine)
            .check()
            .into_iter()
            .find(|one| one.name == name);
        found.unwrap().steps
    };
    assert_eq!(
        steps(Machine::empty().put(RELEASE, "6.1.0"), "kernel").len(),
        3
    );
    assert_eq!(steps(Machine::empty(), "sched_ext").len(), 3);
    let defective = Btf::of(&[("scx_bpf_create_dsq", 3)], true);
    for broken in [
        Machine::good().put_bytes(BTF, &defective),
        Machine::good().put(BTF, "no such thing"),
        Machine::good().without(BTF),
    ] {
        assert_eq!(steps(broken, "btf").len(), 3);
    }
    // If another kernel is not the remedy, no steps are shown.
    let off = Machine::good().put("proc/sys/net/core/bpf_jit_enable", "0");
    assert!(steps(off, "jit").is_empty());
}

#[test]
fn configuration_in_proc_is_preferred() {
    let packed = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let machine = || Machine::good().without("boot");
    assert!(!machine().names().contains(&"config".into()));
    let arch = machine().put_bytes("proc/config.gz", &packed(CONFIG));
    arch.has("config", Verdict::Ok, "are enabled");

    // The configuration in /proc has precedence over an outdated file.
    let without = "CONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_DEBUG_INFO_BTF=y\n";
    let stale = Machine::good()
        .without("sys/kernel/sched_ext")
        .put_bytes("proc/config.gz", &packed(without));
    stale.has(
        "config",
        Verdict::Problem,
        "built without CONFIG_SCHED_CLASS_EXT",
    );

    // If the configuration in /proc is unreadable, the file in /boot is used.
    let cut = &packed(CONFIG)[..40];
    let broken = Machine::good().put_bytes("proc/config.gz", cut);
    broken.has("config", Verdict::Ok, "are enabled");
}

#[test]
fn versions_are_ignored_if_there_is_sched_ext() {
    let backport = Machine::good().put(RELEASE, "6.1.0");
    backport.has("kernel", Verdict::Ok, "Linux 6.1.0");
    assert_eq!(status(&backport.check()), 0);
    // The configuration of another kernel is ignored, too.
    let stale = Machine::good().put("boot/config-7.2.13", "");
    assert!(!stale.names().contains(&"config".into()));
    assert_eq!(status(&stale.check()), 0);
}

#[test]
fn disabled_jit_is_a_problem() {
    let file = "proc/sys/net/core/bpf_jit_enable";
    let off = Machine::good().put(file, "0");
    off.has("jit", Verdict::Problem, "disabled");
    let unreadable = Machine::good().without(file);
    assert!(!unreadable.names().contains(&"jit".into()));
}

#[test]
fn unusable_btf_is_reported_once() {
    let defective = Btf::of(&[("scx_bpf_create_dsq", 3)], true);
    for (machine, words) in [
        (Machine::good().without(BTF), "vmlinux is missing"),
        (Machine::good().put(BTF, "no such thing"), "is damaged"),
        (Machine::good().put_bytes(BTF, &defective), "is defective"),
    ] {
        machine.has("btf", Verdict::Problem, words);
        let names = machine.names();
        assert!(!names.contains(&"scx_new".into()), "{names:?}");
        assert!(!names.contains(&"ext_server".into()), "{names:?}");
    }
}

#[test]
fn missing_kfuncs_are_named() {
    let older = Btf::of(&[("scx_bpf_create_dsq", 2)], true);
    let machine = Machine::good().put_bytes(BTF, &older);
    machine.has("scx_new", Verdict::Problem, "kfuncs: scx_bpf_dsq_peek");
}

#[test]
fn missing_deadline_server_is_a_warning() {
    let functions = [("scx_bpf_create_dsq", 2), ("scx_bpf_dsq_peek", 1)];
    let machine = Machine::good().put_bytes(BTF, &Btf::of(&functions, false));
    machine.has("ext_server", Verdict::Warning, "no CPU time is reserved");
}

#[test]
fn missing_privileges_are_reported() {
    let process = |uid, capabilities| {
        let text = format!("Uid:\t1000\t{uid}\t0\t0\nCapEff:\t{capabilities:016x}");
        Machine::good().put(STATUS, &text)
    };
    let (admin, bpf, perfmon) = (1_u64 << 21, 1 << 39, 1 << 38);
    process(0, admin).has("rights", Verdict::Ok, "may load");
    process(0, bpf | perfmon).has("rights", Verdict::Ok, "may load");
    process(0, bpf).has("rights", Verdict::Warning, "container");
    process(0, 0).has("rights", Verdict::Warning, "container");
    // Schedulers require the effective uid 0, whatever the capabilities.
    process(1000, admin).has("rights", Verdict::Warning, "root privileges");
    let rootless = Machine::good().put("proc/self/uid_map", "0 1000 1\n1 100000 65536");
    rootless.has("rights", Verdict::Warning, "container");
}

#[test]
fn lockdown_is_a_problem_if_memory_cannot_be_read() {
    let file = "sys/kernel/security/lockdown";
    let mode = |text| Machine::good().put(file, text);
    mode("[none] integrity confidentiality").has("lockdown", Verdict::Ok, "may read");
    let strict = mode("none integrity [confidentiality]");
    strict.has("lockdown", Verdict::Problem, "may not read");
    let unknown = Machine::good().without(file);
    assert!(!unknown.names().contains(&"lockdown".into()));
}

#[test]
fn running_scheduler_is_known_or_foreign() {
    let running = |state, ops| Machine::good().put(STATE, state).put(OPS, ops);
    running("enabled", "old").has("scheduler", Verdict::Ok, "scx_old runs");
    let stranger = running("enabled", "stranger");
    stranger.has("scheduler", Verdict::Problem, "'stranger' is not");
    let going = running("disabling", "old");
    going.has("scheduler", Verdict::Warning, "disabling");
}

#[test]
fn relevant_settings_are_reported() {
    let isolated = Machine::good().put("sys/devices/system/cpu/isolated", "2-3");
    isolated.has("isolation", Verdict::Problem, "CPUs 2-3 are isolated");
    let weighted = Machine::good().put("sys/fs/cgroup/a/cpu.weight", "50");
    weighted.has("cgroups", Verdict::Warning, "1 set them, e.g. cpu.weight");
    let off = Machine::good().put("proc/cmdline", "quiet scx=off");
    off.has("boot", Verdict::Warning, "scx=off");
    let other = Machine::good().put("proc/cmdline", "quiet scx=offline");
    other.has("boot", Verdict::Ok, "");
}

#[test]
fn json_is_in_lower_case() {
    let finding = Finding::warning("name", "text", "cure");
    let json = serde_json::to_string(&finding).unwrap();
    let text = r#"{"name":"name","verdict":"warning","text":"text","cure":"cure"}"#;
    assert_eq!(json, text);
    let steps = &["one", "two"];
    let json = serde_json::to_value(Finding { steps, ..finding }).unwrap();
    assert_eq!(json["steps"], serde_json::json!(steps));
    assert!(print(&[]).is_empty());
    assert_eq!(status(&[]), 0);
    // The checks read no files outside of the root directory.
    assert_eq!(
        check(Path::new("/no/such/place"), &Registry::default()).len(),
        1
    );
}
