//! Descriptions of structs.

use std::collections::BTreeMap;

use scx_stats::{Kind, MetaError, Registry, Shape, Stats};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

type Weight = u32;

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "By CPU", _om_label = "cpu")]
struct Cpu {
    #[stat(counter)]
    nr_runs: u64,
    load: f32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
struct Node {
    name: String,
    first: Cpu,
    cpus: Vec<Cpu>,
    by_name: BTreeMap<String, Cpu>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "All", _om_prefix = "s_", _flag)]
struct All {
    #[stat(desc = "Offset", _om_skip)]
    offset_ns: i16,
    weight: Weight,
    r#type: String,
    loads: Vec<f64>,
    signed: BTreeMap<i32, u8>,
    nodes: BTreeMap<usize, Node>,
    node: Node,
}

fn meta_of<T: Stats>() -> Value {
    let mut registry = Registry::default();
    registry.add::<T>().unwrap();
    serde_json::to_value(&registry).unwrap()
}

#[test]
fn every_shape() {
    let expected = json!({
        "All": {
            "name": "All", "top": "true", "desc": "All",
            "user": {"_flag": "true", "_om_prefix": "s_"},
            "fields": {
                "offset_ns": {"datum": "i64", "desc": "Offset", "user": {"_om_skip": "true"}},
                "weight": {"datum": "u64"},
                "type": {"datum": "string"},
                "loads": {"array": "float"},
                "signed": {"dict": {"key": "i64", "datum": "u64"}},
                "nodes": {"dict": {"key": "u64", "datum": {"struct": "Node"}}},
                "node": {"datum": {"struct": "Node"}},
            },
        },
        "Node": {
            "name": "Node",
            "fields": {
                "name": {"datum": "string"},
                "first": {"datum": {"struct": "Cpu"}},
                "cpus": {"array": {"struct": "Cpu"}},
                "by_name": {"dict": {"key": "string", "datum": {"struct": "Cpu"}}},
            },
        },
        "Cpu": {
            "name": "Cpu", "desc": "By CPU", "user": {"_om_label": "cpu"},
            "fields": {
                "nr_runs": {"datum": "u64", "user": {"_counter": "true"}},
                "load": {"datum": "float"},
            },
        },
    });
    assert_eq!(meta_of::<All>(), expected);
}

#[test]
fn exact_text() {
    let mut registry = Registry::default();
    registry.add::<Cpu>().unwrap();
    let text = concat!(
        r#"{"Cpu":{"name":"Cpu","desc":"By CPU","user":{"_om_label":"cpu"},"fields":"#,
        r#"{"load":{"datum":"float"},"nr_runs":{"datum":"u64","user":{"_counter":"true"}}}}}"#
    );
    assert_eq!(serde_json::to_string(&registry).unwrap(), text);
}

#[test]
fn fields_are_sorted_on_the_wire_only() {
    let meta = All::meta();
    let names: Vec<_> = meta
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let order = [
        "offset_ns",
        "weight",
        "type",
        "loads",
        "signed",
        "nodes",
        "node",
    ];
    assert_eq!(names, order);
    let text = serde_json::to_string(&meta).unwrap();
    let mut places: Vec<_> = order
        .iter()
        .map(|name| (text.find(&format!("\"{name}\":")).unwrap(), name))
        .collect();
    places.sort_unstable();
    assert!(places.is_sorted_by_key(|(_, name)| *name), "{text}");
}

#[test]
fn descriptions_come_back() {
    let mut meta = All::meta();
    let text = serde_json::to_string(&meta).unwrap();
    meta.fields.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        serde_json::from_str::<scx_stats::StructMeta>(&text).unwrap(),
        meta
    );
    let field = &meta.fields[2];
    assert_eq!(
        field.shape,
        Shape::Dict {
            key: Kind::U64,
            datum: Kind::Struct("Node".into())
        }
    );
}

#[test]
fn texts_that_live_forever() {
    #[derive(Clone, Debug, Serialize, Stats)]
    struct Fixed {
        name: &'static str,
    }
    let fields = &meta_of::<Fixed>()["Fixed"]["fields"];
    assert_eq!(fields, &json!({"name": {"datum": "string"}}));
}

#[test]
fn names_of_the_standard_library_may_be_taken() {
    #[allow(dead_code)]
    mod taken {
        pub(super) struct String;
        pub(super) struct Option;
        pub(super) struct Vec;
        pub(super) enum Result {}
        #[derive(Clone, serde::Serialize, scx_stats::Stats)]
        #[stat(desc = "d", _a)]
        pub(super) struct Odd {
            #[stat(counter)]
            pub(super) registry: u64,
        }
    }
    assert!(meta_of::<taken::Odd>()["Odd"].is_object());
}

/// A recursive struct of finite size.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
struct Tree {
    branches: Vec<Branch>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
struct Branch {
    ends: BTreeMap<u32, Tree>,
}

#[test]
fn a_loop_is_refused() {
    let mut registry = Registry::default();
    let way = |names: [&str; 3]| MetaError::Loop(names.map(str::to_string).to_vec());
    let error = registry.add::<Tree>().unwrap_err();
    assert_eq!(error, way(["Tree", "Branch", "Tree"]));
    assert_eq!(
        error.to_string(),
        "recursive statistics: Tree -> Branch -> Tree"
    );
    // The registry remains usable.
    registry.add::<Cpu>().unwrap();
}

mod other {
    #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, scx_stats::Stats)]
    pub(super) struct Cpu {
        pub(super) other: u32,
    }
}

#[test]
fn names_are_unique() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Both {
        here: Vec<Cpu>,
        there: other::Cpu,
    }
    let mut registry = Registry::default();
    let error = registry.add::<Both>().unwrap_err();
    assert_eq!(error, MetaError::SameName("Cpu".to_string()));
    let mut registry = Registry::default();
    registry.add::<Cpu>().unwrap();
    registry.add::<Cpu>().unwrap();
    assert!(registry.add::<other::Cpu>().is_err());
}

#[test]
fn one_struct_is_the_top() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    #[stat(top)]
    struct Second {}
    let mut registry = Registry::default();
    registry.add::<All>().unwrap();
    let error = registry.add::<Second>().unwrap_err();
    assert_eq!(
        error,
        MetaError::TwoTops("All".to_string(), "Second".to_string())
    );
}
