// SPDX-License-Identifier: GPL-2.0-only
//! What the schedulers find in the kernel, by its type information.

use std::path::Path;

use scx_loader::registry::Registry;
use scx_utils::compat::{essential_name, KernelBtf};
use scx_utils::manifest::Manifest;

use super::Finding;

/// Below the root directory.
const PATH: &str = "sys/kernel/btf/vmlinux";

pub(super) fn check(root: &Path, registry: &Registry) -> Vec<Finding> {
    let kernel = match KernelBtf::read(root) {
        Ok(kernel) if kernel.is_defective() => {
            let text =
                "the kernel's type information is defective, no scheduler can be loaded: it \
                        was made by an old pahole, as in Debian's backports of 7.1 and 7.2";
            let cure = "boot a kernel built with a newer pahole";
            return vec![Finding::problem("btf", text, cure)];
        }
        Ok(kernel) => kernel,
        Err(_) => return vec![unreadable(root)],
    };
    let mut findings = vec![Finding::ok("btf", "the kernel's type information is there")];
    let schedulers = registry.all().iter();
    findings.extend(schedulers.map(|one| functions(&kernel, one)));
    findings.push(ext_server(&kernel));
    findings
}

fn unreadable(root: &Path) -> Finding {
    if root.join(PATH).exists() {
        let text = format!("the kernel's type information /{PATH} cannot be read, or is damaged");
        return Finding::problem("btf", text, "boot another kernel");
    }
    let text = format!("the kernel's type information /{PATH} is missing");
    let cure = "boot a kernel built with CONFIG_DEBUG_INFO_BTF";
    Finding::problem("btf", text, cure)
}

/// Whether the kernel has the functions that a scheduler needs.
fn functions(kernel: &KernelBtf, of: &Manifest) -> Finding {
    let needed = of.kfuncs.iter().map(|name| essential_name(name));
    let missing: Vec<_> = needed.filter(|name| !kernel.has_ksym(name)).collect();
    if missing.is_empty() {
        return Finding::ok(&of.name, "the kernel has the functions that it needs");
    }
    let text = format!("the kernel lacks what it needs: {}", missing.join(", "));
    Finding::problem(
        &of.name,
        text,
        "boot a newer kernel, or run another scheduler",
    )
}

/// Without it the kernel waits, while a scheduler comes or goes, for what may not run meanwhile.
/// The scheduler helps (`runner/class_switch.rs` of scx_utils), if it was not killed.
fn ext_server(kernel: &KernelBtf) -> Finding {
    if kernel.has_ext_server() {
        return Finding::ok("ext_server", "the kernel sets time aside for sched_ext");
    }
    let text = "no time is set aside for sched_ext: kill -9 can hang the machine";
    let cure = "end schedulers by SIGTERM, or boot a newer kernel, such as 7.2";
    Finding::warning("ext_server", text, cure)
}
