//! Trees that no kernel would create.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::machines::{big_little, desktop, hybrid, plain, xeon, Grid};
use crate::sysfs_tree::Tree;

/// Possible damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Delete(Index),
    /// Deletes all files whose paths begin with the path of the file's directory.
    DeleteDirectory(Index),
    Truncate(Index, Index),
    Replace(Index, Vec<u8>),
    Swap(Index, Index),
    /// Replaces the file with a directory.
    Directory(Index),
}

fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let texts = [
        "",
        "\n",
        "-1",
        "0",
        "1",
        "3",
        "65535",
        "4294967295",
        "4294967296",
        "18446744073709551616",
        "0-",
        "3-1",
        "0-7",
        "0-15",
        "all",
        "none",
        "0-4000000000",
        "0-16383",
        "0-16384",
        "1,99,9999",
        "N",
        "0-31:2/4",
        "0-31:2/0",
        "ff",
        "NaN",
        "1e9",
        "10 20",
        "0 0",
        "Instruction",
        "\0\0",
    ];
    let numbers = (0..20u32).prop_map(|number| number.to_string().into_bytes());
    let lists = vec(0..40u32, 0..6).prop_map(|cpus| {
        let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
        cpus.join(",").into_bytes()
    });
    prop_oneof![
        4 => proptest::sample::select(texts.map(|text| text.as_bytes().to_vec()).to_vec()),
        3 => numbers,
        3 => lists,
        1 => vec(any::<u8>(), 0..50),
        1 => Just(b"0,".repeat(40_000)),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let file = any::<Index>;
    prop_oneof![
        4 => file().prop_map(Damage::Delete),
        1 => file().prop_map(Damage::DeleteDirectory),
        3 => (file(), file()).prop_map(|(file, at)| Damage::Truncate(file, at)),
        8 => (file(), garbage()).prop_map(|(file, bytes)| Damage::Replace(file, bytes)),
        4 => (file(), file()).prop_map(|(a, b)| Damage::Swap(a, b)),
        1 => file().prop_map(Damage::Directory),
    ]
}

fn apply(tree: &mut Tree, damage: &Damage) {
    let paths: Vec<_> = tree.files.keys().cloned().collect();
    if paths.is_empty() {
        return;
    }
    let path = |index: &Index| index.get(&paths).clone();
    match damage {
        Damage::Delete(file) => {
            tree.files.remove(&path(file));
        }
        Damage::DeleteDirectory(file) => {
            let path = path(file);
            let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
            tree.files.retain(|path, _| !path.starts_with(dir));
        }
        Damage::Truncate(file, at) => {
            let content = tree.files.entry(path(file)).or_default();
            content.truncate(at.index(content.len() + 1));
        }
        Damage::Replace(file, bytes) => {
            tree.files.insert(path(file), bytes.clone());
        }
        Damage::Swap(a, b) => {
            let (a, b) = (path(a), path(b));
            let content_of = |path| tree.files.get(path).cloned().unwrap_or_default();
            let (content_of_a, content_of_b) = (content_of(&a), content_of(&b));
            tree.files.insert(a, content_of_b);
            tree.files.insert(b, content_of_a);
        }
        Damage::Directory(file) => {
            let path = path(file);
            tree.files.remove(&path);
            tree.files.insert(format!("{path}/file"), Vec::new());
        }
    }
}

fn machine() -> impl Strategy<Value = Tree> {
    let grid = (1..3usize, 1..3usize, 1..4usize, 1..5usize, any::<bool>());
    let grid = grid.prop_map(|(packages, llcs, cores, threads, neighbours)| {
        let grid = Grid {
            packages,
            llcs,
            cores,
            threads,
            neighbours,
        };
        grid.tree()
    });
    let known = [
        desktop(),
        xeon(),
        hybrid(5_000_000, 3_800_000),
        big_little(),
        plain(5),
    ];
    prop_oneof![4 => grid, 3 => proptest::sample::select(known.to_vec())]
}

/// Makes the hotplug count valid, because an invalid count is a separate error.
fn keep_count(tree: &mut Tree) {
    tree.put("sys/kernel/sched_ext/hotplug_seq", "7");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// `try_read()` checks the invariants.
    #[test]
    fn damaged_trees_are_read_or_refused(
        mut tree in machine(), damages in vec(damage(), 0..25),
    ) {
        for damage in &damages {
            apply(&mut tree, damage);
        }
        keep_count(&mut tree);
        let _ = tree.try_read();
    }

    /// If the lists of CPUs are intact, nothing else is required.
    #[test]
    fn damage_elsewhere_is_never_refused(
        mut tree in machine(), damages in vec(damage(), 0..60),
    ) {
        let cpus: Vec<_> = ["possible", "present", "online"]
            .iter()
            .map(|name| format!("sys/devices/system/cpu/{name}"))
            .map(|path| (tree.files[&path].clone(), path))
            .collect();
        for damage in &damages {
            apply(&mut tree, damage);
        }
        keep_count(&mut tree);
        for (content, path) in cpus {
            tree.files.retain(|other, _| !other.starts_with(&format!("{path}/")));
            tree.files.insert(path, content);
        }
        let read = tree.try_read();
        prop_assert!(read.is_ok(), "{read:?}");
    }

    /// All files have the same content.
    #[test]
    fn one_content_everywhere(mut tree in machine(), content in garbage()) {
        for bytes in tree.files.values_mut() {
            bytes.clone_from(&content);
        }
        keep_count(&mut tree);
        let _ = tree.try_read();
    }

    /// Random CPUs are offline.
    #[test]
    fn some_cpus_are_offline(mut tree in machine(), online in vec(any::<bool>(), 36)) {
        let possible = tree.read().nr_cpu_ids();
        let list: Vec<_> = (0..possible).filter(|&cpu| online[cpu % 36]).collect();
        prop_assume!(!list.is_empty());
        let text: Vec<_> = list.iter().map(usize::to_string).collect();
        tree.put("sys/devices/system/cpu/online", &text.join(","));
        let topology = tree.read();
        prop_assert!(topology.online().iter().eq(list));
        prop_assert_eq!(topology.nr_cpu_ids(), possible);
    }
}

#[test]
fn every_id_there_can_be() {
    let mut tree = plain(2);
    tree.put("sys/devices/system/cpu/online", "0-16383");
    let topology = tree.read();
    assert_eq!(topology.nr_cpus_online(), 16_384);
    tree.put("sys/devices/system/cpu/online", "0-16384");
    assert_eq!(tree.read().online().to_list(), "0-1");
}

#[cfg(unix)]
#[test]
fn links_that_go_round() {
    use scx_utils::hotplug::HotplugToken;
    use scx_utils::topology::Topology;

    let tree = desktop();
    let root = tempfile::tempdir().unwrap();
    tree.write(root.path());
    let cpu = root.path().join("sys/devices/system/cpu/cpu2");
    for path in ["topology", "cache/index3", "cpufreq"] {
        std::fs::remove_dir_all(cpu.join(path)).unwrap();
        std::os::unix::fs::symlink(cpu.join(path), cpu.join(path)).unwrap();
    }
    let topology = Topology::read(&HotplugToken::read(root.path()).unwrap()).unwrap();
    crate::invariants::check(&topology);
    assert_eq!(topology.llcs().len(), 1);
}
