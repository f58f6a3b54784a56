// SPDX-License-Identifier: GPL-2.0-only
//! What is set on the machine, and what runs already.

use scx_loader::boot;
use scx_loader::registry::Registry;
use scx_utils::cgroups::Ignored;
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

/// Which one runs.
fn scheduler(sched_ext: &SchedExt, registry: &Registry) -> Finding {
    let (name, ops) = ("scheduler", sched_ext.ops());
    match sched_ext.state().as_str() {
        "disabled" => Finding::ok(name, "none runs but the kernel's own"),
        "enabled" => match registry.of_ops(&ops) {
            Some(ours) => Finding::ok(name, format!("{} runs", ours.name)),
            None => {
                let text = format!("the scheduler '{ops}' runs, which is none of these");
                Finding::problem(name, text, "stop it where it was started")
            }
        },
        state => {
            let text = format!("one comes or goes at this moment (it is {state})");
            Finding::warning(name, text, "check again in a moment")
        }
    }
}

/// The kernel takes no scheduler then.
fn isolation(sched_ext: &SchedExt) -> Finding {
    let cpus = sched_ext.isolated_cpus();
    if cpus.is_empty() {
        return Finding::ok("isolation", "no CPUs are isolated");
    }
    let text = format!("the CPUs {cpus} are isolated: the kernel takes no scheduler then");
    Finding::problem("isolation", text, "boot without isolcpus=")
}

fn cgroups(sched_ext: &SchedExt) -> Finding {
    let Some(ignored) = Ignored::find(sched_ext.root()) else {
        return Finding::ok("cgroups", "none sets cpu.weight, cpu.idle or cpu.max");
    };
    let text = format!("CPU controls do not count: {ignored}");
    let cure = "use the kernel's own scheduler where they are needed";
    Finding::warning("cgroups", text, cure)
}

fn boot(sched_ext: &SchedExt) -> Finding {
    if boot::is_off(sched_ext.root()) {
        let text = format!(
            "{} is on the kernel's command line: no scheduler starts at boot",
            boot::OFF
        );
        return Finding::warning("boot", text, format!("boot without {}", boot::OFF));
    }
    Finding::ok("boot", "nothing keeps a scheduler from starting at boot")
}
