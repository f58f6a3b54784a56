//! Compares every extern with every kernel, and decides what is wrong.

use scx_utils::compat::essential_name;
use serde::Serialize;

use crate::compat::{compare, Mismatch};
use crate::input::{Kernel, Object};

/// What a kernel makes of an extern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It binds.
    Ok,
    /// The kernel has no function of that name.
    Absent,
    /// The kernel has a function of that name, but it does not bind.
    Incompatible(Mismatch),
}

/// An extern and what each kernel makes of it.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The object's path as the user gave it.
    pub object: String,
    /// The extern's name, suffix included.
    pub name: String,
    /// The name that is looked up in the kernel.
    pub lookup: String,
    /// Whether the object can be loaded without it.
    pub is_weak: bool,
    /// One per kernel, in the order of the kernels.
    pub outcomes: Vec<Outcome>,
    /// What is wrong, one line each.
    pub findings: Vec<String>,
}

/// A summary of a whole check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Externs, each object's counted apart.
    pub externs: usize,
    /// Externs with at least one finding.
    pub faulty: usize,
}

impl Totals {
    /// Counts `checked`.
    pub(crate) fn of(checked: &[Checked]) -> Self {
        let faulty = checked.iter().filter(|c| !c.findings.is_empty());
        Self {
            externs: checked.len(),
            faulty: faulty.count(),
        }
    }
}

/// Checks the externs of the object called `path` against `kernels`. With `span`,
/// the kernels cover every generation of names, so that an extern which none of
/// them has is a finding.
pub(crate) fn check_object(
    path: &str,
    object: &Object,
    kernels: &[Kernel],
    span: bool,
) -> Vec<Checked> {
    let mut checked: Vec<_> = object
        .externs
        .iter()
        .map(|ext| {
            let lookup = essential_name(&ext.name);
            let local = object.function(ext);
            let outcome = |kernel: &Kernel| match kernel.function(lookup) {
                None => Outcome::Absent,
                Some(function) => match compare(local, function) {
                    Ok(()) => Outcome::Ok,
                    Err(mismatch) => Outcome::Incompatible(mismatch),
                },
            };
            Checked {
                object: path.to_string(),
                name: ext.name.clone(),
                lookup: lookup.to_string(),
                is_weak: ext.is_weak,
                outcomes: kernels.iter().map(outcome).collect(),
                findings: Vec::new(),
            }
        })
        .collect();
    let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
    let findings: Vec<_> = checked
        .iter()
        .map(|one| findings(one, &checked, &names, span))
        .collect();
    for (one, findings) in checked.iter_mut().zip(findings) {
        one.findings = findings;
    }
    checked
}

/// What is wrong with `one` of an object's externs, which are `all`.
fn findings(one: &Checked, all: &[Checked], kernels: &[&str], span: bool) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, (kernel, outcome)) in kernels.iter().zip(&one.outcomes).enumerate() {
        match outcome {
            Outcome::Incompatible(mismatch) if !is_alternative(one, all, index) => {
                findings.push(format!("incompatible with {kernel}: {mismatch}"));
            }
            Outcome::Absent if !one.is_weak => {
                findings.push(format!("absent from {kernel}, and not weak"));
            }
            _ => {}
        }
    }
    let absent_everywhere = one.outcomes.iter().all(|o| *o == Outcome::Absent);
    if span && one.is_weak && absent_everywhere {
        findings.push("absent from every kernel".to_string());
    }
    findings
}

/// Whether `one` may be incompatible with kernel number `index`, because it is one
/// of several prototypes of the same kernel function (told apart by suffixes): it
/// binds on another kernel, and another prototype of `all` binds on this one.
fn is_alternative(one: &Checked, all: &[Checked], index: usize) -> bool {
    let binds_elsewhere = one.outcomes.contains(&Outcome::Ok);
    let mut siblings = all.iter().filter(|c| c.lookup == one.lookup);
    one.is_weak && binds_elsewhere && siblings.any(|c| c.outcomes[index] == Outcome::Ok)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn checked(name: &str, is_weak: bool, outcomes: &[Outcome]) -> Checked {
        Checked {
            object: "x.bpf.o".to_string(),
            name: name.to_string(),
            lookup: essential_name(name).to_string(),
            is_weak,
            outcomes: outcomes.to_vec(),
            findings: Vec::new(),
        }
    }

    fn incompatible() -> Outcome {
        Outcome::Incompatible(Mismatch::ArgumentCount {
            local: 5,
            kernel: 4,
        })
    }

    fn findings_of(one: &Checked, all: &[Checked], span: bool) -> Vec<String> {
        findings(one, all, &["old", "new"], span)
    }

    #[test]
    fn an_incompatible_extern_is_a_finding_on_each_kernel() {
        let one = checked("f", true, &[incompatible(), Outcome::Ok]);
        assert_eq!(
            findings_of(&one, from_ref(&one), false),
            ["incompatible with old: 5 arguments, kernel has 4"]
        );
        let one = checked("f", true, &[incompatible(), incompatible()]);
        assert_eq!(findings_of(&one, from_ref(&one), true).len(), 2);
    }

    #[test]
    fn absence_everywhere_is_a_finding_when_the_kernels_span_all_names() {
        let one = checked("f", true, &[Outcome::Absent, Outcome::Absent]);
        assert!(findings_of(&one, &[], false).is_empty());
        assert_eq!(findings_of(&one, &[], true), ["absent from every kernel"]);
        let one = checked("f", true, &[Outcome::Absent, Outcome::Ok]);
        assert!(findings_of(&one, &[], true).is_empty());
    }

    #[test]
    fn a_strong_extern_must_be_everywhere() {
        let one = checked("f", false, &[Outcome::Absent, Outcome::Ok]);
        assert_eq!(
            findings_of(&one, &[], false),
            ["absent from old, and not weak"]
        );
    }

    #[test]
    fn prototypes_of_one_function_complement_each_other() {
        let old = checked("f___old", true, &[Outcome::Ok, incompatible()]);
        let new = checked("f___new", true, &[incompatible(), Outcome::Ok]);
        let both = [old.clone(), new.clone()];
        assert!(findings_of(&old, &both, true).is_empty());
        assert!(findings_of(&new, &both, true).is_empty());
        // Alone, or never binding, or strong, it has no such excuse.
        assert_eq!(findings_of(&old, from_ref(&old), true).len(), 1);
        let typo = checked("f___typo", true, &[incompatible(), incompatible()]);
        let three = [old.clone(), new.clone(), typo.clone()];
        assert_eq!(findings_of(&typo, &three, true).len(), 2);
        let strong = checked("f___strong", false, &[Outcome::Ok, incompatible()]);
        assert_eq!(findings_of(&strong, &[strong.clone(), new], true).len(), 1);
    }

    #[test]
    fn totals_count_externs_once() {
        let mut bad = checked("f", true, &[]);
        bad.findings = vec!["one".to_string(), "two".to_string()];
        let totals = Totals::of(&[bad, checked("g", true, &[])]);
        assert_eq!(
            totals,
            Totals {
                externs: 2,
                faulty: 1
            }
        );
    }
}
