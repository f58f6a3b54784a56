// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler's description for programs that start it: its name, its options, its arguments in
//! each mode, and its kernel requirements. Each scheduler has a file, generated at build time: by
//! the option `--manifest` of Rust schedulers, and by build-aux/manifest.py for C schedulers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The goal for which a scheduler is tuned. The modes are the same for all schedulers.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Mode {
    /// The scheduler's defaults.
    #[default]
    Auto,
    /// Even frame rates while other programs compute.
    Gaming,
    /// Less power, at the cost of latency.
    PowerSave,
    /// Low latency, at the cost of throughput.
    LowLatency,
    /// Throughput, at the cost of latency.
    Server,
}

impl Mode {
    /// All modes, in the order of their numbers on D-Bus.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Gaming,
        Self::PowerSave,
        Self::LowLatency,
        Self::Server,
    ];

    /// The number of the mode on D-Bus.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The mode with this number on D-Bus.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.number() == number)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Gaming => "gaming",
            Self::PowerSave => "powersave",
            Self::LowLatency => "lowlatency",
            Self::Server => "server",
        })
    }
}

/// A text that is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no mode '{0}': auto, gaming, powersave, lowlatency or server")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Ignores case: the configuration file of scx_loader has names such as `PowerSave`.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let named = |mode: &Self| mode.to_string().eq_ignore_ascii_case(text);
        let unknown = || UnknownMode(text.chars().take(40).collect());
        Self::ALL.into_iter().find(named).ok_or_else(unknown)
    }
}

/// A scheduler's arguments in each mode; none in [`Mode::Auto`].
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // See Mode.
pub struct Modes {
    pub gaming: &'static [&'static str],
    pub power_save: &'static [&'static str],
    pub low_latency: &'static [&'static str],
    pub server: &'static [&'static str],
}

impl Modes {
    /// For a scheduler without modes.
    pub const NONE: Self = Self {
        gaming: &[],
        power_save: &[],
        low_latency: &[],
        server: &[],
    };
}

impl From<Modes> for BTreeMap<Mode, Vec<String>> {
    fn from(modes: Modes) -> Self {
        let args = |mode| match mode {
            Mode::Auto => &[],
            Mode::Gaming => modes.gaming,
            Mode::PowerSave => modes.power_save,
            Mode::LowLatency => modes.low_latency,
            Mode::Server => modes.server,
        };
        let owned = |mode| args(mode).iter().map(ToString::to_string).collect();
        Mode::ALL
            .into_iter()
            .map(|mode| (mode, owned(mode)))
            .collect()
    }
}

/// How many values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// None: it is a flag.
    None,
    /// `--option value` or `--option=value`.
    One,
    /// `--option value value…`.
    Many,
}

/// An option that may be passed to a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionInfo {
    /// The long name without the leading hyphens, such as `slice-us`.
    pub long: String,
    /// The option's short form, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<char>,
    /// The number of values that the option takes.
    pub values: Values,
}

impl From<&clap::Arg> for OptionInfo {
    fn from(arg: &clap::Arg) -> Self {
        let most = arg.get_num_args().map_or(1, |range| range.max_values());
        Self {
            long: arg.get_long().unwrap_or_default().to_owned(),
            short: arg.get_short(),
            values: match arg.get_action().takes_values() {
                false => Values::None,
                true if most > 1 => Values::Many,
                true => Values::One,
            },
        }
    }
}

/// The description of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The program's name: `scx_rusty`. The scheduler's name in the kernel has no prefix `scx_`.
    pub name: String,
    /// The options that may be passed. For a Rust scheduler: all of its own options, and the common
    /// options `--partial` and `--verbose`.
    pub options: Vec<OptionInfo>,
    /// The scheduler's arguments in each mode.
    pub modes: BTreeMap<Mode, Vec<String>>,
    /// The arguments with which the scheduler follows the machine's power profile while it runs, in
    /// addition to the arguments of the mode auto. `None` if it cannot follow the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_profile_args: Option<Vec<String>>,
    /// The kfuncs that the scheduler requires.
    pub kfuncs: Vec<String>,
}

impl Manifest {
    /// The name of the scheduler in the kernel's file `root/ops`.
    #[must_use]
    pub fn ops(&self) -> &str {
        ops(&self.name)
    }
}

/// The name of a scheduler in the kernel (`sched_ext_ops.name`), given the name of its program:
/// `rusty` for `scx_rusty`.
#[must_use]
pub fn ops(name: &str) -> &str {
    name.strip_prefix("scx_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_the_numbers_of_the_bus() {
        let numbers: Vec<_> = Mode::ALL.map(Mode::number).into();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        for mode in Mode::ALL {
            assert_eq!(Mode::from_number(mode.number()), Some(mode));
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!(Mode::from_number(5), None);
    }

    #[test]
    fn modes_are_read_in_either_case() {
        assert_eq!("PowerSave".parse(), Ok(Mode::PowerSave));
        assert_eq!("LOWLATENCY".parse(), Ok(Mode::LowLatency));
        assert!("turbo".parse::<Mode>().is_err());
        assert!("".parse::<Mode>().is_err());
    }

    #[test]
    fn options_say_how_many_values_they_take() {
        let info = |arg: clap::Arg| OptionInfo::from(&arg.long("x"));
        let arg = || clap::Arg::new("x");
        let switch = arg().action(clap::ArgAction::SetTrue).short('x');
        assert_eq!(info(switch.clone()).values, Values::None);
        assert_eq!(info(switch).short, Some('x'));
        assert_eq!(
            info(arg().action(clap::ArgAction::Count)).values,
            Values::None
        );
        assert_eq!(info(arg()).values, Values::One);
        assert_eq!(info(arg().num_args(1..)).values, Values::Many);
    }
}
