// SPDX-License-Identifier: GPL-2.0-only
//! Diagnoses why schedulers cannot run on this machine, and which settings they ignore.
//!
//! `kernel` looks for sched_ext, `btf` compares the kernel's BTF with the schedulers' requirements,
//! `rights` checks the privileges of this process, and `machine` checks system settings and the
//! running scheduler. `distribution` says how to get another kernel. Findings about the kernel's
//! version and configuration, the JIT, privileges and lockdown are omitted if their files cannot be
//! read.

mod btf;
mod distribution;
mod kernel;
mod machine;
mod rights;
#[cfg(test)]
mod tests;

use std::path::Path;

use scx_loader::registry::Registry;
use scx_utils::kernel::SchedExt;
use serde::Serialize;

pub(crate) use btf::missing_functions;
pub(crate) use rights::effective_uid;

/// Width of the verdict column.
const VERDICT_WIDTH: usize = 8;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The requirement is met.
    Ok,
    /// Schedulers can run, but with a limitation.
    Warning,
    /// At least one scheduler cannot run.
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

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The subject in one word.
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) text: String,
    /// The remedy, unless the verdict is [`Verdict::Ok`].
    pub(crate) cure: Option<String>,
    /// How to get another kernel on this distribution, if another kernel is the remedy.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) steps: &'static [&'static str],
}

impl Finding {
    fn ok(name: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verdict: Verdict::Ok,
            text: text.into(),
            cure: None,
            steps: &[],
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

    /// A problem whose remedy is another kernel. `root` is the root directory of the machine.
    fn kernel_problem(
        root: &Path,
        name: &str,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            steps: distribution::kernel(root),
            ..Self::problem(name, text, cure)
        }
    }
}

/// The finding that the descriptions of the schedulers cannot be read.
pub(crate) fn no_schedulers(error: &anyhow::Error) -> Finding {
    let cure =
        "install the schedulers, or name the directory of their descriptions by --schedulers";
    Finding::problem("install", format!("{error:#}"), cure)
}

/// Checks the machine whose root directory is `root`.
pub(crate) fn check(root: &Path, registry: &Registry) -> Vec<Finding> {
    let sched_ext = SchedExt::new(root);
    let mut findings = kernel::check(&sched_ext);
    // Without sched_ext, another kernel has to be booted, and further findings about this kernel
    // are useless.
    if !sched_ext.state().is_empty() {
        findings.extend(btf::check(root, registry));
        findings.extend(rights::check(root));
        findings.extend(machine::check(&sched_ext, registry));
    }
    findings
}

/// Formats the findings as text. The line of a finding is followed by its remedy, and by the steps
/// to get another kernel, if it has them.
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
        for step in one.steps {
            text += &format!("{:indent$}      {step}\n", "");
        }
    }
    text
}

/// The exit status: 1 if there is a problem, otherwise 0.
pub(crate) fn status(findings: &[Finding]) -> u8 {
    let is_problem = |one: &Finding| one.verdict == Verdict::Problem;
    u8::from(findings.iter().any(is_problem))
}
