// SPDX-License-Identifier: GPL-2.0-only
//! What keeps schedulers from running on this machine, and what they will not honour, in words.
//!
//! `kernel` is whether there is sched_ext, and if not, why; `btf` is what the schedulers find in
//! the kernel; `rights` is what this process may do; `machine` is what else is set or runs. What
//! cannot be known is left out.

mod btf;
mod kernel;
mod machine;
mod rights;
#[cfg(test)]
mod tests;

use std::path::Path;

use scx_loader::registry::Registry;
use scx_utils::kernel::SchedExt;
use serde::Serialize;

/// Columns of a verdict.
const VERDICT_WIDTH: usize = 8;

/// How it is about one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// As it should be.
    Ok,
    /// Schedulers run, but something is not as one may think.
    Warning,
    /// It keeps a scheduler from running.
    Problem,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One line: a thing, how it is about it, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// One word.
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
    /// For all that is not well.
    pub(crate) cure: Option<String>,
}

impl Finding {
    fn ok(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verdict: Verdict::Ok,
            text: text.into(),
            cure: None,
        }
    }

    fn warning(name: &str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Warning,
            cure: Some(cure.into()),
            ..Self::ok(name, text)
        }
    }

    fn problem(name: &str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Problem,
            ..Self::warning(name, text, cure)
        }
    }
}

/// What keeps schedulers from running on the machine with this root directory, and what they will
/// not honour.
pub(crate) fn check(root: &Path, registry: &Registry) -> Vec<Finding> {
    let sched_ext = SchedExt::new(root);
    let mut findings = kernel::check(&sched_ext);
    // All else depends on the kernel that will be booted instead.
    if !sched_ext.state().is_empty() {
        findings.extend(btf::check(root, registry));
        findings.extend(rights::check(root));
        findings.extend(machine::check(&sched_ext, registry));
    }
    findings
}

/// For people: a line for each, and a second one with the cure.
pub(crate) fn print(findings: &[Finding]) -> String {
    let widths = findings.iter().map(|one| one.name.len());
    let name_width = widths.max().unwrap_or(0);
    let indent = VERDICT_WIDTH + name_width + 3;
    let mut text = String::new();
    for one in findings {
        let (verdict, name) = (one.verdict.word(), &one.name);
        text += &format!(
            "{verdict:<VERDICT_WIDTH$} {name:<name_width$}  {}\n",
            one.text
        );
        if let Some(cure) = &one.cure {
            text += &format!("{:indent$}cure: {cure}\n", "");
        }
    }
    text
}

/// The exit status: 1 if something keeps a scheduler from running, otherwise 0.
pub(crate) fn status(findings: &[Finding]) -> u8 {
    let is_problem = |one: &Finding| one.verdict == Verdict::Problem;
    u8::from(findings.iter().any(is_problem))
}
