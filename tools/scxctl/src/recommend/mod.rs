// SPDX-License-Identifier: GPL-2.0-only
//! Recommends a scheduler for this machine and its present load. This changes nothing, and needs
//! neither the loader nor root.
//!
//! `machine` and `load` collect the `facts`, and `names` recognizes programs by their names.
//! `rules` decides from the facts and the schedulers that can be loaded.

mod facts;
mod load;
mod machine;
mod names;
mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use scx_loader::registry::Registry;
use scx_utils::compat::KernelBtf;
use scx_utils::manifest::{ops, Manifest};
use scx_utils::power::ProfileSource;
use serde::Serialize;

use crate::check;
use facts::{Facts, Profile};
use rules::Advice;

/// What is printed, as text or JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Recommendation {
    #[serde(flatten)]
    advice: Advice,
    /// The command to follow the advice or, if the kernel can load no scheduler, to find out why.
    /// None if the kernel's own scheduler is recommended and is already in use.
    command: Option<String>,
    facts: Facts,
}

/// Measures, for the duration `time`, the load of the machine whose root directory is `root`, and
/// recommends a scheduler.
pub(crate) fn recommend(
    root: &Path,
    registry: &Registry,
    time: Duration,
) -> Result<Recommendation> {
    let btf = KernelBtf::read(root).ok();
    let profile = ProfileSource::new(root);
    // The first read may send a request to a daemon, which replies while the load is measured.
    let _ = profile.read();
    let mut facts = Facts {
        machine: machine::read(root, btf.as_ref())?,
        load: load::measure(root, time),
    };
    facts.machine.power_profile = profile.read().map(Profile);
    let can_load = |of: &&Manifest| {
        let missing = btf.as_ref().map(|btf| check::missing_functions(btf, of));
        missing.is_some_and(|missing| missing.is_empty())
    };
    let usable: Vec<_> = registry.all().iter().filter(can_load).collect();
    let advice = rules::advise(&facts, &usable);
    let command = command(&advice, &facts);
    Ok(Recommendation {
        advice,
        command,
        facts,
    })
}

fn command(advice: &Advice, facts: &Facts) -> Option<String> {
    let running = facts.machine.running.as_deref();
    match (&advice.scheduler, advice.mode) {
        (Some(scheduler), Some(mode)) => {
            let verb = if running.is_some() { "switch" } else { "start" };
            let sched = ops(scheduler);
            Some(format!("scxctl {verb} {sched} --mode {mode}"))
        }
        _ if facts.machine.obstacle.is_some() => Some("scxctl check".into()),
        _ => running.map(|_| "scxctl stop".into()),
    }
}

/// Formats the recommendation as text of at most four lines.
pub(crate) fn print(recommendation: &Recommendation) -> String {
    let Recommendation {
        advice,
        command,
        facts,
    } = recommendation;
    let [found, gain @ ..] = &advice.reasons[..] else {
        return String::new();
    };
    let what = match (&advice.scheduler, advice.mode) {
        (Some(scheduler), Some(mode)) => format!("{scheduler} in mode {mode}"),
        _ => "the kernel's own scheduler".into(),
    };
    let gain: String = gain.iter().map(|gain| format!(": {gain}")).collect();
    let mut text = format!("{what}{gain}\nbecause:  {found}\nmeasured: {facts}\n");
    if let Some(command) = command {
        text += &format!("try:      {command}\n");
    }
    text
}
