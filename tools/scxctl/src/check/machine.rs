// SPDX-License-Identifier: GPL-2.0-only
//! Checks system settings and the running scheduler.

use scx_loader::boot;
use scx_loader::registry::Registry;
use scx_utils::cgroups::{Control, Ignored};
use scx_utils::kernel::SchedExt;

use super::Finding;

pub(super) fn check(sched_ext: &SchedExt, registry: &Registry) -> Vec<Finding> {
    vec![
        scheduler(sched_ext, registry),
        isolation(sched_ext),
        cgroups(sched_ext),
        boot(sched_ext),
    ]
}

/// Whether the running scheduler, if there is one, is installed here.
fn scheduler(sched_ext: &SchedExt, registry: &Registry) -> Finding {
    let (name, ops) = ("scheduler", sched_ext.ops());
    match sched_ext.state().as_str() {
        "disabled" => Finding::ok(name, "no sched_ext scheduler runs"),
        "enabled" => match registry.of_ops(&ops) {
            Some(ours) => Finding::ok(name, format!("{} runs", ours.name)),
            None => {
                let text = format!("the running scheduler '{ops}' is not installed here");
                Finding::problem(name, text, "stop it first")
            }
        },
        state => {
            let text = format!("a scheduler is being loaded or unloaded ({state})");
            Finding::warning(name, text, "check again in a moment")
        }
    }
}

/// sched_ext cannot be enabled with isolated CPUs.
fn isolation(sched_ext: &SchedExt) -> Finding {
    let cpus = sched_ext.isolated_cpus();
    if cpus.is_empty() {
        return Finding::ok("isolation", "no CPUs are isolated");
    }
    let text = format!("the CPUs {cpus} are isolated: the kernel rejects schedulers");
    Finding::problem("isolation", text, "boot without isolcpus=")
}

fn cgroups(sched_ext: &SchedExt) -> Finding {
    let Some(ignored) = Ignored::find(sched_ext.root(), Control::ALL) else {
        return Finding::ok("cgroups", "no cgroup sets cpu.weight, cpu.idle or cpu.max");
    };
    let text = format!("cgroup controls ignored: {ignored}");
    let cure = "use scx_flatcg, or the kernel's own scheduler, where they are needed";
    Finding::warning("cgroups", text, cure)
}

fn boot(sched_ext: &SchedExt) -> Finding {
    if boot::is_off(sched_ext.root()) {
        let text = format!(
            "{} is on the kernel command line: no scheduler starts at boot",
            boot::OFF
        );
        return Finding::warning("boot", text, format!("boot without {}", boot::OFF));
    }
    Finding::ok("boot", "schedulers may start at boot")
}
