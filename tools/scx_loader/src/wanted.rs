// SPDX-License-Identifier: GPL-2.0-only
//! What a caller requests, as it arrives on the bus, and its conversion to a request for the
//! supervisor.

use std::collections::HashMap;

use scx_utils::manifest::Mode;
use zbus::fdo::{Error, Result};
use zbus::OwnedVariant;

use crate::authority::{MANAGE, PASS_ARGUMENTS};
use crate::config::Config;
use crate::job::{Follower, Job};
use crate::registry::{check_args, shown, Registry};
use crate::supervisor::Request;

/// The argument `options` of `RunOperation`.
pub(crate) type Options = HashMap<String, OwnedVariant>;

/// A request of a caller, whose contents have not been checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Start(Choice),
    Switch(Choice),
    Stop,
    Restart,
    /// Switch to the default scheduler.
    Restore,
}

/// A scheduler, in a mode or with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    scheduler: String,
    how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    /// A mode by its number on the bus.
    Mode(u32),
    Args(Vec<String>),
}

impl Choice {
    pub(crate) fn in_mode(scheduler: impl Into<String>, mode: u32) -> Self {
        Self {
            scheduler: scheduler.into(),
            how: How::Mode(mode),
        }
    }

    pub(crate) fn with_args(scheduler: impl Into<String>, args: Vec<String>) -> Self {
        Self {
            scheduler: scheduler.into(),
            how: How::Args(args),
        }
    }

    /// Removes the options that describe a scheduler.
    fn take(options: &mut Options) -> Result<Self> {
        let scheduler: Option<String> = take(options, "scheduler")?;
        let no_scheduler = || Error::InvalidArgs("the option scheduler is missing".into());
        let scheduler = scheduler.ok_or_else(no_scheduler)?;
        let mode: Option<u32> = take(options, "mode")?;
        match (mode, take(options, "arguments")?) {
            (Some(_), Some(_)) => Err(Error::InvalidArgs("both mode and arguments".into())),
            (mode, None) => Ok(Self::in_mode(scheduler, mode.unwrap_or(0))),
            (None, Some(args)) => Ok(Self::with_args(scheduler, args)),
        }
    }

    fn action(&self) -> &'static str {
        match self.how {
            How::Mode(_) => MANAGE,
            How::Args(_) => PASS_ARGUMENTS,
        }
    }

    fn job(&self, config: &Config, registry: &Registry) -> Result<Job> {
        let job = match &self.how {
            How::Mode(number) => return job_in_mode(config, registry, &self.scheduler, *number),
            How::Args(args) => registry.find(&self.scheduler).and_then(|manifest| {
                check_args(manifest, args)?;
                Ok(Job {
                    scheduler: manifest.name.clone(),
                    mode: Mode::Auto,
                    effective: Mode::Auto,
                    follower: Follower::None,
                    is_custom: true,
                    args: args.clone(),
                })
            }),
        };
        job.map_err(|error| Error::InvalidArgs(error.to_string()))
    }
}

/// A scheduler in a mode, which is given by its number on the bus.
pub(crate) fn job_in_mode(
    config: &Config,
    registry: &Registry,
    scheduler: &str,
    mode: u32,
) -> Result<Job> {
    let no_mode = || Error::InvalidArgs(format!("there is no mode {mode}: modes are 0 to 4"));
    let mode = Mode::from_number(mode).ok_or_else(no_mode)?;
    let job = config.job(registry, scheduler, mode);
    job.map_err(|error| Error::InvalidArgs(error.to_string()))
}

impl Wanted {
    /// Parses an operation and its options, the arguments of `RunOperation`.
    pub(crate) fn parse(operation: &str, mut options: Options) -> Result<Self> {
        let wanted = match operation {
            "start" => Self::Start(Choice::take(&mut options)?),
            "switch" => Self::Switch(Choice::take(&mut options)?),
            "stop" => Self::Stop,
            "restart" => Self::Restart,
            "restore" => Self::Restore,
            _ => {
                let all = "operations: start, switch, stop, restart, restore";
                return Err(Error::InvalidArgs(all.into()));
            }
        };
        match options.into_keys().next() {
            Some(name) => {
                let text = format!("{operation} has no option {}", shown(&name));
                Err(Error::InvalidArgs(text))
            }
            None => Ok(wanted),
        }
    }

    /// The polkit action that the caller must be authorized for.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Self::Start(choice) | Self::Switch(choice) => choice.action(),
            Self::Stop | Self::Restart | Self::Restore => MANAGE,
        }
    }

    /// Checks the contents, and converts them to a request for the supervisor, according to the
    /// current configuration.
    pub(crate) fn request(&self, config: &Config, registry: &Registry) -> Result<Request> {
        match self {
            Self::Start(choice) => Ok(Request::Start(choice.job(config, registry)?)),
            Self::Switch(choice) => Ok(Request::Switch(choice.job(config, registry)?)),
            Self::Stop => Ok(Request::Stop),
            Self::Restart => Ok(Request::Restart),
            Self::Restore => {
                let none = || Error::Failed("no default scheduler is configured".into());
                Ok(Request::Switch(config.default.clone().ok_or_else(none)?))
            }
        }
    }
}

/// Removes an option, and returns its value.
fn take<T: TryFrom<OwnedVariant>>(options: &mut Options, name: &str) -> Result<Option<T>> {
    let value = options.remove(name).map(T::try_from).transpose();
    value.map_err(|_| Error::InvalidArgs(format!("the option {name} has another type")))
}

#[cfg(test)]
mod tests {
    use zbus::wire::Variant;

    use super::*;

    fn options(names: &[(&str, Variant<'_>)]) -> Options {
        let owned = |value: &Variant<'_>| value.try_to_owned().unwrap();
        let all = names.iter();
        all.map(|(name, value)| ((*name).into(), owned(value)))
            .collect()
    }

    fn registry() -> Registry {
        Registry::of([crate::registry::tests::manifest("scx_x")])
    }

    #[test]
    fn request_depends_on_the_configuration_when_it_is_converted() {
        let wanted = Wanted::parse("restore", Options::new()).unwrap();
        let mut config = Config::default();
        assert!(wanted.request(&config, &registry()).is_err());
        config.default = config.job(&registry(), "scx_x", Mode::Auto).ok();
        let Ok(Request::Switch(job)) = wanted.request(&config, &registry()) else {
            panic!("no request");
        };
        assert_eq!(job.scheduler, "scx_x");
    }

    #[test]
    fn arguments_need_another_authorization() {
        let mode = options(&[("scheduler", "x".into()), ("mode", 3_u32.into())]);
        let wanted = Wanted::parse("start", mode).unwrap();
        assert_eq!(wanted, Wanted::Start(Choice::in_mode("x", 3)));
        assert_eq!(wanted.action(), MANAGE);
        let args = options(&[("scheduler", "x".into()), ("arguments", vec!["-f"].into())]);
        let wanted = Wanted::parse("switch", args).unwrap();
        assert_eq!(wanted.action(), PASS_ARGUMENTS);
        let request = wanted.request(&Config::default(), &registry());
        assert!(matches!(request, Ok(Request::Switch(job)) if job.is_custom));
    }

    #[test]
    fn errors_quote_untrusted_text_shortened() {
        let name = "\n".repeat(1 << 20);
        let error = Wanted::parse("stop", options(&[(&name, 1_u32.into())])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("stop has no option '\\n"), "{text}");
        assert!(text.len() < 300, "{} bytes", text.len());
    }
}
