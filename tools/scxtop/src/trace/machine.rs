// SPDX-License-Identifier: GPL-2.0-only
//! What a trace tells about the machine: its clocks and its kernel.

use rustix::system::uname;
use rustix::time::{clock_gettime, ClockId};

use super::proto::{
    Clock, ClockSnapshot, Data, SystemInfo, TracePacket, Utsname, CLOCK_BOOTTIME, CLOCK_MONOTONIC,
    CLOCK_REALTIME,
};
use super::tracks::timeless;

/// The clocks at one moment, and the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub monotonic_ns: u64,
    pub boottime_ns: u64,
    pub realtime_ns: u64,
    pub release: String,
    pub version: String,
    pub architecture: String,
}

impl Machine {
    /// Reads the clocks and the kernel of this machine.
    pub(crate) fn now() -> Self {
        let kernel = uname();
        Self {
            monotonic_ns: read(ClockId::Monotonic),
            boottime_ns: read(ClockId::Boottime),
            realtime_ns: read(ClockId::Realtime),
            release: kernel.release().to_string_lossy().into_owned(),
            version: kernel.version().to_string_lossy().into_owned(),
            architecture: kernel.machine().to_string_lossy().into_owned(),
        }
    }

    /// The first packets of a trace.
    pub(super) fn packets(&self, out: &mut Vec<TracePacket>) {
        let clock = |clock_id, timestamp| Clock {
            clock_id,
            timestamp,
        };
        out.push(timeless(Data::ClockSnapshot(ClockSnapshot {
            clocks: vec![
                clock(CLOCK_REALTIME, self.realtime_ns),
                clock(CLOCK_MONOTONIC, self.monotonic_ns),
                clock(CLOCK_BOOTTIME, self.boottime_ns),
            ],
            primary_trace_clock: CLOCK_MONOTONIC,
        })));
        // Perfetto decodes the states of tasks according to the release.
        out.push(timeless(Data::SystemInfo(SystemInfo {
            utsname: Utsname {
                sysname: "Linux".to_owned(),
                version: self.version.clone(),
                release: self.release.clone(),
                machine: self.architecture.clone(),
            },
        })));
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |value| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
