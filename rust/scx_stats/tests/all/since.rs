//! The increase of counters between two snapshots.

use std::collections::BTreeMap;

use scx_stats::Stats;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
struct Inner {
    #[stat(counter)]
    count: u32,
    level: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
struct Outer {
    #[stat(counter)]
    count: u64,
    #[stat(counter)]
    seconds: f64,
    #[stat(counter)]
    signed: i64,
    #[stat(counter)]
    per_cpu: Vec<u64>,
    #[stat(counter)]
    by_name: BTreeMap<String, u64>,
    level: i32,
    name: String,
    levels: Vec<u64>,
    inner: Inner,
    list: Vec<Inner>,
    map: BTreeMap<u32, Inner>,
}

fn inner(count: u32, level: u32) -> Inner {
    Inner { count, level }
}

fn names<const N: usize>(pairs: [(&str, u64); N]) -> BTreeMap<String, u64> {
    pairs.map(|(name, count)| (name.to_string(), count)).into()
}

fn earlier() -> Outer {
    Outer {
        count: 10,
        seconds: 1.5,
        signed: 5,
        per_cpu: vec![1, 2],
        by_name: names([("a", 1), ("gone", 9)]),
        level: -3,
        name: "old".to_string(),
        levels: vec![5, 6],
        inner: inner(7, 1),
        list: vec![inner(1, 2)],
        map: [(3, inner(4, 5)), (6, inner(7, 8))].into(),
    }
}

#[test]
fn counters_become_growth_and_all_else_stays() {
    let later = Outer {
        count: 15,
        seconds: 4.0,
        signed: 8,
        per_cpu: vec![4, 2, 9],
        by_name: names([("a", 4), ("new", 2)]),
        level: 2,
        name: "new".to_string(),
        levels: vec![1],
        inner: inner(9, 3),
        list: vec![inner(5, 6), inner(7, 8)],
        map: [(3, inner(10, 1)), (4, inner(2, 2))].into(),
    };
    let growth = Outer {
        count: 5,
        seconds: 2.5,
        signed: 3,
        per_cpu: vec![3, 0, 9],
        by_name: names([("a", 3), ("new", 2)]),
        inner: inner(2, 3),
        list: vec![inner(4, 6), inner(7, 8)],
        map: [(3, inner(6, 1)), (4, inner(2, 2))].into(),
        ..later.clone()
    };
    assert_eq!(later.since(&earlier()), growth);
}

#[test]
fn growth_is_never_negative() {
    let growth = Outer::default().since(&earlier());
    assert_eq!(growth, Outer::default());
    let shrunk = Outer {
        signed: i64::MIN,
        seconds: f64::NAN,
        ..Outer::default()
    };
    let growth = shrunk.since(&Outer {
        signed: i64::MAX,
        ..Outer::default()
    });
    assert_eq!((growth.signed, growth.seconds), (0, 0.0));
}

#[test]
fn since_nothing_is_all() {
    assert_eq!(earlier().since(&Outer::default()), earlier());
}
