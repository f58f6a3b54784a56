//! Primary domains, which are chosen by core types.

use proptest::collection::vec;
use proptest::prelude::*;
use scx_utils::cpumask::{Cpumask, MAX_NR_CPU_IDS};
use scx_utils::power::Profile;
use scx_utils::primary::{Primary, PrimaryError};
use scx_utils::topology::Topology;

use crate::machines::{big_little, desktop, hybrid, plain};
use crate::sysfs_tree::Tree;

const PROFILES: [Option<Profile>; 5] = [
    None,
    Some(Profile::PowerSave),
    Some(Profile::BalancedPower),
    Some(Profile::BalancedPerformance),
    Some(Profile::Performance),
];
const SAVING: [Profile; 2] = [Profile::PowerSave, Profile::BalancedPower];

/// The primary domain in list form.
fn domain(text: &str, topology: &Topology, profile: Option<Profile>) -> Option<String> {
    let primary: Primary = text.parse().expect("one of the forms");
    let cpus = primary.cpus(topology, profile, &SAVING)?;
    assert_eq!(cpus.nr_cpu_ids(), topology.nr_cpu_ids());
    Some(cpus.to_list())
}

/// Asserts the domain of each text, with every profile.
fn assert_domains(topology: &Topology, want: &[(&str, Option<&str>)]) {
    for (text, list) in want {
        for profile in PROFILES {
            let domain = domain(text, topology, profile);
            assert_eq!(domain.as_deref(), *list, "{text}");
        }
    }
}

#[test]
fn p_and_e_cores() {
    let mut tree = hybrid(5_000_000, 3_800_000);
    for cpu in 4..8 {
        tree.freq(cpu, 800_000, 5_200_000);
    }
    let want = [
        ("all", None),
        ("none", None),
        ("performance", Some("0-15")),
        ("powersave", Some("16-23")),
        ("turbo", Some("4-7")),
        ("0xf", Some("0-3")),
    ];
    assert_domains(&tree.read(), &want);
}

#[test]
fn big_and_little() {
    let want = [
        ("performance", Some("4-7")),
        ("powersave", Some("0-3")),
        ("turbo", Some("7")),
    ];
    assert_domains(&big_little().read(), &want);
}

#[test]
fn equal_cpus_have_no_domain() {
    for tree in [plain(4), desktop()] {
        let want = ["auto", "performance", "powersave", "turbo"].map(|word| (word, None));
        assert_domains(&tree.read(), &want);
    }
}

#[test]
fn auto_goes_by_the_profile() {
    let topology = big_little().read();
    for profile in PROFILES {
        let saves = profile.is_some_and(|profile| SAVING.contains(&profile));
        let want = saves.then(|| "0-3".to_owned());
        assert_eq!(domain("auto", &topology, profile), want, "{profile:?}");
        assert_eq!(Primary::Auto.cpus(&topology, profile, &[]), None);
    }
}

#[test]
fn only_online_cpus_count() {
    let online = |online: &str| {
        let mut tree = hybrid(5_000_000, 3_800_000);
        tree.put("sys/devices/system/cpu/online", online);
        tree.read()
    };
    let want = [
        ("performance", Some("0-7")),
        ("powersave", Some("16-19")),
        ("ff0f", Some("0-3")),
        // All CPUs that are online.
        ("0f,00ff00ff", None),
        ("0f00ff", None),
        // No CPU that is online.
        ("ff00", None),
        ("0", None),
        // With a CPU that does not exist.
        ("8000000000000001", Some("0")),
        ("8000000000000000", None),
    ];
    assert_domains(&online("0-7,16-19"), &want);
    // The CPUs that remain are of one kind.
    assert_domains(
        &online("16-19"),
        &[("powersave", None), ("performance", None)],
    );
}

#[test]
fn texts() {
    let mask = |list: &str, width| Primary::Mask(Cpumask::from_list(list, width).unwrap());
    let texts = [
        ("auto", Primary::Auto, "auto"),
        (" Auto ", Primary::Auto, "auto"),
        ("all", Primary::All, "all"),
        ("ALL", Primary::All, "all"),
        ("none", Primary::All, "all"),
        ("performance", Primary::Performance, "performance"),
        ("powersave", Primary::Powersave, "powersave"),
        ("turbo", Primary::Turbo, "turbo"),
        ("0xF0", mask("4-7", 8), "f0"),
        ("00f0", mask("4-7", 8), "f0"),
        ("1,00000001", mask("0,32", 33), "1,00000001"),
        ("0", mask("", 0), "0"),
    ];
    for (text, want, shown) in texts {
        let primary: Primary = text.parse().unwrap();
        assert_eq!(primary, want, "{text}");
        assert_eq!(primary.to_string(), shown);
    }
}

#[test]
fn errors_are_a_line_that_names_the_forms() {
    for text in ["", "fast", "0-3", "0x", "-1", "1,2,,3", "little"] {
        let error = text.parse::<Primary>().unwrap_err().to_string();
        for form in [
            "auto",
            "all",
            "none",
            "performance",
            "powersave",
            "turbo",
            "mask",
        ] {
            assert!(error.contains(form), "{error}");
        }
        assert!(error.contains(text) && !error.contains('\n'), "{error}");
    }
    let wide = format!("1{}", "0".repeat(MAX_NR_CPU_IDS / 4));
    let error = wide.parse::<Primary>().unwrap_err();
    assert!(matches!(error, PrimaryError::Mask(_)), "{error}");
}

/// Machines with CPUs of any capacity, some of them offline.
fn machine() -> impl Strategy<Value = Tree> {
    vec((1_u32..=1024, any::<bool>()), 1..12).prop_map(|cpus| {
        let mut tree = plain(cpus.len());
        let mut online = vec!["0".to_owned()];
        for (cpu, (capacity, is_online)) in cpus.iter().enumerate() {
            tree.put_cpu(cpu, "cpu_capacity", capacity);
            if *is_online {
                online.push(cpu.to_string());
            }
        }
        tree.put("sys/devices/system/cpu/online", &online.join(","));
        tree
    })
}

fn primary() -> impl Strategy<Value = Primary> {
    let words = ["auto", "all", "performance", "powersave", "turbo"];
    let words = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let masks = any::<u16>().prop_map(|bits| format!("{bits:x}"));
    prop_oneof![words, masks].prop_map(|text| text.parse().expect("one of the forms"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_domain_is_a_proper_part_of_the_online_cpus(
        tree in machine(),
        primary in primary(),
        profile in proptest::sample::select(PROFILES.to_vec()),
    ) {
        let topology = tree.read();
        if let Some(cpus) = primary.cpus(&topology, profile, &SAVING) {
            prop_assert!(!cpus.is_empty());
            prop_assert!(cpus.is_subset(topology.online()));
            prop_assert!(!topology.online().is_subset(&cpus));
            prop_assert_eq!(cpus.nr_cpu_ids(), topology.nr_cpu_ids());
        }
    }

    #[test]
    fn performance_and_powersave_are_complements(tree in machine()) {
        let topology = tree.read();
        let cpus = |primary: Primary| primary.cpus(&topology, None, &[]);
        let big = cpus(Primary::Performance);
        prop_assert_eq!(big.is_some(), topology.has_little_cores());
        if let Some(big) = big {
            let little = topology.online().and_not(&big);
            prop_assert_eq!(cpus(Primary::Powersave), Some(little));
            let turbo = cpus(Primary::Turbo);
            prop_assert!(turbo.is_some_and(|turbo| turbo.is_subset(&big)));
        }
    }

    #[test]
    fn text_form_is_read_back(primary in primary()) {
        prop_assert_eq!(primary.to_string().parse(), Ok(primary));
    }
}
