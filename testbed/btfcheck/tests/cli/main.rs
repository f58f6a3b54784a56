//! Runs the command on kernels and objects made by hand.

// clippy.toml allows this in test functions, not in what they call.
#![allow(clippy::unwrap_used)]

mod btf;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use btf::Btf;
use tempfile::TempDir;

/// A directory with kernels `old` (raw) and `new` (ELF), and three objects.
///
/// | function | old | new |
/// |---|---|---|
/// | `dsq_insert` | `void (task *, u64)` | the same |
/// | `dsq_insert___v2` | - | `bool (task *, u64)` |
/// | `pick` | `int (const cpumask *)` | `int (const cpumask *, u64)` |
fn fixture() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("old"), kernel(false).bytes()).unwrap();
    kernel(true).write_object(&dir.path().join("new"), &[]);
    write_good(&dir.path().join("good.bpf.o"));
    write_bad(&dir.path().join("bad.bpf.o"));
    Btf::new().write_object(&dir.path().join("none.bpf.o"), &[]);
    dir
}

fn kernel(is_new: bool) -> Btf {
    let mut btf = Btf::new();
    let task = btf.structure("task_struct");
    let task = btf.ptr(task);
    let long = btf.int("unsigned long long", 8);
    let u64_t = btf.typedef("u64", long);
    let int = btf.int("int", 4);
    let mask = btf.structure("cpumask");
    let mask = btf.constant(mask);
    let mask = btf.ptr(mask);
    btf.func("dsq_insert", 0, &[task, u64_t]);
    if is_new {
        let bool_t = btf.int("bool", 1);
        btf.func("dsq_insert___v2", bool_t, &[task, u64_t]);
        btf.func("pick", int, &[mask, u64_t]);
    } else {
        btf.func("pick", int, &[mask]);
    }
    btf
}

/// Both generations of names and of prototypes.
fn write_good(path: &Path) {
    let mut btf = Btf::new();
    let task = btf.structure("task_struct");
    let task = btf.ptr(task);
    let mask = btf.structure("cpumask");
    let mask = btf.ptr(mask);
    let u64_t = btf.int("__u64", 8);
    let externs = [
        btf.func("dsq_insert___v2___new", u64_t, &[task, u64_t]),
        btf.func("dsq_insert", 0, &[task, u64_t]),
        btf.func("pick___1", u64_t, &[mask]),
        btf.func("pick___2", u64_t, &[mask, u64_t]),
    ];
    btf.ksyms(&externs);
    btf.write_object(
        path,
        &[
            ("dsq_insert___v2___new", true),
            ("dsq_insert", false),
            ("pick___1", true),
            ("pick___2", true),
        ],
    );
}

/// One mistake of each sort.
fn write_bad(path: &Path) {
    let mut btf = Btf::new();
    let task = btf.structure("task_struct");
    let task = btf.ptr(task);
    let mask = btf.forward("cpumask");
    let mask = btf.ptr(mask);
    let u64_t = btf.int("__u64", 8);
    let externs = [
        btf.func("dsq_insert", u64_t, &[task, u64_t]),
        btf.func("dsq_insert___v2___new", u64_t, &[task, u64_t]),
        btf.func("dsq_isnert", 0, &[task, u64_t]),
        btf.func("pick", u64_t, &[mask]),
    ];
    btf.ksyms(&externs);
    btf.write_object(
        path,
        &[
            ("dsq_insert", true),
            ("dsq_insert___v2___new", false),
            ("dsq_isnert", true),
            ("pick", true),
        ],
    );
}

fn run(dir: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_btfcheck"));
    command.current_dir(dir).args(args).output().unwrap()
}

/// Runs with both kernels; returns the exit status and standard output.
fn check(dir: &TempDir, args: &[&str]) -> (Option<i32>, String) {
    let kernels = ["--btf", "old=old", "--btf", "new=new"];
    let output = run(dir, &[&kernels, args].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_good_object_passes() {
    let (status, stdout) = check(&fixture(), &["--span", "good.bpf.o"]);
    let want = "\
good.bpf.o
  EXTERN                 BINDING  old           new
  dsq_insert             strong   ok            ok
  dsq_insert___v2___new  weak     absent        ok
  pick___1               weak     ok            incompatible
  pick___2               weak     incompatible  ok

4 externs, 2 kernels, 0 externs with findings
";
    assert_eq!(stdout, want);
    assert_eq!(status, Some(0));
}

#[test]
fn every_mistake_is_found() {
    let (status, stdout) = check(&fixture(), &["--span", "--tap", "bad.bpf.o"]);
    let want = "\
TAP version 13
1..4
not ok 1 - bad.bpf.o: dsq_insert
# dsq_insert: incompatible with old: returns __u64, kernel returns void
# dsq_insert: incompatible with new: returns __u64, kernel returns void
not ok 2 - bad.bpf.o: dsq_insert___v2___new
# dsq_insert___v2___new: absent from old, and not weak
not ok 3 - bad.bpf.o: dsq_isnert
# dsq_isnert: absent from every kernel
not ok 4 - bad.bpf.o: pick
# pick: incompatible with old: argument 1: forward struct cpumask *, kernel struct cpumask *
# pick: incompatible with new: 1 argument, kernel has 2
";
    assert_eq!(stdout, want);
    assert_eq!(status, Some(1));
}

#[test]
fn without_span_a_typo_is_no_finding() {
    let (_, stdout) = check(&fixture(), &["--tap", "bad.bpf.o"]);
    assert!(
        stdout.contains("\nok 3 - bad.bpf.o: dsq_isnert\n"),
        "{stdout}"
    );
}

#[test]
fn several_objects_are_told_apart() {
    let objects = ["bad.bpf.o", "none.bpf.o", "good.bpf.o"];
    let (status, stdout) = check(&fixture(), &[&["--json"], &objects[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["totals"]["externs"], 8);
    assert_eq!(json["totals"]["faulty"], 3);
    assert_eq!(json["externs"][0]["object"], "bad.bpf.o");
    assert_eq!(json["externs"][7]["object"], "good.bpf.o");
    assert_eq!(status, Some(1));
}

#[test]
fn an_object_without_externs_is_skipped_visibly() {
    let (status, stdout) = check(&fixture(), &["--tap", "none.bpf.o"]);
    assert_eq!(stdout, "TAP version 13\n1..0 # SKIP no kfunc externs\n");
    assert_eq!(status, Some(0));
}

#[test]
fn unusable_input_is_one_line_and_status_2() {
    let dir = fixture();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("text"), "not an object").unwrap();
    let mut no_symbol = Btf::new();
    let extern_ = no_symbol.func("dsq_insert", 0, &[]);
    no_symbol.ksyms(&[extern_]);
    no_symbol.write_object(&path("no-symbol.bpf.o"), &[]);
    for (args, want) in [
        (&["--btf", "k=old"][..], "<OBJECT.bpf.o>"),
        (&["good.bpf.o"], "--btf <NAME=FILE>"),
        (&["--btf", "old", "good.bpf.o"], "expected NAME=FILE"),
        (
            &["--btf", "k=old", "--btf", "k=new", "good.bpf.o"],
            "called k",
        ),
        (
            &["--btf", "k=old", "--tap", "--json", "good.bpf.o"],
            "--json",
        ),
        (
            &["--btf", "k=missing", "good.bpf.o"],
            "missing: No such file",
        ),
        (&["--btf", "k=text", "good.bpf.o"], "text: no usable BTF"),
        (&["--btf", "k=none.bpf.o", "good.bpf.o"], "not a kernel's"),
        (&["--btf", "k=old", "missing"], "missing: No such file"),
        (&["--btf", "k=old", "text"], "text: not a BPF object"),
        (&["--btf", "k=old", "old"], "old: not a BPF object"),
        (&["--btf", "k=old", "no-symbol.bpf.o"], "has no symbol"),
    ] {
        let output = run(&dir, args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("scx_btfcheck: "), "{stderr}");
        assert!(stderr.contains(want), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let dir = fixture();
    for option in ["--help", "--version"] {
        let output = run(&dir, &[option]);
        assert_eq!(output.status.code(), Some(0), "{option}");
        assert!(!output.stdout.is_empty(), "{option}");
    }
}
