// SPDX-License-Identifier: GPL-2.0-only
//! The topology, read again when CPUs go online or offline.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use scx_utils::hotplug::HotplugToken;
use scx_utils::topology::Topology;

use super::programs::Programs;

/// The current topology.
pub(super) struct Current {
    root: PathBuf,
    /// The list of online CPUs that `topology` belongs to.
    online: String,
    topology: Option<Topology>,
}

impl Current {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.into(),
            online: String::new(),
            topology: None,
        }
    }

    /// Reads the topology in the first call, and again whenever the online CPUs have changed.
    /// Returns whether it was read.
    ///
    /// # Errors
    ///
    /// If the topology cannot be read from sysfs.
    pub(super) fn update(&mut self) -> Result<bool> {
        let path = self.root.join("sys/devices/system/cpu/online");
        let online = fs::read_to_string(path).unwrap_or_default();
        if self.topology.is_some() && online == self.online {
            return Ok(false);
        }
        let token = HotplugToken::read(&self.root)?;
        let topology = Topology::read(&token).context("cannot read the topology")?;
        self.online = online;
        self.topology = Some(topology);
        Ok(true)
    }

    /// The topology of the last update.
    pub(super) fn get(&self) -> &Topology {
        self.topology.as_ref().expect("update() was called")
    }

    /// Passes the LLC and node of each CPU to the BPF side.
    pub(super) fn publish(&self, programs: &Programs<'_>) {
        for cpu in self.get().cpus() {
            let place = (cpu.node as u64) << 32 | cpu.llc as u64;
            programs.places.set(cpu.id, place);
        }
    }
}
