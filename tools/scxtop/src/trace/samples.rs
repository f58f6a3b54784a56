// SPDX-License-Identifier: GPL-2.0-only
//! Values that are sampled while a trace is recorded: frequencies, the scheduler's statistics, and
//! the kernel's counters of sched_ext events.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::collect::events::Events;
use crate::collect::stats::Source;

/// How long to wait for the scheduler's statistics. Meanwhile, no records are read from the rings.
const TIMEOUT: Duration = Duration::from_millis(50);

/// What a sampled value measures.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Counter {
    /// The frequency of a CPU, kHz.
    Frequency(u32),
    /// A number of the scheduler's statistics, by its path.
    Statistic(String),
    /// A sched_ext event, without the prefix `SCX_EV_`.
    Event(String),
}

/// Values of one moment.
pub(crate) type Sample = Vec<(Counter, f64)>;

/// Takes samples.
pub(crate) struct Sampler {
    events: Events,
    /// CPUs with a known frequency, each with the file in sysfs that contains the frequency.
    cpus: Vec<(u32, PathBuf)>,
    stats: Source,
}

impl Sampler {
    /// `root` is where the directory `sys` is.
    pub(crate) fn new(root: &Path, socket: &Path) -> Self {
        Self {
            events: Events::new(root),
            cpus: frequencies(&root.join("sys/devices/system/cpu")),
            stats: Source::new(socket, TIMEOUT),
        }
    }

    /// Reads the present values. Values that cannot be read are left out.
    pub(crate) fn sample(&mut self) -> Sample {
        let mut sample = Vec::new();
        for (cpu, path) in &self.cpus {
            let khz = fs::read_to_string(path).ok();
            if let Some(khz) = khz.and_then(|text| text.trim().parse().ok()) {
                sample.push((Counter::Frequency(*cpu), khz));
            }
        }
        for (name, value) in self.stats.read() {
            let number = value.as_f64();
            sample.extend(number.map(|number| (Counter::Statistic(name), number)));
        }
        for event in self.events.read() {
            #[allow(clippy::cast_precision_loss, reason = "for display")]
            sample.push((Counter::Event(event.name), event.total as f64));
        }
        sample
    }
}

/// The files with the frequencies of CPUs, ordered by CPU.
fn frequencies(cpus: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(cpus).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name();
        let cpu = name.to_str()?.strip_prefix("cpu")?.parse().ok()?;
        let file = entry.path().join("cpufreq/scaling_cur_freq");
        file.exists().then_some((cpu, file))
    });
    let mut files: Vec<_> = files.collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let socket = root.path().join("none");
        assert_eq!(Sampler::new(root.path(), &socket).sample(), []);
        for (cpu, khz) in [(10, "800000\n"), (2, "3600000\n")] {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
            write(&file, khz);
        }
        write("sys/devices/system/cpu/cpuidle/current_driver", "none\n");
        write(
            "sys/kernel/sched_ext/root/events",
            "SCX_EV_SELECT_CPU_FALLBACK 0\nSCX_EV_REFILL_SLICE_DFL 456\n",
        );
        let event = |name: &str| Counter::Event(name.to_owned());
        let expected = [
            (Counter::Frequency(2), 3_600_000.0),
            (Counter::Frequency(10), 800_000.0),
            (event("SELECT_CPU_FALLBACK"), 0.0),
            (event("REFILL_SLICE_DFL"), 456.0),
        ];
        assert_eq!(Sampler::new(root.path(), &socket).sample(), expected);
    }
}
