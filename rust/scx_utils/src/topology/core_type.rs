//! Capacities and core types.

use std::path::Path;

use serde::{Serialize, Serializer};

use super::raw::RawCpu;
use super::sysfs;
use crate::cpumask::Cpumask;

/// The capacity of the strongest CPU: `SCHED_CAPACITY_SCALE`.
pub const MAX_CAPACITY: u32 = 1024;

/// If the largest value of a [`Scale`] is at least 13/10 of the smallest one, CPUs with values
/// below the mean are little cores. The capacities and frequencies of cores of one kind differ by
/// less, even if some of them are favoured.
const LITTLE_RATIO: (u64, u64) = (13, 10);

/// The kind of a core.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CoreType {
    /// A core that is not little: a P core, a big core, or any core if there is only one kind, or
    /// nothing is known.
    Big {
        /// Whether the core has the highest capacity, AMD ranking, CPPC performance or maximum
        /// frequency of all cores. The first of these in which cores differ is compared. False if
        /// all cores are equal.
        turbo: bool,
    },
    /// A core built for low power or small area: an E core, or a LITTLE core.
    Little,
}

impl CoreType {
    /// `big turbo`, `big` or `little`. The JSON form has an underscore for the space.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Big { turbo: true } => "big turbo",
            Self::Big { turbo: false } => "big",
            Self::Little => "little",
        }
    }
}

/// For a core about which nothing is known.
impl Default for CoreType {
    fn default() -> Self {
        Self::Big { turbo: false }
    }
}

/// `"big_turbo"`, `"big"` or `"little"`.
impl Serialize for CoreType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name().replace(' ', "_"))
    }
}

/// Capacity and core type of a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strength {
    /// 1 to [`MAX_CAPACITY`].
    pub(super) capacity: u32,
    pub(super) core_type: CoreType,
}

/// The kernel's lists of P and E cores.
#[derive(Clone, Debug)]
pub(super) struct Hybrid {
    big: Cpumask,
    little: Cpumask,
}

impl Hybrid {
    /// Reads the CPUs of the PMUs of hybrid Intel machines below `devices`: `cpu_core`, `cpu_atom`
    /// and, for E cores on another die, `cpu_lowpower`. Returns `None` on other machines, and if a
    /// CPU is listed both as a P core and as an E core.
    pub(super) fn read(devices: &Path, online: &Cpumask) -> Option<Self> {
        let list = |pmu: &str| sysfs::list_within(&devices.join(pmu).join("cpus"), online);
        let none = || Cpumask::new(online.nr_cpu_ids());
        let big = list("cpu_core");
        let little = [list("cpu_atom"), list("cpu_lowpower")];
        if big.is_none() && little.iter().all(Option::is_none) {
            return None;
        }
        let big = big.unwrap_or_else(none);
        let little = little
            .iter()
            .flatten()
            .fold(none(), |all, list| all.or(list));
        (!big.intersects(&little)).then_some(Self { big, little })
    }
}

/// Capacity and core type of each of `cpus`. For the core type, the lists of P and E cores have
/// precedence over numbers.
///
/// Numbers are from the first source in which CPUs differ: the kernel's capacities, AMD's two
/// rankings, the highest performance of CPPC, and the highest frequency. A source that ranks an E
/// core above every P core is skipped. If no source is left, all CPUs have the same capacity.
pub(super) fn strengths(cpus: &[RawCpu], hybrid: Option<&Hybrid>) -> Vec<Strength> {
    let scale = Scale::find(cpus, hybrid);
    let of_cpu = |(at, cpu): (usize, &RawCpu)| {
        let value = scale.as_ref().and_then(|scale| scale.values[at]);
        let measured = scale.as_ref().zip(value);
        let core_type = measured.map_or_else(CoreType::default, |(scale, v)| scale.core_type(v));
        let listed = |list: fn(&Hybrid) -> &Cpumask| hybrid.is_some_and(|h| list(h).test(cpu.id));
        let core_type = match core_type {
            _ if listed(|hybrid| &hybrid.little) => CoreType::Little,
            CoreType::Little if listed(|hybrid| &hybrid.big) => CoreType::default(),
            other => other,
        };
        let capacity = measured.map_or(MAX_CAPACITY, |(scale, value)| scale.capacity(value));
        Strength {
            capacity,
            core_type,
        }
    };
    cpus.iter().enumerate().map(of_cpu).collect()
}

/// The numbers of one source, and conclusions from them.
struct Scale {
    /// A value for each CPU, in the order of the CPUs. `None` if it is unknown, and never 0.
    values: Vec<Option<u32>>,
    max: u32,
    sum: u64,
    count: u64,
    /// Whether CPUs with values below the mean are little cores.
    has_little: bool,
}

impl Scale {
    fn find(cpus: &[RawCpu], hybrid: Option<&Hybrid>) -> Option<Self> {
        let frequencies = Self::of(cpus, |cpu| cpu.max_freq_khz);
        // Rankings may differ by large amounts even between cores of one kind. They say nothing
        // about kinds if the frequencies of all CPUs are known and show just one kind.
        let one_kind = Self::complete(cpus) && !frequencies.as_ref().is_some_and(|f| f.has_little);
        let ranking = |of: fn(&RawCpu) -> Option<u32>| {
            let mut scale = Self::of(cpus, of)?;
            scale.has_little &= !one_kind;
            Some(scale)
        };
        let scales = [
            Self::of(cpus, |cpu| cpu.strength.cpu_capacity),
            ranking(|cpu| cpu.strength.amd_prefcore_ranking),
            ranking(|cpu| cpu.strength.amd_highest_perf),
            ranking(|cpu| cpu.strength.cppc_highest_perf),
            frequencies,
        ];
        let mut scales = scales.into_iter().flatten();
        scales.find(|scale| hybrid.is_none_or(|hybrid| !scale.reverses(cpus, hybrid)))
    }

    /// Whether the highest frequency of every CPU is known.
    fn complete(cpus: &[RawCpu]) -> bool {
        cpus.iter().all(|cpu| cpu.max_freq_khz.is_some())
    }

    /// The scale of a source; None if no value is known, or all known values are equal.
    fn of(cpus: &[RawCpu], of: impl Fn(&RawCpu) -> Option<u32>) -> Option<Self> {
        let values: Vec<_> = cpus.iter().map(of).collect();
        let known: Vec<u32> = values.iter().flatten().copied().collect();
        let (&min, &max) = (known.iter().min()?, known.iter().max()?);
        let (times, per) = LITTLE_RATIO;
        (min < max).then(|| Self {
            max,
            sum: known.iter().copied().map(u64::from).sum(),
            count: known.iter().map(|_| 1).sum(),
            has_little: u64::from(max) * per >= u64::from(min) * times,
            values,
        })
    }

    /// Whether the source ranks an E core above every P core.
    fn reverses(&self, cpus: &[RawCpu], hybrid: &Hybrid) -> bool {
        let max_of = |list: &Cpumask| {
            let values = self.values.iter().zip(cpus);
            let listed = values.filter(|(_, cpu)| list.test(cpu.id));
            listed.filter_map(|(value, _)| *value).max()
        };
        let pair = max_of(&hybrid.big).zip(max_of(&hybrid.little));
        pair.is_some_and(|(big, little)| little > big)
    }

    fn core_type(&self, value: u32) -> CoreType {
        let turbo = value == self.max;
        let below_mean = u64::from(value) * self.count < self.sum;
        match self.has_little && below_mean {
            true => CoreType::Little,
            false => CoreType::Big { turbo },
        }
    }

    /// The capacity of a CPU with this value, in proportion to the largest value.
    fn capacity(&self, value: u32) -> u32 {
        let scaled = u64::from(value) * u64::from(MAX_CAPACITY) / u64::from(self.max.max(1));
        u32::try_from(scaled).map_or(MAX_CAPACITY, |scaled| scaled.clamp(1, MAX_CAPACITY))
    }
}
