// SPDX-License-Identifier: GPL-2.0-only
//! What scxtop itself costs.

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

use super::rates::percent;
use crate::model::OwnCost;

/// Measures the CPU time of this process.
#[derive(Default)]
pub(super) struct Own {
    before: Duration,
}

impl Own {
    pub(super) fn read(&mut self, interval_ns: u64, lost: u64) -> OwnCost {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let used = Duration::try_from(used).unwrap_or_default();
        let ns = used.saturating_sub(self.before).as_nanos();
        self.before = used;
        OwnCost {
            process_pct: percent(u64::try_from(ns).unwrap_or(u64::MAX), interval_ns),
            lost,
        }
    }
}
