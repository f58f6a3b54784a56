// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's statistics.

use std::fmt;

use scx_stats::{Percent, Stats};
use serde::{Deserialize, Serialize};

use crate::bpf_intf::lavd_counts;
use crate::mode;

/// Averages of the machine, and sums over all CPUs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, Stats)]
#[stat(
    top,
    desc = "How urgent tasks were, and where they ran",
    _om_prefix = "lavd_"
)]
pub(crate) struct SysStats {
    #[stat(desc = "Number of this reading")]
    pub(crate) mseq: u64,
    #[stat(desc = "Tasks that wait")]
    pub(crate) nr_queued_task: u64,
    #[stat(desc = "CPUs in use")]
    pub(crate) nr_active: u64,
    #[stat(desc = "Power mode: performance, balanced or powersave")]
    pub(crate) power_mode: String,
    #[stat(desc = "Rounds in performance mode (%)")]
    pub(crate) pc_performance: Percent,
    #[stat(desc = "Rounds in balanced mode (%)")]
    pub(crate) pc_balanced: Percent,
    #[stat(desc = "Rounds in powersave mode (%)")]
    pub(crate) pc_powersave: Percent,
    #[stat(desc = "Average latency criticality")]
    pub(crate) avg_lat_cri: u64,
    #[stat(desc = "Largest latency criticality, averaged")]
    pub(crate) max_lat_cri: u64,
    #[stat(counter, desc = "Tasks that started to run")]
    pub(crate) nr_sched: u64,
    #[stat(counter, desc = "Tasks preempted by others that were new or woke up")]
    pub(crate) nr_preempt: u64,
    #[stat(counter, desc = "Slices that were longer than those of other tasks")]
    pub(crate) nr_slice_boost: u64,
    #[stat(counter, desc = "Slices extended for the release of a lock")]
    pub(crate) nr_lock_boost: u64,
    #[stat(counter, desc = "Tasks stolen from another compute domain")]
    pub(crate) nr_stolen: u64,
    #[stat(desc = "Performance-critical tasks (% of nr_sched)")]
    pub(crate) pc_pc: Percent,
    #[stat(desc = "Tasks of at least average latency criticality (% of nr_sched)")]
    pub(crate) pc_lc: Percent,
    #[stat(desc = "Tasks that came from another compute domain (% of nr_sched)")]
    pub(crate) pc_x_migration: Percent,
    #[stat(desc = "Tasks on a big CPU (% of nr_sched)")]
    pub(crate) pc_big: Percent,
    #[stat(desc = "Performance-critical tasks (% of those on a big CPU)")]
    pub(crate) pc_pc_on_big: Percent,
    #[stat(desc = "Tasks of at least average latency criticality (% of those on a big CPU)")]
    pub(crate) pc_lc_on_big: Percent,
}

impl SysStats {
    /// Sets the mode, and the percentages of rounds in performance, balanced and powersave mode.
    pub(crate) fn set_mode(&mut self, mode: u64, rounds: [u64; 3]) {
        let sum = rounds.iter().sum();
        self.power_mode = mode::name(mode).to_owned();
        [self.pc_performance, self.pc_balanced, self.pc_powersave] =
            rounds.map(|part| Percent::of(part, sum));
    }

    /// Sums up the counters of all CPUs. Leaves all other statistics unchanged.
    pub(crate) fn count(&mut self, counts: &[lavd_counts]) {
        let sum = |of: fn(&lavd_counts) -> u64| counts.iter().map(of).sum::<u64>();
        self.nr_sched = sum(|c| c.nr_sched);
        self.nr_preempt = sum(|c| c.nr_preempt);
        self.nr_slice_boost = sum(|c| c.nr_slice_boost);
        self.nr_lock_boost = sum(|c| c.nr_lock_boost);
        self.nr_stolen = sum(|c| c.nr_stolen);
        let (nr_sched, nr_big) = (self.nr_sched, sum(|c| c.nr_big));
        self.pc_pc = Percent::of(sum(|c| c.nr_perf_cri), nr_sched);
        self.pc_lc = Percent::of(sum(|c| c.nr_lat_cri), nr_sched);
        self.pc_x_migration = Percent::of(sum(|c| c.nr_x_migration), nr_sched);
        self.pc_big = Percent::of(nr_big, nr_sched);
        self.pc_pc_on_big = Percent::of(sum(|c| c.nr_perf_cri_on_big), nr_big);
        self.pc_lc_on_big = Percent::of(sum(|c| c.nr_lat_cri_on_big), nr_big);
    }
}

impl fmt::Display for SysStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "queued={} active={} mode={} sched={} preempted={} boosted={} locks={} stolen={} \
             critical={:.1}% migrated={:.1}% avg_lat_cri={} max_lat_cri={}",
            self.nr_queued_task,
            self.nr_active,
            self.power_mode,
            self.nr_sched,
            self.nr_preempt,
            self.nr_slice_boost,
            self.nr_lock_boost,
            self.nr_stolen,
            self.pc_lc.get(),
            self.pc_x_migration.get(),
            self.avg_lat_cri,
            self.max_lat_cri,
        )?;
        if self.pc_big.get() > 0.0 {
            write!(
                f,
                " big={:.1}% perf={:.1}%",
                self.pc_big.get(),
                self.pc_pc.get()
            )?;
        }
        Ok(())
    }
}
