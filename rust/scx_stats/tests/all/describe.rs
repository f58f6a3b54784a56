//! The text of `--help-stats`.

use std::collections::BTreeMap;

use scx_stats::{describe, Registry, Stats};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
struct Leaf {
    #[stat(desc = "How green")]
    green: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(desc = "Grows")]
struct Branch {
    leaf: Leaf,
    #[stat(desc = "More")]
    leaves: Vec<Leaf>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[stat(top, desc = "A tree")]
struct Tree {
    #[stat(desc = "By height")]
    branches: BTreeMap<u64, Branch>,
    #[stat(desc = "In metres")]
    height: i32,
    name: String,
    lonely: Leaf,
    rings: Vec<u64>,
}

#[test]
fn aligned_lines_in_blocks() {
    let text = "\
[Tree] A tree
  branches ({u64:Branch}) : By height
  height   (i64)          : In metres
  name     (string)
  lonely   (Leaf)
  rings    ([u64])

[Branch] Grows
  leaf   (Leaf)
  leaves ([Leaf]) : More

[Leaf]
  green (float) : How green
";
    assert_eq!(describe::<Tree>(), text);
}

#[test]
fn several_structs() {
    let mut registry = Registry::default();
    registry.add::<Leaf>().unwrap();
    registry.add::<Branch>().unwrap();
    let text = registry.describe();
    assert!(
        text.starts_with("[Leaf]\n") && text.contains("\n\n[Branch] Grows\n"),
        "{text}"
    );
}

#[test]
fn a_loop_is_cut() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Snake {
        tails: Vec<Snake>,
    }
    assert_eq!(describe::<Snake>(), "[Snake]\n  tails ([Snake])\n");
}
