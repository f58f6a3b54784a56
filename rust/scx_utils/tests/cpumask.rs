//! CPU masks, checked against the kernel's formats and against sets of numbers.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use scx_utils::cpumask::{Cpumask, CpumaskError, MAX_NR_CPU_IDS};

fn hex(text: &str, nr_cpu_ids: usize) -> Result<Vec<usize>, CpumaskError> {
    Cpumask::from_hex(text, nr_cpu_ids).map(|mask| mask.iter().collect())
}

fn list(text: &str, nr_cpu_ids: usize) -> Result<Vec<usize>, CpumaskError> {
    Cpumask::from_list(text, nr_cpu_ids).map(|mask| mask.iter().collect())
}

#[test]
fn hex_forms() {
    assert_eq!(
        hex("ff,00000000", 64).unwrap(),
        (32..40).collect::<Vec<_>>()
    );
    assert_eq!(hex("1,1", 64).unwrap(), [0, 32]);
    assert_eq!(hex(" 0x8000_0001\n", 32).unwrap(), [0, 31]);
    assert_eq!(hex("0X3", 2).unwrap(), [0, 1]);
    assert_eq!(hex("00000000,00000000,00000003", 2).unwrap(), [0, 1]);
    assert_eq!(hex("1000000000000000000000000", 128).unwrap(), [96]);
    assert_eq!(hex("none", 4).unwrap(), [0; 0]);
    assert_eq!(hex("All", 3).unwrap(), [0, 1, 2]);
    assert_eq!(hex("0", 0).unwrap(), [0; 0]);
}

#[test]
fn list_forms() {
    assert_eq!(list("0-3,8", 9).unwrap(), [0, 1, 2, 3, 8]);
    assert_eq!(list("\n", 4).unwrap(), [0; 0]);
    assert_eq!(list("", 0).unwrap(), [0; 0]);
    assert_eq!(list("0-9:2/4", 10).unwrap(), [0, 1, 4, 5, 8, 9]);
    assert_eq!(list("1-8:1/3", 10).unwrap(), [1, 4, 7]);
    assert_eq!(list("0-7:0/4", 8).unwrap(), [0; 0]);
    assert_eq!(list("all:1/2", 5).unwrap(), [0, 2, 4]);
    assert_eq!(list("2-N", 5).unwrap(), [2, 3, 4]);
    assert_eq!(list("N", 5).unwrap(), [4]);
    assert_eq!(list("all", 2).unwrap(), [0, 1]);
    assert_eq!(list("none", 2).unwrap(), [0; 0]);
    assert_eq!(list("3,1 2,,1-2\n", 4).unwrap(), [1, 2, 3]);
    assert_eq!(list("62-65", 66).unwrap(), [62, 63, 64, 65]);
    assert_eq!(list("0-100:1/18446744073709551615", 101).unwrap(), [0]);
}

#[test]
fn errors_name_the_text() {
    let text = |text: &str| text.to_owned();
    let nr_cpu_ids = 8;
    let beyond = |part| CpumaskError::TextOutOfRange {
        text: text(part),
        nr_cpu_ids,
    };
    let bad = |part| CpumaskError::BadList { text: text(part) };
    let stride = |part| CpumaskError::BadStride { text: text(part) };
    let reversed = CpumaskError::ReversedRange { text: text("3-1") };
    assert_eq!(list("0,8", 8).unwrap_err(), beyond("8"));
    assert_eq!(list("0-4000000000", 8).unwrap_err(), beyond("0-4000000000"));
    let long = "99999999999999999999999";
    assert_eq!(list(long, 8).unwrap_err(), beyond(long));
    assert_eq!(
        list("0", 0).unwrap_err().to_string(),
        "'0' names a CPU out of range: there are 0 CPU ids"
    );
    assert_eq!(list("0,3-1", 8).unwrap_err(), reversed);
    for part in [
        "1-", "-1", "0-1:1", "1:1/2", "x", "+1", "1-2-3", "0x1", "0-1:/", "\u{661}",
    ] {
        assert_eq!(list(part, 8).unwrap_err(), bad(part));
    }
    for part in ["0-1:1/0", "0-1:3/2"] {
        assert_eq!(list(part, 8).unwrap_err(), stride(part));
    }
    assert_eq!(hex("100", 8).unwrap_err(), beyond("100"));
    for part in [
        "",
        "0x",
        "_",
        "f,",
        ",f",
        "fg",
        "1,123456789",
        "-1",
        "0x0x1",
    ] {
        let bad = CpumaskError::BadHex { text: text(part) };
        assert_eq!(hex(part, 8).unwrap_err(), bad);
    }
}

#[test]
fn errors_stay_short() {
    let error = hex(&"x".repeat(100_000), 8).unwrap_err();
    assert!(error.to_string().len() < 200);
}

#[test]
fn single_cpus() {
    let mut mask = Cpumask::new(65);
    mask.set(64).unwrap();
    mask.set(0).unwrap();
    assert!(mask.test(64) && !mask.test(63) && !mask.test(65) && !mask.test(usize::MAX));
    let (cpu, nr_cpu_ids) = (65, 65);
    assert_eq!(
        mask.set(65),
        Err(CpumaskError::OutOfRange { cpu, nr_cpu_ids })
    );
    assert!(mask.clear(65).is_err() && mask.set(usize::MAX).is_err());
    assert_eq!(
        (mask.first(), mask.last(), mask.weight()),
        (Some(0), Some(64), 2)
    );
    mask.clear(0).unwrap();
    assert_eq!(mask.to_list(), "64");
    mask.set_all();
    assert!(mask.is_full());
    mask.clear_all();
    assert!(mask.is_empty());
    assert_eq!((mask.first(), mask.last()), (None, None));
}

#[test]
fn text_is_the_kernels() {
    let printed = |list: &str, nr_cpu_ids| {
        let mask = Cpumask::from_list(list, nr_cpu_ids).unwrap();
        (mask.to_string(), mask.to_list())
    };
    let pair = |hex: &str, list: &str| (hex.to_owned(), list.to_owned());
    assert_eq!(printed("0-1", 2), pair("3", "0-1"));
    assert_eq!(printed("0", 8), pair("01", "0"));
    assert_eq!(printed("0,2-3,39", 40), pair("80,0000000d", "0,2-3,39"));
    assert_eq!(printed("64", 96), pair("00000001,00000000,00000000", "64"));
    assert_eq!(printed("", 32), pair("00000000", ""));
    assert_eq!(printed("", 0), pair("0", ""));
    let mask = Cpumask::from_list("1-2,5", 6).unwrap();
    assert_eq!(serde_json::to_string(&mask).unwrap(), r#""1-2,5""#);
}

#[test]
fn widths() {
    let wide = Cpumask::new(usize::MAX);
    assert_eq!(wide.nr_cpu_ids(), MAX_NR_CPU_IDS);
    let (a, b) = (Cpumask::full(3), Cpumask::full(70));
    assert_eq!(&a | &b, b);
    assert_eq!((&a & &b).to_list(), "0-2");
    assert_eq!((&a & &b).nr_cpu_ids(), 70);
    assert_eq!((&b - &a).to_list(), "3-69");
    assert!(a.is_subset(&b) && !b.is_subset(&a) && a.intersects(&b));
    assert_eq!(b.resized(2), Cpumask::full(2));
    assert_eq!(a.resized(70).to_list(), "0-2");
    let empty = Cpumask::default();
    assert!(empty.is_empty() && empty.is_full() && empty.iter().next().is_none());
}

#[test]
fn words() {
    let mask = Cpumask::from_list("1,64-65", 70).unwrap();
    assert_eq!(mask.words(), [2, 3]);
    assert_eq!(Cpumask::from_words(&[2, 3], 70).unwrap(), mask);
    assert_eq!(Cpumask::from_words(&[2], 70).unwrap().to_list(), "1");
    assert_eq!(Cpumask::from_words(&[2, 0, 0], 64).unwrap().to_list(), "1");
    let cpu_of = |words: &[u64], nr_cpu_ids| match Cpumask::from_words(words, nr_cpu_ids) {
        Err(CpumaskError::OutOfRange { cpu, .. }) => cpu,
        other => panic!("{other:?}"),
    };
    assert_eq!(cpu_of(&[0, 1 << 6], 70), 70);
    assert_eq!(cpu_of(&[0, 0, 2], 70), 129);
    assert_eq!(cpu_of(&[1], 0), 0);
}

/// A width and two sets below it.
fn sets() -> impl Strategy<Value = (usize, BTreeSet<usize>, BTreeSet<usize>)> {
    (1..300usize).prop_flat_map(|width| {
        let set = || btree_set(0..width, 0..width.min(80));
        (Just(width), set(), set())
    })
}

fn mask(set: &BTreeSet<usize>, width: usize) -> Cpumask {
    Cpumask::from_cpus(set.iter().copied(), width).expect("the set is below the width")
}

fn set(mask: &Cpumask) -> BTreeSet<usize> {
    mask.into_iter().collect()
}

proptest! {
    #[test]
    fn round_trips((width, cpus, _) in sets()) {
        let mask = mask(&cpus, width);
        prop_assert_eq!(&Cpumask::from_hex(&mask.to_string(), width).unwrap(), &mask);
        prop_assert_eq!(&Cpumask::from_list(&mask.to_list(), width).unwrap(), &mask);
        prop_assert_eq!(&Cpumask::from_words(mask.words(), width).unwrap(), &mask);
    }

    #[test]
    fn algebra_is_that_of_sets((width, a, b) in sets()) {
        let (ma, mb) = (mask(&a, width), mask(&b, width));
        prop_assert_eq!(set(&(&ma & &mb)), &a & &b);
        prop_assert_eq!(set(&(&ma | &mb)), &a | &b);
        prop_assert_eq!(set(&(&ma ^ &mb)), &a ^ &b);
        prop_assert_eq!(set(&(&ma - &mb)), &a - &b);
        prop_assert_eq!(set(&!&ma), &(0..width).collect() - &a);
        prop_assert_eq!(ma.is_subset(&mb), a.is_subset(&b));
        prop_assert_eq!(ma.intersects(&mb), !a.is_disjoint(&b));
        prop_assert_eq!(ma.weight(), a.len());
        prop_assert_eq!(ma.first(), a.first().copied());
        prop_assert_eq!(ma.last(), a.last().copied());
        prop_assert_eq!(set(&ma), a);
    }

    #[test]
    fn assigning_is_the_same((width, a, b) in sets(), wider in 0..200usize) {
        let (ma, mb) = (mask(&a, width), mask(&b, width + wider));
        let mut changed = ma.clone();
        changed |= &mb;
        prop_assert_eq!(&changed, &(&ma | &mb));
        changed &= &ma;
        prop_assert_eq!(&changed, &(&(&ma | &mb) & &ma));
        changed ^= &mb;
        prop_assert_eq!(set(&changed), &a ^ &b);
    }

    #[test]
    fn strides_are_every_nth(
        first in 0..100usize, length in 0..100usize, used in 0..20usize, more in 0..20usize,
    ) {
        let (last, group) = (first + length, (used + more).max(1));
        let text = format!("{first}-{last}:{used}/{group}");
        let mask = Cpumask::from_list(&text, 200).unwrap();
        let want = (first..=last).filter(|cpu| (cpu - first) % group < used);
        prop_assert_eq!(set(&mask), want.collect());
    }

    #[test]
    fn garbage_is_an_error_at_most(text in any::<String>(), width in 0..200usize) {
        let _ = Cpumask::from_hex(&text, width);
        let _ = Cpumask::from_list(&text, width);
    }

    #[test]
    fn near_garbage_stays_in_range(
        parts in vec("[0-9]{0,12}|[0-9a-fxN,:/_ -]{1,6}|all|none", 0..8), width in 0..200usize,
    ) {
        let text = parts.concat();
        for mask in [Cpumask::from_hex(&text, width), Cpumask::from_list(&text, width)] {
            let last = mask.ok().and_then(|mask| mask.last());
            prop_assert!(last.is_none_or(|last| last < width));
        }
    }
}
