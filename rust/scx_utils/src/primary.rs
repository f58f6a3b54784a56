// SPDX-License-Identifier: GPL-2.0-only
//! The primary domain: the CPUs that a scheduler fills first.

use std::fmt;
use std::str::FromStr;

use crate::cpumask::{Cpumask, CpumaskError, MAX_NR_CPU_IDS};
use crate::power::Profile;
use crate::topology::{CoreType, Topology};

/// A choice of CPUs, as a value of an option.
///
/// ```
/// use scx_utils::primary::Primary;
///
/// assert_eq!("powersave".parse(), Ok(Primary::Powersave));
/// let mask: Primary = "0xff00".parse()?;
/// assert_eq!(mask.to_string(), "ff00");
/// # Ok::<(), scx_utils::primary::PrimaryError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Primary {
    /// Little CPUs while the power profile asks to save power, otherwise all.
    #[default]
    Auto,
    /// No CPU is preferred.
    All,
    /// Big CPUs.
    Performance,
    /// Little CPUs.
    Powersave,
    /// The most powerful CPUs.
    Turbo,
    /// The CPUs of the mask.
    Mask(Cpumask),
}

/// A text that is not a primary domain.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PrimaryError {
    /// Neither a word nor a mask.
    #[error(
        "'{text}' is not a primary domain: use auto, all, none, performance, powersave, turbo, or \
         a hex CPU mask such as ff,00000000"
    )]
    Unknown {
        /// The text, truncated.
        text: String,
    },
    /// A mask with a CPU id of [`MAX_NR_CPU_IDS`] or more.
    #[error(transparent)]
    Mask(CpumaskError),
}

impl Primary {
    /// The primary domain, as wide as the topology's masks. `Auto` depends on the power profile:
    /// `saving` are the profiles that ask to save power.
    ///
    /// `None` if the domain would be all online CPUs, or no online CPU.
    #[must_use]
    pub fn cpus(
        &self,
        topology: &Topology,
        profile: Option<Profile>,
        saving: &[Profile],
    ) -> Option<Cpumask> {
        let of_type = |is_chosen: fn(CoreType) -> bool| {
            let cores = topology.cores().iter();
            let chosen = cores.filter(|core| is_chosen(core.core_type));
            let none = Cpumask::new(topology.nr_cpu_ids());
            chosen.fold(none, |all, core| all.or(core.span()))
        };
        let little = |core_type| core_type == CoreType::Little;
        let chosen = match self {
            Self::Auto if profile.is_some_and(|profile| saving.contains(&profile)) => {
                of_type(little)
            }
            Self::Auto | Self::All => return None,
            Self::Performance => of_type(|core_type| matches!(core_type, CoreType::Big { .. })),
            Self::Powersave => of_type(little),
            Self::Turbo => of_type(|core_type| core_type == CoreType::Big { turbo: true }),
            Self::Mask(mask) => mask.and(topology.online()).resized(topology.nr_cpu_ids()),
        };
        let is_all = topology.online().is_subset(&chosen);
        (!is_all && !chosen.is_empty()).then_some(chosen)
    }
}

/// Accepts words in upper or lower case, and masks as [`Cpumask::from_hex`] does. The word `none`
/// is the same as `all`.
impl FromStr for Primary {
    type Err = PrimaryError;

    fn from_str(text: &str) -> Result<Self, PrimaryError> {
        Ok(match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Self::Auto,
            "all" | "none" => Self::All,
            "performance" => Self::Performance,
            "powersave" => Self::Powersave,
            "turbo" => Self::Turbo,
            hex => Self::Mask(mask(hex)?),
        })
    }
}

/// A mask just wide enough for its CPUs: the machine's width is not known here.
fn mask(hex: &str) -> Result<Cpumask, PrimaryError> {
    let mask = Cpumask::from_hex(hex, MAX_NR_CPU_IDS).map_err(|error| match error {
        CpumaskError::BadHex { text } => PrimaryError::Unknown { text },
        error => PrimaryError::Mask(error),
    })?;
    let width = mask.last().map_or(0, |last| last + 1);
    Ok(mask.resized(width))
}

/// Writes a text that is parsed as the same value.
impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::All => f.write_str("all"),
            Self::Performance => f.write_str("performance"),
            Self::Powersave => f.write_str("powersave"),
            Self::Turbo => f.write_str("turbo"),
            Self::Mask(mask) => mask.fmt(f),
        }
    }
}
